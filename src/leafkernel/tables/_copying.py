"""Write a copy of a text table with some cells changed and everything else unchanged."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from leafkernel.tables._formats import suffix_of
from leafkernel.tables._layout import Dialect, Source, encode_exactly, is_blank, read_exactly
from leafkernel.tables._missing import MISSING
from leafkernel.tables._writing import escape

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_SAMPLE = 1000  # records that are searched for quotes around the cells of a column


@dataclass(frozen=True)
class TextCopy:
    """A text table and the new values of some of its cells."""

    text: str  # the content of the file
    dialect: Dialect
    ending: str  # suffix of the file's name without ".gz"; "" for standard input
    # New values by row number and column number.
    fills: Mapping[tuple[int, int], str] = field(default_factory=dict)
    escape_formulas: bool = False  # put an apostrophe before formulas

    @classmethod
    def of(cls, file: Source, dialect: Dialect) -> TextCopy:
        """Read the file to copy."""
        return cls(read_exactly(file, dialect.encoding), dialect, _ending(file.path))

    def note(self, output: Path | None) -> str | None:
        """Return a note if the name of the output implies another separator.

        In this case the table cannot be copied and is written from scratch.
        """
        ending = "" if output is None else _ending(output)
        own, wanted = self.dialect.separator, _SEPARATORS.get(ending, self.dialect.separator)
        # Files that end in .csv often have semicolons.
        is_same = own == wanted or "\t" not in (own, wanted) or ending == self.ending
        if output is None or is_same:
            return None
        return (
            f"{output.name} was written in UTF-8 with {_NAMES[wanted]} as separators, because its "
            f"name ends in {ending}. The input has {_NAMES[own]} as separators."
        )

    def write(self, suffix: str, file: BinaryIO) -> None:
        """Write the table to an open file. The suffix is "" for standard output."""
        parts = change_cells(self.text, self.dialect, self._change)
        encoded = (encode_exactly(part, self.dialect.encoding) for part in parts)
        if suffix.endswith(".gz"):
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                packed.writelines(encoded)
        else:
            file.writelines(encoded)

    def _change(self, row: int, column: int, value: str) -> str | None:
        new = self.fills.get((row, column))
        if not self.escape_formulas:
            return new
        safe: str = escape(value if new is None else new)
        return new if safe == value else safe


def _ending(path: Path) -> str:
    return suffix_of(path).removesuffix(".gz")


class Cell(NamedTuple):
    """A cell: its position in the text, its text including quotes, and its value."""

    start: int
    written: str
    value: str


def split_records(text: str, dialect: Dialect) -> Iterator[list[Cell]]:
    """Yield the records of a text, split like the csv module does, without blank records."""
    rest = rf"[^{re.escape(dialect.separator)}\r\n]*"
    # A quote that is never closed extends to the end of the text, as in the csv module.
    quoted = rf'"((?:[^"]+|"")*)(?:"({rest}))?'
    pattern = re.compile(
        rf"{' *' if dialect.spaced else ''}(?:({quoted})|({rest}))"
        rf"({re.escape(dialect.separator)}|\r\n|\n|\r|\Z)"
    )
    place, record = int(text.startswith("\ufeff")), []
    while place < len(text):
        match = pattern.match(text, place)
        assert match is not None  # the pattern matches the empty string
        written, inner, behind, bare, end = match.groups()
        if written is None:
            record.append(Cell(match.start(4), bare, bare))
        else:
            record.append(Cell(match.start(1), written, inner.replace('""', '"') + (behind or "")))
        place = match.end()
        if end == dialect.separator and place == len(text):
            record.append(Cell(place, "", ""))
        if end != dialect.separator or place == len(text):
            if not is_blank([cell.value for cell in record if cell.written or record[1:]]):
                yield record
            record = []


def change_cells(
    text: str, dialect: Dialect, change: Callable[[int, int, str], str | None]
) -> Iterator[str]:
    """Yield the parts of a text with some cells changed and everything else unchanged.

    ``change`` takes a row number (-1 for the column names), a column number and the value of the
    cell. It returns the new value, or None to keep the cell.
    """
    quoted = _quoted_columns(text, dialect)
    copied = 0
    for row, record in enumerate(split_records(text, dialect), start=-1):
        for column, cell in enumerate(record):
            value = change(row, column, cell.value)
            if value is not None:
                yield text[copied : cell.start]
                has_quotes = column in quoted or cell.written.startswith('"')
                yield quote_cell(value, dialect.separator, always=has_quotes)
                copied = cell.start + len(cell.written)
    yield text[copied:]


def _quoted_columns(text: str, dialect: Dialect) -> set[int]:
    """Return the columns in which all text is quoted, based on a sample."""
    bare: set[int] = set()
    quoted: set[int] = set()
    for record in islice(split_records(text, dialect), 1, _SAMPLE):
        for column, cell in enumerate(record):
            if cell.written.startswith('"'):
                quoted.add(column)
            elif cell.value not in MISSING:
                bare.add(column)
    return quoted - bare


def quote_cell(value: str, separator: str, *, always: bool = False) -> str:
    """Return a value as a cell, quoted if necessary."""
    if always or value.startswith((" ", '"')) or any(sign in value for sign in f'{separator}"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value
