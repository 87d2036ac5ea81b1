"""How the lines of a text file are to be read: its separator and the names of its columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str
    spaced: bool = False  # blanks after a separator are no part of the cell
    encoding: str = "utf-8"  # as guess_encoding names it

    @property
    def options(self) -> dict[str, Any]:
        """What the csv module calls it."""
        return {"delimiter": self.separator, "skipinitialspace": self.spaced}


def find_layout(head: str, encoding: str) -> tuple[list[str], Dialect, int]:
    """Return the names of the columns, how the file is written, and the number of cells."""
    separator = max("\t|;,", key=lambda each: _score(_records(head, Dialect(each))))
    header = _records(head, Dialect(separator))[0]
    spaced = len(header) > 1 and all(name.startswith(" ") for name in header[1:])
    dialect = Dialect(separator, spaced, encoding)
    header, *body = _records(head, dialect)
    n_cells = sum(map(len, body))
    is_longer = [len(each) == len(header) + 1 and each[-1].strip() for each in body]
    if len(header) > 1 and body and all(is_longer):
        header = ["", *header]  # R names no column of row names
    while len(header) > 1 and not header[-1].strip() and not _any_at(body, len(header) - 1):
        header = header[:-1]  # a separator at the end of each line
    return header, dialect, n_cells


def _records(text: str, dialect: Dialect) -> list[list[str]]:
    """Return the records of a text that are not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), **dialect.options)
    return [record for record in reader if not is_blank(record)]


def is_blank(record: list[str]) -> bool:
    """Say whether a record is no row: an empty line, or one with blanks only."""
    return not record or (len(record) == 1 and record[0] != "" and not record[0].strip(" \t"))


def _score(records: list[list[str]]) -> tuple[float, int]:
    """Say how well a separator fits: how many lines are as wide as the first, and how wide."""
    width = len(records[0])
    widths = Counter(map(len, records))
    if width > 1:
        return widths[width] / len(records), width
    # No names, or a line above them: a separator of nearly all other lines is to be complained of.
    usual, count = widths.most_common(1)[0]
    return (0.0, usual) if count >= max(0.9 * (len(records) - 1), 2) else (0.0, 1)


def _any_at(records: list[list[str]], place: int) -> bool:
    return any(record[place].strip() for record in records if len(record) > place)


def is_data(header: list[str]) -> bool:
    """Say whether names of columns are numbers, other than the numbers of the columns."""
    if not all(re.fullmatch(r"[-+]?\d+(\.\d*)?", name) for name in header):
        return False
    return header not in ([str(i + first) for i in range(len(header))] for first in (0, 1))
