"""Access to the internals of a fitted proximity, for tasks, plots and pages."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from leafkernel import forests
from leafkernel._lazy import lazy
from leafkernel._optional import is_dask
from leafkernel._progress import progress_bar
from leafkernel._targets import Targets, indicators
from leafkernel._validation import check_columns, count_threads, warn
from leafkernel.batches import Batches
from leafkernel.engines import Engine, PartedEngine, engine_for_paths, find_engine
from leafkernel.kernel import LeafKernel
from leafkernel.leaf_index import ForestStats, LeafIndex, Samples
from leafkernel.parts import PartedIndex
from leafkernel.product import Product
from leafkernel.schemes import WeightScheme
from leafkernel.training import check_rows, from_device, leaves_by, read_features

if TYPE_CHECKING:
    from leafkernel.proximity import ForestProximity

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# If more than 1/8 of the training samples are queried, a sweep over all leaves is always cheaper.
_ROWS_FOR_SWEEP = 8
# Cost of a collision, relative to one multiplication and addition of a sweep.
_COLLISION_COST = 4
# With more collisions, rows of P take more memory than a sweep.
_MOST_COLLISIONS = 5_000_000


@dataclass(frozen=True)
class Inside:
    """The internals of a fitted proximity. Create it with :meth:`of`.

    All code outside ``proximity.py`` that needs more than the public methods uses this class.

    Attributes
    ----------
    prox : ForestProximity
        A copy of the user's fitted proximity, which shares its arrays. It is never fitted again,
        and its results are never lazy.
    """

    prox: ForestProximity

    @classmethod
    def of(cls, prox: ForestProximity) -> Inside:
        """Return the internals of a fitted proximity. A later fit does not affect them."""
        if not hasattr(prox, "kernel_"):
            check_is_fitted(prox, "kernel_")  # raises; it also reads the tags of the forest
        own = copy(prox)
        own._returns_lazily = False
        own._results_in_memory = not prox._returns_lazily
        return getattr(own.kernel_, "inside", cls)(own)

    @property
    def kernel(self) -> LeafKernel:
        """The weights of the training samples, and their index."""
        return self.prox.kernel_

    @property
    def scheme(self) -> WeightScheme:
        """The weight scheme."""
        return self.prox.scheme_

    @property
    def stats(self) -> ForestStats:
        """Statistics of the leaves and trees."""
        return self.kernel.forest

    @property
    def samples(self) -> Samples:
        """The leaves, in-bag weights and other data of the training samples."""
        return self.prox._samples

    @property
    def sample_weight(self) -> Array | None:
        """The sample weights passed to fit."""
        return self.prox._sample_weight

    @property
    def fitted_with(self) -> dict[str, Any]:
        """The parameters that the kernel was fitted with."""
        return self.prox._fitted_with

    @property
    def has_own_diagonal(self) -> bool:
        """Whether a training sample can have a nonzero proximity to itself."""
        own = self.kernel.own_diagonal
        return self.scheme.own_proximity != 0 if own is None else bool(own.any())

    @property
    def targets(self) -> Targets:
        """The targets passed to fit."""
        return self.prox._targets

    @property
    def forest(self) -> forests.FittedForest:
        """The adapter of the forest."""
        return self.prox._router

    @property
    def n_samples(self) -> int:
        """Number of training samples, n."""
        return self.kernel.n_samples

    @lazy
    def n_threads(self) -> int:
        """Return the number of threads."""
        return count_threads(self.prox.n_jobs)

    @lazy
    def engine(self) -> Engine:
        """Return the engine, with results in main memory."""
        engine = self.host_engine()
        return PartedEngine(engine) if isinstance(self.kernel.index, PartedIndex) else engine

    def host_engine(self) -> Engine:
        """Return the engine for one part, with results in main memory."""
        engine = self.find_engine()
        found: Engine = getattr(engine, "on_host", lambda: engine)()
        return found

    @lazy
    def own_engine(self) -> Engine:
        """Return the engine as the user chose it. Its results may be on a device.

        Tasks always get results in main memory.
        """
        if self.prox._results_in_memory or isinstance(self.kernel.index, PartedIndex):
            return self.engine
        return self.find_engine()

    def find_engine(self) -> Engine:
        """Return the engine that the user chose, or the one for paths if the kernel needs it."""
        compares_paths = self.kernel.nodes is not None
        find = engine_for_paths if compares_paths else find_engine
        return find(self.prox.engine, n_threads=self.n_threads)

    @property
    def is_symmetric(self) -> bool:
        """Whether P is symmetric, by its scheme or by ``symmetrize``."""
        return self.kernel.is_symmetric

    @property
    def predicts(self) -> bool:
        """Whether rows of P are distributions and P times y is the forest's prediction."""
        return self.scheme.predicts and not self.kernel.symmetrize

    @property
    def is_out_of_bag(self) -> bool:
        """Whether P times y is the forest's out-of-bag prediction for the training samples."""
        return self.predicts and self.scheme.out_of_bag and not self.has_own_diagonal

    def require_maps(self, what: str) -> None:
        """Raise an error if the scheme has no query and reference maps."""
        if self.scheme.divides_by_shared_oob:
            raise ValueError(no_maps(self.scheme, what))

    def route(self, X: Any) -> Samples:
        """Return the leaves of new samples. Routed samples are returned unchanged."""
        if isinstance(X, Samples):
            return X
        if isinstance(X, Batches):  # only the leaves of all rows have to fit in memory
            return Samples.joined([self.route(batch.X) for batch in X])
        if is_dask(X) and "features" not in self.scheme.needs:
            samples: Samples = import_module("leafkernel.dask").route(self, X)
            return samples
        raw = isinstance(self.prox.forest_, forests.RawLeaves)
        check_columns(self.prox, forests.check_leaves(X) if raw else X, reset=False)
        route = getattr(self.engine, "route", None)
        X = from_device(X, self.forest, self.scheme, route)
        leaf = leaves_by(route, self.forest, X)
        if leaf is None:
            leaf = self.forest.leaves(X, n_threads=self.n_threads)
        check_rows(self.forest, X, leaf)
        return Samples.unseen(leaf, feature_values=read_features(self.forest, self.scheme, X))

    def count(self, X: Any) -> int:
        """Return the number of samples in X."""
        return int(X.shape[0] if hasattr(X, "shape") else len(X))

    def leaves_of(self, X: Any, rows: npt.NDArray[np.int64]) -> Array:
        """Return the leaves of selected samples in X."""
        return self.forest.leaves(_safe_indexing(X, rows))

    def training_leaves(self, rows: npt.NDArray[np.int64]) -> Array:
        """Return the leaves of selected training samples."""
        leaves: Array = self.samples.leaf[rows]
        return leaves

    def require_in_memory(self, what: str, instead: str) -> None:
        """Raise an error if the training samples are not in this process."""

    def route_if_given(self, X: Any) -> Samples | None:
        """Return new samples, or None if X is None (the training samples)."""
        return None if X is None else self.route(X)

    def product(self, X: Any = None) -> Product:
        """Return the rows of P to compute, for new samples or for the training samples."""
        samples = self.route_if_given(X)
        return self.kernel.training_product() if samples is None else self.kernel.product(samples)

    def blocks(
        self,
        X: Any,
        block_size: int = 4096,
        *,
        sort: bool = True,
        columns: Array | None = None,
        engine: Engine | None = None,
    ) -> Iterator[tuple[slice, csr_array]]:
        """Yield blocks of rows, optionally with renumbered columns or another engine."""
        samples = self.route_if_given(X)  # outside the generator, so that errors are immediate
        kernel, progress = self.kernel, self.prox.progress
        engine = self.engine if engine is None else engine
        n_rows = kernel.n_samples if samples is None else samples.n_samples
        index = kernel.index
        if columns is not None and isinstance(index, LeafIndex) and kernel.nodes is None:
            index = index.with_samples(columns.astype(np.int32)[index.sample_at])

        def blocks() -> Iterator[tuple[slice, csr_array]]:
            with progress_bar("proximity", n_rows, enabled=progress) as on_progress:
                for begin in range(0, n_rows, block_size):
                    rows = slice(begin, min(begin + block_size, n_rows))
                    if samples is None:
                        product = kernel.training_product(rows)
                    else:
                        product = kernel.product(samples.rows(rows))
                    if index is not kernel.index:
                        product = replace(product, reference=index)
                    block = engine.rows(product, sort=sort)
                    if columns is not None and index is kernel.index:
                        block.indices = columns[block.indices]
                        block.has_sorted_indices = False
                        block.sort_indices()
                    yield rows, block
                    if on_progress is not None:
                        on_progress(rows.stop)

        return blocks()

    def proximity_to(self, rows: npt.NDArray[np.int64], X: Any = None) -> csr_array:
        """Return columns of P, given the positions of training samples."""
        product = self.product(X)
        return columns_of(
            self.kernel, self.engine, product, rows, own=X is None, n_threads=self.n_threads
        )

    def sums(self, product: Product, columns: Array) -> Doubles:
        """Return P @ columns, shape (m, c)."""
        if not self.scheme.divides_by_shared_oob and product.diagonal is None:
            return _finite(self.engine.apply(product.with_dtype(np.float64), columns))
        with progress_bar("sums", product.n_rows, enabled=self.prox.progress) as on_progress:
            return _finite(self.engine.sums(product, columns, on_progress))

    def sums_and_mass(self, product: Product, columns: Array) -> tuple[Doubles, Doubles]:
        """Return P @ columns, shape (m, c), and the sums of the rows of P, shape (m,)."""
        sums = self.sums(product, np.column_stack([columns, np.ones(len(columns))]))
        return sums[:, :-1], sums[:, -1]

    def class_sums(self, product: Product, codes: npt.NDArray[np.intp], n_classes: int) -> Doubles:
        """Return the sum of the proximities to the samples of each class, shape (m, c)."""
        if self._is_few(product, n_classes):
            rows = self._few_rows(product)
            row = np.repeat(np.arange(product.n_rows), np.diff(rows.indptr))
            places = row * n_classes + codes[rows.indices]
            sums = np.bincount(places, rows.data, minlength=product.n_rows * n_classes)
            return _finite(sums.reshape(product.n_rows, n_classes).astype(np.float64))
        return self.sums(product, indicators(codes, n_classes))

    def _few_rows(self, product: Product) -> csr_array:
        """Return rows of P in float64, columns in any order."""
        return self.engine.rows(product.with_dtype(np.float64), sort=False)

    def _is_few(self, product: Product, n_columns: int) -> bool:
        """Return whether computing rows of P is cheaper than a sweep over all training samples."""
        if product.n_rows > self.n_samples // _ROWS_FOR_SWEEP:
            return False
        collisions = int(self.engine.collisions(product).sum())
        sweep = self.n_samples * self.stats.n_trees * n_columns
        return collisions < _MOST_COLLISIONS and collisions * (_COLLISION_COST + n_columns) < sweep


