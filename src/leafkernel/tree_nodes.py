"""The nodes of all trees of a forest, in an order in which every subtree is contiguous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leafkernel._lazy import lazy
from leafkernel._state import FieldsState

Array = npt.NDArray[Any]


class Children(Protocol):
    """A tree as arrays. A node with children -1 is a leaf, and node 0 is the root."""

    @property
    def children_left(self) -> Array:
        """Left child of each node."""

    @property
    def children_right(self) -> Array:
        """Right child of each node."""

    @property
    def feature(self) -> Array:
        """Feature that each node splits on."""


@dataclass(frozen=True)
class TreeNodes(FieldsState):
    """The nodes of all trees, depth first: a node is followed by its left and right subtrees.

    Nodes that no path from the root reaches are left out.

    Attributes
    ----------
    offsets : ndarray of int64 of shape (T + 1,)
        First node of each tree, followed by the number of nodes, N.
    parent : ndarray of int32 of shape (N,)
        Parent of each node; -1 for roots.
    depth : ndarray of int32 of shape (N,)
        Number of edges between each node and its root.
    feature : ndarray of int32 of shape (N,)
        Feature that each node splits on; -1 for leaves, and if it is unknown.
    of_leaf : ndarray of int64 of shape (L,)
        Node of each leaf of the forest; -1 for leaves that no path reaches.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leafkernel.schemes import TreeNodes
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True)).tree_
    >>> TreeNodes.of([tree]).depth.tolist()
    [0, 1, 1, 2, 2]
    """

    offsets: npt.NDArray[np.int64]
    parent: Array
    depth: Array
    feature: Array
    of_leaf: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name).view()
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    @classmethod
    def of(cls, trees: Sequence[Children]) -> TreeNodes:
        """Return the nodes of trees whose leaves are numbered in the order of their nodes."""
        offsets = [0]
        found: list[tuple[Array, ...]] = []
        for tree in trees:
            parent, depth, feature, of_leaf = _depth_first(tree)
            first = offsets[-1]
            offsets.append(first + len(parent))
            if offsets[-1] > np.iinfo(np.int32).max:
                raise ValueError("The forest has more than 2,147,483,647 nodes.")
            parent[1:] += first
            of_leaf[of_leaf >= 0] += first
            found.append((parent, depth, feature, of_leaf))
        arrays = [np.concatenate(of_trees) for of_trees in zip(*found, strict=True)]
        return cls(np.array(offsets, dtype=np.int64), *arrays)

    @property
    def n_nodes(self) -> int:
        """N: number of nodes over all trees."""
        return len(self.parent)

    @property
    def n_trees(self) -> int:
        """T: number of trees."""
        return len(self.offsets) - 1

    @lazy
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Return whether each node is a leaf, shape (N,)."""
        leaf = np.zeros(self.n_nodes, dtype=bool)
        leaf[self.of_leaf[self.of_leaf >= 0]] = True
        return leaf

    @lazy
    def tree(self) -> npt.NDArray[np.int64]:
        """Return the tree of each node, shape (N,)."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.offsets))

    @lazy
    def levels(self) -> list[npt.NDArray[np.int64]]:
        """Return the nodes at each depth, ascending."""
        order = np.argsort(self.depth, kind="stable")
        counts = np.bincount(self.depth)
        return np.split(order, np.cumsum(counts)[:-1])

    def sums(self, of_leaf: Array) -> Array:
        """Return the sum of the leaf values below each node, shape (N,), given those of leaves."""
        reached = self.of_leaf >= 0
        total = np.zeros(self.n_nodes, dtype=of_leaf.dtype)
        total[self.of_leaf[reached]] = of_leaf[reached]
        for nodes in self.levels[:0:-1]:
            np.add.at(total, self.parent[nodes], total[nodes])
        return total

    def features_on_paths(self, nodes: Array) -> tuple[Array, Array]:
        """Return (offsets, features): the distinct features above each of some nodes, ascending."""
        whose, features = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        climber, at = np.arange(len(nodes)), np.where(nodes < 0, -1, self.parent[nodes])
        while len(climber):
            climber, at = climber[at >= 0], at[at >= 0]
            whose.append(climber)
            features.append(self.feature[at].astype(np.int64))
            at = self.parent[at]
        pairs = np.unique(np.stack([np.concatenate(whose), np.concatenate(features)], 1), axis=0)
        counts = np.bincount(pairs[:, 0], minlength=len(nodes))
        return np.concatenate([[0], np.cumsum(counts)]), pairs[:, 1]


def _depth_first(tree: Children) -> tuple[Array, Array, Array, Array]:
    """Return parent, depth and feature of each node in depth-first order, and node of each leaf."""
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    n_nodes = len(left)
    levels, n_found = [np.zeros(1, dtype=np.int64)], 1
    while True:
        nodes = levels[-1]
        inner = nodes[left[nodes] >= 0]
        if not len(inner):
            break
        below = np.concatenate([left[inner], right[inner]]).astype(np.int64)
        n_found += len(below)
        if n_found > n_nodes or below.min() < 0 or below.max() >= n_nodes:
            raise ValueError("A node has invalid children. The model is damaged. Load it again.")
        levels.append(below)
    size = np.ones(n_nodes, dtype=np.int64)
    for nodes in reversed(levels):
        inner = nodes[left[nodes] >= 0]
        size[inner] += size[left[inner]] + size[right[inner]]
    place = np.full(n_nodes, -1, dtype=np.int64)
    place[0] = 0
    parent, depth = np.full(size[0], -1, dtype=np.int32), np.zeros(size[0], dtype=np.int32)
    for level, nodes in enumerate(levels):
        inner = nodes[left[nodes] >= 0]
        place[left[inner]] = place[inner] + 1
        place[right[inner]] = place[inner] + 1 + size[left[inner]]
        for below in (place[left[inner]], place[right[inner]]):
            parent[below], depth[below] = place[inner], level + 1
    feature = np.full(size[0], -1, dtype=np.int32)
    split = np.flatnonzero((place >= 0) & (left >= 0))
    feature[place[split]] = np.asarray(tree.feature)[split]
    return parent, depth, feature, place[left < 0]
