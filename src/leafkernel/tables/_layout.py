"""Detect the encoding, the separator and the column names of a text file."""

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
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, because it starts with the same bytes
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_KEEP = "leafkernel.keep"


def _keep_byte(error: UnicodeError) -> tuple[str | bytes, int]:
    """Decode the five bytes that are unused in Windows-1252 as control characters, or encode."""
    if isinstance(error, UnicodeDecodeError):
        return chr(error.object[error.start]), error.start + 1
    assert isinstance(error, UnicodeEncodeError)
    return error.object[error.start : error.start + 1].encode("latin-1"), error.start + 1


codecs.register_error(_KEEP, _keep_byte)


@dataclass(frozen=True)
class Source:
    """A file with a table."""

    path: Path
    name: str  # the name for messages
    kind: str  # the format

    @property
    def is_text(self) -> bool:
        """Whether the file is text, compressed or not."""
        return self.kind in (TEXT, GZIP)

    def bytes(self) -> IO[Any]:
        """Open the file for reading bytes."""
        return cast(IO[Any], gzip.open(self.path) if self.kind == GZIP else self.path.open("rb"))

    @contextmanager
    def text(self, encoding: str) -> Iterator[io.TextIOWrapper]:
        """Open the file for reading text, without byte order mark and with original line ends."""
        errors = _errors(encoding)
        with io.TextIOWrapper(self.bytes(), encoding, errors=errors, newline="") as handle:
            if handle.read(1) != "\ufeff":
                handle.seek(0)
            yield handle


def guess_encoding(file: Source) -> str:
    """Guess the encoding from the start of a file. The default is UTF-8."""
    with file.bytes() as handle:
        start = handle.read(4096)
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    # In UTF-16 without a byte order mark, every second byte of Latin text is zero.
    even, odd = (part.count(0) / max(len(part), 1) for part in (start[::2], start[1::2]))
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.1 else "utf-8"


def second_guess(file: Source, encoding: str) -> tuple[str, str]:
    """Return another encoding for a file if the first guess failed, and a note."""
    if encoding != "utf-8":
        raise FileError(
            f"{file.name} is not valid {encoding[:6].upper()} text: the file is truncated or "
            "damaged. Save it again as UTF-8."
        )
    with file.bytes() as handle:
        is_wrong = (line.decode(errors="ignore").encode() != line for line in handle)
        line = next(number for number, wrong in enumerate(is_wrong, 1) if wrong)
    return "cp1252", (
        f"The file is not UTF-8 (see line {line:,}), so it was read as Windows-1252. If characters "
        "look wrong, save the file as UTF-8."
    )


def read_exactly(file: Source, encoding: str) -> str:
    """Return the text of a file with its byte order mark."""
    with file.bytes() as handle:
        return cast(str, handle.read().decode(encoding, _errors(encoding)))


def encode_exactly(text: str, encoding: str) -> bytes:
    """Return the bytes of a text from ``read_exactly``."""
    return text.encode(encoding, _errors(encoding))


def _errors(encoding: str) -> str:
    return _KEEP if encoding == "cp1252" else "strict"


# --- separator and names of columns


@dataclass(frozen=True)
class Dialect:
    """The dialect of a text file."""

    separator: str
    spaced: bool = False  # whether blanks after a separator are ignored
    encoding: str = "utf-8"

    @property
    def options(self) -> dict[str, Any]:
        """The dialect as options of the csv module."""
        return {"delimiter": self.separator, "skipinitialspace": self.spaced}


def find_layout(head: str, encoding: str) -> tuple[list[str], Dialect, int]:
    """Return the column names, the dialect, and the number of cells in ``head``."""
    separator = max("\t|;,", key=lambda each: _score(_records(head, Dialect(each))))
    header = _records(head, Dialect(separator))[0]
    spaced = len(header) > 1 and all(name.startswith(" ") for name in header[1:])
    dialect = Dialect(separator, spaced, encoding)
    header, *body = _records(head, dialect)
    n_cells = sum(map(len, body))
    is_longer = [len(each) == len(header) + 1 and each[-1].strip() for each in body]
    if len(header) > 1 and body and all(is_longer):
        header = ["", *header]  # R writes row names without a column name
    while len(header) > 1 and not header[-1].strip() and not _any_at(body, len(header) - 1):
        header = header[:-1]  # a separator at the end of each line
    return header, dialect, n_cells


def _records(text: str, dialect: Dialect) -> list[list[str]]:
    """Return the records of a text without blank ones."""
    reader = csv.reader(io.StringIO(text, newline=""), **dialect.options)
    return [record for record in reader if not is_blank(record)]


def is_blank(record: list[str]) -> bool:
    """Return whether a record is an empty line or has only blanks."""
    return not record or (len(record) == 1 and record[0] != "" and not record[0].strip(" \t"))


def _score(records: list[list[str]]) -> tuple[float, int]:
    """Score a separator: the share of lines that are as wide as the first, and their width."""
    width = len(records[0])
    widths = Counter(map(len, records))
    if width > 1:
        return widths[width] / len(records), width
    # The first line may be a title. Prefer the separator of nearly all other lines, so that the
    # error message is about this separator.
    usual, count = widths.most_common(1)[0]
    return (0.0, usual) if count >= max(0.9 * (len(records) - 1), 2) else (0.0, 1)


def _any_at(records: list[list[str]], place: int) -> bool:
    return any(record[place].strip() for record in records if len(record) > place)


def is_data(header: list[str]) -> bool:
    """Return whether the column names are numbers other than 0, 1, 2, ... or 1, 2, 3, ..."""
    if not all(re.fullmatch(r"[-+]?\d+(\.\d*)?", name) for name in header):
        return False
    return header not in ([str(i + first) for i in range(len(header))] for first in (0, 1))
