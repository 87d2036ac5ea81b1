"""Quantiles of the training targets weighted by proximity, computed in blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import without_self

Array = npt.NDArray[Any]

# Tolerance for reaching a quantile, because weights are in single precision.
_TOLERANCE = 1e-7


def weighted_quantiles(
    proximity: ForestProximity,
    y: Array,
    X: Any,
    levels: npt.NDArray[np.float64],
    *,
    n_neighbors: int | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the quantiles of each row, shape (m, k), and a mask of rows without weight.

    Rows without weight get the unweighted quantiles of all targets.
    """
    order = np.argsort(y, kind="stable")
    sorted_y = y[order]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    if n_neighbors is not None:
        weights, rows = proximity.kneighbors(X, n_neighbors)
        begins = np.arange(len(rows) + 1) * n_neighbors
        nearest = csr_array(
            (weights.ravel(), rank[rows].ravel(), begins), shape=(len(rows), len(rank))
        )
        nearest.sort_indices()
        return _of_block(nearest, sorted_y, levels)
    found, empty = [], []
    if X is None:
        proximity = without_self(proximity)
    # Columns are numbered by rank, so the sorted entries of a row are in the order of the targets.
    for _, block in Inside.of(proximity).blocks(X, columns=rank):
        blockwise, without = _of_block(block, sorted_y, levels)
        found.append(blockwise)
        empty.append(without)
    return np.concatenate(found), np.concatenate(empty)


def _of_block(
    block: csr_array, sorted_y: Array, levels: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    # A running sum over the whole block is increasing, so a single search finds all quantiles.
    running = np.concatenate([[0.0], np.cumsum(block.data, dtype=np.float64)])
    begin, end = block.indptr[:-1], block.indptr[1:]
    before, mass = running[begin], running[end] - running[begin]
    empty = mass <= 0
    wanted = before[:, None] + mass[:, None] * np.maximum(levels - _TOLERANCE, 0)
    # running[i + 1] is the sum up to and including entry i.
    place = np.searchsorted(running[1:], wanted, side="left")
    last = np.maximum(end - 1, begin)[:, None]
    place = np.clip(place, begin[:, None], last)
    of_all = np.clip(np.ceil((levels - _TOLERANCE) * len(sorted_y)) - 1, 0, None).astype(int)
    if block.nnz == 0:
        return np.tile(sorted_y[of_all], (len(empty), 1)), empty
    quantiles = sorted_y[block.indices[np.minimum(place, block.nnz - 1)]]
    quantiles[empty] = sorted_y[of_all]
    return quantiles, empty
