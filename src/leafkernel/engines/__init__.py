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
from leafkernel.engines.native import NativeEngine
from leafkernel.engines.reference import ReferenceEngine
from leafkernel.kernel import Product

ENGINES: dict[str, type[Engine]] = {
    "auto": NativeEngine,
    "native": NativeEngine,
    "reference": ReferenceEngine,
}


class Engine(Protocol):
    """What an engine computes from a product. An engine keeps no state between calls."""

    def __init__(self, *, n_threads: int) -> None: ...

    def rows(self, product: Product, on_progress: OnProgress | None = None) -> csr_array:
        """Return P, shape (m, n): columns ascending in each row, no zeros stored."""

    def nearest(
        self, product: Product, k: int, on_progress: OnProgress | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k largest entries of each row and their columns, shapes (m, k).

        Largest first, ties by column, never the row's own sample; where a row has fewer than k
        nonzeros the first columns with zero follow.
        """

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c), for values of shape (n, c)."""

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""


def find_engine(name: str, *, n_threads: int) -> Engine:
    """Return the engine of that name."""
    check_choice("engine", name, ENGINES)
    return ENGINES[name](n_threads=n_threads)
