"""An engine for kernels that compare whole paths. P has no zeros, so it is never built at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

import leafkernel._native as core
from leafkernel._progress import OnProgress
from leafkernel.engines.native import NO_LIMIT, TooManyEntriesError
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

# Rows of P to compute at once, and the most memory for them in bytes. The compiled core handles 16
# columns in one pass over the trees.
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 256, 1 << 27
# If removing the diagonal leaves a smaller share of a sum, the sum is computed again.
_LOST_DIGITS = 1e-6

Nearest = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class PathEngine:
    """Computes products with one pass up and one pass down each tree, and neighbors with bounds.

    Parameters
    ----------
    n_threads : int
        Number of threads. Results do not depend on it.
    """

    n_threads: int = 1
    key: ClassVar[str] = "paths"

    def describe(self, product: Product) -> str:  # noqa: ARG002
        """Return the name of the engine."""
        return f"native for paths, {self.n_threads} thread{'s' if self.n_threads > 1 else ''}"

    def prepare(self, index: LeafIndex) -> core.LeafIndex:
        """Check an index, and store its arrays for all products."""
        return core.LeafIndex(index.lists, index.by_place, index.rows)

    def on_one_thread(self) -> PathEngine:
        """Return the same engine on one thread."""
        return replace(self, n_threads=1)

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,  # noqa: ARG002 - its rows are always sorted
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n)."""
        blocks, n_entries = [csr_array((0, product.shape[1]), dtype=product.dtype)], 0
        for _, block in self._blocks(product, on_progress):
            n_entries += np.count_nonzero(block)
            if n_entries > most_entries:
                raise TooManyEntriesError
            blocks.append(_as_csr(block))
        return csr_array(vstack(blocks, format="csr"))

    def dense(self, product: Product, on_progress: OnProgress | None = None) -> npt.NDArray[Any]:
        """Return P as a dense array, shape (m, n)."""
        matrix = np.empty(product.shape, product.dtype)
        for rows, block in self._blocks(product, on_progress):
            matrix[rows] = block
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
        if _has_weights(product):
            return self._nearest_in_rows(product, k, on_progress, by_magnitude=by_magnitude)
        return self.nearest_and_looks(product, k, on_progress)[:2]

    def nearest_and_looks(
        self, product: Product, k: int, on_progress: OnProgress | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the nearest samples, and how many (sample, tree) pairs each row looked at."""
        index = product.index.prepared(self)
        return core.nearest_by_paths(product, index, k, self.n_threads, on_progress)

    def _nearest_in_rows(
        self, product: Product, k: int, on_progress: OnProgress | None, *, by_magnitude: bool
    ) -> Nearest:
        """Return the nearest samples from whole rows of P."""
        similarity = np.empty((product.n_rows, k), product.dtype)
        samples = np.empty((product.n_rows, k), np.int64)
        for rows, block in self._blocks(product, on_progress):
            rank = -np.abs(block) if by_magnitude else -block
            if product.own is not None:
                own = product.own[rows]
                mine = np.flatnonzero(own >= 0)
                rank[mine, product.index.sample_at[own[mine]]] = np.inf
            samples[rows] = np.argsort(rank, axis=1, kind="stable")[:, :k]
            similarity[rows] = np.take_along_axis(block, samples[rows], axis=1)
        return similarity, samples

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c)."""
        product = product.with_dtype(np.float64)
        out = self.apply(product, values)
        if product.diagonal is None or product.own is None or product.nodes is None:
            return out
        mine = np.flatnonzero(product.own >= 0)
        samples = product.index.sample_at[product.own[mine]]
        theirs = _samples_by_row(product).rows(samples)
        own = product.nodes.dots(product.query.rows(mine), theirs)
        removed = own[:, None] * values[samples]
        out[mine] += product.diagonal[mine, None] * values[samples] - removed
        # If hardly anything is left, the digits are lost. Sum these rows without the diagonal.
        lost = mine[(np.abs(out[mine]) < _LOST_DIGITS * np.abs(removed)).any(axis=1)]
        for rows, block in self._blocks(product.take(lost), on_progress):
            out[lost[rows]] = block @ values
        return out

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c), through the nodes."""
        index = product.index.prepared(self)
        return core.apply(product, index, np.ascontiguousarray(values), self.n_threads)

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the shared roots of each row, shape (m,): all samples in all trees."""
        n_trees = len(product.query.incidence.coordinates.tree)
        return np.full(product.n_rows, product.shape[1] * n_trees, dtype=np.int64)

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        counts = np.empty(product.n_rows, dtype=np.int64)
        for rows, block in self._blocks(product, on_progress):
            counts[rows] = np.count_nonzero(block, axis=1)
        return counts

    def _blocks(
        self, product: Product, on_progress: OnProgress | None
    ) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield blocks of rows of P as dense arrays, in their order."""
        n_rows, n_samples = product.shape
        size = max(16, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // (8 * max(n_samples, 1))))
        for begin in range(0, n_rows, size):
            rows = slice(begin, min(begin + size, n_rows))
            yield rows, self._dense_rows(product.take(np.arange(rows.start, rows.stop)))
            if on_progress is not None:
                on_progress(rows.stop)

    def _dense_rows(self, product: Product) -> npt.NDArray[Any]:
        """Return rows of P: the transposed product Pᵀ = W K Qᵀ, applied to unit vectors."""
        samples = _samples_by_row(product)
        turned = replace(
            product,
            query=samples,
            reference=LeafIndex.of(product.query),
            row_order=samples.incidence.locality_order(),
            dtype=np.dtype(np.float64),
            own=None,
            diagonal=None,
        )
        block = self.apply(turned, np.eye(product.n_rows)).T
        if not (np.abs(block) <= np.finfo(product.dtype).max).all():
            raise OverflowError(
                f"A proximity is too large for {product.dtype}. Use smaller weights, or "
                "dtype=np.float64."
            )
        if product.own is not None and product.diagonal is not None:
            mine = np.flatnonzero(product.own >= 0)
            block[mine, product.index.sample_at[product.own[mine]]] = product.diagonal[mine]
        return block.astype(product.dtype)  # type: ignore[no-any-return]


def _as_csr(block: npt.NDArray[Any]) -> csr_array:
    """Return a dense block as a sparse matrix. Most blocks have no zeros."""
    n_rows, n_columns = block.shape
    if not block.all():
        return csr_array(block)
    offsets = np.arange(n_rows + 1) * n_columns
    arrays = (block.ravel(), np.tile(np.arange(n_columns), n_rows), offsets)
    return csr_array(arrays, shape=block.shape)


def _samples_by_row(product: Product) -> WeighedRows:
    rows = product.index.rows
    assert rows is not None, "the samples are not available by row"
    return rows


def _has_weights(product: Product) -> bool:
    """Return whether weights of samples are not all one, or samples are not available by row."""
    query, index = product.query.weighting, product.index
    factors = (query.by_entry, query.by_sample, query.by_leaf, index.weights, index.by_place)
    return index.rows is None or any(factor is not None for factor in factors)
