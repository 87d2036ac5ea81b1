"""Tables from and to files: what a file is, and what to say when it cannot be read."""

from __future__ import annotations

import csv
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from leafkernel._files import open_whole
from leafkernel._optional import require
from leafkernel.cli._arrow import read_arrow
from leafkernel.cli._encoding import TextFile
from leafkernel.cli._formats import describe, find_kind, look, suffix_of
from leafkernel.cli._kinds import unique_names
from leafkernel.cli._reading import explain_damage
from leafkernel.cli._signs import SPACES, UNSTATED, Evidence, Stated
from leafkernel.cli._text import read_text
from leafkernel.cli.errors import FileError

WRITTEN_FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather")
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(
    rf"[-+]?(\d+[.,]?\d*|[.,]\d+|\d{{1,3}}([.,{SPACES}]\d{{3}})+([.,]\d+)?)([eE][-+]?\d+)?"
)


def read_file(
    path: Any,
    *,
    max_rows: int | None = None,
    random_state: int = 0,
    remedy: str | None = None,
    as_text: bool = False,
    stated: Stated = UNSTATED,
) -> Any:
    """Read a table from a file.

    Parameters
    ----------
    path : str or path
        A file whose name ends in .csv, .tsv, .txt (each also with .gz), .parquet, .feather or
        .arrow; ``"-"``: CSV from the standard input. The separator of a text file (comma,
        semicolon, tab or bar) and its encoding are detected.
    max_rows : int or None, default=None
        Read a random sample of so many rows, in the order of the file; None: all.
    random_state : int, default=0
        Seed of the sample.
    remedy : str or None, default=None
        The advice, a sentence, if the table does not fit in memory; None: to use --max-rows.
    as_text : bool, default=False
        Whether cells of a text file stay as they are written, but those that are missing. Other
        files have types.
    stated : Stated, default=UNSTATED
        The decimal sign, and the sign between thousands, as the user named them.

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        The index holds the number of each row in the file, from 0. ``frame.attrs["notes"]`` is a
        list of sentences on how the file was read, and ``frame.attrs["signs"]`` has the signs in
        the numbers of each column.

    Raises
    ------
    FileError
        If the file cannot be read, or would not fit in memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> import leafkernel.cli
    >>> from leafkernel.cli.files import read_file
    >>> folder = Path(leafkernel.cli.__file__).parent / "data"
    >>> read_file(folder / "penguins.csv", max_rows=3).shape
    (3, 7)
    """
    options = {
        "max_rows": max_rows,
        "random_state": random_state,
        "remedy": remedy,
        "as_text": as_text,
        "stated": stated,
    }
    if str(path) == "-":
        return _read_stdin(options)
    name = repr(str(path))
    return _read_kind(Path(path), name, find_kind(Path(path), name), options)


def _read_stdin(options: dict[str, Any]) -> Any:
    # On disk, because a file is read in several passes.
    name = "The standard input"
    with tempfile.TemporaryDirectory(prefix="leafkernel-") as folder:
        path = Path(folder) / "table"
        with explain_damage(name), path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        kind, remedy = look(path, name)
        if kind not in ("text", "gzip"):
            raise FileError(f"{name} should be CSV, but is {describe(kind)}; {remedy}.")
        return _read_kind(path, name, kind, options)


def _read_kind(path: Path, name: str, kind: str, options: dict[str, Any]) -> Any:
    if kind in ("text", "gzip"):
        return read_text(TextFile(path, name, packed=kind == "gzip"), **options)
    stated = options.pop("stated")
    del options["as_text"]
    frame = read_arrow(path, name, kind, **options)
    evidence = Evidence()
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if _may_hold_text(column):
            for text in {text.strip() for text in column if isinstance(text, str)}:
                evidence.add(j, text)
    frame.attrs["signs"] = evidence.decide(stated)
    return frame


def call(path: Path) -> str:
    """Return the name of a table's file, or "standard input"; always valid Unicode."""
    name = "standard input" if str(path) == "-" else path.name
    return name.encode(errors="surrogateescape").decode(errors="replace")


