"""An engine for reference samples in parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from leafkernel._progress import OnProgress
from leafkernel.engines.dense import dense_rows
from leafkernel.engines.native import NO_LIMIT
from leafkernel.leaf_index import LeafIndex
from leafkernel.parts import Nearest, nearest_of_both, parts_of, products
from leafkernel.product import Product

if TYPE_CHECKING:
    from leafkernel.engines import Engine


@dataclass(frozen=True)
class PartedEngine:
    """Computes each part with another engine, and combines the results.

    Parameters
    ----------
    inner : Engine
        The engine for each part.
    """

    inner: Engine

    @property
    def key(self) -> Hashable:
        """Key of the inner engine, which prepares the parts."""
        return self.inner.key

    @property
    def n_threads(self) -> int:
        """Number of threads of the inner engine."""
        return self.inner.n_threads

    def prepare(self, index: LeafIndex) -> Any:
        """Prepare one part."""
        return self.inner.prepare(index)

    def describe(self, product: Product) -> str:
        """Return the name of the engine of the first part."""
        _, first = next(products(product))
        return str(getattr(self.inner, "describe", lambda _: "")(first))

    def on_one_thread(self) -> PartedEngine:
        """Return the same engine on one thread."""
        return PartedEngine(self.inner.on_one_thread())

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n)."""
        blocks: list[csr_array] = []
        for _, part, watch in _watched(product, on_progress):
            left = most_entries - sum(block.nnz for block in blocks)
            blocks.append(self.inner.rows(part, watch, sort=sort, most_entries=left))
        matrix = csr_array(hstack(blocks, format="csr"))
        matrix.has_canonical_format = matrix.has_sorted_indices = sort
        return matrix

    def dense(self, product: Product, on_progress: OnProgress | None = None) -> npt.NDArray[Any]:
        """Return P as a dense array, shape (m, n)."""
        matrix = np.empty(product.shape, product.dtype)
        for columns, part, watch in _watched(product, on_progress):
            matrix[:, columns] = dense_rows(self.inner, part, watch)
        return matrix

    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> Nearest:
        """Return the k largest entries of each row and their columns, shapes (m, k)."""
        best: Nearest = (
            np.empty((product.n_rows, 0), product.dtype),
            np.empty((product.n_rows, 0), int),
        )
        for columns, part, watch in _watched(product, on_progress):
            similarity, samples = self.nearest_in(part, k, watch, by_magnitude=by_magnitude)
            found = similarity, np.where(samples < 0, samples, samples + columns.start)
            best = nearest_of_both(best, found, k, by_magnitude=by_magnitude)
        return best

    def nearest_in(
        self,
        part: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> Nearest:
        """Return the nearest samples in one part, which may have fewer than k samples."""
        n = part.shape[1]
        if part.own is None or k < n:
            return self.inner.nearest(part, min(k, n), on_progress, by_magnitude=by_magnitude)
        # Rows of the part itself have one candidate less than the others.
        similarity = np.zeros((part.n_rows, n), part.dtype)
        samples = np.full((part.n_rows, n), -1)
        for is_own in (False, True):
            rows = np.flatnonzero((part.own >= 0) == is_own)
            some = part.take(rows) if is_own else replace(part.take(rows), own=None, diagonal=None)
            found = self.inner.nearest(some, n - is_own, by_magnitude=by_magnitude)
            similarity[rows, : n - is_own], samples[rows, : n - is_own] = found
        return similarity, samples

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c)."""
        total = np.zeros((product.n_rows, values.shape[1]))
        for columns, part, watch in _watched(product, on_progress):
            total += self.inner.sums(part, values[columns], watch)
        return total

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c), through the leaves."""
        total = np.zeros((product.n_rows, values.shape[1]))
        for columns, part in products(product):
            total += self.inner.apply(part, values[columns])
        return total

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,)."""
        counts = np.zeros(product.n_rows, dtype=np.int64)
        return sum((self.inner.collisions(part) for _, part in products(product)), counts)

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        counts = np.zeros(product.n_rows, dtype=np.int64)
        parts = _watched(product, on_progress)
        return sum((self.inner.nonzeros(part, watch) for _, part, watch in parts), counts)


def _watched(
    product: Product, on_progress: OnProgress | None
) -> Iterator[tuple[slice, Product, OnProgress | None]]:
    """Yield the columns and the product of each part, with a callback for the total progress."""
    n_parts = len(parts_of(product.reference))
    for done, (columns, part) in enumerate(products(product)):
        watch = None
        if on_progress is not None:

            def watch(rows: int, before: int = done * product.n_rows) -> None:
                on_progress((before + rows) // n_parts)

        yield columns, part, watch
