"""Read text tables with commas, semicolons, tabs or bars, in any common encoding.

The csv module splits the lines, because it reads messy files and knows the line of an error. Arrow
stores the cells compactly and converts them to numbers. Properties of whole columns, such as codes
and decimal signs, are collected from each block of rows.
"""

from __future__ import annotations

import contextlib
import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
from pyarrow import compute

from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._kinds import CODE, is_id_name
from leafkernel.tables._layout import (
    Dialect,
    Source,
    find_layout,
    guess_encoding,
    is_blank,
    is_data,
    second_guess,
)
from leafkernel.tables._missing import MISSING, missing_notes
from leafkernel.tables._notation import Evidence, Signs, sign_of
from leafkernel.tables._room import (
    CELL_BYTES,
    ReadOptions,
    Rows,
    check_room,
    choose_rows,
    explain_damage,
    finish,
    take_rows,
)
from leafkernel.tables._values import object_array
from leafkernel.tables.errors import FileError

_HEAD = 2**18  # characters to read for detecting the layout
_BLOCK = 2**11  # rows in a block
_PLACE_BYTES = 8  # bytes of an offset in an Arrow array
_LONGEST_CELL = 2**31 - 1
_END = "\U0010ffff"  # a line that marks the end of a file and does not occur in text
_CODE = rf"^[ \t]*(?:{CODE})[ \t]*$"


def read_text(file: Source, options: ReadOptions) -> Any:
    """Read a table from a text file.

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        The index has the number of each row in the file, counted from 0. ``attrs["notes"]`` has
        the notes, ``attrs["signs"]`` the decimal sign of each column, and ``attrs["dialect"]`` the
        dialect of the file.
    """
    notes: list[str] = []
    with explain_damage(file.name, options.remedy), _long_cells():
        encoding = guess_encoding(file)
        try:
            header, dialect, clues, rows, table = _read(file, encoding, options)
        except UnicodeDecodeError:
            encoding, note = second_guess(file, encoding)
            notes.append(note)
            header, dialect, clues, rows, table = _read(file, encoding, options)
    if is_data(header):
        notes.append(
            "The first line of the file looks like data, but it was used as the column names. If "
            "the file has no column names, add a line with them."
        )
    # Files with decimal commas use semicolons as separators.
    signs = clues.evidence.decide(options.stated, comma="." if dialect.separator == "," else ",")
    words: Counter[str] = Counter()
    columns = {}
    for j, name in enumerate(clean_names(header, Findings())):
        sign = signs.get(j, Signs())
        is_text = options.as_text or j in clues.codes or not sign.sure
        is_text = is_text or name in options.exact or is_id_name(name)
        columns[j] = _to_series(table.column(0), None if is_text else sign.decimal, words)
        table = table.remove_column(0)  # frees its memory
    frame = pd.DataFrame(columns)
    frame.columns = header
    frame.attrs["signs"], frame.attrs["dialect"] = signs, dialect
    return finish(frame, rows, clues.n_rows, [*notes, *missing_notes(words)])


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Let the csv module read cells of any length. The limit is global to the process."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class _Clues:
    """Collects from all rows which columns have codes, and their decimal signs."""

    def __init__(self, n_columns: int) -> None:
        self.n_rows = 0
        self.codes: set[int] = set()
        self.evidence = Evidence()
        self._undecided = set(range(n_columns))

    def add(self, batch: Any) -> Any:
        """Process a batch of rows and return it."""
        self.n_rows += batch.num_rows
        for j, cells in enumerate(batch.columns):
            if j not in self.codes and _any_like(_CODE, cells):
                self.codes.add(j)
            if j in self._undecided and _any_like("[.,]", cells):
                marked = cells.filter(compute.match_substring_regex(cells, "[.,]")).to_pylist()
                counts = Counter(map(str.strip, marked))
                if any(self.evidence.add(j, sign_of(cell), counts[cell]) for cell in counts):
                    self._undecided.discard(j)
        return batch


def _any_like(pattern: str, cells: Any) -> bool:
    return bool(compute.any(compute.match_substring_regex(cells, pattern)).as_py())


