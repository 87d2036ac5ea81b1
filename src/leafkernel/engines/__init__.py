"""Engines: the ways to compute rows of P. All give the same numbers.

``native`` is compiled and parallel; ``reference`` is plain Python, slow and obvious, and the oracle
of the tests of every other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel._validation import check_choice
from leafkernel.engines.dense import dense_rows
from leafkernel.engines.native import NO_LIMIT, NativeEngine, TooManyEntriesError
from leafkernel.engines.parted import PartedEngine
from leafkernel.engines.reference import ReferenceEngine
from leafkernel.leaf_index import LeafIndex, Preparer
from leafkernel.product import Product

__all__ = [
    "ENGINES",
    "NO_LIMIT",
    "Engine",
    "NativeEngine",
    "PartedEngine",
    "ReferenceEngine",
    "TooManyEntriesError",
    "dense_rows",
    "find_engine",
]


@runtime_checkable
class Engine(Preparer, Protocol):
    """What an engine computes from a product.

    :meth:`prepare` is called once for each index of reference samples. What it returns, such as a
    copy on a device, is kept with the index. The engine itself can hold a connection or a
    device. ``ForestProximity(forest, engine=my_engine)`` takes any object with these methods.
    Cloning or pickling the proximity copies the engine: one that holds what cannot be copied says
    how with ``__deepcopy__`` and ``__reduce__``. An engine may also have a method
    ``dense(product, on_progress)`` that returns P as an ordinary array.
    """

    @property
    def key(self) -> Hashable:
        """A value that is equal for engines that can share what :meth:`prepare` returns."""

    def prepare(self, index: LeafIndex) -> Any:
        """Make of an index what the engine needs for its work.

        Its methods get it again by ``product.reference.prepared(self)``.
        """

    @property
    def n_threads(self) -> int:
        """Threads that it uses."""

    def on_one_thread(self) -> Engine:
        """Return the same engine on one thread, to time a few rows with."""

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n): no zeros stored, and columns ascending in each row if asked.

        Raises TooManyEntriesError, and gives up the work, where P has more than ``most_entries``.
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

        Largest first, or largest magnitude first; ties by column; never the row's own sample.
        Columns with zero count as such.
        """

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c), for values of shape (n, c)."""

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c), through the leaves: the product's factors alone.

        Neither the diagonal nor shared out-of-bag counts enter.
        """

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,): its work, a bound on nonzeros."""

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""


ENGINES: dict[str, Callable[..., Engine]] = {
    "auto": NativeEngine,
    "native": NativeEngine,
    "reference": ReferenceEngine,
}


def find_engine(engine: str | Engine, *, n_threads: int) -> Engine:
    """Return the engine of that name, or the engine itself, which has its own threads."""
    if isinstance(engine, str):
        check_choice("engine", engine, ENGINES)
        return ENGINES[engine](n_threads=n_threads)
    if isinstance(engine, type) or not isinstance(engine, Engine):
        missing = [name for name in _METHODS if not hasattr(engine, name)]
        lacks = f", which lacks {', '.join(missing)}" if missing else ""
        raise TypeError(
            f"engine must be one of {', '.join(map(repr, ENGINES))}, or an engine object (see "
            f"leafkernel.engines.Engine); got {engine!r}{lacks}."
        )
    return engine


_METHODS = sorted(name for name in vars(Engine) if not name.startswith("_"))
