"""Read Parquet, Feather and Arrow files in batches of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
from pyarrow import ipc
from pyarrow.parquet import ParquetFile

from leafkernel.tables._formats import PARQUET, STREAM
from leafkernel.tables._layout import Source
from leafkernel.tables._missing import missing_notes
from leafkernel.tables._notation import Evidence, Stated, sign_of
from leafkernel.tables._room import (
    CELL_BYTES,
    TEXT_BYTES,
    ReadOptions,
    Rows,
    check_room,
    choose_rows,
    explain_damage,
    finish,
    take_rows,
)
from leafkernel.tables._values import read_values
from leafkernel.tables.errors import FileError

_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")


def read_arrow(file: Source, options: ReadOptions) -> Any:
    """Read a Parquet file, a Feather file or an Arrow stream. See ``read_text``."""
    with reading_arrow(file, options.remedy):
        schema, n_rows, batches = _open(file.path, file.kind)
        needed = file.path.stat().st_size + row_bytes(schema) * n_rows
        check_room(file.name, needed, n_rows, options)
        rows = choose_rows(n_rows, options)
        frame = to_frame(take_rows(batches, schema, rows))
    return find_signs(frame, rows, n_rows, options.stated)


@contextmanager
def reading_arrow(file: Source, remedy: str | None = None) -> Iterator[None]:
    """Raise FileError for a damaged file. ``remedy`` is the same as in ``ReadOptions``."""
    try:
        with explain_damage(file.name, remedy):
            yield
    except (pyarrow.ArrowException, ValueError) as error:
        said = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "unknown"
        raise FileError(
            f"{file.name} could not be read as {file.kind}: it is truncated, damaged or of another "
            f"type ({said}). Copy or download it again."
        ) from error


def row_bytes(schema: Any) -> int:
    """Return the approximate memory of a row in bytes."""
    n_text = sum(not pyarrow.types.is_primitive(each) for each in schema.types)
    return CELL_BYTES * len(schema) + TEXT_BYTES * n_text


def find_signs(frame: Any, rows: Rows, n_rows: int, stated: Stated) -> Any:
    """Detect the decimal signs of a frame and add its attributes, see ``read_file``."""
    evidence, words = Evidence(), Counter[str]()
    for j in range(frame.shape[1]):
        values = read_values(frame.iloc[:, j])
        words += values.words
        for value in () if values.objects is None or values.nested else set(values.objects):
            if isinstance(value, str):
                evidence.add(j, sign_of(value.strip()))
    frame.attrs["signs"] = evidence.decide(stated)
    return finish(frame, rows, n_rows, missing_notes(words))


def _open(path: Path, kind: str) -> tuple[Any, int, Iterator[Any]]:
    """Return the schema of a file, its number of rows, and its batches of rows."""
    if kind == PARQUET:
        parquet = ParquetFile(path)
        return parquet.schema_arrow, parquet.metadata.num_rows, parquet.iter_batches()

    def reader() -> Any:
        source = pyarrow.memory_map(str(path))
        return ipc.open_stream(source) if kind == STREAM else ipc.open_file(source)

    def batches() -> Iterator[Any]:
        found = reader()
        return found if kind == STREAM else map(found.get_batch, range(found.num_record_batches))

    # The file does not store the number of rows. Count them, one batch at a time.
    return reader().schema, sum(batch.num_rows for batch in batches()), batches()


def to_frame(table: Any) -> Any:
    """Return an Arrow table as a data frame, without the metadata of pandas.

    An index in the file becomes a normal column. Names can be duplicates, so they are set last.
    Integers with missing values stay integers, because floats cannot store long ones exactly.
    """
    names = table.column_names
    table = table.rename_columns([str(i) for i in range(len(names))])
    gappy = {column.type for column in table.columns if column.null_count}
    whole = {getattr(pyarrow, x.lower())(): getattr(pd, f"{x}Dtype")() for x in _INTEGERS}
    frame = table.to_pandas(
        ignore_metadata=True,
        date_as_object=False,
        types_mapper=lambda each: whole.get(each) if each in gappy else None,
    )
    frame.columns = names
    return frame
