"""Folders of unfinished work: what is done stays done, also after a crash."""

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
with suppress(ImportError):  # Windows has no such locks
    fcntl = import_module("fcntl")

Array = npt.NDArray[Any]

#: The note of what is done.
STATE = "state.json"
# Arrays begin behind a header of this size, which is written again when their length is known.
_HEADER = 128
_LOCK = "lock"


def seal(**told: Any) -> str:
    """Return a short text that is the same only for the same values."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class Work:
    """A folder of work that can be interrupted at any moment, and the note of what is done.

    Parameters
    ----------
    folder : Path
        The folder. It is made if it is not there.
    identity : str or None
        What tells this work from others: see :func:`seal`. A folder with other work is refused.
        Work without an identity begins anew.
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
                f"{folder} is needed for unfinished work, but holds other files; move them away."
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
                    f"{folder} holds unfinished work on other data or with other settings. To go "
                    "on with that, call it as before. To begin anew, delete the folder."
                )

    def _hold(self, folder: Path) -> None:
        """Keep other processes and threads out, until this object or its process is gone."""
        if fcntl is None:
            return
        file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise BlockingIOError(
                f"{folder} is in use: the same work is under way in another process or thread."
            ) from None
        except OSError:  # a file system without locks
            os.close(file)
            return
        weakref.finalize(self, os.close, file)

    def note(self, **done: Any) -> None:
        """Write down what is done, in one step."""
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
        except ValueError:  # what has no entries cannot be mapped
            array = np.load(path)
        array.flags.writeable = False
        return array.view(np.ndarray)


class GrowingArray:
    """An NPY file that grows by rows.

    Parameters
    ----------
    path : Path
        The file. What it holds behind the first ``n_rows`` rows is cut off.
    width : int
        Length of a row.
    dtype : dtype
        Type of the entries.
    n_rows : int
        Rows that are there already.
    """

    def __init__(self, path: Path, width: int, dtype: npt.DTypeLike, n_rows: int) -> None:
        self.dtype, self.width, self.n_rows = np.dtype(dtype), width, n_rows
        self._file = path.open("r+b" if n_rows else "w+b")
        self._file.truncate(_HEADER + n_rows * width * self.dtype.itemsize)
        self._file.seek(0, os.SEEK_END)

    def append(self, rows: Array) -> None:
        """Add rows, and make sure that they are on the disk."""
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self._sync()
        self.n_rows += len(rows)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the header, which tells how many rows there are, if nothing went wrong."""
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
