"""A fitted kernel: a scheme's maps over the training samples, and the products asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel.leaf_index import Array, ForestStats, LeafIndex, Samples
from leafkernel.leaf_maps import (
    index_by_leaf,
    query_map,
    reference_map,
    symmetrized,
    transposed_map,
)
from leafkernel.schemes import WeightScheme

Diagonal = Literal["scheme", "one", "zero", "adjusted"]


@dataclass(frozen=True)
class Product:
    """Rows of P to compute: query rows against all reference samples.

    Attributes
    ----------
    query_offsets, query_leaves, query_weights : ndarray
        The query map in CSR form, offsets as int64.
    reference : LeafIndex
        The reference map by leaf.
    row_order : ndarray of int64 of shape (m,)
        The order to compute the rows in.
    own : ndarray of int32 of shape (m,), optional
        The reference id of each query row, where the queries are the training samples.
    diagonal : ndarray of float64 of shape (m,), optional
        What to put at (row, own[row]) instead of the scheme's value.
    query_oob, reference_oob : ndarray of uint64, optional
        Packed out-of-bag flags, where entries are to be divided by S(x, x').
    """

    query_offsets: npt.NDArray[np.int64]
    query_leaves: Array
    query_weights: Array
    reference: LeafIndex
    row_order: npt.NDArray[np.int64]
    own: npt.NDArray[np.int32] | None = None
    diagonal: npt.NDArray[np.float64] | None = None
    query_oob: npt.NDArray[np.uint64] | None = None
    reference_oob: npt.NDArray[np.uint64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of query rows, m."""
        return len(self.query_offsets) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of P: (m, n)."""
        return self.n_rows, self.reference.n_samples

    @property
    def n_oob_words(self) -> int:
        """Words that hold one sample's out-of-bag flags."""
        return 0 if self.reference_oob is None else int(self.reference_oob.shape[1])

    def take(self, rows: npt.NDArray[np.int64]) -> Product:
        """Return the product for some of the rows."""
        arrays = (self.query_weights, self.query_leaves, self.query_offsets)
        query = csr_array(arrays, shape=(self.n_rows, len(self.reference.offsets) - 1))[rows]
        return Product(
            query_offsets=query.indptr.astype(np.int64, copy=False),
            query_leaves=query.indices,
            query_weights=query.data,
            reference=self.reference,
            row_order=np.arange(len(rows)),
            own=None if self.own is None else self.own[rows],
            diagonal=None if self.diagonal is None else self.diagonal[rows],
            query_oob=None if self.query_oob is None else self.query_oob[rows],
            reference_oob=self.reference_oob,
        )

    def collisions(self) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,): its work, and a bound on nonzeros."""
        sizes = self.reference.leaf_sizes
        counts = np.empty(self.n_rows, dtype=np.int64)
        for begin in range(0, self.n_rows, 1 << 14):
            bounds = self.query_offsets[begin : begin + (1 << 14) + 1]
            running = np.zeros(bounds[-1] - bounds[0] + 1, dtype=np.int64)
            np.cumsum(sizes[self.query_leaves[bounds[0] : bounds[-1]]], out=running[1:])
            counts[begin : begin + len(bounds) - 1] = np.diff(running[bounds - bounds[0]])
        return counts


@dataclass(frozen=True)
class LeafKernel:
    """The maps of one scheme over the training samples of one forest.

    Build it with :meth:`fit`. ``query`` is the training samples' query map Q; the reference map W
    is kept by leaf, in ``index``, and equals Q for symmetric schemes.
    """

    scheme: WeightScheme
    forest: ForestStats
    query: csr_array
    index: LeafIndex
    symmetrize: bool
    own_diagonal: npt.NDArray[np.float64] | None
    packed_oob: npt.NDArray[np.uint64] | None

    @classmethod
    def fit(
        cls,
        scheme: WeightScheme,
        samples: Samples,
        forest: ForestStats,
        *,
        diagonal: Diagonal,
        symmetrize: bool,
        dtype: np.dtype[Any],
    ) -> LeafKernel:
        """Weigh the training samples and index them by leaf."""
        query = query_map(scheme, samples, forest, dtype)
        reference = query
        if not scheme.symmetric:
            reference = reference_map(scheme, samples, forest, dtype)
        # (P + Pᵀ)/2 is P itself where the scheme is symmetric already.
        symmetrize = symmetrize and not scheme.symmetric
        if symmetrize:
            query, reference = symmetrized(query, reference), symmetrized(reference, query)
        return cls(
            scheme=scheme,
            forest=forest,
            query=query,
            index=index_by_leaf(reference, _locality_order(samples)),
            symmetrize=symmetrize,
            own_diagonal=_diagonal(diagonal, scheme, samples, forest),
            packed_oob=None if scheme.separable else samples.packed_oob(),
        )

    @property
    def n_samples(self) -> int:
        """Number of training samples, n."""
        return self.index.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the weights and of every proximity."""
        dtype: np.dtype[Any] = self.query.dtype
        return dtype

    def reference(self) -> csr_array:
        """Return W, shape (n, L), or (n, 2L) where the kernel was symmetrised."""
        if self.scheme.symmetric:
            return self.query
        return csr_array(transposed_map(self.index).T.tocsr())

    def query_of(self, samples: Samples) -> csr_array:
        """Return Q of other samples, shape (m, L), or (m, 2L) where the kernel was symmetrised."""
        query = query_map(self.scheme, samples, self.forest, self.dtype)
        if self.symmetrize:
            reference = reference_map(self.scheme, samples, self.forest, self.dtype)
            return symmetrized(query, reference)
        return query

    def training_product(self, rows: slice | Array = slice(None)) -> Product:
        """Return the product for training samples in their training role."""
        own = np.arange(self.n_samples, dtype=np.int32)[rows]
        query = self.query if len(own) == self.n_samples else self.query[rows]
        diagonal = None if self.own_diagonal is None else self.own_diagonal[rows]
        oob = None if self.packed_oob is None else np.ascontiguousarray(self.packed_oob[rows])
        row_order = self.index.sample_at.astype(np.int64)
        if len(own) < self.n_samples:
            row_order = np.arange(len(own))
        return self._product(query, row_order, own=own, diagonal=diagonal, query_oob=oob)

    def product(self, samples: Samples) -> Product:
        """Return the product for unseen samples."""
        oob = None if self.packed_oob is None else samples.packed_oob()
        return self._product(self.query_of(samples), _locality_order(samples), query_oob=oob)

    def _product(self, query: csr_array, row_order: Array, **known: Any) -> Product:
        return Product(
            query_offsets=query.indptr.astype(np.int64, copy=False),
            query_leaves=query.indices,
            query_weights=query.data,
            reference=self.index,
            row_order=row_order,
            reference_oob=self.packed_oob,
            **known,
        )


def _locality_order(samples: Samples) -> npt.NDArray[np.int64]:
    """Order samples by their leaf in the first tree: those in one leaf share many others too."""
    order: npt.NDArray[np.int64] = np.argsort(samples.leaf[:, 0], kind="stable")
    return order


def _diagonal(
    policy: Diagonal, scheme: WeightScheme, samples: Samples, forest: ForestStats
) -> npt.NDArray[np.float64] | None:
    if policy == "scheme":
        return None
    if policy == "adjusted":
        return np.ascontiguousarray(scheme.adjusted_diagonal(samples, forest), dtype=np.float64)
    return np.full(samples.n_samples, 1.0 if policy == "one" else 0.0)
