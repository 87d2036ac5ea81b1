"""Trees as plain arrays, and functions that work on the trees of any library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leafkernel.weighting import leaf_id_type

Array = npt.NDArray[Any]


class Tree(Protocol):
    """A tree in the array form of scikit-learn. A node with children -1 is a leaf.

    At other nodes, a value goes left if ``x <= threshold``, and a missing value if
    ``missing_go_to_left``. A threshold of NaN marks a categorical split. Leaves are numbered in the
    order of their nodes.
    """

    @property
    def children_left(self) -> Array: ...

    @property
    def children_right(self) -> Array: ...

    @property
    def feature(self) -> Array: ...

    @property
    def threshold(self) -> Array: ...

    @property
    def missing_go_to_left(self) -> Array: ...


@dataclass(frozen=True)
class TreeArrays:
    """A tree of a library with another format, converted to arrays.

    For each categorical split, ``categories`` contains a set of category codes and whether these go
    left. All other categories go to the other side.
    """

    children_left: Array
    children_right: Array
    feature: Array
    threshold: Array
    missing_go_to_left: Array
    categories: Mapping[int, tuple[frozenset[int], bool]] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        """Number of nodes, with the name that scikit-learn gives it."""
        return len(self.children_left)


def codes_in(bits: npt.NDArray[np.uint32]) -> frozenset[int]:
    """Return the positions of the set bits, with 32 bits per word, lowest bit first."""
    octets = np.ascontiguousarray(bits.astype("<u4")).view(np.uint8)
    return frozenset(np.flatnonzero(np.unpackbits(octets, bitorder="little")).tolist())


def count_leaves(trees: Sequence[Tree]) -> npt.NDArray[np.int64]:
    """Return the first leaf of each tree. Leaves are numbered in the order of their nodes."""
    sizes = [int((tree.children_left < 0).sum()) for tree in trees]
    return offsets_of(sizes)


def offsets_of(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the start of each of consecutive pieces, followed by the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def global_ids(within_tree: Array, leaf_offsets: Array) -> Array:
    """Return global leaf ids for leaves numbered from 0 in each tree, shape (n, T)."""
    kind = leaf_id_type(int(leaf_offsets[-1]))
    ids: Array = within_tree.astype(kind) + leaf_offsets[:-1].astype(kind)
    return ids


def parents(tree: Tree) -> Array:
    """Return the parent of each node, -1 for the root."""
    parent = np.full(len(tree.children_left), -1, dtype=np.int64)
    inner = np.flatnonzero(tree.children_left >= 0)
    parent[tree.children_left[inner]] = inner
    parent[tree.children_right[inner]] = inner
    return parent


def weighted_variances(values: Array, counts: Array, leaf_offsets: Array) -> Array:
    """Return the variance of each tree's values over the samples, shape (T,).

    Parameters
    ----------
    values : ndarray of shape (L,) or (L, n_outputs)
        Value of each leaf. Variances of several outputs are summed.
    counts : ndarray of shape (L,)
        Number of samples in each leaf.
    leaf_offsets : ndarray of shape (T + 1,)
        First leaf of each tree.
    """
    values = values.reshape(len(values), -1)
    weights = np.empty(len(leaf_offsets) - 1)
    for t, (begin, end) in enumerate(pairwise(leaf_offsets)):
        of_tree, often = values[begin:end], counts[begin:end]
        off = of_tree - np.average(of_tree, axis=0, weights=often)
        weights[t] = np.average((off**2).sum(axis=1), weights=often)
    return weights
