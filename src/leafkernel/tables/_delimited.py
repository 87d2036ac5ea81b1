"""Reading tables that are text: comma, semicolon, tab or bar separated, in any usual encoding.

The csv module splits the lines: it reads all messy files of the tests, and tells on which line one
is wrong. Arrow holds the cells in little memory and makes numbers of them. What only the whole
file can tell is learned from each block of rows on the way: which columns hold codes, and which
decimal sign they have.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
from pyarrow import compute

from leafkernel.tables._amounts import sign_of
from leafkernel.tables._encoding import Source, guess_encoding, second_guess
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._kinds import is_id_name
from leafkernel.tables._layout import Dialect, find_layout, is_blank, is_data
from leafkernel.tables._missing import MISSING, missing_notes
from leafkernel.tables._room import CELL_BYTES, ReadOptions, check_room, explain_damage, finish
from leafkernel.tables._settle import CODE
from leafkernel.tables._signs import Evidence, Signs
from leafkernel.tables._values import object_array
from leafkernel.tables.errors import FileError

_HEAD = 2**18  # letters that are looked at to learn the layout
_BLOCK = 2**11  # rows that are looked at together
_PLACE_BYTES = 8  # of a cell in an Arrow array
_LONGEST_CELL = 2**31 - 1
_END = "\U0010ffff"  # a line that marks the end of a file, and that no text holds
_HOLDS_CODE = re.compile(rf"\0[ \t]*(?:{CODE})[ \t]*\0").search


def read_text(file: Source, options: ReadOptions) -> Any:
    """Read a table from text; its cells stay text where wanted.

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        The index holds the number of each row in the file, from 0; ``attrs["notes"]`` what a
        reader should know; ``attrs["signs"]`` the signs in the numbers of each column;
        ``attrs["dialect"]`` how the file is written.
    """
    notes: list[str] = []
    with explain_damage(file.name, options.remedy), _long_cells():
        encoding = guess_encoding(file)
        try:
            header, dialect, clues, sample = _read(file, encoding, options)
        except UnicodeDecodeError:
            encoding, note = second_guess(file, encoding)
            notes.append(note)
            header, dialect, clues, sample = _read(file, encoding, options)
    if is_data(header):
        notes.append(
            "The first line of the file looks like data, but its values were taken as the names "
            "of the columns. If the file has no line of column names, add one."
        )
    # A semicolon is used where the comma is the decimal sign.
    signs = clues.evidence.decide(options.stated, comma="." if dialect.separator == "," else ",")
    words: Counter[str] = Counter()
    columns = {}
    names = clean_names(header, Findings())
    for j, (name, cells) in enumerate(zip(names, sample.columns(), strict=True)):
        sign = signs.get(j, Signs())
        is_text = options.as_text or j in clues.codes or not sign.sure
        is_text = is_text or name in options.exact or is_id_name(name)
        columns[j] = _to_series(cells, None if is_text else sign.decimal, words)
    frame = pd.DataFrame(columns)
    frame.columns = header
    frame.attrs["signs"], frame.attrs["dialect"] = signs, dialect
    return finish(frame, sample.rows, sample.n_seen, [*notes, *missing_notes(words)])


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Let the csv module read cells of any length; the limit is one for the whole process."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class _Clues:
    """What all rows of a file tell of its columns: which hold codes, and their decimal signs."""

    def __init__(self, n_columns: int) -> None:
        self.codes: set[int] = set()
        self.evidence = Evidence()
        self._undecided = set(range(n_columns))

    def add(self, j: int, cells: tuple[str, ...]) -> None:
        """Look at some cells of a column."""
        joined = "\0".join(["", *cells, ""])
        if j not in self.codes and _HOLDS_CODE(joined):
            self.codes.add(j)
        if j in self._undecided and ("." in joined or "," in joined):
            marked = Counter(cell.strip() for cell in cells if "." in cell or "," in cell)
            if any(self.evidence.add(j, sign_of(cell), marked[cell]) for cell in marked):
                self._undecided.discard(j)


class _Sample:
    """The rows of a table, or a random sample of them: those with the smallest random keys."""

    def __init__(self, n_columns: int, options: ReadOptions) -> None:
        self.n_seen = 0
        self.rows = np.empty(0, dtype=np.int64)
        self._max_rows = options.max_rows
        self._random = np.random.default_rng(options.random_state)
        self._keys = np.empty(0)
        self._names = [str(j) for j in range(n_columns)]
        self._tables = [self._table([()] * n_columns)]

    def add(self, columns: list[tuple[str, ...]]) -> None:
        """Take the next rows of the table."""
        n_new = len(columns[0])
        self.rows = np.append(self.rows, np.arange(self.n_seen, self.n_seen + n_new))
        self.n_seen += n_new
        self._tables.append(self._table(columns))
        if self._max_rows is None:
            return
        self._keys = np.append(self._keys, self._random.random(n_new))
        if len(self._keys) > self._max_rows:
            kept = np.sort(np.argpartition(self._keys, self._max_rows)[: self._max_rows])
            self._tables = [pyarrow.concat_tables(self._tables).take(kept)]
            self._keys, self.rows = self._keys[kept], self.rows[kept]

    def _table(self, columns: list[tuple[str, ...]]) -> Any:
        arrays = [pyarrow.array(column, pyarrow.large_string()) for column in columns]
        return pyarrow.table(arrays, names=self._names)

    def columns(self) -> Iterator[Any]:
        """Yield the cells of each column as an Arrow array, and forget them."""
        columns = pyarrow.concat_tables(self._tables).columns[::-1]
        self._tables = []
        while columns:
            yield columns.pop()


def _read(
    file: Source, encoding: str, options: ReadOptions
) -> tuple[list[str], Dialect, _Clues, _Sample]:
    """Read a file in an encoding: its layout, what its rows tell, and the rows."""
    with file.text(encoding) as handle:
        head = "".join(_lines([handle.read(_HEAD)], file.name)).removesuffix(_END)
        raw: Any = handle.buffer
        n_read = getattr(raw, "fileobj", raw).tell()  # of a packed file, as it is packed
    if not head.strip():
        raise FileError(f"{file.name} is empty. Give a table with a line of column names.")
    scale = 1.0
    if len(head) == _HEAD:
        scale = file.path.stat().st_size / n_read
        cut = max(head.rfind("\n"), head.rfind("\r"))
        head = head[: cut + 1] if cut > 0 else head  # whole lines
    header, dialect, n_cells = find_layout(head, encoding)
    needed = (2 * len(head) + (CELL_BYTES + _PLACE_BYTES) * n_cells) * scale
    check_room(file.name, needed, n_cells / len(header) * scale, options)
    clues, sample = _Clues(len(header)), _Sample(len(header), options)
    with file.text(encoding) as handle:
        rows = _rows(handle, file.name, len(header), dialect)
        while block := list(islice(rows, max(_BLOCK, options.max_rows or 0))):
            columns = list(zip(*block, strict=True))
            for j, cells in enumerate(columns):
                clues.add(j, cells)
            sample.add(columns)
    return header, dialect, clues, sample


def _lines(handle: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines of a text and a mark of its end, which an open quote would take in."""
    n_before = 1
    for line in handle:
        if "\0" in line:
            number = n_before + line.partition("\0")[0].count("\n")
            raise FileError(
                f"{name} holds a zero byte on line {number:,}: it is damaged, or not a text file. "
                "Export the table again as CSV."
            )
        n_before += 1
        yield line
    yield _END


