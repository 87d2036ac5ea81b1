"""Reading Parquet, Feather and Arrow files, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leafkernel._optional import require
from leafkernel.cli._reading import (
    CELL_BYTES,
    TEXT_BYTES,
    check_room,
    choose_rows,
    explain_damage,
    finish,
)
from leafkernel.cli.errors import FileError

_BATCH_ROWS = 2**16


@dataclass(frozen=True)
class _Batches:
    """An Arrow table that is read in batches."""

    schema: Any
    n_rows: int
    n_bytes: int
    read: Callable[[], Iterator[Any]]


def read_arrow(
    path: Path,
    name: str,
    kind: str,
    *,
    max_rows: int | None,
    random_state: int,
    remedy: str | None = None,
) -> Any:
    """Read a ``"parquet"``, ``"feather"`` or ``"stream"`` file, as ``read_text`` reads text.

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        The index holds the number of each row in the file, from 0.
    """
    try:
        pyarrow = require("pyarrow", extra="cli")
    except ImportError as error:
        raise FileError(f"{name} cannot be read: {error}") from error
    open_batches = _open_parquet if kind == "parquet" else _open_ipc
    try:
        with explain_damage(name, remedy):
            batches = open_batches(path, kind)
            needed = _needed_bytes(pyarrow, batches)
            check_room(name, needed, n_rows=batches.n_rows, max_rows=max_rows, remedy=remedy)
            rows = choose_rows(batches.n_rows, max_rows, random_state)
            frame = _take(pyarrow, batches, rows)
    except (pyarrow.ArrowException, ValueError) as error:
        said = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no words"
        raise FileError(
            f"{name} could not be read as a {kind.capitalize()} file; it is cut off, damaged, or "
            f"not one ({said}). Copy or download it again."
        ) from error
    return finish(frame, rows, batches.n_rows, [])


def _open_parquet(path: Path, kind: str) -> _Batches:  # noqa: ARG001 - as the other
    file = require("pyarrow.parquet", extra="cli").ParquetFile(path)
    found = file.metadata
    n_bytes = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
    return _Batches(
        file.schema_arrow,
        found.num_rows,
        n_bytes,
        lambda: _checked(file.iter_batches(batch_size=_BATCH_ROWS)),
    )


def _open_ipc(path: Path, kind: str) -> _Batches:
    ipc = require("pyarrow.ipc", extra="cli")
    pyarrow = require("pyarrow", extra="cli")

    def read() -> Iterator[Any]:
        source = pyarrow.memory_map(str(path))
        if kind == "stream":
            yield from _checked(ipc.open_stream(source))
        else:
            reader = ipc.open_file(source)
            yield from _checked(map(reader.get_batch, range(reader.num_record_batches)))

    source = pyarrow.memory_map(str(path))
    schema = (ipc.open_stream if kind == "stream" else ipc.open_file)(source).schema
    # The file says nothing of its rows: count them, holding one batch at a time.
    n_rows = n_bytes = 0
    for batch in read():
        n_rows += batch.num_rows
        n_bytes += batch.nbytes
    return _Batches(schema, n_rows, n_bytes, read)


def _checked(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches whose values lie within the file and are valid text."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _needed_bytes(pyarrow: Any, batches: _Batches) -> int:
    """Return the memory that all rows would take."""
    types = [field.type for field in batches.schema]
    n_plain = sum(pyarrow.types.is_primitive(each) for each in types)
    a_row = CELL_BYTES * len(types) + TEXT_BYTES * (len(types) - n_plain)
    return int(batches.n_bytes + a_row * batches.n_rows)


def _take(pyarrow: Any, batches: _Batches, rows: Any) -> Any:
    """Return the chosen rows of all batches as a data frame."""
    taken, start = [], 0
    for batch in batches.read():
        first, last = np.searchsorted(rows, [start, start + batch.num_rows])
        if last - first == batch.num_rows:
            taken.append(batch)
        elif last > first:
            taken.append(batch.take(pyarrow.array(rows[first:last] - start)))
        start += batch.num_rows
    table = pyarrow.Table.from_batches(taken, schema=batches.schema)
    names = table.column_names
    # Without what pandas noted in the file: an index in it is a column like others here. Names
    # are set last because they may occur twice.
    table = table.rename_columns([str(i) for i in range(len(names))])
    # Whole numbers with gaps stay whole: as floats, long ones would run together.
    whole = {
        getattr(pyarrow, name.lower())(): getattr(pd, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    with_gaps = {
        field.type
        for field, column in zip(table.schema, table.columns, strict=True)
        if column.null_count
    }
    frame = table.to_pandas(
        ignore_metadata=True,
        date_as_object=False,
        types_mapper=lambda each: whole.get(each) if each in with_gaps else None,
    )
    frame.columns = names
    return frame
