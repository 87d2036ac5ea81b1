"""Rows of P to compute, and all that is needed for them: what engines are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leafkernel._lazy import lazy
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex

if TYPE_CHECKING:
    from leafkernel.parts import PartedIndex


def both_factors(
    first: npt.NDArray[np.float64] | None, second: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64] | None:
    """Return the product of two factors, each of which may be left out."""
    if first is None or second is None:
        return second if first is None else first
    with np.errstate(over="ignore"):
        both = first * second
    if np.isinf(both).any():
        raise OverflowError("a proximity is too large for float64; use smaller weights.")
    return both


@dataclass(frozen=True)
class Product:
    """Rows of P to compute: query rows against all reference samples.

    Attributes
    ----------
    query : WeighedRows
        The leaves of the query rows and their weights.
    reference : LeafIndex or PartedIndex
        The reference samples by leaf.
    row_order : ndarray of int64 of shape (m,)
        The order to compute the rows in.
    dtype : dtype
        Type of the results.
    own : ndarray of int of shape (m,), optional
        The place of the reference sample that each query row is, where the queries are the training
        samples; -1 for a row that is none of the reference samples.
    diagonal : ndarray of float64 of shape (m,), optional
        What to put at (row, own[row]) instead of the scheme's value.
    query_oob, reference_oob : ndarray of uint64, optional
        Packed out-of-bag flags, where entries are to be divided by S(x, x'), by row and by place.
    """

    query: WeighedRows
    reference: LeafIndex | PartedIndex
    row_order: npt.NDArray[np.int64]
    dtype: np.dtype[Any]
    own: npt.NDArray[np.signedinteger[Any]] | None = None
    diagonal: npt.NDArray[np.float64] | None = None
    query_oob: npt.NDArray[np.uint64] | None = None
    reference_oob: npt.NDArray[np.uint64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of query rows, m."""
        return self.query.n_rows

    @property
    def index(self) -> LeafIndex:
        """The reference samples in one piece, as most engines take them."""
        if not isinstance(self.reference, LeafIndex):
            raise TypeError("the reference samples are in parts; wrap the engine in PartedEngine.")
        return self.reference

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of P: (m, n)."""
        return self.n_rows, self.reference.n_samples

    @property
    def scale(self) -> float:
        """Factor for all entries."""
        return self.query.weighting.scale * self.reference.scale

    @lazy
    def by_leaf(self) -> npt.NDArray[np.float64] | None:
        """Factor of each leaf, of both sides together."""
        return both_factors(self.query.weighting.by_leaf, self.reference.by_leaf)

    def with_dtype(self, dtype: npt.DTypeLike) -> Product:
        """Return the product in another type, and what is known of its leaves with it."""
        if self.dtype == dtype:
            return self
        other = replace(self, dtype=np.dtype(dtype))
        # A solver multiplies hundreds of times: the factors of millions of leaves are made once.
        vars(other)["by_leaf"] = self.by_leaf
        return other

    def take(self, rows: npt.NDArray[np.int64]) -> Product:
        """Return the product for some of the rows."""
        return replace(
            self,
            query=self.query.rows(rows),
            row_order=np.arange(len(rows)),
            own=None if self.own is None else self.own[rows],
            diagonal=None if self.diagonal is None else self.diagonal[rows],
            query_oob=None if self.query_oob is None else self.query_oob[rows],
        )
