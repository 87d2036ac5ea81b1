"""Reading tables that are text: comma, semicolon, tab or bar separated, in any usual encoding.

A file is read in passes, each of which needs little memory and can say what is wrong with the
file: the bytes (cut off? which encoding?), its start (which separator?), its lines (all of one
width? how many?), and only then the table.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.cli._amounts import sign_of
from leafkernel.cli._cells import Dialect
from leafkernel.cli._encoding import TextFile, find_encoding
from leafkernel.cli._kinds import Findings, clean_names, is_id_name
from leafkernel.cli._missing import MISSING, missing_notes
from leafkernel.cli._reading import CELL_BYTES, check_room, choose_rows, explain_damage, finish
from leafkernel.cli._signs import UNSTATED, Evidence, Stated
from leafkernel.cli.errors import FileError

_HEAD = 2**18  # letters that are looked at to learn the layout
_LONGEST_CELL = 2**31 - 1
# Digits that name something, which a number would not keep: a zero in front, or too many of them.
_CODE = r"[ \t]*(0\d+|[-+]?\d{17,})[ \t]*"
# Codes and words for "missing" are searched in all cells of a row, with this between them.
_CELL = "\0"
_IS_CODE = re.compile(_CODE).fullmatch
_MARKED = re.compile(r"[.,]\d")
_WORDS = "|".join(map(re.escape, sorted(MISSING)))
_NOTABLE = re.compile(rf"{_CELL}({_CODE}|\s*({_WORDS})\s*){_CELL}")


@dataclass(frozen=True)
class Layout:
    """How the lines of a file are to be read."""

    header: list[str]
    separator: str
    spaced: bool  # a blank after each separator
    decimal: str = "."
    texts: frozenset[int] = frozenset()  # places of columns that stay text

    @property
    def dialect(self) -> dict[str, Any]:
        """What the csv module calls it."""
        return {"delimiter": self.separator, "skipinitialspace": self.spaced}


def read_text(
    file: TextFile,
    *,
    max_rows: int | None,
    random_state: int,
    remedy: str | None = None,
    as_text: bool = False,
    stated: Stated = UNSTATED,
    exact: Collection[str] = (),
) -> Any:
    """Read a table from text; its cells stay text where wanted.

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        The index holds the number of each row in the file, from 0; ``attrs["notes"]`` what a
        reader should know; ``attrs["signs"]`` the signs in the numbers of each column;
        ``attrs["dialect"]`` how the file is written.
    """
    notes: list[str] = []
    with explain_damage(file.name, remedy), _long_cells():
        encoding, size = find_encoding(file, notes)
        with file.text(encoding) as handle:
            head = handle.read(_HEAD)
        if not head.strip():
            raise FileError(f"{file.name} is empty. Give a table with a line of column names.")
        head = _whole_lines(head) if len(head) == _HEAD else head
        layout = _find_layout(head, notes)
        n_cells = sum(map(len, _records(head, layout.separator, most=None)))
        scale = size / len(head)
        check_room(
            file.name,
            size + CELL_BYTES * n_cells * scale,
            n_rows=n_cells / len(layout.header) * scale - 1,
            max_rows=max_rows,
            remedy=remedy,
        )
        n_rows, codes, words, evidence = _look_through(file, encoding, layout)
        # A semicolon is used where the comma is the decimal sign.
        signs = evidence.decide(stated, comma="." if layout.separator == "," else ",")
        sure = Counter(decimal for decimal, sure in signs.values() if sure)
        unsure = {j for j, sign in signs.items() if not sign.sure}
        layout = replace(
            layout,
            decimal="," if sure[","] > sure["."] else ".",
            texts=frozenset(codes | unsure | _find_exact(layout.header, exact)),
        )
        notes += missing_notes(words)
        rows = choose_rows(n_rows, max_rows, random_state)
        if as_text:
            frame = _read_cells(file, encoding, layout, rows)
        else:
            frame = _read_rows(file, encoding, layout, rows, n_rows)
    frame.columns = layout.header
    frame.attrs["signs"] = signs
    frame.attrs["dialect"] = Dialect(layout.separator, layout.spaced, encoding)
    if len(rows) == n_rows != len(frame):
        # What a blank line is, is not quite the same to the csv module and to pandas.
        rows, n_rows = np.arange(len(frame)), len(frame)
    return finish(frame, rows[: len(frame)], n_rows, notes)


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Let the csv module read cells of any length; the limit is one for the whole process."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# --- layout


def _whole_lines(head: str) -> str:
    """Leave out a last line that is only begun, unless there is no other."""
    cut = max(head.rfind("\n"), head.rfind("\r"))
    return head[: cut + 1] if cut > 0 else head


def _records(
    text: str, separator: str, *, most: int | None, spaced: bool = False
) -> list[list[str]]:
    """Return the records of a text that are not blank."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=spaced)
    return list(islice((record for record in reader if not _is_blank(record)), most))


