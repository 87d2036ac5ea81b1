"""A slow engine that is easy to read. All other engines are tested against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel.engines.native import NO_LIMIT, TooManyEntriesError
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product
from leafkernel.weighted_nodes import WeightedNodes


@dataclass(frozen=True)
class ReferenceEngine:
    """Computes dense rows of P leaf by leaf, in float64. Use it to check other engines.

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> leaves = [[1, 4], [1, 5], [2, 5]]
    >>> prox = ForestProximity.from_leaves(leaves, engine="reference", dtype="float64")
    >>> prox.proximity().toarray().round(3).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """

    n_threads: int = 1  # part of the interface, not used
    key: ClassVar[str] = "reference"

    def prepare(self, index: LeafIndex) -> LeafIndex:
        """Return the index itself; no preparation is needed."""
        return index

    def on_one_thread(self) -> ReferenceEngine:
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
        matrix = csr_array(np.zeros((0, product.shape[1]), dtype=product.dtype))
        rows = list(_dense_rows(product, on_progress))
        if sum(map(np.count_nonzero, rows)) > most_entries:
            raise TooManyEntriesError
        return csr_array(np.array(rows)) if rows else matrix

    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k largest entries of each row and their columns, shapes (m, k)."""
        similarity = np.empty((product.n_rows, k), dtype=product.dtype)
        samples = np.empty((product.n_rows, k), dtype=np.int64)
        for i, row in enumerate(_dense_rows(product, on_progress)):
            order = np.argsort(-np.abs(row) if by_magnitude else -row, kind="stable")
            if product.own is not None and product.own[i] >= 0:
                order = order[order != product.reference.sample_at[product.own[i]]]
            samples[i] = order[:k]
            similarity[i] = row[order[:k]]
        return similarity, samples

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c)."""
        out = np.empty((product.n_rows, values.shape[1]))
        for i, row in enumerate(_dense_rows(product, on_progress)):
            out[i] = row.astype(np.float64) @ values
        return out

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c)."""
        plain = replace(
            product, dtype=np.dtype(np.float64), diagonal=None, query_oob=None, reference_oob=None
        )
        return self.sums(plain, values)

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,)."""
        sizes = product.reference.leaf_sizes
        entries = product.query.weighting.by_entry
        counts = np.zeros(product.n_rows, dtype=np.int64)
        for i in range(product.n_rows):
            places = product.query.incidence.entries(slice(i, i + 1))
            columns = product.query.incidence.columns[places].ravel()
            counts[i] = sizes[
                columns if entries is None else columns[entries[places].ravel() != 0]
            ].sum()
        return counts

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        counts = [np.count_nonzero(row) for row in _dense_rows(product, on_progress)]
        return np.array(counts, dtype=np.int64)


def _dense_rows(product: Product, on_progress: OnProgress | None) -> Iterator[npt.NDArray[Any]]:
    """Yield each row of P as a dense array with the dtype of the results."""
    index = product.index
    n_leaves = len(index.offsets) - 1
    by_leaf = np.ones(n_leaves) if index.by_leaf is None else index.by_leaf
    by_place = np.ones(index.n_samples) if index.by_place is None else index.by_place
    member_weights = np.ones(len(index.members)) if index.weights is None else index.weights
    for i in range(product.n_rows):
        row = np.zeros(index.n_samples)  # by place
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is checked below
            one = product.query.rows(slice(i, i + 1))
            if product.nodes is not None:
                row = _shared_nodes(product.nodes, index, one)
            else:
                for leaf, weight in zip(one.incidence.columns.flat, one.dense().flat, strict=True):
                    of_leaf = slice(index.offsets[leaf], index.offsets[leaf + 1])
                    factor = index.scale * by_leaf[leaf]
                    weights = factor * member_weights[of_leaf].astype(np.float64)
                    row[index.members[of_leaf]] += weight * weights
                row *= by_place
        if product.reference_oob is not None and product.query_oob is not None:
            shared_bits = product.query_oob[i] & product.reference_oob
            shared = np.unpackbits(shared_bits.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
            row = np.divide(row, shared, out=np.zeros_like(row), where=shared > 0)
        if product.diagonal is not None and product.own is not None and product.own[i] >= 0:
            row[product.own[i]] = product.diagonal[i]
        if not (np.abs(row) <= np.finfo(product.dtype).max).all():
            raise OverflowError(
                f"A proximity is too large for {product.dtype}. Use smaller weights."
            )
        by_sample = np.empty(index.n_samples, dtype=product.dtype)
        by_sample[index.sample_at] = row
        yield by_sample
        if on_progress is not None:
            on_progress(i + 1)


def _shared_nodes(
    nodes: WeightedNodes, index: LeafIndex, one: WeighedRows
) -> npt.NDArray[np.float64]:
    """Return the inner products of one row with all samples, by place, summed node by node."""
    assert index.rows is not None, "the samples are not available by row"
    ours, theirs = nodes.on_nodes(one), nodes.on_nodes(index.rows)
    weight_of = dict(zip(ours.incidence.columns.tolist(), ours.dense(), strict=True))
    row = np.zeros(index.n_samples)
    entries = zip(
        theirs.incidence.row_of_entry.tolist(),
        theirs.incidence.columns.tolist(),
        theirs.dense(),
        strict=True,
    )
    for sample, node, weight in entries:
        row[index.place_of[sample]] += weight_of.get(node, 0.0) * weight
    return row
