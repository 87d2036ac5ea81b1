"""Engines: implementations that compute rows of P. All give the same results.

``native`` is compiled and parallel. ``gpu`` uses an NVIDIA GPU. ``reference`` is plain Python:
slow, easy to read, and used to test the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel._validation import check_choice
from leafkernel.engines.auto import auto_engine
from leafkernel.engines.dense import dense_rows
from leafkernel.engines.native import NO_LIMIT, NativeEngine, TooManyEntriesError
from leafkernel.engines.parted import PartedEngine
from leafkernel.engines.paths import PathEngine
from leafkernel.engines.reference import ReferenceEngine
from leafkernel.leaf_index import LeafIndex, Preparer
from leafkernel.product import Product

__all__ = [
    "ENGINES",
    "NO_LIMIT",
    "Engine",
    "NativeEngine",
    "PartedEngine",
    "PathEngine",
    "ReferenceEngine",
    "TooManyEntriesError",
    "dense_rows",
    "find_engine",
]


@runtime_checkable
class Engine(Preparer, Protocol):
    """Protocol of an engine.

    Pass an object with these methods as ``ForestProximity(forest, engine=my_engine)``. Use it to
    compute on another device, for example.

    :meth:`prepare` is called once for each index of reference samples. Its result, such as a copy
    on a device, is stored with the index. The engine itself can hold a connection or a device.
    Cloning or pickling the proximity copies the engine. If it holds objects that cannot be copied,
    define ``__deepcopy__`` and ``__reduce__``.

    An engine may also have these methods and attributes:

    - ``dense(product, on_progress)`` returns P as a dense array.
    - ``describe(product)`` returns the name of the engine for ``forecast``.
    - ``route(table, X)`` returns the leaves of float32 samples, or None to use the processor.
    - ``count_leaves(rows)`` returns the number of samples and the sum of their weights in each
      leaf, or None to use the processor.
    - ``lists_samples`` is True if :meth:`prepare` lists the samples of each leaf itself, from
      ``index.rows``. The processor then does not list them.
    - ``on_host()`` returns the same engine with results in main memory, if :meth:`rows` and
      :meth:`nearest` return results on a device. Tasks use it.
    - ``result_bytes()`` returns the memory for results on a device, or None.
    """

    @property
    def key(self) -> Hashable:
        """A value that is equal for engines that can share the result of :meth:`prepare`."""

    def prepare(self, index: LeafIndex) -> Any:
        """Prepare an index for the computations of the engine.

        Other methods get the result with ``product.reference.prepared(self)``.
        """

    @property
    def n_threads(self) -> int:
        """Number of threads."""

    def on_one_thread(self) -> Engine:
        """Return the same engine with one thread. It is used to time some rows."""

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n), without stored zeros.

        If ``sort``, the columns of each row are ascending. Raise TooManyEntriesError if P has more
        than ``most_entries`` entries.
        """

    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k largest entries of each row and their columns, shapes (m, k).

        Entries are sorted by value or, if ``by_magnitude``, by absolute value. Ties are sorted by
        column. The row's own sample is excluded. Zero entries are included.
        """

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c), for values of shape (n, c)."""

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c).

        Neither the diagonal nor shared out-of-bag counts are applied.
        """

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the number of leaf collisions of each row, shape (m,). It bounds the nonzeros."""

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""


def _gpu_engine(*, n_threads: int) -> Engine:
    # Imported here, so that CuPy is needed only if it is used.
    return import_module("leafkernel.engines.gpu").GpuEngine(n_threads)  # type: ignore[no-any-return]


ENGINES: dict[str, Callable[..., Engine]] = {
    "auto": auto_engine,
    "native": NativeEngine,
    "gpu": _gpu_engine,
    "reference": ReferenceEngine,
}


def find_engine(engine: str | Engine, *, n_threads: int) -> Engine:
    """Return the engine for a name, or an engine object unchanged.

    Parameters
    ----------
    engine : {"auto", "native", "gpu", "reference"} or Engine
        Name or object.
    n_threads : int
        Number of threads, for engines given by name.

    Returns
    -------
    Engine
        The engine.

    Examples
    --------
    >>> from leafkernel.engines import find_engine
    >>> find_engine("reference", n_threads=1).key
    'reference'
    """
    if isinstance(engine, str):
        check_choice("engine", engine, ENGINES)
        return ENGINES[engine](n_threads=n_threads)
    if isinstance(engine, type) or not isinstance(engine, Engine):
        missing = [name for name in _METHODS if not hasattr(engine, name)]
        lacks = f", which has no {', '.join(missing)}" if missing else ""
        raise TypeError(
            f"engine must be one of {', '.join(map(repr, ENGINES))}, or an engine object (see "
            f"leafkernel.engines.Engine); got {engine!r}{lacks}."
        )
    return engine


def engine_for_paths(engine: str | Engine, *, n_threads: int) -> Engine:
    """Return the engine for kernels that compare whole paths, given the user's choice."""
    if isinstance(engine, str) and engine in ("auto", "native"):
        return PathEngine(n_threads)
    if isinstance(engine, NativeEngine):
        return PathEngine(engine.n_threads)
    if getattr(engine, "key", engine) in ("reference", PathEngine.key):
        return find_engine(engine, n_threads=n_threads)
    name = repr(engine) if isinstance(engine, str) else type(engine).__name__
    raise ValueError(
        f"engine={name} does not support schemes that compare whole paths, such as 'pbk' and "
        "'rpk'. Use engine='native', or another scheme."
    )


_METHODS = sorted(name for name in vars(Engine) if not name.startswith("_"))
