"""A folder of plain arrays and one JSON file: written whole or not at all, and checked when read.

::

    folder/
        saved.json            what there is, with sizes, types and checksums
        data-1f2e3d4c5b6a/    the arrays, as NPY files, and the forest

A save writes a new data folder beside the old one and then replaces ``saved.json`` in one step. A
crash before that step leaves the old save as it was. Nothing here uses pickle: reading runs no
code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._files import open_whole

Array = npt.NDArray[Any]

#: The version of the format. Raise it when an older leafkernel could not read what is written.
VERSION = 2
_FORMAT = "leafkernel proximity"
MANIFEST = "saved.json"
# Types of numbers, truth values, texts and dates: none of them can hold an object.
_KINDS = "biufUSmM"
_FILE_NAME = re.compile(r"[a-z0-9_]+\.[a-z]+")
_DATA_NAME = re.compile(r"data-[0-9a-f]{12}")
# A folder of a save that is not finished is left alone for a day: it may go on.
_DAY = 86_400


class DamagedError(ValueError):
    """A saved proximity is not what was written: damaged, cut short, changed, or too new."""


class FolderWriter:
    """Collects the parts of a save. Use :func:`writing`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self._known: dict[Any, str] = {}
        self._kept: list[Array] = []  # so that no address is used twice

    def array(self, name: str, array: Array | None) -> str | None:
        """Write an array, once even if it is given under two names; return its name."""
        if array is None:
            return None
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"{name} has dtype {array.dtype}, which is no plain array.")
        interface = array.__array_interface__
        key = (interface["data"][0], array.shape, array.strides, array.dtype.str)
        if key not in self._known:
            self._known[key] = name
            self._kept.append(array)
            path = self.folder / f"{name}.npy"
            with path.open("wb") as file:
                np.save(file, array, allow_pickle=False)
                _sync(file)
            self._note(path, array)
        return self._known[key]

    def adopt(self, name: str, array: Array) -> None:
        """Take an array that is mapped from its file in this folder already."""
        interface = array.__array_interface__
        self._known[interface["data"][0], array.shape, array.strides, array.dtype.str] = name
        self._kept.append(array)
        self._note(self.folder / f"{name}.npy", array)

    def _note(self, path: Path, array: Array) -> None:
        shape = {"dtype": array.dtype.str, "shape": list(array.shape)}
        self.files[path.name] = {**_describe(path), **shape}

    def file(self, name: str) -> Path:
        """Return where to write a file that is no array; call :meth:`add` when it is there."""
        return self.folder / name

    def add(self, name: str) -> str:
        """Note a file that was written."""
        path = self.folder / name
        with path.open("rb+") as file:
            _sync(file)
        self.files[name] = _describe(path)
        return name


