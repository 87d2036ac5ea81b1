"""In which encoding a text file is written, and how the same bytes are written again."""

from __future__ import annotations

import codecs
import gzip
import io
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
