"""Writing a text table again, with the missing cells filled and everything else as it is."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from leafkernel.tables._cells import change_cells
from leafkernel.tables._encoding import TextFile, encode_exactly, read_exactly
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._formulas import escape
from leafkernel.tables._layout import Dialect

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEPARATORS = {".csv": "commas", ".tsv": "tabs"}


@dataclass(frozen=True)
class TextCopy:
    """A text table, and what to write into some of its cells.

    Attributes
    ----------
    text : str
        The content of the file.
    dialect : Dialect
        How it is written.
    ending : str
        The end of the file's name, without ".gz"; "" for the standard input.
    fills : mapping
        New values by the number of the row and of the column.
    escape_formulas : bool
        Whether formulas get an apostrophe.
    """

    text: str
    dialect: Dialect
    ending: str
    fills: Mapping[tuple[int, int], str] = field(default_factory=dict)
    escape_formulas: bool = False

    @classmethod
    def of(cls, file: TextFile, dialect: Dialect) -> TextCopy:
        """Read a file that is to be written again."""
        return cls(read_exactly(file, dialect.encoding), dialect, _ending(file.path))

    def note(self, output: Path | None) -> str | None:
        """Return a note if the name of the output asks for another separator.

        The table is then to be written anew.
        """
        ending = "" if output is None else _ending(output)
        is_tabbed = self.dialect.separator == "\t"
        if (
            output is None
            or ending == self.ending
            or ending not in _SEPARATORS
            or is_tabbed == (ending == ".tsv")
        ):
            return None
        return (
            f"{output.name} was written with {_SEPARATORS[ending]} between cells and in UTF-8, "
            f"because its name ends in {ending}. The table that was read has "
            f"{_NAMES[self.dialect.separator]} between cells."
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
