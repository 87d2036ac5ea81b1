"""Entries of rows of P on the device, and their conversion to CSR and dense arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.engines.gpu._device import kernel, load_cupy, offsets_of


@dataclass(frozen=True)
class Segments:
    """The entries of a block of rows: one segment for each row and chunk of samples.

    Attributes
    ----------
    begin, end : int
        The rows of the block.
    rows : cupy.ndarray of int32
        The rows, in the order of their segments.
    starts : cupy.ndarray of int64 of shape (n_rows * n_chunks + 1,)
        Position of each segment, and the end of the last one.
    sizes : cupy.ndarray of int32 of shape (n_rows * n_chunks,)
        Size of each segment.
    columns, values : cupy.ndarray
        Samples and proximities. There are gaps between segments.
    n_chunks : int
        Segments per row.
    macros : dict
        The macros for the types of the product.
    """

    begin: int
    end: int
    rows: Any
    starts: Any
    sizes: Any
    columns: Any
    values: Any
    n_chunks: int
    macros: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.end - self.begin

    def drop_zeros(self) -> None:
        """Remove entries that are zero."""
        drop = kernel("gather_rows.cu", "drop_zeros", **self.macros)
        drop(np.int64(len(self.sizes)), *self.entries(), n_warps=len(self.sizes))

    def row_sizes(self) -> Any:
        """Return the number of entries of each row, in the order of rows."""
        sizes = load_cupy().empty(self.n_rows, np.int64)
        kernel("gather_rows.cu", "row_sizes", **self.macros)(
            *self.arguments(),
            np.int64(self.begin),
            self.sizes,
            sizes,
            n_warps=-(-self.n_rows // 32),
        )
        return sizes

    def to_csr(self, most_entries: int) -> tuple[Any, Any, Any] | None:
        """Return offsets, columns and values of the rows, or None if there are too many entries."""
        cupy = load_cupy()
        offsets = offsets_of(self.row_sizes())
        n_entries = int(offsets[-1])
        if n_entries > most_entries:
            return None
        columns = cupy.empty(n_entries, np.int32)
        values = cupy.empty(n_entries, self.values.dtype)
        self._gather("to_csr", np.int64(self.begin), *self.entries(), offsets, columns, values)
        return offsets, columns, values

    def to_dense(self, n_samples: int) -> Any:
        """Return the rows as a dense array."""
        rows = load_cupy().zeros((self.n_rows, n_samples), self.values.dtype)
        self._gather("to_dense", np.int64(self.begin), *self.entries(), np.int64(n_samples), rows)
        return rows

    def times_dense(self, dense: Any, out: Any) -> None:
        """Write the product of the rows and a dense array to the same rows of ``out``."""
        self._gather("times_dense", *self.entries(), dense, np.int32(dense.shape[1]), out)

    def _gather(self, name: str, *arguments: Any) -> None:
        gather = kernel("gather_rows.cu", name, **self.macros)
        gather(*self.arguments(), *arguments, n_warps=self.n_rows)

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of the kernels that read segments."""
        return np.int64(self.n_rows), np.int32(self.n_chunks), self.rows

    def entries(self) -> tuple[Any, ...]:
        """Return the arrays of the entries."""
        return self.starts, self.sizes, self.columns, self.values
