"""Weights of samples in trees, in factors: most schemes need few, and none needs them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Weighting:
    r"""Weights of n samples in T trees as a product of factors, each of which may be left out.

    .. math:: w_t(x) = \text{scale} \cdot \text{by\_sample}(x) \cdot
              \text{by\_leaf}(\ell_t(x)) \cdot \text{by\_entry}(x, t)

    A scheme may return one instead of an array of shape (n, T), which is then never made: a weight
    that is constant on a leaf or a sample is kept once, and kernels that only count are summed in
    integers.

    Parameters
    ----------
    scale : float, default=1.0
        A factor for all.
    by_sample : ndarray of shape (n,), default=None
        A factor for each sample.
    by_leaf : ndarray of shape (L,), default=None
        A factor for each leaf of the forest.
    by_entry : ndarray of shape (n, T), default=None
        A factor for each sample in each tree. Booleans say where a sample counts at all; 8-bit
        counts are kept as they are.
    """

    scale: float = 1.0
    by_sample: Array | None = None
    by_leaf: Array | None = None
    by_entry: Array | None = None

    def dense(self, leaf: Array) -> npt.NDArray[np.float64]:
        """Return the weights of samples with these leaves, shape (n, T)."""
        weights = np.full(leaf.shape, self.scale)
        if self.by_sample is not None:
            weights *= self.by_sample[:, None]
        if self.by_leaf is not None:
            weights *= self.by_leaf[leaf]
        if self.by_entry is not None:
            weights *= self.by_entry
        return weights

    def in_tree(
        self, leaf: Array, tree: int, rows: slice | Array = slice(None)
    ) -> npt.NDArray[np.float64]:
        """Return one column of :meth:`dense`, or some rows of it, shape (r,)."""
        weights = np.full(len(leaf[rows, tree]), self.scale)
        if self.by_sample is not None:
            weights *= self.by_sample[rows]
        if self.by_leaf is not None:
            weights *= self.by_leaf[leaf[rows, tree]]
        if self.by_entry is not None:
            weights *= self.by_entry[rows, tree]
        return weights

    def rows(self, rows: slice | Array) -> Weighting:
        """Return the weights of some of the samples."""
        return replace(
            self,
            by_sample=None if self.by_sample is None else self.by_sample[rows],
            by_entry=None if self.by_entry is None else self.by_entry[rows],
        )

    def compact(self, dtype: np.dtype[Any]) -> Weighting:
        """Return the same weights as the engines take them: entries as flags, counts or dtype."""
        entry = self.by_entry
        if entry is not None:
            if entry.dtype == bool and entry.strides == (0, 0) and entry.size and entry[0, 0]:
                entry = None  # one True, broadcast: it says nothing
            elif entry.dtype in (np.dtype(bool), np.dtype(np.uint8)):
                entry = np.ascontiguousarray(entry)
            else:
                entry = np.array(entry, dtype=dtype, order="C")  # a copy: it may be the user's
        return Weighting(float(self.scale), _doubles(self.by_sample), _doubles(self.by_leaf), entry)


@dataclass(frozen=True)
class WeighedLeaves:
    """Rows of leaves and the factors of their entries, as the compiled core reads them.

    Attributes
    ----------
    leaf : ndarray of int32 or int64 of shape (n, T)
        Leaf ids.
    present : ndarray of uint8 of shape (n, T), optional
        Which entries count; all where there is none.
    weights : ndarray of uint8, float32 or float64 of shape (n, T), optional
        Factor of each entry; one where there is none.
    """

    leaf: Array
    present: npt.NDArray[np.uint8] | None
    weights: Array | None

    @classmethod
    def of(
        cls, leaf: Array, weighting: Weighting, dtype: np.dtype[Any] | None = None
    ) -> WeighedLeaves:
        """Take the entries of a compact weighting, or of any with its weights in dtype."""
        entry = (weighting if dtype is None else weighting.compact(dtype)).by_entry
        is_flags = entry is not None and entry.dtype == bool
        return cls(
            np.ascontiguousarray(leaf),
            entry.view(np.uint8) if entry is not None and is_flags else None,
            None if is_flags else entry,
        )


def leaf_id_type(n_leaves: int) -> type[np.int32] | type[np.int64]:
    """Return the smaller integer type that holds every leaf id."""
    return np.int32 if n_leaves <= np.iinfo(np.int32).max else np.int64


def _doubles(factor: Array | None) -> npt.NDArray[np.float64] | None:
    return None if factor is None else np.ascontiguousarray(factor, dtype=np.float64)