@contextmanager
def writing(
    folder: Path, values: dict[str, Any], begun: Path | None = None
) -> Iterator[FolderWriter]:
    """Write a save: its parts within the context, ``values`` and the rest when it ends well.

    A data folder that was begun before is used. If something goes wrong it stays, to go on with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not is_ours(folder):
        raise FileExistsError(
            f"{folder} holds other files than a saved proximity; give a folder of its own."
        )
    token = secrets.token_hex(6)
    part, data = begun or folder / f".part-{token}", begun or folder / f"data-{token}"
    part.mkdir(exist_ok=begun is not None)
    try:
        writer = FolderWriter(part)
        yield writer
        os.rename(part, data)
        replaced = _data_name(folder)
        content = {
            "format": _FORMAT,
            "version": VERSION,
            "data": data.name,
            "files": writer.files,
            "values": values,
        }
        with open_whole(folder / MANIFEST) as file:
            file.write(_sealed(content))
            _sync(file)
    except BaseException:
        for path in (part, data) if begun is None else ():
            shutil.rmtree(path, ignore_errors=True)
        raise
    for path in data.iterdir():  # what was needed only to go on after an interruption
        if path.name not in writer.files:
            path.unlink(missing_ok=True)
    if replaced is not None and replaced != data.name:
        shutil.rmtree(folder / replaced, ignore_errors=True)
    _remove_leftovers(folder)


class FolderReader:
    """Reads the parts of a save.

    Parameters
    ----------
    folder : Path
        The folder.
    content : dict
        What its JSON file says.
    verify : bool
        Whether to compare all checksums first.
    """

    def __init__(self, folder: Path, content: dict[str, Any], *, verify: bool) -> None:
        self.folder = folder / content["data"]
        self.files: dict[str, dict[str, Any]] = content["files"]
        self.values: dict[str, Any] = content["values"]
        for name, told in self.files.items():
            path = self._path(name)
            found = path.stat().st_size if path.is_file() else -1
            if found != told["bytes"]:
                is_missing = "is missing" if found < 0 else f"has {found:,} bytes"
                raise DamagedError(
                    f"{path} {is_missing}, but {told['bytes']:,} bytes were written: the saved "
                    "proximity is damaged; save it again."
                )
        if verify:
            self.verify()

    def verify(self) -> None:
        """Compare the checksums of all files."""
        names = list(self.files)
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            sums = list(pool.map(lambda name: _checksum(self._path(name)), names))
        for name, found in zip(names, sums, strict=True):
            if found != self.files[name]["sha256"]:
                raise DamagedError(
                    f"{self._path(name)} has another checksum than when it was written: the saved "
                    "proximity is damaged; save it again."
                )

    def array(self, name: str | None) -> Array | None:
        """Return an array, mapped into memory and read-only."""
        if name is None:
            return None
        told = self.files.get(f"{name}.npy")
        if told is None:
            raise DamagedError(f"{self.folder} has no array {name!r}.")
        shape, dtype = tuple(told["shape"]), np.dtype(told["dtype"])
        if dtype.kind not in _KINDS:
            raise DamagedError(f"array {name!r} is said to have dtype {dtype}.")
        path = self._path(f"{name}.npy")
        try:
            # An array without entries cannot be mapped.
            mapped: Any = "r" if np.prod(shape) else None
            array: Array = np.load(path, mmap_mode=mapped, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DamagedError(f"{path} is no NPY file ({error}); save it again.") from error
        if array.shape != shape or array.dtype != dtype:
            raise DamagedError(
                f"{path} holds {array.dtype} of shape {array.shape}, but {dtype} of shape {shape} "
                "was written; save it again."
            )
        array.flags.writeable = False
        return array.view(np.ndarray)  # still mapped

    def need(self, name: str) -> Array:
        """Return an array that must be there."""
        array = self.array(name)
        if array is None:
            raise DamagedError(f"{self.folder} lacks an array that is needed.")
        return array

    def path(self, name: str) -> Path:
        """Return where a file is that is no array."""
        if name not in self.files:
            raise DamagedError(f"{self.folder} has no file {name!r}.")
        return self._path(name)

    def _path(self, name: str) -> Path:
        if not _FILE_NAME.fullmatch(name):
            raise DamagedError(f"{self.folder} names a file {name!r}, which no save has.")
        return Path(self.folder, name)


def reading(
    folder: Path, read: Callable[[FolderReader], dict[str, Any]], *, verify: bool
) -> dict[str, Any]:
    """Return what a function reads, or say that the save is damaged.

    A save that is replaced meanwhile takes its files along. Then the new one is read.
    """
    while True:
        content = _read_manifest(folder)
        try:
            return read(FolderReader(folder, content, verify=verify))
        except (DamagedError, OSError):
            if _data_name(folder) in (None, content["data"]):
                raise
        except (KeyError, IndexError, AttributeError) as error:
            raise DamagedError(
                f"{folder} lacks something that a saved proximity has ({error!r}); save it again."
            ) from error


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FileNotFoundError(
            f"{folder} holds no saved proximity: {path.name} cannot be read ({error})."
        ) from error
    try:
        content = json.loads(raw)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError("it is another file")
        version = content["version"]
        if isinstance(version, int) and version > VERSION:
            raise DamagedError(
                f"{folder} was saved by a newer leafkernel (format {version}; this one reads up to "
                f"{VERSION}); install a newer leafkernel."
            )
        if _sealed({name: value for name, value in content.items() if name != "sha256"}) != raw:
            raise ValueError("its checksum is wrong")
        if not _DATA_NAME.fullmatch(content["data"]):
            raise ValueError("it names another folder")
    except DamagedError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path} is damaged ({error}); save the proximity again.") from error
    return content


def _sealed(content: dict[str, Any]) -> bytes:
    """Return the manifest as bytes, with a checksum of itself."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    seal = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**content, "sha256": seal}, sort_keys=True, indent=1).encode() + b"\n"


def _data_name(folder: Path) -> str | None:
    """Return the data folder of the save that is there; None where there is none to read."""
    with suppress(DamagedError, FileNotFoundError):
        name: str = _read_manifest(folder)["data"]
        return name
    return None


def is_ours(folder: Path) -> bool:
    """Return whether a folder holds nothing but a save."""
    known = (MANIFEST, ".part-", "data-")
    return all(path.name.startswith((*known, ".")) for path in folder.iterdir())


def _remove_leftovers(folder: Path) -> None:
    """Remove folders of saves that died or were overtaken, once they are a day old."""
    current = _data_name(folder)
    for path in (*folder.glob(".part-*"), *folder.glob("data-*")):
        with suppress(OSError):
            if path.name != current and time.time() - path.stat().st_mtime > _DAY:
                shutil.rmtree(path, ignore_errors=True)


def _describe(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": _checksum(path)}


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
