"""Why each row is like its neighbors: what ``explain_pair`` tells of one pair, of all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.forests._trees import Tree
from leafkernel.incidence import WeighedRows
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._paths import TreePaths

Array = npt.NDArray[Any]

# Bits that are added up at once, so that they take little memory: rows × neighbors × features.
_BITS_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class Reasons:
    """The features that decide most that rows are like their neighbors.

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

    def followed_by(self, other: Reasons) -> Reasons:
        """Return these reasons and those of other samples after them."""
        return Reasons(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.shares, other.shares]),
            np.concatenate([self.trees, other.trees]),
        )


def explain_neighbors(
    prox: ForestProximity,
    trees: Sequence[Tree],
    neighbors: npt.NDArray[np.int64],
    n_features: int,
    *,
    most: int = 3,
    X: Any = None,
) -> Reasons:
    """Return the features that decide most that samples are like these neighbors.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    trees : sequence of Tree
        Its trees, as ``read_trees`` gives them.
    neighbors : ndarray of int64 of shape (n, k)
        Training samples for each sample.
    n_features : int
        Number of features that the trees split on.
    most : int, default=3
        How many features to name for a pair.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features), default=None
        The samples, taken as new. By default they are the training samples.

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
    inside = Inside.of(prox)
    query = inside.kernel.query if X is None else inside.product(X).query
    for begin in range(0, n, step):
        rows = slice(begin, min(begin + step, n))
        bits, found.trees[rows] = _bits(
            inside, trees, query.rows(rows), neighbors[rows], n_features
        )
        total = bits.sum(axis=2, keepdims=True)
        shares = np.divide(bits, total, out=np.zeros_like(bits), where=total > 0)
        top = np.argsort(-shares, axis=2, kind="stable")[:, :, :m]
        best = np.take_along_axis(shares, top, axis=2)
        found.shares[rows] = best
        found.features[rows] = np.where(best > 0, top, -1)
    return found


def _bits(
    inside: Inside,
    trees: Sequence[Tree],
    query: WeighedRows,
    neighbors: Array,
    n_features: int,
) -> tuple[Array, Array]:
    """Return the bits of each feature for each pair, (r, k, p), and the number of shared trees."""
    kernel, stats = inside.kernel, inside.stats
    bits = np.zeros((*neighbors.shape, n_features), dtype=np.float32)
    shared = np.zeros(neighbors.shape, dtype=np.int64)
    others, which = np.unique(neighbors, return_inverse=True)
    which = which.reshape(neighbors.shape)
    reference = kernel.reference.rows(others)
    for group, t in enumerate(kernel.coordinates.tree):
        ours, theirs = query.in_group(group), reference.in_group(group)
        row, place = np.nonzero(theirs.leaf[which] == ours.leaf[:, None])
        if group == kernel.coordinates.groups_of(t)[0]:  # each tree once
            shared[row, place] += 1
        adds = ours.weight[row] * theirs.weight[which[row, place]]
        counts = adds > 0
        if not counts.any():
            continue
        row, place, adds = row[counts], place[counts], adds[counts]
        leaves, leaf_of = np.unique(ours.leaf[row], return_inverse=True)
        paths = TreePaths.of(trees[t], stats.leaf_mass[slice(*stats.leaf_offsets[t : t + 2])])
        by_leaf = paths.bits_by_feature(leaves, n_features)
        bits[row, place] += (adds[:, None] * by_leaf[leaf_of]).astype(np.float32)
    return bits, shared
