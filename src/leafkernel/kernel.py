"""A fitted kernel: the weights of the training samples, and products with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._lazy import lazy
from leafkernel._state import FieldsState
from leafkernel._validation import refuse_masked
from leafkernel.cells import Cells
from leafkernel.incidence import Coordinates, WeighedRows
from leafkernel.leaf_index import ForestStats, LeafIndex, Samples, list_by_leaf
from leafkernel.leaf_maps import (
    LeafFactor,
    check_symmetric,
    leaf_map,
    side_by_side,
    weigh,
)
from leafkernel.parts import ListPart, PartedIndex
from leafkernel.product import Product, both_factors
from leafkernel.schemes import WeightScheme
from leafkernel.weighted_nodes import WeightedNodes, find_nodes

Diagonal = Literal["scheme", "one", "zero", "adjusted"]


@dataclass(frozen=True)
class LeafKernel(FieldsState):
    """The weights of the training samples with one scheme. Create it with :meth:`fit`.

    Attributes
    ----------
    scheme : WeightScheme
        The weight scheme.
    forest : ForestStats
        Statistics of the leaves and trees.
    query, reference : WeighedRows
        The leaves of the training samples, with their query and reference weights.
    index : LeafIndex or PartedIndex
        The reference weights, listed by leaf.
    dtype : dtype
        Type of the proximities.
    symmetrize : bool
        Whether it is (P + Pᵀ)/2 of a scheme that is not symmetric.
    own_diagonal : ndarray of shape (n,), optional
        The diagonal set by the ``diagonal`` parameter.
    packed_oob, oob_by_place : ndarray of uint64, optional
        Out-of-bag flags of the training samples, by sample and by place in the index. Only for
        schemes that divide by shared counts.
    leaf_factors : tuple of (LeafFactor or None, LeafFactor or None)
        The leaf factors of the query and the reference weights. New samples share them.
    cells : Cells, optional
        The columns of the kernel, if they are not the leaves of the forest.
    nodes : WeightedNodes, optional
        The nodes of the trees, if the kernel compares whole paths.
    """

    scheme: WeightScheme
    forest: ForestStats
    query: WeighedRows
    reference: WeighedRows
    index: LeafIndex | PartedIndex
    dtype: np.dtype[Any]
    symmetrize: bool
    own_diagonal: npt.NDArray[np.float64] | None
    packed_oob: npt.NDArray[np.uint64] | None
    oob_by_place: npt.NDArray[np.uint64] | None
    leaf_factors: tuple[LeafFactor | None, LeafFactor | None]
    cells: Cells | None = None
    nodes: WeightedNodes | None = None

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
        cuts: Sequence[slice] | None = None,
        list_part: ListPart | None = None,
        in_cells: Callable[[Cells, Samples], Samples] = Cells.samples,
        n_threads: int = 1,
    ) -> LeafKernel:
        """Compute the weights of the training samples, and index them by leaf."""
        of_forest, cells = forest, scheme.cells(forest)
        if cells is not None:
            samples, forest = in_cells(cells, samples), cells.stats(forest)
        forest = _learn(scheme, samples, forest, n_threads)
        of_forest = forest if cells is None else replace(of_forest, learned=forest.learned)
        incidence = samples.incidence_in(forest.coordinates, n_threads=n_threads)
        weights, asked = weigh(scheme, "query", samples, forest, dtype)
        query = reference = WeighedRows(incidence, weights)
        lent = asked
        if scheme.symmetric:
            check_symmetric(scheme, samples, forest)
        else:
            weights, lent = weigh(scheme, "reference", samples, forest, dtype)
            reference = WeighedRows(incidence, weights)
        # For symmetric schemes, (P + Pᵀ)/2 is P itself.
        symmetrize = symmetrize and not scheme.symmetric
        if symmetrize:
            both = incidence.twice()
            query, reference = (
                side_by_side(query, reference, both, dtype),
                side_by_side(reference, query, both, dtype),
            )
        index = PartedIndex.of(
            reference,
            [slice(0, samples.n_samples)] if cuts is None else cuts,
            list_part or (lambda _, rows: list_by_leaf(rows, n_threads=n_threads)),
            n_threads=n_threads,
        )
        packed_oob = samples.packed_oob() if scheme.divides_by_shared_oob else None
        return cls(
            scheme=scheme,
            forest=of_forest,
            query=query,
            reference=reference,
            index=index,
            dtype=dtype,
            symmetrize=symmetrize,
            own_diagonal=_diagonal(diagonal, scheme, samples, forest),
            packed_oob=packed_oob,
            oob_by_place=None if packed_oob is None else packed_oob[index.sample_at],
            leaf_factors=(asked, lent),
            cells=cells,
            nodes=find_nodes(scheme, of_forest),
        )

    @property
    def n_samples(self) -> int:
        """Number of training samples, n."""
        return self.index.n_samples

    @lazy
    def by_leaf(self) -> npt.NDArray[np.float64] | None:
        """Return the product of both leaf factors, for queries with the kernel's own factor."""
        return both_factors(self.query.weighting.by_leaf, self.index.by_leaf)

    @property
    def coordinates(self) -> Coordinates:
        """The columns of the maps: leaves (twice if the kernel is symmetrized), or nodes."""
        if self.nodes is not None:
            return Coordinates.of_leaves(self.nodes.trees.offsets)
        return self.query.incidence.coordinates

    @lazy
    def stats(self) -> ForestStats:
        """Return the statistics of the columns of the kernel."""
        return self.forest if self.cells is None else self.cells.stats(self.forest)

    def in_coordinates(self, rows: WeighedRows) -> WeighedRows:
        """Return rows with their weights in the coordinates of the maps."""
        return rows if self.nodes is None else self.nodes.on_nodes(rows)

    @property
    def is_symmetric(self) -> bool:
        """Whether P is symmetric, by its scheme or by ``symmetrize``."""
        return self.scheme.symmetric or self.symmetrize

    def query_map(self, samples: Samples | None = None) -> csr_array:
        """Return Q of the training samples or of new samples, one column per coordinate."""
        rows = self.query if samples is None else self.queries(samples)
        return leaf_map(self.in_coordinates(rows), self.dtype)

    def reference_map(self) -> csr_array:
        """Return W, one column per coordinate."""
        return leaf_map(self.in_coordinates(self.reference), self.dtype)

    @lazy
    def row_order(self) -> npt.NDArray[np.int64]:
        """Return the order in which to compute the training samples."""
        order = self.index.sample_at.astype(np.int64)
        if isinstance(self.index, LeafIndex) and (np.diff(order) > 0).all():
            return self.query.incidence.locality_order()
        order.flags.writeable = False  # the core relies on it
        return order

    def queries(self, samples: Samples) -> WeighedRows:
        """Return the leaves and query weights of new samples."""
        forest = self.stats
        if self.cells is not None:
            samples = self.cells.samples(samples)
        incidence = samples.incidence_in(forest.coordinates)
        asked, lent = self.leaf_factors
        weights, _ = weigh(self.scheme, "query", samples, forest, self.dtype, asked)
        query = WeighedRows(incidence, weights)
        if not self.symmetrize:
            return query
        weights, _ = weigh(self.scheme, "reference", samples, forest, self.dtype, lent)
        reference = WeighedRows(incidence, weights)
        return side_by_side(query, reference, incidence.twice(), self.dtype)

    def training_product(self, rows: slice = slice(None)) -> Product:
        """Return the product for the training samples as queries."""
        query = self.query.rows(rows)
        is_all = query.n_rows == self.n_samples
        product = Product(
            query=query,
            reference=self.index,
            row_order=self.row_order if is_all else query.incidence.locality_order(),
            dtype=self.dtype,
            own=self.index.place_of[rows],
            diagonal=None if self.own_diagonal is None else self.own_diagonal[rows],
            query_oob=None if self.packed_oob is None else self.packed_oob[rows],
            reference_oob=self.oob_by_place,
            nodes=self.nodes,
        )
        return self._with_factor(product)

    def product(self, samples: Samples) -> Product:
        """Return the product for new samples."""
        oob = None if self.packed_oob is None else samples.packed_oob()
        return self.product_with(self.queries(samples), oob)

    def product_with(self, query: WeighedRows, oob: npt.NDArray[np.uint64] | None) -> Product:
        """Return the product for weighted rows that are not training samples."""
        product = Product(
            query=query,
            reference=self.index,
            row_order=query.incidence.locality_order(),
            dtype=self.dtype,
            query_oob=oob,
            reference_oob=self.oob_by_place,
            nodes=self.nodes,
        )
        return self._with_factor(product)

    def gram_product(self, samples: Samples | None = None, *, n_threads: int = 1) -> Product:
        """Return the product Q Q'ᵀ: inner products of the query maps.

        For symmetric schemes, this is P.
        """
        product = self.training_product() if samples is None else self.product(samples)
        return replace(product, reference=self.query_index(n_threads), own=None, diagonal=None)

    def query_index(self, n_threads: int = 1) -> LeafIndex | PartedIndex:
        """Return the query weights of the training samples, listed by leaf. It is computed once."""
        if self.scheme.symmetric:
            return self.index
        known: LeafIndex | PartedIndex | None = vars(self).get("_query_index")
        if known is None:
            known = self.index.like(self.query, n_threads=n_threads)
            vars(self)["_query_index"] = known
        return known

    def toward(
        self, product: Product, rows: npt.NDArray[np.int64], *, n_threads: int = 1
    ) -> Product:
        """Return the product with selected training samples only.

        It does not include the diagonal set by the ``diagonal`` parameter.
        """
        index = LeafIndex.of(self.reference.rows(rows), n_threads=n_threads)
        oob = None if self.packed_oob is None else self.packed_oob[rows[index.sample_at]]
        return replace(product, reference=index, own=None, diagonal=None, reference_oob=oob)

    def transposed_product(self, samples: Samples | None = None, *, n_threads: int = 1) -> Product:
        """Return the product for Pᵀ: training samples against the queries."""
        if samples is None:
            index = self.query_index(n_threads)
        else:
            index = LeafIndex.of(self.queries(samples), n_threads=n_threads)
        return Product(
            query=self.reference,
            reference=index,
            row_order=self.row_order,
            dtype=self.dtype,
            nodes=self.nodes,
        )

    def with_diagonal(self, diagonal: Diagonal, samples: Samples) -> LeafKernel:
        """Return the same kernel with another diagonal."""
        if self.cells is not None:
            samples = self.cells.samples(samples)
        return replace(self, own_diagonal=_diagonal(diagonal, self.scheme, samples, self.stats))

    def scheme_diagonal(self) -> npt.NDArray[np.float64]:
        """Return the diagonal of Q Wᵀ, shape (n,)."""
        return self._own(self.reference)

    def query_norms(self) -> npt.NDArray[np.float64]:
        """Return the diagonal of Q Qᵀ, shape (n,): the squared norms of the query map."""
        return self._own(self.query)

    def _own(self, others: WeighedRows) -> npt.NDArray[np.float64]:
        """Return the inner product of each query row with the same row of ``others``."""
        if self.nodes is not None:
            return self.nodes.dots(self.query, others)
        diagonal: npt.NDArray[np.float64] = np.empty(self.n_samples)
        for begin in range(0, self.n_samples, 1 << 14):
            rows = slice(begin, begin + (1 << 14))
            diagonal[rows] = self.query.row_dots(others, rows)
        return diagonal

    def diagonal_shift(self) -> npt.NDArray[np.float64] | None:
        """Return the difference between the set diagonal and that of Q Wᵀ, shape (n,)."""
        return None if self.own_diagonal is None else self.own_diagonal - self.scheme_diagonal()

    def _with_factor(self, product: Product) -> Product:
        """Reuse the leaf factor of the kernel for a product whose queries have it."""
        if product.query.weighting.by_leaf is self.query.weighting.by_leaf:
            vars(product)["by_leaf"] = self.by_leaf
        return product


