"""Error handling of commands: print a message and set an exit code instead of a traceback."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from leafkernel.cli._options import TalkOptions
from leafkernel.cli._output import Talk
from leafkernel.cli.errors import CommandError, FileError

# A table that does not fit in memory gets the exit code of a file that cannot be read. Values that
# the library rejects get the exit code of a table that cannot be used.
_UNEXPECTED, _NO_MEMORY, _REFUSED, _INTERRUPTED = 1, 3, 4, 130


@contextmanager
def guarded(command: str, options: TalkOptions) -> Iterator[Talk]:
    """Yield the output of a command; report its errors and set the exit code."""
    talk = Talk(command, json=options.json, quiet=options.quiet)
    try:
        with warnings.catch_warnings(), talk:
            talk.take_warnings()
            yield talk
    except typer.Exit:
        raise
    except BrokenPipeError:
        # The reader stopped reading, as `head` does after ten lines. This is not an error.
        raise typer.Exit(0) from None
    except (Exception, KeyboardInterrupt) as error:
        if options.traceback:
            traceback.print_exc()
        message, exit_code = _explain(error, talk, samples=hasattr(options, "max_rows"))
        talk.error(message, exit_code)
        raise typer.Exit(exit_code) from None


def _explain(error: BaseException, talk: Talk, *, samples: bool) -> tuple[str, int]:
    """Return the message for an error, and the exit code of the process."""
    text = str(error)
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted: {text or 'nothing was written.'}", _INTERRUPTED
    if isinstance(error, CommandError):
        return text, error.exit_code
    if isinstance(error, MemoryError):
        why = f": {text}" if text else "."
        remedy = "Use fewer rows with --max-rows." if samples else "Use a smaller table."
        return f"not enough memory{why} {remedy}", _NO_MEMORY
    if isinstance(error, ImportError) and "pip install" in text:
        return text, _UNEXPECTED
    if isinstance(error, (ValueError, TypeError)) and _is_ours(error):
        return text, _REFUSED
    if talk.suspect is not None and isinstance(error, Exception):
        return talk.suspect(error), FileError.exit_code
    return (
        f"unexpected error: {type(error).__name__}: {text}\n"
        "This is probably a bug. Run the command again with --traceback, and please report it.",
        _UNEXPECTED,
    )


def _is_ours(error: BaseException) -> bool:
    """Return whether leafkernel raised the error, so that its message is meant for the user."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and str(frames[-1].f_globals.get("__name__")).startswith("leafkernel.")
