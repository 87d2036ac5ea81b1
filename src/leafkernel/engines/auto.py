"""The engine that selects the GPU for large work, and the CPU otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from leafkernel.engines.native import NativeEngine
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


def _of_chosen(name: str) -> Callable[..., Any]:
    """Return a method that calls the same method of the engine for the product."""

    def call(self: AutoEngine, product: Product, *args: Any, **params: Any) -> Any:
        return getattr(self.chosen(product), name)(product, *args, **params)

    return call


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
        return self._chosen(product)[0]

    def describe(self, product: Product) -> str:
        """Return the name of the engine for a product, and why it was selected."""
        engine, reason = self._chosen(product)
        return f"{engine.describe(product)} ({reason})"

    def _chosen(self, product: Product) -> tuple[Any, str]:
        native, n_rows = NativeEngine(self.n_threads), product.n_rows
        rows = np.unique(np.linspace(0, n_rows - 1, _SAMPLED_ROWS).astype(np.int64))
        some = native.collisions(product.take(rows[rows >= 0]))
        work = float(some.mean()) * n_rows if len(some) else 0.0
        collisions = f"about {float(f'{work:.2g}'):,.0f} leaf collisions"
        if work < _LARGE_WORK:
            return native, f"{collisions} are too few for a GPU"
        gpu = import_module("leafkernel.engines.gpu")
        problem = gpu.gpu_problem()
        return (gpu.GpuEngine(), collisions) if problem is None else (native, problem)

    def prepare(self, index: LeafIndex) -> LeafIndex:
        """Return the index itself. The selected engine prepares it."""
        return index

    def on_one_thread(self) -> AutoEngine:
        """Return the same engine on one thread."""
        return replace(self, n_threads=1)

    rows = _of_chosen("rows")
    dense = _of_chosen("dense")
    nearest = _of_chosen("nearest")
    sums = _of_chosen("sums")
    nonzeros = _of_chosen("nonzeros")

    # The processor computes these quickly, so they are never copied to a GPU.

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c)."""
        return NativeEngine(self.n_threads).apply(product, values)

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the number of leaf collisions of each row, shape (m,)."""
        return NativeEngine(self.n_threads).collisions(product)
