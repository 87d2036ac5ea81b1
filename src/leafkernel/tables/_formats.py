"""Which format a file has, by its name and by its first bytes."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from leafkernel.tables._room import explain_damage
from leafkernel.tables.errors import FileError

# What the end of a name says a file is.
_SUFFIXES = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".csv.gz": "gzip",
    ".tsv.gz": "gzip",
    ".txt.gz": "gzip",
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
}
_ALIKE = 0.7  # share of two names that is the same for one to be meant by the other

# What the first bytes of a file say it is, and what to do with what is not a table here.
_SAVE_AS_CSV = "open it in its program and save the table as CSV"
_UNPACK = "unpack it first"
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "gzip", "rename it to end in .csv.gz"),
    (b"PAR1", "parquet", "rename it to end in .parquet"),
    (b"ARROW1", "feather", "rename it to end in .feather"),
    (b"\xff\xff\xff\xff", "stream", "rename it to end in .arrow"),
    (b"FEA1", "an old Feather file (version 1)", "write it again with a newer program"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook", f"{_UNPACK}, or {_SAVE_AS_CSV}"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", _SAVE_AS_CSV),
    (b"BZh", "a bzip2 archive", _UNPACK),
    (b"\xfd7zXZ", "an xz archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", _UNPACK),
    (b"7z\xbc\xaf", "a 7-Zip archive", _UNPACK),
    (b"%PDF", "a PDF document", "export the table itself as CSV"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV"),
    (b"\x89HDF", "an HDF5 file", "export the table as CSV or Parquet"),
    (b"\x93NUMPY", "a NumPy array", "save it as a table, with names of columns"),
)
_MARKUP = re.compile(rb"(\xef\xbb\xbf)?\s*(<!doctype|<html|<head|<body|<\?xml|<table)", re.I)
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{\s*\"|\[\s*[\{\[])")


def find_format(path: Path, name: str) -> str:
    """Return what a file is, by its name and its first bytes, which must agree."""
    if re.match(r"(https?|ftp|s3|gs):/", str(path)):
        raise FileError(f"{name} is an address, not a file. Download it first.")
    if path.is_dir():
        raise FileError(f"{name} is a folder. Give one file in it.")
    suffix = suffix_of(path)
    promised = _SUFFIXES.get(suffix)
    if not path.exists():
        raise FileError(f"There is no file {name}.{_suggest_file(path)}")
    if not path.is_file():
        raise FileError(
            f"{name} is a pipe or a device, not a file. Pipe the table to the command, and give - "
            "as its name."
        )
    found, remedy = look(path, name)
    if promised is None:
        listed = ", ".join(_SUFFIXES)
        what = f"it is {describe(found)}, so {remedy}" if remedy else "rename it if it is one"
        raise FileError(f"The name of {name} should end in one of {listed}; {what}.")
    if promised == "feather" and found == "stream":
        return found
    if promised != found:
        remedy = remedy or "export the table again, or give it the ending of what it is"
        raise FileError(
            f"{name} ends in {suffix} but is {describe(found)}, not {describe(promised)}; {remedy}."
        )
    return found


def suffix_of(path: Path) -> str:
    """Return the end of a file's name that says its format, in small letters.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leafkernel.tables._formats import suffix_of
    >>> suffix_of(Path("Birds.v2.CSV.gz"))
    '.csv.gz'
    """
    parts = [part.lower() for part in path.suffixes]
    return "".join(parts[-2:]) if parts[-1:] == [".gz"] else "".join(parts[-1:])


def look(path: Path, name: str) -> tuple[str, str]:
    """Return what the first bytes of a file say it is, and what to do if that is no table."""
    with explain_damage(name), path.open("rb") as file:
        start = file.read(512)
    if not start:
        raise FileError(f"{name} is empty (0 bytes). Give a table with a line of column names.")
    for signature, kind, remedy in _SIGNATURES:
        if start.startswith(signature):
            return kind, remedy
    if _MARKUP.match(start):
        return "a web page or XML", "download or export the table itself as CSV"
    if _JSON.match(start):
        return "JSON", "convert it to CSV or Parquet first"
    return "text", ""


def describe(kind: str) -> str:
    known = {
        "text": "plain text",
        "gzip": "a gzip file",
        "parquet": "a Parquet file",
        "feather": "a Feather file",
        "stream": "an Arrow stream",
    }
    return known.get(kind, kind)


def _suggest_file(path: Path) -> str:
    try:
        found = [each for each in path.parent.iterdir() if each.exists()]  # no broken links
        names = [each.name for each in found if suffix_of(each) in _SUFFIXES]
    except OSError:
        return " Nor is there such a folder." if not path.parent.exists() else ""
    # By what stands before the endings, which nearly all names have in common.
    stems = {_stem(Path(name)): name for name in names}
    nearest = difflib.get_close_matches(_stem(path), stems, n=1, cutoff=_ALIKE)
    return f" Did you mean {stems[nearest[0]]!r}?" if nearest else ""


def _stem(path: Path) -> str:
    return path.name[: len(path.name) - len(suffix_of(path))].lower()
