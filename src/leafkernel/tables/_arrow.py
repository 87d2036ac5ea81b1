"""Reading Parquet, Feather and Arrow files, a batch of rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leafkernel._optional import require
from leafkernel.tables._amounts import sign_of
from leafkernel.tables._missing import missing_notes
from leafkernel.tables._room import CELL_BYTES, TEXT_BYTES, check_room, explain_damage, finish
from leafkernel.tables._signs import Evidence, Stated
from leafkernel.tables._values import read_values
from leafkernel.tables.errors import FileError

_BATCH_ROWS = 2**16


def read_arrow(
    path: Path,
    name: str,
    kind: str,
    *,
    max_rows: int | None,
    random_state: int,
    remedy: str | None,
    stated: Stated,
) -> Any:
    """Read a ``"parquet"``, ``"feather"`` or ``"stream"`` file, as ``read_text`` reads text."""
    try:
        pyarrow = require("pyarrow", extra="cli")
    except ImportError as error:
        raise FileError(f"{name} cannot be read: {error}") from error
    try:
        with explain_damage(name, remedy):
            n_rows, n_bytes, schema = _measure(path, kind)
            n_text = sum(not pyarrow.types.is_primitive(field.type) for field in schema)
            needed = n_bytes + (CELL_BYTES * len(schema) + TEXT_BYTES * n_text) * n_rows
            check_room(name, needed, n_rows=n_rows, max_rows=max_rows, remedy=remedy)
            rows = np.arange(n_rows)
            if max_rows is not None and max_rows < n_rows:
                rng = np.random.default_rng(random_state)
                rows = np.sort(rng.choice(n_rows, max_rows, replace=False, shuffle=False))
            frame = _to_frame(_take(path, kind, schema, rows))
    except (pyarrow.ArrowException, ValueError) as error:
        said = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no words"
        raise FileError(
            f"{name} could not be read as a {kind.capitalize()} file; it is cut off, damaged, or "
            f"not one ({said}). Copy or download it again."
        ) from error
    evidence, words = Evidence(), Counter[str]()
    for j in range(frame.shape[1]):
        values = read_values(frame.iloc[:, j])
        words += values.words
        for value in () if values.objects is None or values.nested else set(values.objects):
            if isinstance(value, str):
                evidence.add(j, sign_of(value.strip()))
    frame.attrs["signs"] = evidence.decide(stated)
    return finish(frame, rows, n_rows, missing_notes(words))


def _measure(path: Path, kind: str) -> tuple[int, int, Any]:
    """Return the number of rows, the bytes that they take, and the columns."""
    if kind == "parquet":
        file = require("pyarrow.parquet", extra="cli").ParquetFile(path)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        n_bytes = sum(group.total_byte_size for group in groups)
        return file.metadata.num_rows, n_bytes, file.schema_arrow
    # The file says nothing of its rows: count them, holding one batch at a time.
    sizes = [(batch.num_rows, batch.nbytes) for batch in _batches(path, kind)]
    n_rows, n_bytes = np.sum([(0, 0), *sizes], axis=0).tolist()
    return n_rows, n_bytes, _open(path, kind).schema


def _open(path: Path, kind: str) -> Any:
    ipc = require("pyarrow.ipc", extra="cli")
    source = require("pyarrow", extra="cli").memory_map(str(path))
    return ipc.open_stream(source) if kind == "stream" else ipc.open_file(source)


def _batches(path: Path, kind: str) -> Iterator[Any]:
    """Yield batches whose values lie within the file and are valid text."""
    if kind == "parquet":
        file = require("pyarrow.parquet", extra="cli").ParquetFile(path)
        batches = file.iter_batches(batch_size=_BATCH_ROWS)
    else:
        reader = _open(path, kind)
        batches = (
            reader if kind == "stream" else map(reader.get_batch, range(reader.num_record_batches))
        )
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _take(path: Path, kind: str, schema: Any, rows: Any) -> Any:
    """Return the chosen rows of all batches as an Arrow table."""
    pyarrow = require("pyarrow", extra="cli")
    taken, start = [], 0
    for batch in _batches(path, kind):
        first, last = np.searchsorted(rows, [start, start + batch.num_rows])
        if last - first == batch.num_rows:
            taken.append(batch)
        elif last > first:
            taken.append(batch.take(pyarrow.array(rows[first:last] - start)))
        start += batch.num_rows
    return pyarrow.Table.from_batches(taken, schema=schema)


def _to_frame(table: Any) -> Any:
    """Return a table as a data frame, without what pandas noted in the file.

    An index in the file is a column like others. Names may occur twice, so they are set last.
    Whole numbers with gaps stay whole: as floats, long ones would run together.
    """
    pyarrow = require("pyarrow", extra="cli")
    names = table.column_names
    table = table.rename_columns([str(i) for i in range(len(names))])
    gappy = {column.type for column in table.columns if column.null_count}
    whole = {
        getattr(pyarrow, name.lower())(): getattr(pd, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    frame = table.to_pandas(
        ignore_metadata=True,
        date_as_object=False,
        types_mapper=lambda each: whole.get(each) if each in gappy else None,
    )
    frame.columns = names
    return frame
