"""Write files atomically."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing bytes. It appears under its name only when it is complete.

    Until then, and after an error, an existing file is unchanged. Symbolic links are followed. A
    replaced file keeps its permissions, and its owner and group if the process may set them. Pipes
    and devices are written directly.

    Parameters
    ----------
    path : str or path-like
        The file to write.

    Yields
    ------
    file : binary file
        Open for writing.
    """
    target = Path(os.path.realpath(path))
    try:
        replaced = target.stat()
    except FileNotFoundError:
        replaced = None
    flags = os.O_WRONLY | getattr(os, "O_BINARY", 0)
    # Opened by descriptor: if the file had a name, pandas would open it again by name.
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        with os.fdopen(os.open(target, flags), "wb") as file:
            yield file
        return
    # Short, because the name of the target may already have the maximum length.
    temporary = target.with_name(f".{secrets.token_hex(6)}.part")
    mode = 0o666 if replaced is None else 0o600  # the umask applies to new files
    descriptor = os.open(temporary, flags | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if replaced is not None and os.name == "posix":
                _keep_access(descriptor, replaced)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _keep_access(descriptor: int, replaced: os.stat_result) -> None:
    """Give an open file the owner, group and permissions of the file that it replaces."""
    mode = stat.S_IMODE(replaced.st_mode)
    with suppress(OSError):  # only root may change the owner
        os.fchown(descriptor, replaced.st_uid, -1)
    try:
        os.fchown(descriptor, -1, replaced.st_gid)
    except OSError:
        # Another group must not get the permissions of the old group.
        mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    os.fchmod(descriptor, mode)