def _is_blank(record: list[str]) -> bool:
    """Say whether pandas would skip a line: without letters, or quotes around none."""
    return not record or (len(record) == 1 and record[0] != "" and not record[0].strip(" \t"))


def _find_layout(head: str, notes: list[str]) -> Layout:
    separator = max("\t|;,", key=lambda each: _score(_records(head, each, most=200)))
    header = _records(head, separator, most=1)[0]
    spaced = len(header) > 1 and all(name.startswith(" ") for name in header[1:])
    header, *body = _records(head, separator, most=200, spaced=spaced)
    if len(header) > 1 and body and all(_is_longer(record, header) for record in body):
        header = ["", *header]  # R names no column of row names
    while len(header) > 1 and not header[-1].strip() and not _any_at(body, len(header) - 1):
        header = header[:-1]  # a separator at the end of each line
    if _is_data(header):
        notes.append(
            "The first line of the file looks like data, but its values were taken as the names "
            "of the columns. If the file has no line of column names, add one."
        )
    return Layout(header, separator, spaced)


def _score(records: list[list[str]]) -> tuple[float, int]:
    """Say how well a separator fits: how many lines are as wide as the first, and how wide."""
    width = len(records[0])
    widths = Counter(map(len, records))
    if width > 1:
        return widths[width] / len(records), width
    # No names, or a line above them: a separator of nearly all other lines is to be complained of.
    usual, count = widths.most_common(1)[0]
    return (0.0, usual) if count >= max(0.9 * (len(records) - 1), 2) else (0.0, 1)


def _is_longer(record: list[str], header: list[str]) -> bool:
    return len(record) == len(header) + 1 and bool(record[-1].strip())


def _any_at(records: list[list[str]], place: int) -> bool:
    return any(record[place].strip() for record in records if len(record) > place)


def _is_data(header: list[str]) -> bool:
    """Say whether names of columns are numbers, other than the numbers of the columns."""
    if not all(re.fullmatch(r"[-+]?\d+(\.\d*)?", name) for name in header):
        return False
    return header not in ([str(i + first) for i in range(len(header))] for first in (0, 1))


# --- lines and table


def _look_through(
    file: TextFile, encoding: str, layout: Layout
) -> tuple[int, set[int], Counter[str], Evidence]:
    """Return the number of rows, places of columns with codes, words for "missing", and signs.

    All rows must be as wide as the header.
    """
    width, n_rows, previous = len(layout.header), -1, 0
    codes: set[int] = set()
    words: Counter[str] = Counter()
    evidence, undecided = Evidence(), set(range(width))
    bad: tuple[int, int, int] | None = None  # first line, last line, number of cells
    with file.text(encoding) as handle:
        reader = csv.reader(handle, **layout.dialect)
        for record in reader:
            if bad is not None:
                raise FileError(_ragged(file, layout, bad, last=False))
            if not _is_blank(record):
                n_rows += 1
                fits = len(record) == width or (len(record) > width and not any(record[width:]))
                if not fits and n_rows > 0:
                    bad = previous + 1, reader.line_num, len(record)
                if n_rows > 0 and fits:  # the header is no row
                    # One search a row, for few have codes or words.
                    cells = _CELL.join(["", *record, ""])
                    if _NOTABLE.search(cells):
                        codes.update(j for j, cell in enumerate(record) if _IS_CODE(cell))
                        cut = map(str.strip, record[:width])
                        words.update(cell for cell in cut if cell in MISSING)
                    if undecided and _MARKED.search(cells):
                        undecided -= _look_at_signs(record, undecided, evidence)
            previous = reader.line_num
    if bad is not None:
        raise FileError(_ragged(file, layout, bad, last=True))
    return n_rows, codes, words, evidence


def _look_at_signs(record: list[str], undecided: set[int], evidence: Evidence) -> set[int]:
    """Collect evidence from a row; return the columns that need no more of it."""
    return {
        j
        for j in undecided
        if ("." in record[j] or "," in record[j]) and evidence.add(j, sign_of(record[j].strip()))
    }


