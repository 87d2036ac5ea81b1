"""An engine for reference samples on Dask workers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from leafkernel._progress import OnProgress
from leafkernel.dask import pieces
from leafkernel.dask.graph import compute, known, tree
from leafkernel.dask.kernel import DaskProduct
from leafkernel.engines import NO_LIMIT, Engine, TooManyEntriesError
from leafkernel.parts import Nearest

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DaskEngine:
    """Computes on the workers with another engine, and combines the results.

    The methods of the engine interface return results. Methods named ``lazy_...`` return tasks,
    one for each block of rows.

    Parameters
    ----------
    inner : Engine
        The engine on each worker.
    """

    inner: Engine

    @property
    def key(self) -> Hashable:
        """Key of the inner engine, which prepares the parts."""
        return self.inner.key

    @property
    def n_threads(self) -> int:
        """Number of threads of one task."""
        return self.inner.n_threads

    def prepare(self, index: Any) -> Any:
        """Prepare one part."""
        return self.inner.prepare(index)

    def on_one_thread(self) -> DaskEngine:
        """Return the same engine on one thread."""
        return DaskEngine(self.inner.on_one_thread())

    def lazy_rows(self, product: DaskProduct, *, sort: bool = True) -> list[list[Any]]:
        """Return a task for each block of P."""
        return product.pairs("rows", pieces.rows_of, self.inner, product.dtype, sort=sort)

    def lazy_nearest(
        self, product: DaskProduct, k: int, *, by_magnitude: bool = False
    ) -> list[Any]:
        """Return a task for the neighbors of each block of rows."""
        how = {"k": k, "by_magnitude": by_magnitude}
        found = product.pairs("nearest", pieces.nearest, self.inner, **how)
        return [tree("merge", pieces.merge, row, **how) for row in found]

    def lazy_sums(self, product: DaskProduct, values: Any) -> list[Any]:
        """Return a task for P @ values of each block of rows.

        ``values`` is an array of shape (n, c), or a list of tasks with the values of each part.
        """
        through_rows = product.kernel.scheme.divides_by_shared_oob or product.diagonal is not None
        return self._sums(product, values, "sums" if through_rows else "apply")

    def rows(
        self,
        product: DaskProduct,
        on_progress: OnProgress | None = None,  # noqa: ARG002
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n)."""
        blocks = compute(self.lazy_rows(product, sort=sort))
        if not blocks:
            return csr_array(product.shape, dtype=product.dtype)
        matrix = csr_array(vstack([hstack(row, format="csr") for row in blocks], format="csr"))
        if matrix.nnz > most_entries:
            raise TooManyEntriesError
        matrix.has_canonical_format = matrix.has_sorted_indices = sort
        return _in_order(product, matrix)

    def nearest(
        self,
        product: DaskProduct,
        k: int,
        on_progress: OnProgress | None = None,  # noqa: ARG002
        *,
        by_magnitude: bool = False,
    ) -> Nearest:
        """Return the k largest entries of each row and their columns, shapes (m, k)."""
        found = compute(self.lazy_nearest(product, k, by_magnitude=by_magnitude))
        similarity, samples = (np.concatenate(blocks) for blocks in zip(*found, strict=True))
        return _in_order(product, similarity), _in_order(product, samples)

    def sums(
        self,
        product: DaskProduct,
        values: Doubles,
        on_progress: OnProgress | None = None,  # noqa: ARG002
    ) -> Doubles:
        """Return P @ values, shape (m, c)."""
        return _computed(product, self._sums(product, values, "sums"))

    def apply(self, product: DaskProduct, values: Doubles) -> Doubles:
        """Return Q Wᵀ @ values, shape (m, c), through the leaves."""
        return _computed(product, self._sums(product, values, "apply"))

    def collisions(self, product: DaskProduct) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,)."""
        return self._counts(product, "collisions")

    def nonzeros(
        self,
        product: DaskProduct,
        on_progress: OnProgress | None = None,  # noqa: ARG002
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        return self._counts(product, "nonzeros")

    def columns(self, product: DaskProduct, rows: npt.NDArray[np.int64]) -> csr_array:
        """Return selected columns of P, shape (m, k)."""
        kernel = product.kernel
        at = kernel.part_of(rows)
        wanted = [rows[at == j] for j in range(len(kernel.parts))]
        tasks = product.pairs("columns", pieces.columns_in, self.inner, per_part=wanted)
        needed = [j for j, some in enumerate(wanted) if len(some)]
        blocks = compute([[row[j] for j in needed] for row in tasks])
        matrix = vstack([hstack(row, format="csr") for row in blocks], format="csr")
        back = np.argsort(np.argsort(at, kind="stable"))
        matrix = csr_array(matrix)[:, back]
        matrix.sort_indices()
        return _in_order(product, matrix)

    def _sums(self, product: DaskProduct, values: Any, how: str) -> list[Any]:
        if isinstance(values, np.ndarray):
            values = [known("values", values[some]) for some in product.kernel.cuts()]
        found = product.pairs("sums", pieces.sums_of, self.inner, how, per_part=values)
        return [tree("add", pieces.add, row) for row in found]

    def _counts(self, product: DaskProduct, what: str) -> npt.NDArray[np.int64]:
        found = product.pairs("count", pieces.count_of, self.inner, what)
        return _computed(product, [tree("add", pieces.add, row) for row in found])


def _computed(product: DaskProduct, tasks: list[Any]) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = _in_order(product, np.concatenate(compute(tasks)))
    return found


def _in_order(product: DaskProduct, found: Any) -> Any:
    return found if product.order is None else found[product.order]
