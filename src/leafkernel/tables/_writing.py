"""Tables to files: complete under their names, or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from leafkernel._files import open_whole
from leafkernel.tables._findings import unique_names
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._formulas import map_text, text_columns
from leafkernel.tables._missing import is_missing
from leafkernel.tables.errors import FileError

TYPED_FORMATS = (".parquet", ".feather")
WRITTEN_FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", *TYPED_FORMATS)


def write_file(path: Path, write: Callable[[str, BinaryIO], None]) -> None:
    """Write a file: complete under its name, or not at all.

    ``write`` takes the end of the name, which says the format, and the open file.
    """
    suffix = suffix_of(path)
    if suffix not in WRITTEN_FORMATS:
        raise FileError(
            f"The name of the output {str(path)!r} should end in one of "
            f"{', '.join(WRITTEN_FORMATS)}."
        )
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"lies in {str(path.parent)!r}, which is none"
        raise FileError(f"{str(path)!r} cannot be written: it {what}. Give another name.")
    try:
        with open_whole(path) as file:
            write(suffix, file)
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error


def write_as(suffix: str, frame: Any, file: BinaryIO) -> None:
    """Write a table to an open file, in the format that a suffix stands for."""
    if suffix in TYPED_FORMATS:
        plain = _plain_types(frame)
        plain.to_parquet(file, index=False) if suffix == ".parquet" else plain.to_feather(file)
        return
    text = map_text(frame, lambda cell: cell.replace("\0", ""))  # which no CSV file may hold
    # Python before 3.13 puts no quotes around a cell for the sake of a carriage return.
    cells = (cell for _, column in text_columns(text) for cell in column)
    returns = any("\r" in cell for cell in cells if isinstance(cell, str))
    text.to_csv(
        file,
        mode="wb",
        sep="\t" if suffix.startswith(".tsv") else ",",
        index=False,
        encoding="utf-8",
        lineterminator="\n",  # the same file on each system
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        compression={"method": "gzip", "mtime": 0} if suffix.endswith(".gz") else None,
    )


def _plain_types(frame: Any) -> Any:
    """Return a frame that Arrow takes: columns of mixed things become text."""
    plain = frame.reset_index(drop=True)
    plain.columns = unique_names(plain.columns)
    for i, column in text_columns(plain):
        present = [value for value in column if not is_missing(value)]
        if column.dtype == object and len(set(map(type, present))) > 1:
            texts = [None if is_missing(value) else str(value) for value in column]
            plain.isetitem(i, pd.Series(texts, dtype=object))
    plain.attrs = {}
    return plain
