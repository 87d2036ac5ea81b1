"""The command ``leafkernel``: a table in, what a forest makes of it out, without writing code.

Only :func:`main` stands here, for it must run where the extra ``cli`` is not installed, and say so.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from leafkernel.cli._streams import open_closed_streams, writing_stdout
from leafkernel.cli.errors import FileError

# What the extra brings, and the modules of it that a command cannot start without.
_EXTRA = frozenset({"typer", "click", "rich", "pandas", "pyarrow", "shellingham"})


def main() -> None:
    """Run the command with the arguments of this process, and end the process."""
    open_closed_streams()
    try:
        _run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        sys.stderr.write(
            f"leafkernel: the command needs {missing}, which is not installed; install what it "
            "needs with: pip install 'leafkernel[cli]'\n"
        )
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        raise SystemExit(0) from None
    except FileError as error:
        with suppress(OSError):
            sys.stderr.write(f"error: {error}\n")
        raise SystemExit(error.exit_code) from None


def _run() -> None:
    from leafkernel.cli.app import app  # noqa: PLC0415 - may be missing

    with writing_stdout():
        try:
            app(prog_name="leafkernel")
        finally:
            sys.stdout.flush()  # an error at exit would come too late to be explained
