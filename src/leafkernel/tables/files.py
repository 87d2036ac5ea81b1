"""Read tables from files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leafkernel.tables._arrow import read_arrow
from leafkernel.tables._delimited import read_text
from leafkernel.tables._formats import find_format, look
from leafkernel.tables._layout import Source
from leafkernel.tables._room import ReadOptions, explain_damage
from leafkernel.tables.errors import FileError


@contextmanager
def open_source(path: Any) -> Iterator[Source]:
    """Detect the format of a file. ``"-"`` copies standard input to a temporary file."""
    if str(path) != "-":
        name = repr(str(path))
        yield Source(Path(path), name, find_format(Path(path), name))
        return
    # A copy on disk is needed because the start of a file is read twice.
    name = "Standard input"
    with tempfile.TemporaryDirectory(prefix="leafkernel-") as folder:
        copy = Path(folder) / "table"
        with explain_damage(name), copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        kind, remedy = look(copy, name)
        source = Source(copy, name, kind)
        if not source.is_text:
            raise FileError(f"{name} must be CSV, but is {kind}: {remedy}.")
        yield source


def read_file(path: Any, **options: Any) -> Any:
    """Read a table from a file.

    Parameters
    ----------
    path : str or path
        A file whose name ends in .csv, .tsv, .txt (each also with .gz), .parquet, .feather or
        .arrow, or ``"-"`` for CSV from standard input. The encoding and the separator of a text
        file (comma, semicolon, tab or bar) are detected.
    **options
        The attributes of ``leafkernel.tables._room.ReadOptions``.

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        The index has the number of each row in the file, counted from 0. ``frame.attrs["notes"]``
        is a list of sentences on how the file was read. ``frame.attrs["signs"]`` has the decimal
        sign of each column.

    Raises
    ------
    FileError
        If the file cannot be read or does not fit in memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> import leafkernel.cli
    >>> from leafkernel.tables.files import read_file
    >>> folder = Path(leafkernel.cli.__file__).parent / "data"
    >>> read_file(folder / "penguins.csv", max_rows=3).shape
    (3, 7)
    """
    with open_source(path) as source:
        return read_source(source, **options)


def read_source(source: Source, **options: Any) -> Any:
    """Read a table of a known format. See ``read_file``."""
    read = read_text if source.is_text else read_arrow
    return read(source, ReadOptions(**options))


def call(path: Path) -> str:
    """Return the name of a file, or "standard input", as valid Unicode."""
    name = "standard input" if str(path) == "-" else path.name
    return name.encode(errors="surrogateescape").decode(errors="replace")
