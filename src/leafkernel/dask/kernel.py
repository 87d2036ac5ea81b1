"""A fitted kernel whose parts are on Dask workers, and products to compute there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._lazy import lazy
from leafkernel.cells import Cells
from leafkernel.dask.data import sizes_of
from leafkernel.dask.graph import compute, persist, task
from leafkernel.dask.pieces import Own, Part, Side
from leafkernel.kernel import Diagonal, LeafKernel
from leafkernel.leaf_index import ForestStats
from leafkernel.schemes import WeightScheme
from leafkernel.weighted_nodes import WeightedNodes, find_nodes

Array = npt.NDArray[Any]


NOT_HERE = (
    "This needs all training samples in one process, but the proximity was fitted on Dask data. "
    "Fit it on data in memory."
)


@dataclass(frozen=True)
class DaskKernel:
    """The parts of a kernel. It replaces :class:`leafkernel.kernel.LeafKernel` for Dask data.

    Attributes
    ----------
    scheme : WeightScheme
        The weight scheme.
    parts : tuple of Delayed
        The parts (:class:`leafkernel.dask.pieces.Part`), in the order of their samples.
    sizes : tuple of int
        Number of samples in each part.
    router : Delayed
        The forest, for the workers.
    forest : ForestStats
        Statistics of the leaves and trees.
    dtype : dtype
        Type of the proximities.
    symmetrize : bool
        Whether it is (P + Pᵀ)/2 of a scheme that is not symmetric.
    diagonal : {"scheme", "one", "zero", "adjusted"}
        The ``diagonal`` parameter.
    """

    scheme: WeightScheme
    parts: tuple[Any, ...]
    sizes: tuple[int, ...]
    router: Any
    forest: ForestStats
    dtype: np.dtype[Any]
    symmetrize: bool
    diagonal: Diagonal

    @property
    def inside(self) -> Any:
        """The class that gives tasks access to this kernel."""
        from leafkernel.dask.inside import DaskInside  # noqa: PLC0415 - it needs this module

        return DaskInside

    @property
    def n_samples(self) -> int:
        """Number of training samples, n."""
        return sum(self.sizes)

    @property
    def n_columns(self) -> int:
        """Number of columns of the maps."""
        if self.nodes is not None:
            return self.nodes.trees.n_nodes
        n_cells = self.forest.n_leaves if self.cells is None else len(self.cells.nodes)
        return n_cells * (2 if self.symmetrize else 1)

    @lazy
    def cells(self) -> Cells | None:
        """Return the columns of the kernel, if they are not the leaves of the forest."""
        return self.scheme.cells(self.forest)

    @lazy
    def nodes(self) -> WeightedNodes | None:
        """Return the nodes of the trees, if the kernel compares whole paths."""
        return find_nodes(self.scheme, self.forest)

    @property
    def is_symmetric(self) -> bool:
        """Whether P is symmetric, by its scheme or by ``symmetrize``."""
        return self.scheme.symmetric or self.symmetrize

    @lazy
    def own_diagonal(self) -> npt.NDArray[np.float64] | None:
        """Return the diagonal set by the ``diagonal`` parameter, shape (n,)."""
        return None if self.diagonal == "scheme" else self._joined(_own_diagonal)

    def diagonal_shift(self) -> npt.NDArray[np.float64] | None:
        """Return the difference between this diagonal and that of Q Wᵀ, shape (n,)."""
        return None if self.diagonal == "scheme" else self._joined(_diagonal_shift)

    def with_diagonal(self, diagonal: Diagonal, samples: Any = None) -> DaskKernel:  # noqa: ARG002
        """Return the same kernel with another diagonal."""
        parts = [task("part", Part.with_diagonal, part, diagonal) for part in self.parts]
        return replace(self, parts=tuple(persist(*parts)), diagonal=diagonal)

    def training_product(self, rows: slice = slice(None)) -> DaskProduct:
        """Return the product for the training samples as queries."""
        product = self._of_training("query")
        return product if rows == slice(None) else product.take(np.arange(self.n_samples)[rows])

    def transposed_product(self, samples: Any = None, *, n_threads: int = 1) -> DaskProduct:  # noqa: ARG002
        """Return the product for Pᵀ of the training samples."""
        if samples is not None:
            raise NotImplementedError(
                "The transposed operator of new samples is not available for a proximity fitted on "
                "Dask data. Compute prox.proximity(X).T instead."
            )
        return self._of_training("reference")

    def product(self, samples: Routed) -> DaskProduct:
        """Return the product for new samples."""
        queries = tuple(
            Asked(block, None, None, size)
            for block, size in zip(samples.blocks, samples.sizes, strict=True)
        )
        return DaskProduct(self, queries, self.dtype)

    def cuts(self) -> Iterator[slice]:
        """Yield the range of samples of each part."""
        begin = 0
        for size in self.sizes:
            yield slice(begin, begin + size)
            begin += size

    def part_of(self, rows: Array) -> npt.NDArray[np.int64]:
        """Return the part of each training sample."""
        return np.searchsorted(np.cumsum(self.sizes), rows, side="right")

    def _of_training(self, side: Side) -> DaskProduct:
        queries = tuple(
            Asked(task("queries", Part.asking, part, None, side), i, None, size)
            for i, (part, size) in enumerate(zip(self.parts, self.sizes, strict=True))
        )
        return DaskProduct(self, queries, self.dtype, side)

    def __getattr__(self, name: str) -> Any:
        known = name in {field.name for field in fields(LeafKernel)} or hasattr(LeafKernel, name)
        if known and not name.startswith("_"):
            raise NotImplementedError(NOT_HERE)
        raise AttributeError(name)

    def _joined(self, what: Any) -> npt.NDArray[np.float64]:
        found = compute([task("diagonal", what, part) for part in self.parts])
        return np.concatenate(found)


@dataclass(frozen=True)
class Routed:
    """New samples, whose leaves are on Dask workers.

    Attributes
    ----------
    blocks : tuple of Delayed
        The samples (:class:`leafkernel.dask.pieces.Unseen`), block after block.
    sizes : tuple of float
        Number of samples in each block; NaN if unknown.
    """

    blocks: tuple[Any, ...]
    sizes: tuple[float, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples. It is computed if unknown."""
        return sum(sizes_of(self.blocks, self.sizes))

    @lazy
    def leaf(self) -> Array:
        """Return the leaves of all samples, shape (m, T)."""
        found = compute([task("leaves", attrgetter("leaf"), block) for block in self.blocks])
        return np.concatenate(found)