def columns_of(
    kernel: LeafKernel,
    engine: Engine,
    product: Product,
    rows: npt.NDArray[np.int64],
    *,
    own: bool,
    n_threads: int = 1,
) -> csr_array:
    """Return columns of P. ``own`` is whether its rows are the training samples."""
    matrix = engine.rows(kernel.toward(product, rows, n_threads=n_threads))
    if own and kernel.own_diagonal is not None:
        found = matrix.tocoo()
        others = found.row != rows[found.col]
        parts = (
            (found.data[others], kernel.own_diagonal[rows].astype(matrix.dtype)),
            (found.row[others], rows),
            (found.col[others], np.arange(len(rows))),
        )
        data, *places = map(np.concatenate, parts)
        matrix = csr_array((data, tuple(places)), shape=matrix.shape)
        matrix.eliminate_zeros()
        matrix.sort_indices()
    return matrix


def weighted_means(sums: Array, mass: Array, fallback: Any) -> Doubles:
    """Divide sums of shape (m, c) by the mass of each row. Rows without mass get the fallback."""
    empty = mass <= 0
    means: Doubles = sums / np.where(empty, 1.0, mass)[:, None]
    means[empty] = fallback
    return means


def check_averages(scheme: WeightScheme) -> None:
    """Raise an error if the scheme has negative weights."""
    if scheme.signed:
        raise ValueError(
            f"weight_scheme={scheme.name!r} has negative weights, so averages are not defined. "
            "Use weighted_sums."
        )


def warn_of_nan(mass: Array) -> None:
    """Warn if samples have no proximity to any training sample, so that averages are NaN."""
    n_empty = int((mass == 0).sum())
    if n_empty:
        warn(
            f"{n_empty} of {len(mass)} samples have proximity 0 to every training sample. Their "
            "average is NaN."
        )


def no_maps(scheme: WeightScheme, what: str) -> str:
    """Return the error message for a scheme without maps."""
    return (
        f"weight_scheme={scheme.name!r} does not support {what}, because it has no leaf "
        "coordinates. Use 'oob_separable', which is similar: prox.reweigh('oob_separable')."
    )


def _finite(sums: Doubles) -> Doubles:
    if not np.isfinite(sums).all():
        raise OverflowError("A sum is too large for float64. Use smaller values or weights.")
    return sums