def write_frame(frame: Any, path: Any) -> None:
    """Write a table to a file: complete under its name, or not at all.

    Parameters
    ----------
    frame : DataFrame of shape (rows, columns)
        The index is not written.
    path : str or path
        A name that ends in .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .feather. In text, cells
        that a spreadsheet would run are defused.

    Raises
    ------
    FileError
        If the name has another ending, or the file cannot be written there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from leafkernel.cli.files import read_file, write_frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_frame(pd.DataFrame({"size": [1.5, 2.0]}), Path(folder) / "sizes.csv")
    ...     print(read_file(Path(folder) / "sizes.csv")["size"].tolist())
    [1.5, 2.0]
    """
    path = Path(path)
    suffix = suffix_of(path)
    if suffix not in WRITTEN_FORMATS:
        raise FileError(
            f"The name of the output {str(path)!r} should end in one of "
            f"{', '.join(WRITTEN_FORMATS)}."
        )
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"lies in {str(path.parent)!r}, which is none"
        raise FileError(f"{str(path)!r} cannot be written: it {what}. Give another name.")
    try:
        with open_whole(path) as file:
            write_as(suffix, frame, file)
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error
    except ImportError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error}") from error


def write_as(suffix: str, frame: Any, file: BinaryIO) -> None:
    """Write a table to an open file, in the format that a suffix stands for."""
    if suffix in (".parquet", ".feather"):
        require("pyarrow", extra="cli")
        plain = _plain_types(frame)
        plain.to_parquet(file, index=False) if suffix == ".parquet" else plain.to_feather(file)
        return
    text = defuse(frame)
    # Python before 3.13 puts no quotes around a cell for the sake of a carriage return.
    returns = any(_any_text(text.iloc[:, i], "\r") for i in range(text.shape[1]))
    text.to_csv(
        file,
        mode="wb",
        sep="\t" if suffix.startswith(".tsv") else ",",
        index=False,
        encoding="utf-8",
        lineterminator="\n",  # the same file on each system
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        compression={"method": "gzip", "mtime": 0} if suffix.endswith(".gz") else None,
    )


def _plain_types(frame: Any) -> Any:
    """Return a frame that Arrow takes: columns of mixed things become text."""
    plain = frame.reset_index(drop=True)
    plain.columns = unique_names(plain.columns)
    for i in range(plain.shape[1]):
        column = plain.iloc[:, i]
        if column.dtype == object and len({type(v) for v in column if not _is_missing(v)}) > 1:
            texts = [None if _is_missing(value) else str(value) for value in column]
            plain.isetitem(i, pd.Series(texts, dtype=object))
    plain.attrs = {}
    return plain


def _is_missing(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _any_text(column: Any, part: str) -> bool:
    if not _may_hold_text(column):
        return False
    return any(part in value for value in column if isinstance(value, str))


def _may_hold_text(column: Any) -> bool:
    types = pd.api.types
    return not (types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype))


def defuse(frame: Any) -> Any:
    """Return a table whose text no spreadsheet runs as a formula.

    Text that starts with one of ``= + - @``, a tab or a line end gets an apostrophe in front, in
    cells and in names of columns; numbers stay as they are.

    Parameters
    ----------
    frame : DataFrame of shape (rows, columns)

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        A copy.

    Examples
    --------
    >>> import pandas as pd
    >>> from leafkernel.cli.files import defuse
    >>> defuse(pd.DataFrame({"note": ["=1+1", "fine", "-5"]}))["note"].tolist()
    ["'=1+1", 'fine', '-5']
    """
    safe = frame.copy()
    for i in range(safe.shape[1]):
        column = safe.iloc[:, i]
        if _may_hold_text(column):
            values = [_defuse_value(value) for value in column]
            safe.isetitem(i, pd.Series(values, index=safe.index, dtype=object))
    safe.columns = [_defuse_value(name) for name in safe.columns]
    return safe


def _defuse_value(value: Any) -> Any:
    """Return a cell, with an apostrophe if it is text that a spreadsheet would run."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", "")  # which no CSV may hold
    if not value.lstrip(" ").startswith(_DANGEROUS):
        return value
    return value if _NUMBER.fullmatch(value.strip(" ")) else f"'{value}"
