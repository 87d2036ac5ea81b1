"""A folder of arrays and one JSON file, written atomically and checked when read.

::

    folder/
        saved.json            list of all files, with sizes, types and checksums
        data-1f2e3d4c5b6a/    the arrays, as NPY files, and the forest

Saving writes a new data folder next to the old one and then replaces ``saved.json`` in one step. If
it crashes before that step, the old save is unchanged. No pickle is used, so reading executes no
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

#: Version of the format. Increase it when older versions cannot read new files.
VERSION = 2
_FORMAT = "leafkernel proximity"
MANIFEST = "saved.json"
# Kinds of dtypes for numbers, booleans, text and dates. None of them contains objects.
_KINDS = "biufUSmM"
_FILE_NAME = re.compile(r"[a-z0-9_]+\.[a-z]+")
_DATA_NAME = re.compile(r"data-[0-9a-f]{12}")
# Unfinished saves are kept for a day, because they may be resumed.
_DAY = 86_400


class DamagedError(ValueError):
    """A saved proximity is damaged, incomplete, modified, or has a newer format."""


class FolderWriter:
    """Writes the files of a save. Use :func:`writing`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self._known: dict[Any, str] = {}
        self._kept: list[Array] = []  # keep arrays alive, so that addresses stay unique

    def array(self, name: str, array: Array | None) -> str | None:
        """Write an array and return its name. An array with two names is written once."""
        if array is None:
            return None
        if array.dtype.kind not in _KINDS:
            raise TypeError(
                f"{name} has dtype {array.dtype}, which cannot be saved. Use numbers, text or "
                "dates."
            )
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
        """Add an array that is already mapped from its file in this folder."""
        interface = array.__array_interface__
        self._known[interface["data"][0], array.shape, array.strides, array.dtype.str] = name
        self._kept.append(array)
        self._note(self.folder / f"{name}.npy", array)

    def _note(self, path: Path, array: Array) -> None:
        shape = {"dtype": array.dtype.str, "shape": list(array.shape)}
        self.files[path.name] = {**_describe(path), **shape}

    def file(self, name: str) -> Path:
        """Return the path for a file that is not an array. Call :meth:`add` after writing it."""
        return self.folder / name

    def add(self, name: str) -> str:
        """Add a file that was written."""
        path = self.folder / name
        with path.open("rb+") as file:
            _sync(file)
        self.files[name] = _describe(path)
        return name


def check_folder(folder: Path) -> None:
    """Raise an error if a folder contains other files than a saved proximity."""
    if folder.is_file():
        raise FileExistsError(f"folder={str(folder)!r} is a file. Pass the name of a folder.")
    if folder.exists() and not is_ours(folder):
        raise FileExistsError(
            f"folder={str(folder)!r} contains files that are not a saved proximity. Use a new or "
            "empty folder."
        )


