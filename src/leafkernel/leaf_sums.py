"""Sums over the samples in each leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# Number of entries (sample, tree) to sum at a time: about 32 MB for each temporary array.
_ENTRIES_AT_ONCE = 1 << 22


def leaf_sums(
    leaf: Array,
    n_leaves: int,
    *,
    entries: Array | None = None,
    values: Array | None = None,
    rows: Array | None = None,
) -> Doubles:
    r"""Return :math:`\sum_{x \in \ell} e_t(x)\, v(x)` for each leaf ℓ, shape (L,).

    Samples are read in blocks of rows, because the arrays may be memory-mapped files.

    Parameters
    ----------
    leaf : ndarray of shape (n, T)
        Global id of the leaf of each sample in each tree.
    n_leaves : int
        Number of leaves over all trees, L.
    entries : ndarray of shape (n, T), default=None
        The weights e. By default, 1.
    values : ndarray of shape (n,), default=None
        The values v. By default, 1.
    rows : ndarray of int of shape (m,), default=None
        The samples to sum. By default, all.
    """
    sums: Doubles = np.zeros(n_leaves)
    n_rows, n_trees = leaf.shape[0] if rows is None else len(rows), leaf.shape[1]
    step = max(1, _ENTRIES_AT_ONCE // n_trees)
    for begin in range(0, n_rows, step):
        some = slice(begin, begin + step) if rows is None else rows[begin : begin + step]
        ids, weights = leaf[some], None
        if entries is not None:
            weights = entries[some].astype(np.float64)
        if values is not None:
            column = values[some, None]
            weights = np.broadcast_to(column, ids.shape) if weights is None else weights * column
        flat = None if weights is None else weights.ravel()
        sums += np.bincount(ids.ravel(), flat, minlength=n_leaves)
    return sums


def standardized(numbers: Array) -> Doubles:
    """Return numbers with mean 0 and variance 1, or zeros if all are equal."""
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return np.zeros(len(numbers))
    scaled = numbers / max(abs(low), abs(high))  # squares of huge numbers would overflow
    centered = scaled - scaled.mean()
    return np.asarray(centered / np.sqrt(np.mean(centered**2)))


def rows_by_class(codes: Array) -> list[Array]:
    """Return the samples of each class, ascending."""
    ends = np.cumsum(np.bincount(codes))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])
