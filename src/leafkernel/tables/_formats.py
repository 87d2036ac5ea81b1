"""Detect the format of a file from its name and its first bytes."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from leafkernel.tables._room import explain_damage
from leafkernel.tables.errors import FileError

TEXT, GZIP = "plain text", "a gzip file"
PARQUET, FEATHER, STREAM = "a Parquet file", "a Feather file", "an Arrow stream"

# The format that a suffix stands for.
_SUFFIXES = {
    **dict.fromkeys([".csv", ".tsv", ".txt"], TEXT),
    **dict.fromkeys([".csv.gz", ".tsv.gz", ".txt.gz"], GZIP),
    ".parquet": PARQUET,
    ".feather": FEATHER,
    ".arrow": FEATHER,
}
_ALIKE = 0.7  # similarity of file names from which one is suggested

# The first bytes of each format, its name, and the advice for a file with this content.
_SAVE_AS_CSV = "open it in its program and save the table as CSV"
_UNPACK = "unpack it first"
_MARK = rb"(?i)(\xef\xbb\xbf)?\s*"
_STARTS: tuple[tuple[bytes, str, str], ...] = (
    (rb"\x1f\x8b", GZIP, "rename it to end in .csv.gz"),
    (rb"PAR1", PARQUET, "rename it to end in .parquet"),
    (rb"ARROW1", FEATHER, "rename it to end in .feather"),
    (rb"\xff\xff\xff\xff", STREAM, "rename it to end in .arrow"),
    (rb"FEA1", "an old Feather file (version 1)", "write it again with a newer program"),
    (rb"PK\x03\x04", "a zip archive or an Excel workbook", f"{_UNPACK}, or {_SAVE_AS_CSV}"),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook", _SAVE_AS_CSV),
    (rb"BZh", "a bzip2 archive", _UNPACK),
    (rb"\xfd7zXZ", "an xz archive", _UNPACK),
    (rb"\x28\xb5\x2f\xfd", "a Zstandard archive", _UNPACK),
    (rb"7z\xbc\xaf", "a 7-Zip archive", _UNPACK),
    (rb"%PDF", "a PDF document", "export the table itself as CSV"),
    (rb"SQLite format 3", "an SQLite database", "export the table as CSV"),
    (rb"\x89HDF", "an HDF5 file", "export the table as CSV or Parquet"),
    (rb"\x93NUMPY", "a NumPy array", "save it as a table with column names"),
    (
        _MARK + rb"(<!doctype|<html|<head|<body|<\?xml|<table)",
        "a web page or XML",
        "download or export the table itself as CSV",
    ),
    (_MARK + rb"(\{\s*\"|\[\s*[\{\[])", "JSON", "convert it to CSV or Parquet first"),
)


def find_format(path: Path, name: str) -> str:
    """Return the format of a file. Its name and its first bytes must agree."""
    if re.match(r"(https?|ftp|s3|gs):/", str(path)):
        raise FileError(f"{name} is a URL, not a file. Download it first.")
    if path.is_dir():
        raise FileError(f"{name} is a folder. Use a file in it.")
    if not path.exists():
        raise FileError(f"{name} was not found.{_suggest_file(path)}")
    if not path.is_file():
        raise FileError(
            f"{name} is a pipe or a device, not a file. Pipe the table to the command, and write - "
            "instead of a file name."
        )
    found, remedy = look(path, name)
    suffix = suffix_of(path)
    promised = _SUFFIXES.get(suffix)
    if promised is None:
        what = f"It is {found}: {remedy}" if remedy else "Rename it if it has one of these formats"
        raise FileError(
            f"{name} has an unknown file type. The name must end in one of {', '.join(_SUFFIXES)}. "
            f"{what}."
        )
    if promised != found and (promised, found) != (FEATHER, STREAM):
        remedy = remedy or "export the table again, or change the name to match the content"
        raise FileError(f"{name} ends in {suffix} but is {found}, not {promised}: {remedy}.")
    return found


def suffix_of(path: Path) -> str:
    """Return the suffix of a file's name in lower case, including ".gz".

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
    """Return the format of a file from its first bytes, and advice on wrong formats."""
    with explain_damage(name), path.open("rb") as file:
        start = file.read(512)
    if not start:
        raise FileError(f"{name} is empty (0 bytes). Use a table with a line of column names.")
    known = ((kind, remedy) for begin, kind, remedy in _STARTS if re.match(begin, start))
    return next(known, (TEXT, ""))


def _suggest_file(path: Path) -> str:
    if not path.parent.exists():
        return f" The folder {path.parent} does not exist."
    try:
        found = [each for each in path.parent.iterdir() if each.exists()]  # no broken links
    except OSError:
        return ""
    # Compare names without suffixes, because most files have the same suffix.
    stems = {_stem(each): each.name for each in found if suffix_of(each) in _SUFFIXES}
    nearest = difflib.get_close_matches(_stem(path), stems, n=1, cutoff=_ALIKE)
    return f" Did you mean {stems[nearest[0]]!r}?" if nearest else " Check its name and folder."


def _stem(path: Path) -> str:
    return path.name.lower().removesuffix(suffix_of(path))
