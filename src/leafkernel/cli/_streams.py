"""The standard streams of the process. They can be closed, full, or no longer read."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from leafkernel.cli.errors import FileError


def open_closed_streams() -> None:
    """Replace closed standard streams, which are None in Python.

    Reading a closed standard input and writing to a closed standard output still fail, but with the
    usual errors. Messages for a closed standard error are dropped.
    """
    for name, wrong_way, mode in (
        ("stdin", os.O_WRONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, wrong_way), mode))


@contextmanager
def writing_stdout() -> Iterator[None]:
    """Turn a failure to write to standard output into a FileError.

    If the reader stopped reading, as ``head`` does after ten lines, a BrokenPipeError is raised.
    """
    try:
        yield
    except BrokenPipeError:
        give_up(sys.stdout)
        raise
    except OSError as error:
        give_up(sys.stdout)
        raise FileError(f"standard output cannot be written: {reason(error)}.") from error


def reason(error: OSError) -> str:
    """Return the reason why a file cannot be read or written."""
    return "it is closed" if error.errno == errno.EBADF else str(error.strerror or error)


def give_up(stream: Any) -> None:
    """Send the pending and future output of a stream to the null device.

    Otherwise Python would report the failure again at exit.
    """
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
