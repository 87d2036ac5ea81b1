"""Access to a proximity fitted on Dask data, with computed instead of lazy results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel import forests
from leafkernel._lazy import lazy
from leafkernel._validation import check_columns
from leafkernel.dask.data import blocks_of, meta_of, sizes_of
from leafkernel.dask.engine import DaskEngine
from leafkernel.dask.graph import compute, known, persist, task
from leafkernel.dask.kernel import NOT_HERE, DaskKernel, DaskProduct, Routed
from leafkernel.dask.pieces import leaves_at, route, training_leaves_at
from leafkernel.inside import Array, Inside
from leafkernel.leaf_index import Samples


class DaskInside(Inside):
    """:class:`leafkernel.inside.Inside` for training samples on Dask workers.

    Every result is computed on the workers and returned in memory.
    """

    @property
    def kernel(self) -> DaskKernel:  # type: ignore[override]
        """The kernel, in parts."""
        return super().kernel  # type: ignore[return-value]

    @property
    def samples(self) -> Samples:
        """Raise an error: the training samples are not in this process."""
        raise NotImplementedError(NOT_HERE)

    @property
    def has_own_diagonal(self) -> bool:
        """Whether a training sample can have a nonzero proximity to itself."""
        if self.kernel.diagonal == "scheme":
            return self.scheme.own_proximity != 0
        return self.kernel.diagonal != "zero"

    @lazy
    def engine(self) -> DaskEngine:  # type: ignore[override]
        """Return the engine."""
        return DaskEngine(self.host_engine())

    def route(self, X: Any) -> Any:
        """Return new samples, whose leaves are computed on the workers."""
        if isinstance(X, Routed):
            return X
        found = routed(self, self.kernel, X)
        # Tasks compute many small results, so route the samples only once.
        return replace(found, blocks=tuple(persist(*found.blocks)))

    def count(self, X: Any) -> int:
        """Return the number of samples in X. It is computed if unknown."""
        return sum(sizes_of(*blocks_of(X)))

    def leaves_of(self, X: Any, rows: npt.NDArray[np.int64]) -> Array:
        """Return the leaves of some samples in X. The rows must be ascending."""
        blocks, sizes = blocks_of(X)
        router = self.kernel.router
        return _taken(
            blocks,
            sizes_of(blocks, sizes),
            rows,
            lambda b, r: task("route", leaves_at, router, b, r),
        )

    def training_leaves(self, rows: npt.NDArray[np.int64]) -> Array:
        """Return the leaves of some training samples. The rows must be ascending."""
        kernel = self.kernel
        return _taken(
            kernel.parts, kernel.sizes, rows, lambda p, r: task("leaves", training_leaves_at, p, r)
        )

    def require_in_memory(self, what: str, instead: str) -> None:
        """Raise an error: the training samples are on Dask workers."""
        raise NotImplementedError(
            f"{what} is not available for a proximity fitted on Dask data; {instead}."
        )

    def product(self, X: Any = None) -> DaskProduct:  # type: ignore[override]
        """Return the rows of P to compute, for new samples or for the training samples."""
        kernel = self.kernel
        return kernel.training_product() if X is None else kernel.product(self.route(X))

    @property
    def own_engine(self) -> DaskEngine:  # type: ignore[override]
        """The engine, whose results are in main memory."""
        return self.engine

    def blocks(
        self,
        X: Any,
        block_size: int = 4096,
        *,
        sort: bool = True,
        columns: Array | None = None,
        engine: Any = None,  # noqa: ARG002 - the workers have their own
    ) -> Iterator[tuple[slice, csr_array]]:
        """Yield blocks of rows, optionally with renumbered columns."""
        product = self.product(X)

        def blocks() -> Iterator[tuple[slice, csr_array]]:
            n_rows = product.n_rows
            for begin in range(0, n_rows, block_size):
                rows = slice(begin, min(begin + block_size, n_rows))
                block = self.engine.rows(product.take(np.arange(rows.start, rows.stop)), sort=sort)
                if columns is not None:
                    block.indices = columns[block.indices].astype(block.indices.dtype)
                    block.has_sorted_indices = False
                    block.sort_indices()
                yield rows, block

        return blocks()

    def proximity_to(self, rows: npt.NDArray[np.int64], X: Any = None) -> csr_array:
        """Return columns of P, given the positions of training samples."""
        return self.engine.columns(self.product(X), rows)


def _taken(blocks: Any, sizes: Any, rows: npt.NDArray[np.int64], ask: Any) -> Array:
    """Return the results for some rows from their blocks. The rows must be ascending."""
    ends = np.cumsum(sizes)
    at = np.searchsorted(ends, rows, side="right")
    tasks = [ask(blocks[i], rows[at == i] - int(ends[i] - sizes[i])) for i in np.unique(at)]
    return np.concatenate(compute(tasks))


def routed(inside: Inside, kernel: DaskKernel, X: Any) -> Routed:
    """Return new samples, whose leaves are computed on the workers."""
    meta = meta_of(X)
    raw = isinstance(inside.prox.forest_, forests.RawLeaves)
    if raw and meta is X:
        meta = forests.check_leaves(X)
    check_columns(inside.prox, meta, reset=False)
    blocks, sizes = blocks_of(X)
    scheme = known("scheme", kernel.scheme)
    found = [
        task("route", route, kernel.router, scheme, block, inside.n_threads) for block in blocks
    ]
    return Routed(tuple(found), tuple(sizes))