def _find_exact(header: list[str], exact: Collection[str]) -> set[int]:
    """Return the columns that stay text because they may name the rows, or are to stay text."""
    names = clean_names(header, Findings())
    return {j for j, name in enumerate(names) if name in exact or is_id_name(name)}


def _ragged(file: TextFile, layout: Layout, bad: tuple[int, int, int], *, last: bool) -> str:
    first, end, found = bad
    width = len(layout.header)
    cells = "1 cell" if found == 1 else f"{found} cells"
    names = "1 column" if width == 1 else f"{width} columns"
    said = f"line {first:,} has {cells}, but the first line names {names}"
    if end > first and last:
        return (
            f"{file.name}: {said}. A quote that opens there is not closed, or the file is cut off; "
            "mend that line, or get the file again."
        )
    if last and found < width:
        return (
            f"{file.name} seems to be cut off: its last line, {said}. Get the file again, or "
            "delete that line."
        )
    return (
        f"{file.name}: {said}. Mend that line (text with a {layout.separator!r} in it needs quotes "
        "around it), or delete the lines above the names of the columns, if there are any."
    )


def _read_cells(file: TextFile, encoding: str, layout: Layout, rows: npt.NDArray[np.int64]) -> Any:
    """Return the rows with these numbers as they are written, with None for missing cells."""
    width, wanted = len(layout.header), set(rows.tolist())
    columns: list[list[str | None]] = [[] for _ in range(width)]
    known: dict[str, str | None] = {"": None, **dict.fromkeys(MISSING)}  # each text once
    with _below_header(file, encoding, layout) as handle:
        for number, record in enumerate(_rows(handle, layout)):
            if number in wanted:
                for column, cell in zip(columns, record, strict=False):
                    column.append(known.setdefault(cell, cell))
    return pd.DataFrame({j: pd.Series(column, dtype=object) for j, column in enumerate(columns)})


def _rows(handle: Any, layout: Layout) -> Iterator[list[str]]:
    return (record for record in csv.reader(handle, **layout.dialect) if not _is_blank(record))


def _read_rows(
    file: TextFile, encoding: str, layout: Layout, rows: npt.NDArray[np.int64], n_rows: int
) -> Any:
    """Return the rows with these numbers, with the types that pandas finds."""
    if n_rows <= 0:
        return pd.DataFrame(columns=range(len(layout.header)), dtype=object)
    try:
        with _below_header(file, encoding, layout) as handle:
            if len(rows) == n_rows:
                return _parse(handle, layout)
            return _parse(_pick(handle, layout, rows), layout)
    except (pd.errors.ParserError, csv.Error, ValueError) as error:
        raise FileError(
            f"{file.name} could not be read as a table: {str(error).strip()}. If this is about a "
            "string that does not end, a quote is opened and not closed."
        ) from error


@contextlib.contextmanager
def _below_header(file: TextFile, encoding: str, layout: Layout) -> Iterator[io.TextIOWrapper]:
    with file.text(encoding) as handle:
        next(_rows(handle, layout))
        yield handle


def _parse(handle: Any, layout: Layout) -> Any:
    return pd.read_csv(
        handle,
        sep=layout.separator,
        decimal=layout.decimal,
        skipinitialspace=layout.spaced,
        header=None,
        names=range(len(layout.header)),
        usecols=range(len(layout.header)),
        index_col=False,
        dtype=dict.fromkeys(layout.texts, str),
        keep_default_na=False,
        na_values=["", *sorted(MISSING)],
        low_memory=False,
        **_exact(layout),
    )


def _exact(layout: Layout) -> dict[str, str]:
    """Return what makes pandas read numbers to the last digit, which 3.1 does by itself."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if version < (3, 1) and layout.decimal == "." else {}


def _pick(handle: Any, layout: Layout, rows: npt.NDArray[np.int64]) -> io.StringIO:
    """Return some rows as text, so that types are found as they are for a whole file."""
    picked = io.StringIO(newline="")
    writer = csv.writer(picked, delimiter=layout.separator, quoting=csv.QUOTE_ALL)
    wanted = set(rows.tolist())
    for number, record in enumerate(_rows(handle, layout)):
        if number in wanted:
            writer.writerow(record[: len(layout.header)])
    picked.seek(0)
    return picked
