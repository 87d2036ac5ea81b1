"""Why each row is like its neighbors: what ``explain_pair`` tells of one pair, of all at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leafkernel._validation import count_threads
from leafkernel.forests._trees import Tree
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._paths import TreePaths
from leafkernel.weighting import Weighting

Array = npt.NDArray[Any]

# Bits that are added up at once, so that they take little memory: rows × neighbors × features.
_BITS_AT_ONCE = 1 << 23
# Groups of trees that threads share. Their number is fixed, so that results do not depend on the
# number of threads.
_GROUPS = 8


class Reasons(NamedTuple):
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
    kernel = prox.kernel_
    leaf, query = kernel.leaf, kernel.query
    if X is not None:
        product = prox._product(X)
        leaf, query = product.rows.leaf, product.query
    groups = np.array_split(np.arange(leaf.shape[1]), _GROUPS)
    with ThreadPoolExecutor(count_threads(prox.n_jobs)) as threads:
        for begin in range(0, n, step):
            rows = slice(begin, min(begin + step, n))
            pairs = _Pairs(leaf[rows], query.rows(rows), neighbors[rows])
            bits = np.zeros((len(pairs.leaf), k, n_features), dtype=np.float32)
            for part in threads.map(partial(_bits, prox, trees, pairs, n_features), groups):
                bits += part[0]
                found.trees[rows] += part[1]
            total = bits.sum(axis=2, keepdims=True)
            shares = np.divide(bits, total, out=np.zeros_like(bits), where=total > 0)
            top = np.argsort(-shares, axis=2, kind="stable")[:, :, :m]
            best = np.take_along_axis(shares, top, axis=2)
            found.shares[rows] = best
            found.features[rows] = np.where(best > 0, top, -1)
    return found


class _Pairs(NamedTuple):
    """Samples with their leaves, shape (r, T), their weights, and their neighbors, shape (r, k)."""

    leaf: Array
    query: Weighting
    neighbors: npt.NDArray[np.int64]


def _bits(
    prox: ForestProximity, trees: Sequence[Tree], pairs: _Pairs, n_features: int, columns: Array
) -> tuple[Array, Array]:
    """Return the bits of each feature for each pair, (r, k, p), and the number of shared trees.

    Both count some of the trees, given as columns of the leaves.
    """
    kernel, stats = prox.kernel_, prox.kernel_.forest
    k, other = pairs.neighbors.shape[1], pairs.neighbors.ravel()
    bits = np.zeros((len(other), n_features), dtype=np.float32)
    shared = np.zeros(len(other), dtype=np.int64)
    mine, query = _by_column(pairs.leaf, pairs.query, columns)
    theirs, reference = _by_column(kernel.leaf, kernel.reference, columns)
    # A symmetrized kernel has each tree twice: once for either side.
    for c, column in enumerate(columns.tolist()):
        t = column % stats.n_trees
        begin, end = stats.leaf_offsets[t], stats.leaf_offsets[t + 1]
        same = np.flatnonzero(theirs[:, c][other] == np.repeat(mine[:, c], k))
        if column < stats.n_trees:
            shared[same] += 1
        adds = query.in_tree(mine, c)[same // k] * reference.in_tree(theirs, c)[other[same]]
        same, adds = same[adds > 0], adds[adds > 0]
        leaf = mine[same // k, c] - begin - (column >= stats.n_trees) * stats.n_leaves
        leaves = np.flatnonzero(np.bincount(leaf, minlength=end - begin))
        place = np.empty(end - begin, dtype=np.int64)
        place[leaves] = np.arange(len(leaves))
        paths = TreePaths.of(trees[t], stats.leaf_mass[begin:end])
        by_leaf = paths.bits_by_feature(leaves, n_features)
        bits[same] += (adds[:, None] * by_leaf[place[leaf]]).astype(np.float32)
    shape = pairs.neighbors.shape
    return bits.reshape(*shape, n_features), shared.reshape(shape)


def _by_column(leaf: Array, weights: Weighting, columns: Array) -> tuple[Array, Weighting]:
    """Return some columns of leaves and weights, each of which lies in one piece."""
    entry = weights.by_entry
    if entry is not None:
        weights = replace(weights, by_entry=np.asfortranarray(entry[:, columns]))
    return np.asfortranarray(leaf[:, columns]), weights
