"""Read Parquet files that are larger than memory in small parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow.parquet import read_metadata, read_schema

from leafkernel.batches import identity_of, parquet_files, read_parquet
from leafkernel.tables._arrow import reading_arrow, row_bytes, to_frame
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._formats import PARQUET, find_format
from leafkernel.tables._layout import Source
from leafkernel.tables._room import Rows, take_rows
from leafkernel.tables.errors import FileError

_ROWS = 65_536


class LargeTable:
    """Parquet files with the same columns, in a fixed order.

    Parameters
    ----------
    path : Path
        A file, or a folder of files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        name = repr(str(path))
        if not path.is_dir() and (found := find_format(path, name)) != PARQUET:
            raise FileError(
                f"{name} is {found}, but --max-memory requires Parquet files. Convert it first, "
                f"for example with DuckDB: COPY {name} TO '{path.stem}.parquet';"
            )
        self._source = Source(path, name, PARQUET)
        with reading_arrow(self._source):
            self.files = parquet_files(path)
            self.schema = read_schema(self.files[0])
            self.n_rows = sum(read_metadata(file).num_rows for file in self.files)
        for file in self.files[1:]:
            if not read_schema(file).equals(self.schema):
                raise FileError(
                    f"{file} and {self.files[0]} have different columns or column types. All files "
                    "in a folder must have the same columns."
                )

    @property
    def row_bytes(self) -> int:
        """The approximate memory of a row in bytes."""
        return row_bytes(self.schema)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return clean_names(self.schema.names, Findings())

    @cached_property
    def identity(self) -> list[Any]:
        """A value that changes when the files change."""
        return [identity_of(file) for file in self.files]

    def take(self, rows: Rows, begin: int, end: int) -> Any:
        """Return the given rows from ``begin`` to ``end`` as an Arrow table."""
        rows = rows[slice(*np.searchsorted(rows, [begin, end]))]

        def batches() -> Iterator[Any]:
            start = begin
            for batch in read_parquet(self.files, begin, None, _ROWS):
                yield batch
                start += batch.num_rows
                if start >= end:
                    return

        with reading_arrow(self._source):
            return take_rows(batches(), self.schema, rows - begin)

    def frames(self, skip: int, names: Collection[str], n_rows: int) -> Iterator[Any]:
        """Yield batches of ``n_rows`` rows after the first ``skip``, with the named columns."""
        both = zip(self.schema.names, self.names, strict=True)
        columns = [name for name, clean in both if clean in names]
        with reading_arrow(self._source):
            for batch in read_parquet(self.files, skip, columns, n_rows):
                batch.validate(full=True)
                yield to_frame(pyarrow.Table.from_batches([batch]))