def _read(
    file: Source, encoding: str, options: ReadOptions
) -> tuple[list[str], Dialect, _Clues, Rows, Any]:
    """Read a file in a given encoding; return its layout, clues and the chosen rows as text."""
    with file.text(encoding) as handle:
        head = "".join(_lines([handle.read(_HEAD)], file.name)).removesuffix(_END)
        raw: Any = handle.buffer
        n_read = getattr(raw, "fileobj", raw).tell()  # compressed bytes for a gzip file
    if not head.strip():
        raise FileError(f"{file.name} is empty. Use a table with a line of column names.")
    scale = 1.0
    if len(head) == _HEAD:
        scale = file.path.stat().st_size / n_read
        cut = max(head.rfind("\n"), head.rfind("\r"))
        head = head[: cut + 1] if cut > 0 else head  # whole lines
    header, dialect, n_cells = find_layout(head, encoding)
    needed = (2 * len(head) + (CELL_BYTES + _PLACE_BYTES) * n_cells) * scale
    check_room(file.name, needed, n_cells / len(header) * scale, options)
    schema = pyarrow.schema([(str(j), pyarrow.large_string()) for j in range(len(header))])

    def batches() -> Iterator[Any]:
        with file.text(encoding) as handle:
            rows = _rows(handle, file.name, len(header), dialect)
            while block := list(islice(rows, _BLOCK)):
                yield pyarrow.record_batch(list(map(_to_arrow, zip(*block, strict=True))), schema)

    clues = _Clues(len(header))
    looked = map(clues.add, batches())
    if options.max_rows is None:
        table = pyarrow.Table.from_batches(looked, schema)
        return header, dialect, clues, np.arange(clues.n_rows), table
    for _ in looked:
        pass
    chosen = choose_rows(clues.n_rows, options)
    return header, dialect, clues, chosen, take_rows(batches(), schema, chosen)


def _to_arrow(cells: tuple[str, ...]) -> Any:
    return pyarrow.array(cells, pyarrow.large_string())


def _lines(handle: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines of a text, then an end mark that reveals a quote which is not closed."""
    n_before = 1
    for line in handle:
        if "\0" in line:
            number = n_before + line.partition("\0")[0].count("\n")
            raise FileError(
                f"{name} has a zero byte on line {number:,}: it is damaged or not a text file. "
                "Export the table again as CSV."
            )
        n_before += 1
        yield line
    yield _END


def _rows(handle: Iterable[str], name: str, width: int, dialect: Dialect) -> Iterator[list[str]]:
    """Yield the rows below the header. All must have as many cells as the header."""
    first, is_header = 1, True
    reader = csv.reader(_lines(handle, name), **dialect.options)
    for record in reader:
        if len(record) != width or width == 1 or record[-1].endswith(_END):  # few are
            if record == [_END]:
                return
            if record and record[-1].endswith(_END):
                raise FileError(
                    f"{name}, line {first:,}: a quote is opened but not closed, or the file is "
                    "truncated. Correct this line, or get the file again."
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
        f"line {line:,} has {found} cell{'s' * (found != 1)}, but the first line has "
        f"{width} column name{'s' * (width != 1)}"
    )
    if is_last and found < width:
        return (
            f"{name} seems to be truncated: the last line, {said}. Get the file again, or delete "
            "this line."
        )
    return (
        f"{name}: {said}. Correct this line (text that contains {dialect.separator!r} must be "
        "quoted). If there are other lines above the column names, delete them."
    )


def _to_series(cells: Any, decimal: str | None, words: Counter[str]) -> Any:
    """Return cells as numbers if all of them are numbers with this decimal sign, else as text.

    If the sign is None, the cells stay text. Missing text is None. Words for missing values are
    counted in ``words``.
    """
    bare = compute.utf8_trim_whitespace(cells)
    is_gap = compute.is_in(bare, pyarrow.array(sorted(MISSING), cells.type))
    for found in compute.filter(bare, is_gap).value_counts().to_pylist():
        if found["values"]:
            words[found["values"]] += found["counts"]
    none = pyarrow.scalar(None, cells.type)
    if decimal is not None:
        plain = compute.if_else(is_gap, none, bare)
        # Allow only plain numbers. Arrow would also accept 0x1F, inf and nan.
        if not _any_like(f"[^-+0-9eE{decimal}]", plain):
            plain = compute.replace_substring(plain, ",", ".")
            for kind in (pyarrow.int64(), pyarrow.float64()):
                with contextlib.suppress(pyarrow.ArrowInvalid):
                    return plain.cast(kind).to_numpy()
    present = compute.if_else(is_gap, none, cells)
    coded = present.combine_chunks().dictionary_encode()  # stores each text once
    different = object_array([*coded.dictionary.to_pylist(), None])
    return pd.Series(different[coded.indices.fill_null(-1).to_numpy()], dtype=object)
