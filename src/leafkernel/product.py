"""Rows of P to compute: the input of the engines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leafkernel._lazy import lazy
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.weighted_nodes import WeightedNodes

if TYPE_CHECKING:
    from leafkernel.parts import PartedIndex


def both_factors(
    first: npt.NDArray[np.float64] | None, second: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64] | None:
    """Return the product of two factors, each of which may be None."""
    if first is None or second is None:
        return second if first is None else first
    with np.errstate(over="ignore"):
        both = first * second
    if np.isinf(both).any():
        raise OverflowError("A proximity is too large for float64. Use smaller weights.")
    return both


@dataclass(frozen=True)
class Product:
    """Rows of P to compute: query rows against all reference samples.

    Attributes
    ----------
    query : WeighedRows
        The leaves and weights of the query rows.
    reference : LeafIndex or PartedIndex
        The reference samples, listed by leaf.
    row_order : ndarray of int64 of shape (m,)
        The order in which to compute the rows.
    dtype : dtype
        Type of the results.
    own : ndarray of int of shape (m,), optional
        If the queries are training samples, the place of each query row among the reference
        samples, or -1.
    diagonal : ndarray of float64 of shape (m,), optional
        Values at (row, own[row]) that replace those of the scheme.
    query_oob, reference_oob : ndarray of uint64, optional
        Packed out-of-bag flags by row and by place, if entries are divided by S(x, x').
    nodes : WeightedNodes, optional
        The nodes of the trees, if whole paths are compared. Only an engine for paths computes it.
    """

    query: WeighedRows
    reference: LeafIndex | PartedIndex
    row_order: npt.NDArray[np.int64]
    dtype: np.dtype[Any]
    own: npt.NDArray[np.signedinteger[Any]] | None = None
    diagonal: npt.NDArray[np.float64] | None = None
    query_oob: npt.NDArray[np.uint64] | None = None
    reference_oob: npt.NDArray[np.uint64] | None = None
    nodes: WeightedNodes | None = None

    @property
    def n_rows(self) -> int:
        """Number of query rows, m."""
        return self.query.n_rows

    @property
    def index(self) -> LeafIndex:
        """The reference samples as a single index."""
        if not isinstance(self.reference, LeafIndex):
            raise TypeError("The reference samples are in parts. Wrap the engine in PartedEngine.")
        return self.reference

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of P: (m, n)."""
        return self.n_rows, self.reference.n_samples

    @property
    def scale(self) -> float:
        """Factor of all entries."""
        return self.query.weighting.scale * self.reference.scale

    @lazy
    def by_leaf(self) -> npt.NDArray[np.float64] | None:
        """Factor of each leaf, for both sides together."""
        return both_factors(self.query.weighting.by_leaf, self.reference.by_leaf)

    def with_dtype(self, dtype: npt.DTypeLike) -> Product:
        """Return the product with another dtype. Leaf factors are reused."""
        if self.dtype == dtype:
            return self
        other = replace(self, dtype=np.dtype(dtype))
        # Solvers call this hundreds of times, so the leaf factors are computed only once.
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
