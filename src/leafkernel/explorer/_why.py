"""Why each row is like its neighbours: what ``explain_pair`` tells of one pair, of all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.forests._trees import Tree
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._paths import TreePaths

Array = npt.NDArray[Any]

# Bits that are added up at once, so that they take little memory: rows × neighbours × features.
_BITS_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class Reasons:
    """The features that decide most that rows are like their neighbours.

    Attributes
    ----------
    features : ndarray of int64 of shape (n, k, m)
        Features on the shared paths, the one that decides most first; -1 where there are no more.
    shares : ndarray of float32 of shape (n, k, m)
        How much each decides, as in :func:`leafkernel.tasks.explain_pair`.
    trees : ndarray of int64 of shape (n, k)
        In how many trees the two share a leaf.
    """

    features: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float32]
    trees: npt.NDArray[np.int64]


def explain_neighbors(
    prox: ForestProximity,
    trees: Sequence[Tree],
    neighbors: npt.NDArray[np.int64],
    n_features: int,
    *,
    most: int = 3,
) -> Reasons:
    """Tell which features decide that training samples are like these neighbours of theirs.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    trees : sequence of Tree
        Its trees, as ``read_trees`` gives them.
    neighbors : ndarray of int64 of shape (n, k)
        Training samples for each training sample.
    n_features : int
        Number of features that the trees split on.
    most : int, default=3
        How many features to name for a pair.

    Returns
    -------
    Reasons
        Features and what they decide.
    """
    n, k = neighbors.shape
    m = min(most, n_features)
    found = Reasons(
        np.full((n, k, m), -1, dtype=np.int64),
        np.zeros((n, k, m), dtype=np.float32),
        np.zeros((n, k), dtype=np.int64),
    )
    step = max(1, _BITS_AT_ONCE // (k * n_features))
    for begin in range(0, n, step):
        rows = slice(begin, min(begin + step, n))
        bits, found.trees[rows] = _bits(prox, trees, rows, neighbors[rows], n_features)
        total = bits.sum(axis=2, keepdims=True)
        shares = np.divide(bits, total, out=np.zeros_like(bits), where=total > 0)
        top = np.argsort(-shares, axis=2, kind="stable")[:, :, :m]
        best = np.take_along_axis(shares, top, axis=2)
        found.shares[rows] = best
        found.features[rows] = np.where(best > 0, top, -1)
    return found


def _bits(
    prox: ForestProximity, trees: Sequence[Tree], rows: slice, neighbors: Array, n_features: int
) -> tuple[Array, Array]:
    """Return the bits of each feature for each pair, (r, k, p), and the number of shared trees."""
    kernel, stats = prox.kernel_, prox.kernel_.forest
    mine, query = kernel.leaf[rows], kernel.query.rows(rows)
    bits = np.zeros((*neighbors.shape, n_features), dtype=np.float32)
    shared = np.zeros(neighbors.shape, dtype=np.int64)
    # A symmetrised kernel has each tree twice: once for either side.
    for column in range(mine.shape[1]):
        t = column % stats.n_trees
        begin, end = stats.leaf_offsets[t], stats.leaf_offsets[t + 1]
        theirs = kernel.leaf[neighbors, column]
        row, place = np.nonzero(theirs == mine[:, column, None])
        if column < stats.n_trees:
            shared[row, place] += 1
        other = neighbors[row, place]
        adds = query.in_tree(mine, column, row)
        adds *= kernel.reference.in_tree(kernel.leaf, column, other)
        counts = adds > 0
        if not counts.any():
            continue
        row, place, adds = row[counts], place[counts], adds[counts]
        leaves, leaf_of = np.unique(mine[row, column], return_inverse=True)
        paths = TreePaths.of(trees[t], stats.leaf_mass[begin:end])
        first = begin + (column >= stats.n_trees) * stats.n_leaves
        by_leaf = paths.bits_by_feature(leaves - first, n_features)
        bits[row, place] += (adds[:, None] * by_leaf[leaf_of]).astype(np.float32)
    return bits, shared
