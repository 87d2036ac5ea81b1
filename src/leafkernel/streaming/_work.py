"""Folders for work that can be resumed after an interruption or a crash."""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._files import open_whole

fcntl: Any = None
with suppress(ImportError):  # not available on Windows
    fcntl = import_module("fcntl")

Array = npt.NDArray[Any]

#: The file that records the progress.
STATE = "state.json"
# Size of the header of an array file. The header is rewritten when the length is known.
_HEADER = 128
_LOCK = "lock"


def seal(**told: Any) -> str:
    """Return a hash of the values."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class Work:
    """A folder for work that can be interrupted at any time, with a record of its progress.

    Parameters
    ----------
    folder : Path
        The folder. It is created if it does not exist.
    identity : str or None
        Text that identifies the work; see :func:`seal`. A folder with other work is rejected. Work
        without an identity starts over.
    """

    def __init__(self, folder: Path, identity: str | None) -> None:
        self.folder = folder
        path = folder / STATE
        if (
            folder.exists()
            and not path.exists()
            and any(file.name != _LOCK for file in folder.iterdir())
        ):
            raise FileExistsError(
                f"{folder} is needed for intermediate results, but contains other files. Move them "
                "away."
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._hold(folder)
        self.state: dict[str, Any] = {"identity": identity}
        if path.exists() and identity is None:
            for file in folder.iterdir():
                file.unlink()
            self._hold(folder)
        elif path.exists():
            self.state = json.loads(path.read_bytes())
            if self.state["identity"] != identity:
                raise FileExistsError(
                    f"{folder} contains unfinished work on other data or with other settings. To "
                    "resume it, make the same call as before. To start over, delete the folder."
                )

    def _hold(self, folder: Path) -> None:
        """Lock the folder until this object or its process is gone."""
        if fcntl is None:
            return
        file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise BlockingIOError(
                f"{folder} is locked: the same work is running in another process or thread. "
                "Wait until it has finished."
            ) from None
        except OSError:  # the file system does not support locks
            os.close(file)
            return
        weakref.finalize(self, os.close, file)

    def note(self, **done: Any) -> None:
        """Update the record of the progress, in one step."""
        self.state.update(done)
        with open_whole(self.folder / STATE) as file:
            file.write(json.dumps(self.state).encode())
            file.flush()
            os.fsync(file.fileno())

    def put(self, name: str, array: Array) -> Array:
        """Write an array in one step, and return it mapped from its file."""
        with open_whole(self.folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        return self.get(name)

    def has(self, name: str) -> bool:
        """Return whether an array was written."""
        return (self.folder / f"{name}.npy").exists()

    def get(self, name: str) -> Array:
        """Return an array, mapped from its file and read-only."""
        path = self.folder / f"{name}.npy"
        try:
            array: Array = np.load(path, mmap_mode="r")
        except ValueError:  # empty arrays cannot be memory-mapped
            array = np.load(path)
        array.flags.writeable = False
        return array.view(np.ndarray)


class GrowingArray:
    """An NPY file to which rows can be appended.

    Parameters
    ----------
    path : Path
        The file. Everything after the first ``n_rows`` rows is removed.
    width : int
        Length of a row.
    dtype : dtype
        Type of the entries.
    n_rows : int
        Number of existing rows.
    """

    def __init__(self, path: Path, width: int, dtype: npt.DTypeLike, n_rows: int) -> None:
        self.dtype, self.width, self.n_rows = np.dtype(dtype), width, n_rows
        self._file = path.open("r+b" if n_rows else "w+b")
        self._file.truncate(_HEADER + n_rows * width * self.dtype.itemsize)
        self._file.seek(0, os.SEEK_END)

    def append(self, rows: Array) -> None:
        """Append rows, and flush them to disk."""
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self._sync()
        self.n_rows += len(rows)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the header with the number of rows, unless an error occurred."""
        if kind is None:
            self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        told = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.n_rows, self.width)}
        text = repr(told).encode()
        head = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._file.write(head + text.ljust(_HEADER - 11) + b"\n")
        self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