@dataclass(frozen=True)
class Asked:
    """A block of query rows.

    Attributes
    ----------
    block : Delayed
        The rows.
    own : int or None
        The part that the rows belong to, if they are training samples.
    rows : ndarray of int or None
        Selected rows of the block or part; None for all.
    size : float
        Number of rows; NaN if unknown.
    """

    block: Any
    own: int | None
    rows: npt.NDArray[np.int64] | None
    size: float


@dataclass(frozen=True)
class DaskProduct:
    """Rows of P to compute on Dask workers. It replaces :class:`leafkernel.product.Product`.

    Attributes
    ----------
    kernel : DaskKernel
        The reference samples.
    queries : tuple of Asked
        The query rows in blocks.
    dtype : dtype
        Type of the results.
    side : {"query", "reference"}
        The weights of the rows: "reference" for rows of Pᵀ.
    order : ndarray of int, optional
        Order of the result rows, if it differs from the order in the blocks.
    """

    kernel: DaskKernel
    queries: tuple[Asked, ...]
    dtype: np.dtype[Any]
    side: Side = "query"
    order: npt.NDArray[np.int64] | None = None

    @property
    def diagonal(self) -> str | None:
        """The ``diagonal`` parameter, if it affects these rows."""
        training = any(asked.own is not None for asked in self.queries)
        has_policy = training and self.side == "query" and self.kernel.diagonal != "scheme"
        return self.kernel.diagonal if has_policy else None

    @lazy
    def sizes(self) -> list[int]:
        """Return the number of rows in each block."""
        return sizes_of([asked.block for asked in self.queries], [a.size for a in self.queries])

    @property
    def n_rows(self) -> int:
        """Number of rows, m."""
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of P: (m, n)."""
        return self.n_rows, self.kernel.n_samples

    def with_dtype(self, dtype: npt.DTypeLike) -> DaskProduct:
        """Return the product with another dtype."""
        return replace(self, dtype=np.dtype(dtype))

    def take(self, rows: npt.NDArray[np.int64]) -> DaskProduct:
        """Return the product for some of the rows."""
        rows = np.asarray(rows, dtype=np.int64)
        ends = np.cumsum(self.sizes)
        at = np.searchsorted(ends, rows, side="right")
        queries, places = [], []
        for i in np.unique(at):
            here = np.flatnonzero(at == i)
            queries.append(self._some(self.queries[i], rows[here] - (ends[i] - self.sizes[i])))
            places.append(here)
        order = np.argsort(np.concatenate(places)) if places else None
        in_order = order is None or np.array_equal(order, np.arange(len(order)))
        return replace(self, queries=tuple(queries), order=None if in_order else order)

    def _some(self, asked: Asked, rows: npt.NDArray[np.int64]) -> Asked:
        if asked.own is None:
            return replace(asked, rows=rows, size=len(rows))
        part = self.kernel.parts[asked.own]
        block = task("queries", Part.asking, part, rows, self.side)
        return Asked(block, asked.own, rows, len(rows))

    def pairs(self, name: str, function: Any, *args: Any, **params: Any) -> list[list[Any]]:
        """Return a task for each block of rows and each part.

        Use ``per_part``, a list, for an argument that differs between the parts.
        """
        per_part = params.pop("per_part", None)
        found = []
        for asked in self.queries:
            row = []
            for j, part in enumerate(self.kernel.parts):
                more = args if per_part is None else (*args, per_part[j])
                block, rows = asked.block, asked.rows
                if asked.own is not None:
                    # Blocks for other parts contain only the selected rows.
                    block, rows = (Own(self.side), rows) if asked.own == j else (block, None)
                row.append(task(name, function, block, part, rows, *more, **params))
            found.append(row)
        return found


def _own_diagonal(part: Part) -> Any:
    return part.kernel.own_diagonal


def _diagonal_shift(part: Part) -> Any:
    return part.kernel.diagonal_shift()