def _learn(
    scheme: WeightScheme, samples: Samples, forest: ForestStats, n_threads: int
) -> ForestStats:
    """Return the statistics with the array that the scheme learns, and of no other scheme."""
    if scheme.learns or forest.learned is not None:
        forest = replace(forest, learned=None, n_threads=n_threads)
    learned = scheme.learn(samples, forest)
    if learned is None:
        return forest
    where = f"learn() of the weight scheme {scheme.name!r}"
    refuse_masked(where, learned)
    array = np.array(learned)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{where} must return real numbers; got dtype {array.dtype}.")
    return replace(forest, learned=array)


def _diagonal(
    policy: Diagonal, scheme: WeightScheme, samples: Samples, forest: ForestStats
) -> npt.NDArray[np.float64] | None:
    if policy == "scheme":
        return None
    if policy == "adjusted":
        return _check_diagonal(scheme.adjusted_diagonal(samples, forest), samples.n_samples)
    return np.full(samples.n_samples, 1.0 if policy == "one" else 0.0)


def _check_diagonal(diagonal: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Return the validated result of a scheme's ``adjusted_diagonal``."""
    refuse_masked("adjusted_diagonal()", diagonal)
    array: npt.NDArray[np.float64] = np.array(diagonal, dtype=np.float64)
    if array.shape != (n_samples,):
        raise ValueError(
            f"adjusted_diagonal() must return one number for each of the {n_samples} training "
            f"samples; got an array of shape {array.shape}."
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("adjusted_diagonal() must return finite, nonnegative numbers.")
    return array
