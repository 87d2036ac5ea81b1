"""The ``leafkernel`` command: analyze a table with a forest without writing code.

This module defines only ``main``. It must import even when the extra ``cli`` is not installed, so
that it can report what is missing.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from leafkernel.cli._streams import open_closed_streams, writing_stdout
from leafkernel.cli.errors import FileError

# Modules that the extra `cli` installs and that every command needs.
_EXTRA = frozenset({"typer", "click", "rich", "pandas", "pyarrow", "shellingham"})


def main() -> None:
    """Run the command with the arguments of this process and exit."""
    open_closed_streams()
    try:
        _run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        sys.stderr.write(
            f"leafkernel: the command needs {missing}, which is not installed. "
            'Install it with: pip install "leafkernel[cli]"\n'
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
            sys.stdout.flush()  # at exit it would be too late to report an error
