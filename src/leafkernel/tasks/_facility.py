"""Greedy facility location: choose samples that are similar to all others."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._targets import indicators
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import (
    Array,
    with_constant_diagonal,
)

# Number of columns to compute at once. A few are nearly as fast as one, but many are not needed.
_COLUMNS_AT_ONCE = 32
# Relative tolerance for sums of the same numbers in another order.
_ROUNDING = 1e-5


def column_reader(prox: ForestProximity) -> Callable[[Array], csr_array]:
    """Return a function that computes columns of P for training samples, of shape (k, n)."""
    inside = Inside.of(prox)
    if inside.is_symmetric:
        product = inside.product()
    else:
        product = inside.kernel.transposed_product(n_threads=inside.n_threads)
    engine = inside.engine
    return lambda rows: engine.rows(product.take(np.asarray(rows, dtype=np.int64)), sort=False)


def column_sums(prox: ForestProximity, values: Array) -> npt.NDArray[np.float64]:
    """Return Pᵀ @ values, shape (n, c)."""
    if Inside.of(prox).is_symmetric:
        return prox.weighted_sums(values)
    return np.asarray(prox.operator().T @ values)


def choose_facilities(
    prox: ForestProximity, codes: npt.NDArray[np.intp], *, most: int, min_gain: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Choose samples of each class, and return them with their gains.

    The gain of a sample is the increase of Σ_i max_j P_ij over the samples i of its class and the
    chosen samples j. Gains can only decrease as more samples are chosen, so an old gain is an upper
    bound. The sample with the largest bound is chosen if its gain is up to date (lazy evaluation,
    Minoux 1978). The first bounds are column sums, which take a single product.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    codes : ndarray of int of shape (n,)
        Class of each training sample.
    most : int
        Largest number of samples of a class.
    min_gain : float
        Smallest gain, as a share of the previous gains of the class.
    """
    n_classes = int(codes.max()) + 1
    prox = with_constant_diagonal(prox)
    read_columns = column_reader(prox)
    sums = column_sums(prox, indicators(codes, n_classes))
    rows: list[int] = []
    gains: list[float] = []
    for c in range(n_classes):
        members = np.flatnonzero(codes == c)
        inside = codes == c
        nearest = np.zeros(len(codes))  # proximity of each sample to its nearest chosen sample
        bounds = sums[members, c] * (1 + _ROUNDING)
        queue = [(-bound, int(j), -1) for bound, j in zip(bounds, members, strict=True)]
        heapq.heapify(queue)
        n_chosen = 0
        while queue and n_chosen < min(most, len(members)):
            if queue[0][2] == n_chosen:
                gain, j, _ = heapq.heappop(queue)
                if n_chosen > 0 and -gain < min_gain * sum(gains[-n_chosen:]):
                    break
                others, closeness = _reach(read_columns(np.array([j])))[0]
                nearest[others] = np.maximum(nearest[others], closeness)
                rows.append(j)
                gains.append(-gain)
                n_chosen += 1
                continue
            stale = _pop_stale(queue, n_chosen)
            reached = _reach(read_columns(stale))
            for j, (others, closeness) in zip(stale, reached, strict=True):
                more = np.maximum(closeness - nearest[others], 0)[inside[others]].sum()
                heapq.heappush(queue, (-float(more), int(j), n_chosen))
    return np.array(rows, dtype=np.int64), np.array(gains)


def _pop_stale(queue: list[tuple[float, int, int]], now: int) -> Array:
    """Remove the candidates with the largest bounds, up to one that is up to date."""
    stale: list[int] = []
    while queue and len(stale) < _COLUMNS_AT_ONCE and queue[0][2] != now:
        stale.append(heapq.heappop(queue)[1])
    return np.array(stale)


def _reach(columns: csr_array) -> list[tuple[Array, Array]]:
    """Return the samples with nonzero entries in each column, and the entries."""
    return [
        (columns.indices[begin:end], columns.data[begin:end].astype(np.float64))
        for begin, end in pairwise(columns.indptr)
    ]
