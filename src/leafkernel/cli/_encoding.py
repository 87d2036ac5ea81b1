"""In which encoding a text file is written: found by reading all of it."""

from __future__ import annotations

import codecs
import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from leafkernel.cli.errors import FileError

_MARKS = {
    "utf-16": {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"},
    "utf-32": {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"},
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
class TextFile:
    """A text file on disk, packed with gzip or not, and its name in messages."""

    path: Path
    name: str
    packed: bool

    def bytes(self) -> IO[Any]:
        """Open it for reading bytes."""
        return cast(IO[Any], gzip.open(self.path) if self.packed else self.path.open("rb"))

    def text(self, encoding: str) -> io.TextIOWrapper:
        """Open it for reading text, with line ends as they are."""
        return io.TextIOWrapper(self.bytes(), encoding, errors=_KEEP, newline="")


def find_encoding(file: TextFile, notes: list[str]) -> tuple[str, int]:
    """Return the encoding of a file and how many letters it has; read all of it to be sure."""
    with file.bytes() as handle:
        start = handle.read(4096)
    encoding = _guess_encoding(start)
    size, line = _try_encoding(file, encoding)
    if line is None:
        return encoding, size
    if encoding != "utf-8-sig":
        raise FileError(
            f"{file.name} starts as {encoding.upper()} text, but line {line:,} is not: the file "
            "is cut off or damaged. Save it again as UTF-8."
        )
    notes.append(
        f"The file is not UTF-8 (see line {line:,}), so it was read as Windows-1252. If letters "
        "look wrong, save it as UTF-8."
    )
    return "cp1252", _try_encoding(file, "cp1252", errors=_KEEP)[0]


def read_exactly(file: TextFile, encoding: str) -> tuple[str, str]:
    """Return the text of a file with its byte order mark, and the codec that writes it again."""
    with file.bytes() as handle:
        content = handle.read()
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    for mark, exact in _MARKS.get(encoding, {}).items():
        if content.startswith(mark):
            codec = exact
    return content.decode(codec, _KEEP), codec


def encode_exactly(text: str, codec: str) -> bytes:
    """Return the bytes of a text that :func:`read_exactly` has read."""
    return text.encode(codec, _KEEP)


def _guess_encoding(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Latin letters in UTF-16 without a mark have a zero as every second byte.
    even, odd = start[::2], start[1::2]
    if odd.count(0) > 0.4 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    if even.count(0) > 0.4 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "utf-16-be"
    return "utf-8-sig"


def _try_encoding(file: TextFile, encoding: str, errors: str = "strict") -> tuple[int, int | None]:
    """Return how many letters a file has, and the first line that the encoding cannot read."""
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    size, line = 0, 1
    with file.bytes() as handle:
        block = b"start"
        while block:
            block = handle.read(2**20)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return size, line + error.object[: error.start].count(b"\n")
            if "\0" in text:
                line += text.partition("\0")[0].count("\n")
                raise FileError(
                    f"{file.name} holds a zero byte on line {line:,}: it is damaged, or not a "
                    "text file. Export the table again as CSV."
                )
            size += len(text)
            line += text.count("\n")
    return size, None
