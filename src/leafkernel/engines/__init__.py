"""Engines: the ways to compute rows of P. All give the same numbers.

``native`` is compiled and parallel; ``reference`` is plain Python, slow and obvious, and the oracle
of the tests of every other.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel._validation import check_choice
from leafkernel.engines.native import NO_LIMIT, NativeEngine, TooManyEntriesError
from leafkernel.engines.reference import ReferenceEngine
from leafkernel.kernel import Product

__all__ = [
    "ENGINES",
    "NO_LIMIT",
    "Engine",
    "NativeEngine",
    "ReferenceEngine",
    "TooManyEntriesError",
    "find_engine",
]

ENGINES: dict[str, type[Engine]] = {
    "auto": NativeEngine,
    "native": NativeEngine,
    "reference": ReferenceEngine,
}


class Engine(Protocol):
    """What an engine computes from a product. An engine keeps no state between calls."""

    def __init__(self, *, n_threads: int) -> None: ...

    @property
    def n_threads(self) -> int:
        """Threads that it uses."""

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


def find_engine(name: str, *, n_threads: int) -> Engine:
    """Return the engine of that name."""
    check_choice("engine", name, ENGINES)
    return ENGINES[name](n_threads=n_threads)
