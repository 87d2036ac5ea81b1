"""The compiled engine: a parallel loop over rows, with a reducer for each kind of result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

import leafkernel._native as core
from leafkernel._progress import OnProgress
from leafkernel.engines.twins import Twins
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

#: Raised by ``rows`` if the matrix would have more entries than allowed.
TooManyEntriesError = core.TooManyEntriesError
NO_LIMIT = 2**62


@dataclass(frozen=True)
class NativeEngine:
    """The compiled engine. Ctrl-C stops it between blocks of rows.

    Parameters
    ----------
    n_threads : int
        Number of threads. Results do not depend on it.
    wide_indices : bool, default=False
        Whether to use 64-bit indices even if 32 bits are enough.
    loop : {"auto", "lists", "planes", "bounds"}, default="auto"
        The algorithm. "lists" iterates over the members of each leaf. "planes" adds bitmaps of
        large leaves and lists of small leaves, if the scheme allows it. "bounds" searches neighbors
        in the leaves with the largest weights first, and stops when the others cannot change the
        result. "auto" selects the algorithm that is expected to be fastest, for neighbors row by
        row. The results are the same.
    reason : str, default=""
        Why this engine was selected, for :meth:`describe`.
    """

    n_threads: int = 1
    wide_indices: bool = False
    loop: str = "auto"
    reason: str = field(default="", compare=False)
    key: ClassVar[str] = "native"

    def describe(self, product: Product) -> str:  # noqa: ARG002
        """Return the name of the engine, and why it was selected."""
        threads = f"{self.n_threads} thread{'s' if self.n_threads > 1 else ''}"
        return f"native, {threads}" + (f" ({self.reason})" if self.reason else "")

    def prepare(self, index: LeafIndex) -> core.LeafIndex:
        """Check an index, and store its arrays for all products."""
        return core.LeafIndex(index.lists, index.by_place, index.rows)

    def on_one_thread(self) -> NativeEngine:
        """Return the same engine on one thread."""
        return replace(self, n_threads=1)

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n)."""
        twins = Twins.of(product, self.n_threads)
        if twins is not None:
            watch = _watched(on_progress, product, twins.product)
            matrix = self._csr(twins.product, watch, sort=sort, most_entries=most_entries)
            if twins.n_entries(matrix) > most_entries:
                raise TooManyEntriesError
            matrix = twins.rows(matrix, self.n_threads, wide_indices=self.wide_indices)
        else:
            matrix = self._csr(product, on_progress, sort=sort, most_entries=most_entries)
        matrix.has_canonical_format = matrix.has_sorted_indices = sort
        return matrix

    def _csr(
        self, product: Product, on_progress: OnProgress | None, *, sort: bool, most_entries: int
    ) -> csr_array:
        arrays = core.csr_rows(
            product,
            self._index(product),
            sort,
            most_entries,
            self.loop,
            self.n_threads,
            self.wide_indices,
            on_progress,
        )
        return csr_array(arrays, shape=product.shape)

    def dense(self, product: Product, on_progress: OnProgress | None = None) -> npt.NDArray[Any]:
        """Return P as a dense array, shape (m, n)."""
        return core.dense_rows(
            product, self._index(product), self.loop, self.n_threads, on_progress
        )

    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k largest entries of each row and their columns, shapes (m, k)."""
        twins = Twins.of(product, self.n_threads) if k < product.shape[1] else None
        rows, n_found, watch = product, k, on_progress
        if twins is not None:
            rows, n_found = twins.product, k + 1
            watch = _watched(on_progress, product, rows)
        index = self._index(product)
        found = core.nearest(rows, index, n_found, by_magnitude, self.loop, self.n_threads, watch)
        if twins is None:
            return found
        own = None
        if product.own is not None:
            own = np.where(product.own < 0, -1, product.index.sample_at[product.own])
        return twins.nearest(found, own)

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c)."""
        return core.sums(
            product,
            self._index(product),
            np.ascontiguousarray(values),
            self.loop,
            self.n_threads,
            on_progress,
        )

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c), through the leaves."""
        return core.apply(
            product, self._index(product), np.ascontiguousarray(values), self.n_threads
        )

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,)."""
        return core.collisions(product, self._index(product), self.n_threads)

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        return core.nonzeros(product, self._index(product), self.loop, self.n_threads, on_progress)

    def bitmap_bytes(self, product: Product) -> int:
        """Return the memory that :meth:`rows` needs for bitmaps of large leaves."""
        return core.bitmap_bytes(product, self._index(product), self.loop)

    def _index(self, product: Product) -> core.LeafIndex:
        index: core.LeafIndex = product.index.prepared(self)
        return index


def _watched(
    on_progress: OnProgress | None, product: Product, distinct: Product
) -> OnProgress | None:
    """Return a progress callback that converts distinct rows to rows of the product."""
    if on_progress is None:
        return None
    return lambda done: on_progress(done * product.n_rows // max(distinct.n_rows, 1))
