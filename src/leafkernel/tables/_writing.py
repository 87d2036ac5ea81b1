"""Write tables to files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from leafkernel._files import open_whole
from leafkernel._validation import shorten
from leafkernel.tables._findings import unique_names
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._missing import is_missing, quote
from leafkernel.tables._notation import SPACES, read_amount
from leafkernel.tables.errors import FileError

TYPED_FORMATS = (".parquet", ".feather")
WRITTEN_FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", *TYPED_FORMATS)

_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(
    rf"[-+]?(\d+[.,]?\d*|[.,]\d+|\d{{1,3}}([.,{SPACES}]\d{{3}})+([.,]\d+)?)([eE][-+]?\d+)?"
)


def write_file(path: Path, write: Callable[[str, BinaryIO], None]) -> None:
    """Write a file completely or not at all.

    ``write`` takes the suffix of the name and the open file.
    """
    suffix = suffix_of(path)
    if suffix not in WRITTEN_FORMATS:
        raise FileError(
            f"The output {str(path)!r} has an unknown file type. The name must end in one of "
            f"{', '.join(WRITTEN_FORMATS)}."
        )
    if path.is_dir() or not path.parent.is_dir():
        what = (
            "it is a folder" if path.is_dir() else f"the folder {str(path.parent)!r} does not exist"
        )
        raise FileError(f"{str(path)!r} cannot be written: {what}. Use another name.")
    try:
        with open_whole(path) as file:
            write(suffix, file)
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error


def write_as(suffix: str, frame: Any, file: BinaryIO) -> None:
    """Write a table to an open file in the format of a suffix."""
    if suffix in TYPED_FORMATS:
        plain = _plain_types(frame)
        plain.to_parquet(file, index=False) if suffix == ".parquet" else plain.to_feather(file)
        return
    text = map_text(frame, lambda cell: cell.replace("\0", ""))  # not allowed in CSV files
    # Python before 3.13 does not quote cells that contain a carriage return.
    cells = (cell for _, column in text_columns(text) for cell in column)
    returns = any("\r" in cell for cell in cells if isinstance(cell, str))
    text.to_csv(
        file,
        mode="wb",
        sep="\t" if suffix.startswith(".tsv") else ",",
        index=False,
        encoding="utf-8",
        lineterminator="\n",  # the same on each platform
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        compression={"method": "gzip", "mtime": 0} if suffix.endswith(".gz") else None,
    )


def _plain_types(frame: Any) -> Any:
    """Return a frame for Arrow, with columns of mixed types converted to text."""
    plain = frame.reset_index(drop=True)
    plain.columns = unique_names(plain.columns)
    for i, column in text_columns(plain):
        present = [value for value in column if not is_missing(value)]
        if column.dtype == object and len(set(map(type, present))) > 1:
            texts = [None if is_missing(value) else str(value) for value in column]
            plain.isetitem(i, pd.Series(texts, dtype=object))
    plain.attrs = {}
    return plain


# --- text that a spreadsheet would run as a formula


def is_formula(value: Any) -> bool:
    """Return whether a spreadsheet would run a cell as a formula."""
    if not isinstance(value, str) or not value.lstrip(" \0").startswith(_DANGEROUS):
        return False
    text = value.strip(" ")
    if not text.strip("=+-@ "):  # a dash for a missing value, or several dashes
        return False
    return _NUMBER.fullmatch(text) is None and read_amount(text) is None


def text_columns(frame: Any) -> Iterator[tuple[int, Any]]:
    """Yield the position and the values of each column whose type allows text."""
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "uifcmMb":
            yield i, frame.iloc[:, i]


def map_text(frame: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of a table with all of its text changed."""
    changed = frame.copy()
    for i, column in text_columns(frame):
        values = [change(value) if isinstance(value, str) else value for value in column]
        changed.isetitem(i, pd.Series(values, index=frame.index, dtype=object))
    return changed


def formula_notes(frame: Any) -> list[str]:
    """Return a note on columns with formulas; an empty list if there are none."""
    counts = {i: sum(map(is_formula, column)) for i, column in text_columns(frame)}
    found = []
    for i, name in enumerate(frame.columns):
        count = counts.get(i, 0) + is_formula(name)
        if count:
            found.append(f"{quote(str(name))} ({count:,} cell{'s' * (count > 1)})")
    if not found:
        return []
    return [
        "Some text begins with =, +, - or @, and a spreadsheet would run it as a formula. Use "
        f"--escape-formulas to put an apostrophe before it. Columns: {shorten(found, 20)}."
    ]


def defuse(frame: Any) -> Any:
    """Return a table in which formulas are escaped for spreadsheets.

    Cells and column names that start with one of ``= + - @``, a tab or a line end get an
    apostrophe in front. Numbers stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from leafkernel.tables._writing import defuse
    >>> defuse(pd.DataFrame({"note": ["=1+1", "fine", "-5"]}))["note"].tolist()
    ["'=1+1", 'fine', '-5']
    """
    safe = map_text(frame, escape)
    safe.columns = [escape(name) for name in safe.columns]
    return safe


def escape(value: Any) -> Any:
    """Return a cell, with an apostrophe in front if it is a formula."""
    return f"'{value}" if is_formula(value) else value
