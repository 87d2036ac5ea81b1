"""The engine that selects the GPU for large work, and the CPU otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel.engines.native import NO_LIMIT, NativeEngine
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

#: Leaf collisions above which the GPU is faster, although data must be copied to it. A processor
#: core handles about 5e8 collisions in a second.
_LARGE_WORK = 10**9
#: Rows whose collisions are counted.
_SAMPLED_ROWS = 256


def auto_engine(*, n_threads: int) -> NativeEngine | AutoEngine:
    """Return the compiled engine, or one that can also use the GPU if CuPy is installed."""
    if find_spec("cupy") is None:
        return NativeEngine(n_threads, reason="CuPy is not installed")
    return AutoEngine(n_threads)


@dataclass(frozen=True)
class AutoEngine:
    """Selects the GPU for large work, and the compiled engine otherwise.

    Parameters
    ----------
    n_threads : int
        Number of threads of the compiled engine.
    """

    n_threads: int = 1
    key: ClassVar[str] = "auto"

    def chosen(self, product: Product) -> Any:
        """Return the engine for a product. CuPy is imported only if the work is large."""
        native, n_rows = NativeEngine(self.n_threads), product.n_rows
        rows = np.unique(np.linspace(0, n_rows - 1, _SAMPLED_ROWS).astype(np.int64))
        some = native.collisions(product.take(rows[rows >= 0]))
        work = float(some.mean()) * n_rows if len(some) else 0.0
        if work < _LARGE_WORK:
            rounded = float(f"{work:.2g}")
            reason = f"about {rounded:,.0f} leaf collisions are too few for a GPU"
            return replace(native, reason=reason)
        gpu = import_module("leafkernel.engines.gpu")
        problem = gpu.gpu_problem()
        return gpu.GpuEngine() if problem is None else replace(native, reason=problem)

    def describe(self, product: Product) -> str:
        """Return the name of the selected engine, and why it was selected."""
        found: str = self.chosen(product).describe(product)
        return found

    def prepare(self, index: LeafIndex) -> Any:
        """Raise an error: the selected engine prepares the index."""
        raise NotImplementedError

    def on_one_thread(self) -> AutoEngine:
        """Return the same engine on one thread."""
        return replace(self, n_threads=1)

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n)."""
        return self.chosen(product).rows(product, on_progress, sort=sort, most_entries=most_entries)

    def dense(self, product: Product, on_progress: OnProgress | None = None) -> npt.NDArray[Any]:
        """Return P as a dense array, shape (m, n)."""
        found: npt.NDArray[Any] = self.chosen(product).dense(product, on_progress)
        return found

    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k largest entries of each row and their columns, shapes (m, k)."""
        found: tuple[npt.NDArray[Any], npt.NDArray[np.int64]] = self.chosen(product).nearest(
            product, k, on_progress, by_magnitude=by_magnitude
        )
        return found

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c)."""
        found: npt.NDArray[np.float64] = self.chosen(product).sums(product, values, on_progress)
        return found

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c). The compiled engine computes it: it is fast there."""
        return NativeEngine(self.n_threads).apply(product, values)

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the number of leaf collisions of each row, shape (m,)."""
        return NativeEngine(self.n_threads).collisions(product)

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        found: npt.NDArray[np.int64] = self.chosen(product).nonzeros(product, on_progress)
        return found
