"""The compiled engine: one parallel loop over rows, fed to a reducer for each kind of result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

import leafkernel._native as core
from leafkernel._progress import OnProgress
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

#: What ``rows`` raises where the matrix would have more entries than are allowed.
TooManyEntriesError = core.TooManyEntriesError
NO_LIMIT = 2**62


@dataclass(frozen=True)
class NativeEngine:
    """Calls the compiled core. Ctrl-C stops it between blocks of rows.

    Parameters
    ----------
    n_threads : int
        Threads to use; the numbers do not depend on it.
    wide_indices : bool, default=False
        Whether to use 64-bit indices even where 32 bits are enough.
    loop : {"auto", "lists", "planes", "bounds"}, default="auto"
        How to sum rows of P and find neighbors. "lists" goes over the members of each leaf.
        "planes" adds up bitmaps of large leaves, where the scheme allows it. "bounds" looks for
        neighbors in the heaviest leaves first, and stops when the others cannot change the
        answer. "auto" takes the one that is expected to be fastest. The results are the same.
    """

    n_threads: int = 1
    wide_indices: bool = False
    loop: str = "auto"
    key: ClassVar[str] = "native"

    def prepare(self, index: LeafIndex) -> core.LeafIndex:
        """Check an index and keep its arrays, for every product to come."""
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
        matrix = csr_array(arrays, shape=product.shape)
        matrix.has_canonical_format = matrix.has_sorted_indices = sort
        return matrix

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
        return core.nearest(
            product, self._index(product), k, by_magnitude, self.loop, self.n_threads, on_progress
        )

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

    def _index(self, product: Product) -> core.LeafIndex:
        index: core.LeafIndex = product.index.prepared(self)
        return index
