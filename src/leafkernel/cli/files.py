"""Tables from and to files: what a file is, and what to say when it cannot be read."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from leafkernel._files import open_whole
from leafkernel._optional import require
from leafkernel.cli._amounts import sign_of
from leafkernel.cli._arrow import read_arrow
from leafkernel.cli._encoding import TextFile
from leafkernel.cli._formats import describe, find_kind, look, suffix_of
from leafkernel.cli._formulas import defuse, may_hold_text
from leafkernel.cli._kinds import unique_names
from leafkernel.cli._missing import MISSING, missing_notes
from leafkernel.cli._reading import explain_damage
from leafkernel.cli._signs import UNSTATED, Evidence, Stated
from leafkernel.cli._text import read_text
from leafkernel.cli.errors import FileError

__all__ = ["call", "defuse", "read_file", "suffix_of", "write_frame"]

TYPED_FORMATS = (".parquet", ".feather")
WRITTEN_FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", *TYPED_FORMATS)


@dataclass(frozen=True)
class Source:
    """A table's file: where it is, its name in messages, and its format."""

    path: Path
    name: str
    kind: str

    @property
    def text(self) -> TextFile | None:
        """The file as text; None for other formats."""
        if self.kind not in ("text", "gzip"):
            return None
        return TextFile(self.path, self.name, packed=self.kind == "gzip")


@contextmanager
def open_source(path: Any) -> Iterator[Source]:
    """Find out what a table's file is; ``"-"``, the standard input, is put on disk meanwhile."""
    if str(path) != "-":
        name = repr(str(path))
        yield Source(Path(path), name, find_kind(Path(path), name))
        return
    # On disk, because a file is read in several passes.
    name = "The standard input"
    with tempfile.TemporaryDirectory(prefix="leafkernel-") as folder:
        copy = Path(folder) / "table"
        with explain_damage(name), copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        kind, remedy = look(copy, name)
        if kind not in ("text", "gzip"):
            raise FileError(f"{name} should be CSV, but is {describe(kind)}; {remedy}.")
        yield Source(copy, name, kind)


def read_file(
    path: Any,
    *,
    max_rows: int | None = None,
    random_state: int = 0,
    remedy: str | None = None,
    as_text: bool = False,
    stated: Stated = UNSTATED,
    exact: Collection[str] = (),
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
    exact : collection of str, default=()
        Columns of a text file whose cells stay as they are written. Those that are named like ids
        do so anyway.

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
    with open_source(path) as source:
        return read_source(
            source,
            max_rows=max_rows,
            random_state=random_state,
            remedy=remedy,
            as_text=as_text,
            stated=stated,
            exact=exact,
        )


def read_source(
    source: Source,
    *,
    as_text: bool = False,
    stated: Stated = UNSTATED,
    exact: Collection[str] = (),
    **options: Any,
) -> Any:
    """Read a table whose format is known, as :func:`read_file` does."""
    if source.text is not None:
        return read_text(source.text, as_text=as_text, stated=stated, exact=exact, **options)
    frame = read_arrow(source.path, source.name, source.kind, **options)
    evidence, words = Evidence(), Counter[str]()
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if may_hold_text(column):
            texts = Counter(text.strip() for text in column if isinstance(text, str))
            words.update({text: count for text, count in texts.items() if text in MISSING})
            for text in texts:
                evidence.add(j, sign_of(text))
    frame.attrs["signs"] = evidence.decide(stated)
    frame.attrs["notes"] = [*frame.attrs["notes"], *missing_notes(words)]
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
        A name that ends in .csv, .tsv or .txt (each also with .gz), .parquet or .feather.

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
    write_file(Path(path), lambda suffix, file: write_as(suffix, frame, file))


def write_file(path: Path, write: Callable[[str, BinaryIO], None]) -> None:
    """Write a file: complete under its name, or not at all.

    ``write`` takes the end of the name, which says the format, and the open file.
    """
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
            write(suffix, file)
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error
    except ImportError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error}") from error


def write_as(suffix: str, frame: Any, file: BinaryIO) -> None:
    """Write a table to an open file, in the format that a suffix stands for."""
    if suffix in TYPED_FORMATS:
        require("pyarrow", extra="cli")
        plain = _plain_types(frame)
        plain.to_parquet(file, index=False) if suffix == ".parquet" else plain.to_feather(file)
        return
    text = _without_zeros(frame)
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


def _without_zeros(frame: Any) -> Any:
    """Return a table without the zero bytes in its text, which no CSV file may hold."""
    holding = [i for i in range(frame.shape[1]) if _any_text(frame.iloc[:, i], "\0")]
    if not holding:
        return frame
    text = frame.copy()
    for i in holding:
        values = [v.replace("\0", "") if isinstance(v, str) else v for v in text.iloc[:, i]]
        text.isetitem(i, pd.Series(values, index=text.index, dtype=object))
    return text


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
    if not may_hold_text(column):
        return False
    return any(part in value for value in column if isinstance(value, str))
