"""A fitted kernel: a scheme's weights over the training samples, and the products asked of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._lazy import lazy
from leafkernel._validation import refuse_masked
from leafkernel.leaf_index import Array, ForestStats, LeafIndex, Samples
from leafkernel.leaf_maps import (
    LeafFactor,
    check_symmetric,
    leaf_map,
    query_weights,
    reference_weights,
    side_by_side,
)
from leafkernel.schemes import Weighting, WeightScheme
from leafkernel.weighting import WeighedLeaves, leaf_id_type

Diagonal = Literal["scheme", "one", "zero", "adjusted"]


def both_factors(
    first: npt.NDArray[np.float64] | None, second: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64] | None:
    """Return the product of two factors, each of which may be left out."""
    if first is None or second is None:
        return second if first is None else first
    with np.errstate(over="ignore"):
        both = first * second
    if np.isinf(both).any():
        raise OverflowError("a proximity is too large for float64; use smaller weights.")
    return both


@dataclass(frozen=True)
class Product:
    """Rows of P to compute: query rows against all reference samples.

    Attributes
    ----------
    rows : WeighedLeaves
        The leaves of the query rows and their weights.
    query : Weighting
        All factors of the query weights; those of entries as in ``rows``.
    reference : LeafIndex
        The reference samples by leaf.
    row_order : ndarray of int64 of shape (m,)
        The order to compute the rows in.
    dtype : dtype
        Type of the results.
    own : ndarray of int32 of shape (m,), optional
        The place of the reference sample that each query row is, where the queries are the training
        samples.
    diagonal : ndarray of float64 of shape (m,), optional
        What to put at (row, own[row]) instead of the scheme's value.
    query_oob, reference_oob : ndarray of uint64, optional
        Packed out-of-bag flags, where entries are to be divided by S(x, x'), by row and by place.
    """

    rows: WeighedLeaves
    query: Weighting
    reference: LeafIndex
    row_order: npt.NDArray[np.int64]
    dtype: np.dtype[Any]
    own: npt.NDArray[np.int32] | None = None
    diagonal: npt.NDArray[np.float64] | None = None
    query_oob: npt.NDArray[np.uint64] | None = None
    reference_oob: npt.NDArray[np.uint64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of query rows, m."""
        return len(self.rows.leaf)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of P: (m, n)."""
        return self.n_rows, self.reference.n_samples

    @property
    def scale(self) -> float:
        """Factor for all entries."""
        return self.query.scale * self.reference.scale

    @lazy
    def by_leaf(self) -> npt.NDArray[np.float64] | None:
        """Factor of each leaf, of both sides together."""
        return both_factors(self.query.by_leaf, self.reference.by_leaf)

    def with_dtype(self, dtype: npt.DTypeLike) -> Product:
        """Return the product in another type, and what is known of its leaves with it."""
        if self.dtype == dtype:
            return self
        other = replace(self, dtype=np.dtype(dtype))
        # A solver multiplies hundreds of times: the factors of millions of leaves are made once.
        vars(other)["by_leaf"] = self.by_leaf
        return other

    def with_columns(self, columns: npt.NDArray[np.int32]) -> Product:
        """Return the product with other numbers for the reference samples, each in its column."""
        reference = self.reference
        return replace(self, reference=reference.with_samples(columns[reference.sample_at]))

    def take(self, rows: npt.NDArray[np.int64]) -> Product:
        """Return the product for some of the rows."""
        query = self.query.rows(rows)
        return replace(
            self,
            rows=WeighedLeaves.of(self.rows.leaf[rows], query),
            query=query,
            row_order=np.arange(len(rows)),
            own=None if self.own is None else self.own[rows],
            diagonal=None if self.diagonal is None else self.diagonal[rows],
            query_oob=None if self.query_oob is None else self.query_oob[rows],
        )


@dataclass(frozen=True)
class LeafKernel:
    """The weights of one scheme over the training samples of one forest. Build it with :meth:`fit`.

    Attributes
    ----------
    scheme : WeightScheme
        The rule.
    forest : ForestStats
        What the training samples say of leaves and trees.
    leaf : ndarray of shape (n, T), or (n, 2T) where the kernel is symmetrised
        Leaves of the training samples.
    query, reference : Weighting
        How they weigh on either side.
    index : LeafIndex
        The reference side by leaf.
    dtype : dtype
        Type of every proximity.
    symmetrize : bool
        Whether it is (P + Pᵀ)/2 of a scheme that is not symmetric.
    own_diagonal : ndarray of shape (n,), optional
        What the diagonal policy puts on the diagonal.
    packed_oob, oob_by_place : ndarray of uint64, optional
        Out-of-bag flags of the training samples, where the scheme divides by shared counts: by
        sample and by place in the index.
    leaf_factor : LeafFactor, optional
        The factor of each leaf in the query weights, which new samples share.
    """

    scheme: WeightScheme
    forest: ForestStats
    leaf: Array
    query: Weighting
    reference: Weighting
    index: LeafIndex
    dtype: np.dtype[Any]
    symmetrize: bool
    own_diagonal: npt.NDArray[np.float64] | None
    packed_oob: npt.NDArray[np.uint64] | None
    oob_by_place: npt.NDArray[np.uint64] | None
    leaf_factor: LeafFactor | None

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
        n_threads: int = 1,
    ) -> LeafKernel:
        """Weigh the training samples and index them by leaf."""
        leaf = samples.leaf
        query, factor = query_weights(scheme, samples, forest, dtype)
        if scheme.symmetric:
            check_symmetric(scheme, samples, forest)
            reference = query
        else:
            reference = reference_weights(scheme, samples, forest, dtype)
        # (P + Pᵀ)/2 is P itself where the scheme is symmetric already.
        symmetrize = symmetrize and not scheme.symmetric
        if symmetrize:
            query, reference = (
                side_by_side(leaf, query, reference, dtype),
                side_by_side(leaf, reference, query, dtype),
            )
            leaf = _twice(leaf, forest)
        index = LeafIndex.of(
            leaf,
            reference,
            sample_at=_locality_order(leaf).astype(np.int32),
            n_leaves=forest.n_leaves * (1 + symmetrize),
            n_threads=n_threads,
        )
        packed_oob = None if scheme.separable else samples.packed_oob()
        return cls(
            scheme=scheme,
            forest=forest,
            leaf=leaf,
            query=query,
            reference=reference,
            index=index,
            dtype=dtype,
            symmetrize=symmetrize,
            own_diagonal=_diagonal(diagonal, scheme, samples, forest),
            packed_oob=packed_oob,
            oob_by_place=None if packed_oob is None else packed_oob[index.sample_at],
            leaf_factor=None if symmetrize else factor,
        )

    @property
    def n_samples(self) -> int:
        """Number of training samples, n."""
        return self.index.n_samples

    @lazy
    def by_leaf(self) -> npt.NDArray[np.float64] | None:
        """Return the factor of each leaf of both sides together, for queries with its own."""
        return both_factors(self.query.by_leaf, self.index.by_leaf)

    @property
    def n_coordinates(self) -> int:
        """Columns of the maps: L, or 2L where the kernel is symmetrised."""
        return len(self.index.offsets) - 1

    def query_map(self, samples: Samples | None = None) -> csr_array:
        """Return Q of the training samples or of others, shape (m, n_coordinates)."""
        if samples is None:
            return leaf_map(self.leaf, self.query, self.n_coordinates, self.dtype)
        return leaf_map(*self._weigh(samples), self.n_coordinates, self.dtype)

    def reference_map(self) -> csr_array:
        """Return W, shape (n, n_coordinates)."""
        return leaf_map(self.leaf, self.reference, self.n_coordinates, self.dtype)

    def training_product(self, rows: slice = slice(None)) -> Product:
        """Return the product for training samples in their training role."""
        leaf = self.leaf[rows]
        is_all = len(leaf) == self.n_samples
        row_order = self.index.sample_at.astype(np.int64) if is_all else _locality_order(leaf)
        product = Product(
            rows=WeighedLeaves.of(leaf, self.query.rows(rows)),
            query=self.query.rows(rows),
            reference=self.index,
            row_order=row_order,
            dtype=self.dtype,
            own=self.index.place_of[rows],
            diagonal=None if self.own_diagonal is None else self.own_diagonal[rows],
            query_oob=None if self.packed_oob is None else self.packed_oob[rows],
            reference_oob=self.oob_by_place,
        )
        return self._with_factor(product)

    def product(self, samples: Samples) -> Product:
        """Return the product for unseen samples."""
        leaf, query = self._weigh(samples)
        product = Product(
            rows=WeighedLeaves.of(leaf, query),
            query=query,
            reference=self.index,
            row_order=_locality_order(leaf),
            dtype=self.dtype,
            query_oob=None if self.packed_oob is None else samples.packed_oob(),
            reference_oob=self.oob_by_place,
        )
        return self._with_factor(product)

    def gram_product(self, samples: Samples | None = None, *, n_threads: int = 1) -> Product:
        """Return the product Q Q'ᵀ: queries against the training samples as queries.

        The inner products of leaf coordinates; P itself where the scheme is symmetric.
        """
        if self.scheme.symmetric:
            index = self.index
        else:
            index = LeafIndex.of(
                self.leaf,
                self.query,
                sample_at=self.index.sample_at,
                n_leaves=self.n_coordinates,
                n_threads=n_threads,
            )
        product = self.training_product() if samples is None else self.product(samples)
        return replace(product, reference=index, own=None, diagonal=None)

    def toward(
        self, product: Product, rows: npt.NDArray[np.int64], *, n_threads: int = 1
    ) -> Product:
        """Return a product against some of the training samples alone, by the scheme's formula.

        A diagonal that was put in place of the formula's is not: the columns are other ones.
        """
        leaf = self.leaf[rows]
        order = _locality_order(leaf)
        index = LeafIndex.of(
            leaf,
            self.reference.rows(rows),
            sample_at=order.astype(np.int32),
            n_leaves=self.n_coordinates,
            n_threads=n_threads,
        )
        oob = None if self.packed_oob is None else self.packed_oob[rows[order]]
        return replace(product, reference=index, own=None, diagonal=None, reference_oob=oob)

    def transposed_product(self, samples: Samples | None = None, *, n_threads: int = 1) -> Product:
        """Return the product for Pᵀ: training samples against the queries."""
        leaf, query = (self.leaf, self.query) if samples is None else self._weigh(samples)
        return Product(
            rows=WeighedLeaves.of(self.leaf, self.reference),
            query=self.reference,
            reference=LeafIndex.of(
                leaf,
                query,
                sample_at=_locality_order(leaf).astype(np.int32),
                n_leaves=self.n_coordinates,
                n_threads=n_threads,
            ),
            row_order=self.index.sample_at.astype(np.int64),
            dtype=self.dtype,
        )

    def scheme_diagonal(self) -> npt.NDArray[np.float64]:
        """Return the diagonal of Q Wᵀ, shape (n,)."""
        diagonal: npt.NDArray[np.float64] = np.empty(self.n_samples)
        for begin in range(0, self.n_samples, 1 << 14):
            rows = slice(begin, begin + (1 << 14))
            leaf = self.leaf[rows]
            diagonal[rows] = np.einsum(
                "it,it->i", self.query.rows(rows).dense(leaf), self.reference.rows(rows).dense(leaf)
            )
        return diagonal

    def diagonal_shift(self) -> npt.NDArray[np.float64] | None:
        """Return what the diagonal policy adds to the diagonal of Q Wᵀ, shape (n,)."""
        return None if self.own_diagonal is None else self.own_diagonal - self.scheme_diagonal()

    def _with_factor(self, product: Product) -> Product:
        """Hand the factor of each leaf to a product whose queries have that of the kernel."""
        if product.query.by_leaf is self.query.by_leaf:
            vars(product)["by_leaf"] = self.by_leaf
        return product

    def _weigh(self, samples: Samples) -> tuple[Array, Weighting]:
        """Return the leaves and query weights of unseen samples."""
        query, _ = query_weights(
            self.scheme, samples, self.forest, self.dtype, known=self.leaf_factor
        )
        if not self.symmetrize:
            return samples.leaf, query
        reference = reference_weights(self.scheme, samples, self.forest, self.dtype)
        both = side_by_side(samples.leaf, query, reference, self.dtype)
        return _twice(samples.leaf, self.forest), both


def _twice(leaf: Array, forest: ForestStats) -> Array:
    """Return the leaves beside themselves under other ids, shape (n, 2T)."""
    both = np.concatenate([leaf, leaf.astype(np.int64) + forest.n_leaves], axis=1)
    return both.astype(leaf_id_type(2 * forest.n_leaves), copy=False)


def _locality_order(leaf: Array) -> npt.NDArray[np.int64]:
    """Order samples by their leaf in the first tree: those in one leaf share many others too."""
    order: npt.NDArray[np.int64] = np.argsort(leaf[:, 0], kind="stable")
    return order


def _diagonal(
    policy: Diagonal, scheme: WeightScheme, samples: Samples, forest: ForestStats
) -> npt.NDArray[np.float64] | None:
    if policy == "scheme":
        return None
    if policy == "adjusted":
        return _check_diagonal(scheme.adjusted_diagonal(samples, forest), samples.n_samples)
    return np.full(samples.n_samples, 1.0 if policy == "one" else 0.0)


def _check_diagonal(diagonal: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Return what a scheme's ``adjusted_diagonal`` gave, or say what is wrong with it."""
    refuse_masked("adjusted_diagonal()", diagonal)
    array: npt.NDArray[np.float64] = np.array(diagonal, dtype=np.float64)
    if array.shape != (n_samples,):
        raise ValueError(
            f"adjusted_diagonal() must return one number for each of the {n_samples} training "
            f"samples; got an array of shape {array.shape}."
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("adjusted_diagonal() must return finite numbers that are not negative.")
    return array
