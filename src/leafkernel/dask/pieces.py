"""Objects on the Dask workers, and the computations with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from dask.sizeof import sizeof
from scipy.sparse import csr_array
from sklearn.utils import _safe_indexing

from leafkernel._lazy import lazy
from leafkernel._state import FieldsState
from leafkernel.engines import Engine, PartedEngine
from leafkernel.forests import FittedForest, InBag
from leafkernel.incidence import Incidence, WeighedRows
from leafkernel.inside import columns_of
from leafkernel.kernel import Diagonal, LeafKernel
from leafkernel.leaf_index import ForestStats, LeafIndex, Samples
from leafkernel.parts import Nearest
from leafkernel.product import Product
from leafkernel.schemes import WeightScheme
from leafkernel.training import check_rows, read_features
from leafkernel.weighting import Weighting

Array = npt.NDArray[Any]
Side = Literal["query", "reference"]
Rows = npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class Part:
    """Some of the training samples: the columns of P from ``begin`` on.

    Attributes
    ----------
    kernel : LeafKernel
        Their weights and index, computed with the leaf sizes of all training samples.
    samples : Samples
        The leaves and in-bag weights of the samples.
    begin : int
        Position of the first sample among all training samples.
    """

    kernel: LeafKernel
    samples: Samples
    begin: int

    def asking(self, rows: Rows = None, side: Side = "query") -> Block:
        """Return samples of this part as queries to other parts."""
        weighed: WeighedRows = getattr(self.kernel, side)
        oob = self.kernel.packed_oob
        if rows is not None:
            weighed, oob = weighed.rows(rows), None if oob is None else oob[rows]
        # Every part has the leaf factors, so they are not sent with the queries.
        shared = replace(weighed.weighting, by_leaf=None)
        return Block(weighed.incidence, shared, oob, side)

    def with_diagonal(self, diagonal: Diagonal) -> Part:
        """Return the same part with another diagonal."""
        return replace(self, kernel=self.kernel.with_diagonal(diagonal, self.samples))


@dataclass(frozen=True)
class Block(FieldsState):
    """Training samples of one part, as queries to other parts."""

    incidence: Incidence
    weighting: Weighting
    oob: npt.NDArray[np.uint64] | None
    side: Side

    def product(self, part: Part, rows: Rows) -> Product:  # noqa: ARG002
        """Return the product with a part. The block contains only the selected rows."""
        kernel: LeafKernel = part.kernel
        here: WeighedRows = getattr(kernel, self.side)
        weighting = replace(self.weighting, by_leaf=here.weighting.by_leaf)
        product = kernel.product_with(WeighedRows(self.incidence, weighting), self.oob)
        if self.side == "reference":
            return replace(product, reference=kernel.query_index())
        return product


@dataclass(frozen=True)
class Unseen(FieldsState):
    """The leaves of new samples."""

    leaf: Array
    feature_values: Array | None = None

    def __len__(self) -> int:
        return len(self.leaf)

    @lazy
    def samples(self) -> Samples:
        """Return them as :class:`Samples`."""
        return Samples.unseen(self.leaf, feature_values=self.feature_values)

    def product(self, part: Part, rows: Rows) -> Product:
        """Return the product with a part."""
        product = part.kernel.product(self.samples)
        return product if rows is None else product.take(rows)


@dataclass(frozen=True)
class Own:
    """Placeholder for training samples that are compared with their own part."""

    side: Side = "query"

    def product(self, part: Part, rows: Rows) -> Product:
        """Return the product of a part with itself."""
        ask = "training_product" if self.side == "query" else "transposed_product"
        product: Product = getattr(part.kernel, ask)()
        return product if rows is None else product.take(rows)


Queries = Block | Unseen | Own


def _bytes(*arrays: Array | None) -> int:
    """Return the size of arrays in bytes. Dask uses it for scheduling."""
    return sum(array.nbytes for array in arrays if array is not None)


@sizeof.register(Part)  # type: ignore[untyped-decorator]
def _(part: Part) -> int:
    # Leaf statistics and factors are not counted, because all parts of a worker share them.
    samples, index = part.samples, part.kernel.index
    lists = index.listed if isinstance(index, LeafIndex) else None
    listed = () if lists is None else (lists.members, lists.weights, lists.offsets)
    return _bytes(samples.leaf, samples.in_bag_weights, samples.oob_flags, *listed)


@sizeof.register(Block)  # type: ignore[untyped-decorator]
def _(block: Block) -> int:
    return _bytes(block.incidence.columns, block.weighting.by_entry, block.oob)


@sizeof.register(Unseen)  # type: ignore[untyped-decorator]
def _(block: Unseen) -> int:
    return _bytes(block.leaf, block.feature_values)


@sizeof.register(Samples)  # type: ignore[untyped-decorator]
def _(samples: Samples) -> int:
    return _bytes(samples.leaf, samples.in_bag_weights, samples.oob_flags)


@sizeof.register(ForestStats)  # type: ignore[untyped-decorator]
def _(stats: ForestStats) -> int:
    return _bytes(stats.leaf_mass, stats.in_bag_masses)


def route(forest: FittedForest, scheme: WeightScheme, X: Any, n_threads: int) -> Unseen:
    """Return the leaves of samples."""
    if len(X) == 0:  # partitions may be empty, but libraries reject empty data
        n_trees = len(forest.leaf_offsets) - 1
        features = np.zeros((0, np.shape(X)[1])) if "features" in scheme.needs else None
        return Unseen(np.zeros((0, n_trees), dtype=np.int32), features)
    leaf = forest.leaves(X, n_threads=n_threads)
    check_rows(forest, X, leaf)
    return Unseen(leaf, read_features(forest, scheme, X))


def join(blocks: Sequence[Unseen]) -> Unseen:
    """Join the samples of several partitions."""
    return Unseen(np.concatenate([block.leaf for block in blocks]))


def leaves_at(forest: FittedForest, X: Any, rows: npt.NDArray[np.int64]) -> Array:
    """Return the leaves of selected samples."""
    return forest.leaves(_safe_indexing(X, rows))


def training_leaves_at(part: Part, rows: npt.NDArray[np.int64]) -> Array:
    """Return the leaves of selected training samples of a part."""
    leaves: Array = part.samples.leaf[rows]
    return leaves


def cut_draws(draws: InBag, rows: slice) -> InBag:
    """Return the in-bag weights of selected samples in some trees."""
    return InBag(draws.weights[rows].copy(), draws.is_oob[rows].copy())


def make_samples(block: Unseen, draws: Sequence[InBag]) -> Samples:
    """Return training samples with their in-bag weights."""
    weights = oob = None
    if draws:
        weights = np.concatenate([some.weights for some in draws], axis=1)
        oob = np.concatenate([some.is_oob for some in draws], axis=1)
    return Samples(block.leaf, weights, oob)


def count(forest: FittedForest, samples: Samples, n_threads: int) -> ForestStats:
    """Return the leaf statistics of some training samples."""
    return ForestStats.of(samples, forest.leaf_offsets, n_threads=n_threads)


def add_stats(stats: Sequence[ForestStats]) -> ForestStats:
    """Return the sum of leaf statistics."""
    return reduce(ForestStats.plus, stats)


def make_part(
    scheme: WeightScheme, samples: Samples, stats: ForestStats, begin: int, **params: Any
) -> Part:
    """Return the kernel of some training samples, with the leaf statistics of all."""
    return Part(LeafKernel.fit(scheme, samples, stats, **params), samples, begin)


def never_oob(samples: Samples) -> int:
    """Return the number of samples that are in bag in every tree."""
    return int((samples.n_oob_trees == 0).sum())


def n_samples(part: Part) -> int:
    """Return the number of samples of a part."""
    return part.kernel.n_samples


def nearest(
    queries: Queries, part: Part, rows: Rows, engine: Engine, *, k: int, by_magnitude: bool
) -> Nearest:
    """Return the nearest samples in one part."""
    product = queries.product(part, rows)
    similarity, samples = PartedEngine(engine).nearest_in(product, k, by_magnitude=by_magnitude)
    return similarity, np.where(samples < 0, samples, samples + part.begin)


def merge(found: Sequence[Nearest], *, k: int, by_magnitude: bool) -> Nearest:
    """Merge the nearest samples of several consecutive parts."""
    similarity, samples = (np.concatenate(arrays, axis=1) for arrays in zip(*found, strict=True))
    rank = np.where(samples < 0, -np.inf, np.abs(similarity) if by_magnitude else similarity)
    # Stable, so that ties are ordered by position.
    order = np.argsort(-rank, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(similarity, order, 1), np.take_along_axis(samples, order, 1)


def rows_of(
    queries: Queries, part: Part, rows: Rows, engine: Engine, dtype: Any, *, sort: bool
) -> csr_array:
    """Return the columns of P that belong to one part."""
    return engine.rows(queries.product(part, rows).with_dtype(dtype), sort=sort)


def sums_of(
    queries: Queries,
    part: Part,
    rows: Rows,
    engine: Engine,
    how: Literal["sums", "apply"],
    values: Array,
) -> npt.NDArray[np.float64]:
    """Return the contribution of one part to the sums."""
    product = queries.product(part, rows)
    if how == "sums":
        return engine.sums(product, values)
    return engine.apply(product.with_dtype(np.float64), values)


def add(arrays: Sequence[Array]) -> Array:
    """Return the sum of arrays, added in order."""
    total: Array = reduce(np.add, arrays)
    return total


def count_of(
    queries: Queries,
    part: Part,
    rows: Rows,
    engine: Engine,
    what: Literal["collisions", "nonzeros"],
) -> npt.NDArray[np.int64]:
    """Return the collisions or nonzeros of each row in one part."""
    counts: npt.NDArray[np.int64] = getattr(engine, what)(queries.product(part, rows))
    return counts


def columns_in(
    queries: Queries, part: Part, rows: Rows, engine: Engine, columns: Array
) -> csr_array:
    """Return selected columns of P that belong to one part."""
    own = isinstance(queries, Own)
    product = queries.product(part, rows)
    return columns_of(part.kernel, engine, product, columns - part.begin, own=own)


def query_map_of(queries: Unseen | Own, part: Part) -> csr_array:
    """Return the query map of new samples, or of the samples of a part."""
    return part.kernel.query_map(queries.samples if isinstance(queries, Unseen) else None)


def reference_map_of(part: Part) -> csr_array:
    """Return the reference map of the samples of a part."""
    return part.kernel.reference_map()


def without_samples(part: Part) -> Part:
    """Return a part without samples, with the scheme and the leaf statistics."""
    nobody = part.samples.rows(slice(0))
    kernel = part.kernel
    empty = LeafKernel.fit(
        kernel.scheme,
        nobody,
        kernel.forest,
        diagonal="scheme",
        symmetrize=kernel.symmetrize,
        dtype=kernel.dtype,
    )
    return Part(empty, nobody, 0)
