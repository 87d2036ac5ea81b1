"""The standard streams of the process, which may be closed, full, or no longer read."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from leafkernel.cli.errors import FileError


def open_closed_streams() -> None:
    """Replace each standard stream that is closed, for which Python has None.

    Reading the new standard input and writing to the new standard output fail as they do for a
    closed file. Messages for a closed standard error are dropped.
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
    """Turn a failure to write to the standard output into an error for people.

    A reader that has left, as `head` does after ten lines, is still a BrokenPipeError.
    """
    try:
        yield
    except BrokenPipeError:
        give_up(sys.stdout)
        raise
    except OSError as error:
        give_up(sys.stdout)
        raise FileError(f"The standard output cannot be written: {reason(error)}.") from error


def reason(error: OSError) -> str:
    """Return why a file cannot be read or written."""
    return "it is closed" if error.errno == errno.EBADF else str(error.strerror or error)


def give_up(stream: Any) -> None:
    """Drop what a stream still holds and will get, so that nothing is said of it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