@contextmanager
def writing(
    folder: Path, values: dict[str, Any], begun: Path | None = None
) -> Iterator[FolderWriter]:
    """Write a save. Its files are written within the context, and the JSON file at the end.

    If ``begun`` is an unfinished data folder, it is used. It is kept on errors, so that the work
    can be resumed.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
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
    with suppress(FileNotFoundError):  # another process may have replaced this save already
        for path in data.iterdir():  # files that were needed only to resume
            if path.name not in writer.files:
                path.unlink(missing_ok=True)
    if replaced is not None and replaced != data.name:
        shutil.rmtree(folder / replaced, ignore_errors=True)
    _remove_leftovers(folder)


class FolderReader:
    """Reads the files of a save.

    Parameters
    ----------
    folder : Path
        The folder.
    content : dict
        Content of its JSON file.
    verify : bool
        Whether to verify all checksums first.
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
                    f"The saved proximity is damaged: {path} {is_missing}, but {told['bytes']:,} "
                    "bytes were written. Save it again."
                )
        if verify:
            self.verify()

    def verify(self) -> None:
        """Verify the checksums of all files."""
        names = list(self.files)
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            sums = list(pool.map(lambda name: _checksum(self._path(name)), names))
        for name, found in zip(names, sums, strict=True):
            if found != self.files[name]["sha256"]:
                raise DamagedError(
                    f"The saved proximity is damaged: the checksum of {self._path(name)} is wrong. "
                    "Save it again."
                )

    def array(self, name: str | None) -> Array | None:
        """Return an array, memory-mapped and read-only."""
        if name is None:
            return None
        told = self.files.get(f"{name}.npy")
        if told is None:
            raise DamagedError(
                f"The saved proximity is damaged: {self.folder} has no array {name!r}. Save it "
                "again."
            )
        shape, dtype = tuple(told["shape"]), np.dtype(told["dtype"])
        if dtype.kind not in _KINDS:
            raise DamagedError(
                f"The saved proximity is damaged: array {name!r} has dtype {dtype}. Save it again."
            )
        path = self._path(f"{name}.npy")
        try:
            # Empty arrays cannot be memory-mapped.
            mapped: Any = "r" if np.prod(shape) else None
            array: Array = np.load(path, mmap_mode=mapped, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DamagedError(
                f"The saved proximity is damaged: {path} is not an NPY file ({error}). Save it "
                "again."
            ) from error
        if array.shape != shape or array.dtype != dtype:
            raise DamagedError(
                f"The saved proximity is damaged: {path} contains {array.dtype} of shape "
                f"{array.shape}, but {dtype} of shape {shape} was written. Save it again."
            )
        array.flags.writeable = False
        return array.view(np.ndarray)  # still memory-mapped

    def need(self, name: str) -> Array:
        """Return an array, or raise an error if it is missing."""
        array = self.array(name)
        if array is None:
            raise DamagedError(
                f"The saved proximity is damaged: {self.folder} has no array {name!r}. Save it "
                "again."
            )
        return array

    def path(self, name: str) -> Path:
        """Return the path of a file that is not an array."""
        if name not in self.files:
            raise DamagedError(
                f"The saved proximity is damaged: {self.folder} has no file {name!r}. Save it "
                "again."
            )
        return self._path(name)

    def _path(self, name: str) -> Path:
        if not _FILE_NAME.fullmatch(name):
            raise DamagedError(
                f"The saved proximity is damaged: {self.folder} refers to the invalid file "
                f"{name!r}. Save it again."
            )
        return Path(self.folder, name)


def reading(
    folder: Path, read: Callable[[FolderReader], dict[str, Any]], *, verify: bool
) -> dict[str, Any]:
    """Return the result of a function that reads a save, or raise an error if it is damaged.

    If another process replaces the save in the meantime, the new one is read.
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
                f"The saved proximity in {folder} is damaged: a value is missing ({error!r}). Save "
                "it again."
            ) from error


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        if not folder.exists():
            raise FileNotFoundError(
                f"folder={str(folder)!r} does not exist. Pass the folder that prox.save wrote."
            ) from error
        raise FileNotFoundError(
            f"folder={str(folder)!r} contains no saved proximity: {path.name} cannot be read "
            f"({error}). Pass the folder that prox.save wrote."
        ) from error
    try:
        content = json.loads(raw)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError("unknown format")
        version = content["version"]
        if isinstance(version, int) and version > VERSION:
            raise DamagedError(
                f"{folder} was saved by a newer version of leafkernel (format {version}; this "
                f"version reads up to {VERSION}). Install a newer version."
            )
        if _sealed({name: value for name, value in content.items() if name != "sha256"}) != raw:
            raise ValueError("wrong checksum")
        if not _DATA_NAME.fullmatch(content["data"]):
            raise ValueError("wrong data folder")
    except DamagedError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path} is damaged ({error}). Save the proximity again.") from error
    return content


def _sealed(content: dict[str, Any]) -> bytes:
    """Return the JSON file as bytes, including a checksum of its content."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    seal = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**content, "sha256": seal}, sort_keys=True, indent=1).encode() + b"\n"


def _data_name(folder: Path) -> str | None:
    """Return the data folder of the current save, or None if there is none."""
    with suppress(DamagedError, FileNotFoundError):
        name: str = _read_manifest(folder)["data"]
        return name
    return None


def is_ours(folder: Path) -> bool:
    """Return whether a folder contains nothing but a save."""
    known = (MANIFEST, ".part-", "data-")
    return all(path.name.startswith((*known, ".")) for path in folder.iterdir())


def _remove_leftovers(folder: Path) -> None:
    """Remove data folders of crashed or replaced saves that are older than a day."""
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
