"""The cells of a text file at their places, so that some can change and the rest stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from leafkernel.tables._layout import Dialect, is_blank
from leafkernel.tables._missing import MISSING

_SAMPLE = 1000  # records that show whether the cells of a column have quotes

Change = Callable[[int, int, str], "str | None"]


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
            value = inner.replace('""', '"') + (behind or "")
            record.append(Cell(match.start(1), written, value))
        place = match.end()
        at_end = place == len(text)
        if end != dialect.separator or at_end:
            if end == dialect.separator:
                record.append(Cell(place, "", ""))
            if not is_blank([cell.value for cell in record if cell.written or record[1:]]):
                yield record
            record = []


def change_cells(text: str, dialect: Dialect, change: Change) -> Iterator[str]:
    """Yield a text in parts, with some of its cells changed and everything else as it is.

    Parameters
    ----------
    text : str
        The content of a file.
    dialect : Dialect
        How it is written.
    change : callable
        Takes the number of a row (-1 for the names of the columns), the number of a column and the
        value of a cell; returns the new value, or None to keep the cell.
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
