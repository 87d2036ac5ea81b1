"""Weights of samples in trees, in factors: most schemes need few, and none needs them all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Factors are left as they are while their largest entry is within this power of two.
_LARGEST_EXPONENT = 64


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
        """Return the weights of samples with these leaves, shape (n, T) or (n,)."""
        weights = np.full(leaf.shape, self.scale)
        if self.by_sample is not None:
            weights *= self.by_sample.reshape(-1, *[1] * (leaf.ndim - 1))
        if self.by_leaf is not None:
            weights *= self.by_leaf[leaf]
        if self.by_entry is not None:
            weights *= self.by_entry
        return weights

    def in_tree(self, leaf: Array, tree: int) -> npt.NDArray[np.float64]:
        """Return one column of :meth:`dense`, shape (n,)."""
        by_entry = None if self.by_entry is None else self.by_entry[:, tree]
        return replace(self, by_entry=by_entry).dense(leaf[:, tree])

    def rows(self, rows: slice | Array) -> Weighting:
        """Return the weights of some of the samples."""
        return replace(
            self,
            by_sample=None if self.by_sample is None else self.by_sample[rows],
            by_entry=None if self.by_entry is None else self.by_entry[rows],
        )

    def compact(
        self, dtype: np.dtype[Any], leaf: Array | None = None, *, owned: tuple[Any, ...] = ()
    ) -> Weighting:
        """Return the same weights as the engines take them: entries as flags, counts or dtype.

        Parameters
        ----------
        dtype : dtype
            Type of entries that are neither flags nor 8-bit counts.
        leaf : ndarray of shape (n, T), default=None
            Leaves of the samples. With them, entries that are too large or too small for dtype are
            multiplied by the factors of their leaves first.
        owned : tuple of ndarray
            Arrays that nobody else can change. All others are copied, because a scheme may use its
            arrays again.
        """
        entry, by_leaf, scale = self.by_entry, self.by_leaf, float(self.scale)
        if entry is not None:
            if entry.dtype == bool and entry.strides == (0, 0) and entry.size and entry[0, 0]:
                entry = None  # one True, broadcast: it says nothing
            elif entry.dtype in (np.dtype(bool), np.dtype(np.uint8)):
                is_owned = any(entry is array for array in owned)
                entry = np.ascontiguousarray(entry) if is_owned else np.array(entry, order="C")
            elif fits(entry, dtype):
                entry = np.array(entry, dtype=dtype, order="C")
            else:
                entry, shift = _round(entry, by_leaf, leaf, dtype)
                by_leaf, scale = None if leaf is not None else by_leaf, scale * shift
        return _balanced(scale, _doubles(self.by_sample), _doubles(by_leaf), entry)


def _balanced(scale: float, *factors: Array | None) -> Weighting:
    """Return the weights with very large or small powers of two moved from factors to the scale.

    That rounds nothing. Otherwise 1e200 times 1e-200 could become 0 or infinite on the way.
    """
    exponents = [_exponent(factor) for factor in factors]
    moved = [
        np.ldexp(factor, -exponent) if factor is not None and exponent else factor
        for factor, exponent in zip(factors, exponents, strict=True)
    ]
    try:
        balanced = math.ldexp(scale, sum(exponents))
    except OverflowError:
        balanced = math.inf
    if math.isinf(balanced) or (balanced == 0) != (scale == 0):
        raise ValueError(
            "the factors of the weights, multiplied, are too large or too small for float64."
        )
    return Weighting(balanced, *moved)


def _exponent(factor: Array | None) -> int:
    """Return the power of two of the largest entry where it is far from one, else 0."""
    if factor is None or factor.dtype.kind != "f":
        return 0
    largest = max(-np.min(factor, initial=0), np.max(factor, initial=0))
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > _LARGEST_EXPONENT else 0


def fits(weights: Array, dtype: npt.DTypeLike) -> bool:
    """Return whether weights keep their digits in dtype: none overflows or nears 0."""
    if weights.dtype.kind != "f":
        return True  # no integer is too large even for float32
    sizes = np.abs(weights)
    smallest = np.min(sizes, where=sizes > 0, initial=np.inf)
    limits = np.finfo(dtype)
    return bool(smallest >= limits.tiny and np.max(sizes, initial=0) <= limits.max)


def _round(
    entry: Array, by_leaf: Array | None, leaf: Array | None, dtype: np.dtype[Any]
) -> tuple[Array, float]:
    """Return entries in dtype, and the power of two that they must be multiplied by."""
    exact = np.array(entry, dtype=np.float64)
    if by_leaf is not None and leaf is not None:
        exact *= by_leaf[leaf]
    # With the largest at the top of the range, there is most room for small ones.
    shift = int(np.frexp(np.max(np.abs(exact), initial=0))[1]) - np.finfo(dtype).maxexp + 1
    rounded = np.ldexp(exact, -shift)
    if not fits(rounded, dtype) or not -1000 < shift < 1000:
        sizes = np.abs(entry)
        low, high = np.min(sizes, where=sizes > 0, initial=np.inf), np.max(sizes)
        advice = "use dtype=np.float64, or weights that differ less"
        if dtype == np.float64:
            advice = "multiply all of them by one large number, or set the smallest to 0"
        raise ValueError(f"weights from {low:.3g} to {high:.3g} do not fit in {dtype}; {advice}.")
    return rounded.astype(dtype), 2.0**shift


def leaf_id_type(n_leaves: int) -> type[np.int32] | type[np.int64]:
    """Return the smaller integer type that holds every leaf id."""
    return np.int32 if n_leaves <= np.iinfo(np.int32).max else np.int64


def locked(array: Array) -> Array:
    """Lock an array that nobody else has, so that it can be shared instead of copied."""
    array.flags.writeable = False
    return array


def _is_locked(array: Array) -> bool:
    """Return whether nobody can write to an array, nor to an array that it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None


def _doubles(factor: Array | None) -> npt.NDArray[np.float64] | None:
    """Return a factor as float64 that nobody can change: a copy, unless it is locked."""
    if factor is None:
        return None
    is_double = isinstance(factor, np.ndarray) and factor.dtype == np.float64
    if is_double and factor.flags.c_contiguous and _is_locked(factor):
        return factor
    return np.array(factor, dtype=np.float64, order="C")