def _rows(handle: Iterable[str], name: str, width: int, dialect: Dialect) -> Iterator[list[str]]:
    """Yield the rows below the header; all must be as wide as it is."""
    first, is_header = 1, True
    reader = csv.reader(_lines(handle, name), **dialect.options)
    for record in reader:
        if len(record) != width or width == 1 or record[-1].endswith(_END):  # few are
            if record == [_END]:
                return
            if record and record[-1].endswith(_END):
                raise FileError(
                    f"{name}: line {first:,}: a quote is opened and not closed, or the file is "
                    "cut off. Mend that line, or get the file again."
                )
            if is_blank(record):
                first = reader.line_num + 1
                continue
            if not is_header and (len(record) < width or any(record[width:])):
                is_last = next(each for each in reader if not is_blank(each)) == [_END]
                raise FileError(_ragged(name, first, len(record), width, dialect, is_last=is_last))
        if not is_header:
            yield record[:width]
        first, is_header = reader.line_num + 1, False


def _ragged(
    name: str, line: int, found: int, width: int, dialect: Dialect, *, is_last: bool
) -> str:
    said = (
        f"line {line:,} has {found} cell{'s' * (found != 1)}, but the first line names "
        f"{width} column{'s' * (width != 1)}"
    )
    if is_last and found < width:
        return (
            f"{name} seems to be cut off: its last line, {said}. Get the file again, or delete "
            "that line."
        )
    return (
        f"{name}: {said}. Mend that line (text with a {dialect.separator!r} in it needs quotes "
        "around it), or delete the lines above the names of the columns, if there are any."
    )


def _to_series(cells: Any, decimal: str | None, words: Counter[str]) -> Any:
    """Return cells as numbers with a decimal sign if all are such, else as text.

    Text, with None where missing, if the sign is None. Words for "missing" are counted.
    """
    bare = compute.utf8_trim_whitespace(cells)
    is_gap = compute.is_in(bare, pyarrow.array(sorted(MISSING), cells.type))
    for found in compute.filter(bare, is_gap).value_counts().to_pylist():
        if found["values"]:
            words[found["values"]] += found["counts"]
    none = pyarrow.scalar(None, cells.type)
    if decimal is not None:
        plain = compute.if_else(is_gap, none, bare)
        # Nothing else is in plain numbers; Arrow would also take 0x1F, inf and nan.
        if not compute.any(compute.match_substring_regex(plain, f"[^-+0-9eE{decimal}]")).as_py():
            plain = compute.replace_substring(plain, ",", ".")
            for kind in (pyarrow.int64(), pyarrow.float64()):
                with contextlib.suppress(pyarrow.ArrowInvalid):
                    return plain.cast(kind).to_numpy()
    present = compute.if_else(is_gap, none, cells)
    coded = present.combine_chunks().dictionary_encode()  # each text is held once
    different = object_array([*coded.dictionary.to_pylist(), None])
    return pd.Series(different[coded.indices.fill_null(-1).to_numpy()], dtype=object)
