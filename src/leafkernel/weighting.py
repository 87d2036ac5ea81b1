"""Weights of samples in trees, stored as factors."""

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
    r"""Weights of n samples in T trees, as a product of optional factors.

    .. math:: w_t(x) = \text{scale} \cdot \text{by\_sample}(x) \cdot
              \text{by\_leaf}(\ell_t(x)) \cdot \text{by\_entry}(x, t)

    A weight scheme may return it instead of an array of shape (n, T). This saves memory, because
    weights that are constant on a leaf or a sample are stored once. It is also faster, because
    weights that are only flags or counts are summed as integers.

    Parameters
    ----------
    scale : float, default=1.0
        Factor of all weights.
    by_sample : ndarray of shape (n,), default=None
        Factor of each sample.
    by_leaf : ndarray of shape (L,), default=None
        Factor of each leaf of the forest.
    by_entry : ndarray of shape (n, T), default=None
        Factor of each sample in each tree. Booleans select the entries that count. 8-bit counts
        are kept as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from leafkernel.schemes import Weighting
    >>> leaf = np.array([[0, 2], [1, 2]])  # two samples, two trees, three leaves
    >>> Weighting(scale=0.5, by_leaf=np.array([1.0, 2.0, 4.0])).dense(leaf)
    array([[0.5, 2. ],
           [1. , 2. ]])
    """

    scale: float = 1.0
    by_sample: Array | None = None
    by_leaf: Array | None = None
    by_entry: Array | None = None

    def dense(self, leaf: Array) -> npt.NDArray[np.float64]:
        """Return the weights as an array.

        Parameters
        ----------
        leaf : ndarray of shape (n, T) or (n,)
            Leaves of the samples.

        Returns
        -------
        ndarray of float64
            The weights, with the shape of ``leaf``.
        """
        weights = np.full(leaf.shape, self.scale)
        if self.by_sample is not None:
            weights *= self.by_sample.reshape(-1, *[1] * (leaf.ndim - 1))
        if self.by_leaf is not None:
            weights *= self.by_leaf[leaf]
        if self.by_entry is not None:
            weights *= self.by_entry
        return weights

    def in_tree(self, leaf: Array, tree: int) -> npt.NDArray[np.float64]:
        """Return the weights in one tree.

        Parameters
        ----------
        leaf : ndarray of shape (n, T)
            Leaves of the samples.
        tree : int
            The tree.

        Returns
        -------
        ndarray of float64 of shape (n,)
            One column of :meth:`dense`.
        """
        by_entry = None if self.by_entry is None else self.by_entry[:, tree]
        return replace(self, by_entry=by_entry).dense(leaf[:, tree])

    def rows(self, rows: slice | Array) -> Weighting:
        """Return the weights of selected samples.

        Parameters
        ----------
        rows : slice or ndarray
            The samples.

        Returns
        -------
        Weighting
            Their weights.
        """
        return replace(
            self,
            by_sample=None if self.by_sample is None else self.by_sample[rows],
            by_entry=None if self.by_entry is None else self.by_entry[rows],
        )

    def compact(
        self, dtype: np.dtype[Any], leaf: Array | None = None, *, owned: tuple[Any, ...] = ()
    ) -> Weighting:
        """Return the weights in the form for the engines: entries as flags, counts or ``dtype``.

        Parameters
        ----------
        dtype : dtype
            Type of entries that are neither flags nor 8-bit counts.
        leaf : ndarray of shape (n, T), default=None
            Leaves of the samples. If given, entries that are too large or too small for ``dtype``
            are first multiplied by their leaf factors.
        owned : tuple of ndarray
            Arrays that cannot change. All others are copied, because a scheme may modify its
            arrays.

        Returns
        -------
        Weighting
            The weights.
        """
        entry, by_leaf, scale = self.by_entry, self.by_leaf, float(self.scale)
        if entry is not None:
            if entry.dtype == bool and entry.strides == (0, 0) and entry.size and entry[0, 0]:
                entry = None  # a broadcast True has no effect
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

    This is exact. Otherwise 1e200 times 1e-200 could underflow or overflow on the way.
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
            "The product of the weight factors is too large or too small for float64. Use factors "
            "closer to 1."
        )
    return Weighting(balanced, *moved)


def _exponent(factor: Array | None) -> int:
    """Return the exponent of the largest entry if it is far from 0, else 0."""
    if factor is None or factor.dtype.kind != "f":
        return 0
    largest = max(-np.min(factor, initial=0), np.max(factor, initial=0))
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > _LARGEST_EXPONENT else 0


def fits(weights: Array, dtype: npt.DTypeLike) -> bool:
    """Return whether weights keep their precision in dtype, without overflow or underflow."""
    if weights.dtype.kind != "f":
        return True  # integers are in the range of float32
    sizes = np.abs(weights)
    smallest = np.min(sizes, where=sizes > 0, initial=np.inf)
    limits = np.finfo(dtype)
    return bool(smallest >= limits.tiny and np.max(sizes, initial=0) <= limits.max)


def _round(
    entry: Array, by_leaf: Array | None, leaf: Array | None, dtype: np.dtype[Any]
) -> tuple[Array, float]:
    """Return entries in dtype, and the power of two to multiply them by."""
    exact = np.array(entry, dtype=np.float64)
    if by_leaf is not None and leaf is not None:
        exact *= by_leaf[leaf]
    # Scale the largest entry to the top of the range, to keep small entries.
    shift = int(np.frexp(np.max(np.abs(exact), initial=0))[1]) - np.finfo(dtype).maxexp + 1
    rounded = np.ldexp(exact, -shift)
    if not fits(rounded, dtype) or not -1000 < shift < 1000:
        sizes = np.abs(entry)
        low, high = np.min(sizes, where=sizes > 0, initial=np.inf), np.max(sizes)
        advice = "Use dtype=np.float64, or weights that differ less"
        if dtype == np.float64:
            advice = "Multiply all weights by a large number, or set the smallest to 0"
        raise ValueError(f"weights from {low:.3g} to {high:.3g} do not fit in {dtype}. {advice}.")
    return rounded.astype(dtype), 2.0**shift


def leaf_id_type(n_leaves: int) -> type[np.int32] | type[np.int64]:
    """Return the smallest integer type that can represent every leaf id."""
    return np.int32 if n_leaves <= np.iinfo(np.int32).max else np.int64


def locked(array: Array) -> Array:
    """Make an array that is not shared read-only, so that it does not have to be copied."""
    array.flags.writeable = False
    return array


def _is_locked(array: Array) -> bool:
    """Return whether an array and all its base arrays are read-only."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None


def _doubles(factor: Array | None) -> npt.NDArray[np.float64] | None:
    """Return a factor as read-only float64, or a copy of it."""
    if factor is None:
        return None
    is_double = isinstance(factor, np.ndarray) and factor.dtype == np.float64
    if is_double and factor.flags.c_contiguous and _is_locked(factor):
        return factor
    return np.array(factor, dtype=np.float64, order="C")
