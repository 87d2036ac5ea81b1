"""Folders of unfinished work: what is done stays done, also after a crash."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._files import open_whole

Array = npt.NDArray[Any]

#: The note of what is done.
STATE = "state.json"
# Arrays begin behind a header of this size, which is written again when their length is known.
_HEADER = 128


def seal(**told: Any) -> str:
    """Return a short text that is the same only for the same values."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class Work:
    """A folder of work that can be interrupted at any moment, and the note of what is done.

    Parameters
    ----------
    folder : Path
        The folder. It is made if it is not there.
    identity : str
        What tells this work from others: see :func:`seal`. A folder with other work is refused.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / STATE
        self.state: dict[str, Any] = {"identity": identity}
        if path.exists():
            self.state = json.loads(path.read_bytes())
            if self.state["identity"] != identity:
                raise FileExistsError(
                    f"{folder} holds unfinished work on other data or with other settings. To go "
                    "on with that, call it as before. To begin anew, delete the folder."
                )

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
