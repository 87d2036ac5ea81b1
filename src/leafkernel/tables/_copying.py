"""Writing a text table again, with the missing cells filled and everything else as it is."""

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
_SAMPLE = 1000  # records that show whether the cells of a column have quotes


@dataclass(frozen=True)
class TextCopy:
    """A text table, and what to write into some of its cells."""

    text: str  # the content of the file
    dialect: Dialect
    ending: str  # of the file's name, without ".gz"; "" for the standard input
    # New values by the number of the row and of the column.
    fills: Mapping[tuple[int, int], str] = field(default_factory=dict)
    escape_formulas: bool = False  # put an apostrophe in front of formulas

    @classmethod
    def of(cls, file: Source, dialect: Dialect) -> TextCopy:
        """Read a file that is to be written again."""
        return cls(read_exactly(file, dialect.encoding), dialect, _ending(file.path))

    def note(self, output: Path | None) -> str | None:
        """Return a note if the name of the output asks for another separator.

        The table is then to be written anew.
        """
        ending = "" if output is None else _ending(output)
        own, wanted = self.dialect.separator, _SEPARATORS.get(ending, self.dialect.separator)
        # What ends in .csv often has semicolons.
        is_same = own == wanted or "\t" not in (own, wanted) or ending == self.ending
        if output is None or is_same:
            return None
        return (
            f"{output.name} was written with {_NAMES[wanted]} between cells and in UTF-8, because "
            f"its name ends in {ending}. The table that was read has {_NAMES[own]} between cells."
        )

    def write(self, suffix: str, file: BinaryIO) -> None:
        """Write the table to an open file; "" as the suffix stands for the standard output."""
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
    """A cell: its place in the text, its text as written, and its value."""

    start: int
    written: str
    value: str


def split_records(text: str, dialect: Dialect) -> Iterator[list[Cell]]:
    """Yield the records of a text as the csv module finds them, without those that are blank."""
    rest = rf"[^{re.escape(dialect.separator)}\r\n]*"
    # An opening quote that is never closed takes in all that follows, as in the csv module.
    quoted = rf'"((?:[^"]+|"")*)(?:"({rest}))?'
    pattern = re.compile(
        rf"{' *' if dialect.spaced else ''}(?:({quoted})|({rest}))"
        rf"({re.escape(dialect.separator)}|\r\n|\n|\r|\Z)"
    )
    place, record = int(text.startswith("\ufeff")), []
    while place < len(text):
        match = pattern.match(text, place)
        assert match is not None  # it can match nothing at all
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
    """Yield a text in parts, with some of its cells changed and everything else as it is.

    ``change`` takes the number of a row (-1 for the names of the columns), the number of a column
    and the value of a cell; it returns the new value, or None to keep the cell.
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
    """Return the columns in which all text has quotes around it, as far as a sample tells."""
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
    """Return a value as a cell, in quotes if it needs them."""
    if always or value.startswith((" ", '"')) or any(sign in value for sign in f'{separator}"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value
