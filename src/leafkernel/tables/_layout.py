"""How a text file is written: its encoding, its separator and the names of its columns."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from leafkernel.tables._formats import GZIP, TEXT
from leafkernel.tables.errors import FileError

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it starts with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_KEEP = "leafkernel.keep"


def _keep_byte(error: UnicodeError) -> tuple[str | bytes, int]:
    """Read the five bytes that Windows-1252 does not use as control characters, and back."""
    if isinstance(error, UnicodeDecodeError):
        return chr(error.object[error.start]), error.start + 1
    assert isinstance(error, UnicodeEncodeError)
    return error.object[error.start : error.start + 1].encode("latin-1"), error.start + 1


codecs.register_error(_KEEP, _keep_byte)


@dataclass(frozen=True)
class Source:
    """A table's file."""

    path: Path
    name: str  # in messages
    kind: str  # its format

    @property
    def is_text(self) -> bool:
        """Whether the file is text, packed or not."""
        return self.kind in (TEXT, GZIP)

    def bytes(self) -> IO[Any]:
        """Open it for reading bytes."""
        return cast(IO[Any], gzip.open(self.path) if self.kind == GZIP else self.path.open("rb"))

    @contextmanager
    def text(self, encoding: str) -> Iterator[io.TextIOWrapper]:
        """Open it for reading text, without a byte order mark and with line ends as they are."""
        errors = _errors(encoding)
        with io.TextIOWrapper(self.bytes(), encoding, errors=errors, newline="") as handle:
            if handle.read(1) != "\ufeff":
                handle.seek(0)
            yield handle


def guess_encoding(file: Source) -> str:
    """Return the encoding that the start of a file shows; UTF-8 if it shows none."""
    with file.bytes() as handle:
        start = handle.read(4096)
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    # Latin letters in UTF-16 without a mark have a zero as every second byte.
    even, odd = (part.count(0) / max(len(part), 1) for part in (start[::2], start[1::2]))
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.1 else "utf-8"


def second_guess(file: Source, encoding: str) -> tuple[str, str]:
    """Return the encoding of a file that is not in the one that was guessed, and a note on it."""
    if encoding != "utf-8":
        raise FileError(
            f"{file.name} starts as {encoding[:6].upper()} text, but does not go on so: the file "
            "is cut off or damaged. Save it again as UTF-8."
        )
    with file.bytes() as handle:
        is_wrong = (line.decode(errors="ignore").encode() != line for line in handle)
        line = next(number for number, wrong in enumerate(is_wrong, 1) if wrong)
    return "cp1252", (
        f"The file is not UTF-8 (see line {line:,}), so it was read as Windows-1252. If letters "
        "look wrong, save it as UTF-8."
    )


def read_exactly(file: Source, encoding: str) -> str:
    """Return the text of a file with its byte order mark."""
    with file.bytes() as handle:
        return cast(str, handle.read().decode(encoding, _errors(encoding)))


def encode_exactly(text: str, encoding: str) -> bytes:
    """Return the bytes of a text that :func:`read_exactly` has read."""
    return text.encode(encoding, _errors(encoding))


def _errors(encoding: str) -> str:
    return _KEEP if encoding == "cp1252" else "strict"


# --- separator and names of columns


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
