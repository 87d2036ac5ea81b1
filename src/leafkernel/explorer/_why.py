"""Explain why rows are similar to their neighbors: ``explain_pair`` for many pairs at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leafkernel.forests._trees import Tree
from leafkernel.incidence import WeighedRows
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._paths import TreePaths

Array = npt.NDArray[Any]

# Size of a block (rows × neighbors × features), which limits the memory.
_BITS_AT_ONCE = 1 << 23
# Number of groups of trees. It is fixed, so that results do not depend on the number of threads.
_SHARES = 8


class Reasons(NamedTuple):
    """The most important features for the similarity of rows to their neighbors."""

    # Features on the common paths, the largest share first; -1 if there are no more.
    features: npt.NDArray[np.int64]  # (n, k, m)
    # Share of each feature, as in ``explain_pair``.
    shares: npt.NDArray[np.float32]  # (n, k, m)
    trees: npt.NDArray[np.int64]  # (n, k), number of trees in which the two share a leaf


def explain_neighbors(
    prox: ForestProximity,
    trees: Sequence[Tree],
    neighbors: npt.NDArray[np.int64],
    n_features: int,
    *,
    most: int = 3,
    X: Any = None,
) -> Reasons:
    """Return the most important features for the similarity of samples to their neighbors.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    trees : sequence of Tree
        Its trees, as returned by ``read_trees``.
    neighbors : ndarray of int64 of shape (n, k)
        Neighbors of each sample among the training samples.
    n_features : int
        Number of features of the trees.
    most : int, default=3
        Largest number of features for a pair.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features), default=None
        The samples, treated as new data. By default, the training samples.

    Returns
    -------
    Reasons
        Features and their shares.
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
    groups = np.array_split(np.arange(len(inside.kernel.coordinates.tree)), _SHARES)
    with ThreadPoolExecutor(inside.n_threads) as threads:
        for begin in range(0, n, step):
            rows = slice(begin, min(begin + step, n))
            bits = np.zeros((rows.stop - begin, k, n_features), dtype=np.float32)
            pairs = query.rows(rows), neighbors[rows]
            for part in threads.map(partial(_bits, inside, trees, *pairs, n_features), groups):
                bits += part[0]
                found.trees[rows] += part[1]
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
    neighbors: npt.NDArray[np.int64],
    n_features: int,
    groups: npt.NDArray[np.int64],
) -> tuple[Array, Array]:
    """Return the bits of each feature for each pair, (r, k, p), and the number of shared trees.

    Both are for some of the trees, given as groups of columns.
    """
    kernel, stats = inside.kernel, inside.stats
    k = neighbors.shape[1]
    bits = np.zeros((neighbors.size, n_features), dtype=np.float32)
    shared = np.zeros(neighbors.size, dtype=np.int64)
    others, which = np.unique(neighbors, return_inverse=True)
    which = which.ravel()
    both = query.in_groups(groups), kernel.reference.rows(others).in_groups(groups)
    for group, ours, theirs in zip(groups.tolist(), *both, strict=True):
        t = int(kernel.coordinates.tree[group])
        begin, end = stats.leaf_offsets[t], stats.leaf_offsets[t + 1]
        same = np.flatnonzero(theirs.leaf[which] == np.repeat(ours.leaf, k))
        if group == kernel.coordinates.groups_of(t)[0]:  # a symmetrized kernel has each tree twice
            shared[same] += 1
        row = same // k
        adds = ours.weight[row] * theirs.weight[which[same]]
        counts = adds > 0
        if not counts.all():
            same, row, adds = same[counts], row[counts], adds[counts]
        leaf = ours.leaf[row]
        leaves = np.flatnonzero(np.bincount(leaf, minlength=end - begin))
        place = np.empty(end - begin, dtype=np.int64)
        place[leaves] = np.arange(len(leaves))
        paths = TreePaths.of(trees[t], stats.leaf_mass[begin:end])
        by_leaf = paths.bits_by_feature(leaves, n_features).astype(np.float32)
        bits[same] += adds.astype(np.float32)[:, None] * by_leaf[place[leaf]]
    return bits.reshape(*neighbors.shape, n_features), shared.reshape(neighbors.shape)
