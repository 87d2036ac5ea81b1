"""The paths from the root to the leaves of a tree, and the information of each split in bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.forests import Unavailable
from leafkernel.forests._base import numbered_names
from leafkernel.forests._trees import Tree, parents
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


def read_trees(prox: ForestProximity, what: str) -> tuple[Sequence[Tree], Array]:
    """Return the trees of a fitted proximity and the names of their features."""
    known = getattr(prox, "feature_names_in_", None)
    names = numbered_names(prox.n_features_in_) if known is None else np.asarray(known, object)
    inside = Inside.of(prox)
    if inside.kernel.cells is not None:
        raise ValueError(
            f"{what} explains shared leaves, but weight_scheme={inside.scheme.name!r} does not "
            "compare leaves. Use another scheme, for example prox.reweigh('uniform')."
        )
    forest = inside.forest
    try:
        return forest.trees(), forest.feature_names(names)
    except Unavailable as error:
        raise ValueError(f"{what} needs the splits of the trees, but {error}.") from error


@dataclass(frozen=True)
class TreePaths:
    r"""The paths to the leaves of one tree.

    A split with :math:`n` training samples at its node and :math:`n'` in the child on the path has
    :math:`\log_2(n / n')` bits. The bits of a path add up to
    :math:`\log_2(n_{\text{root}} / n_{\text{leaf}})`.

    Attributes
    ----------
    tree : Tree
        Its splits.
    parent : ndarray of int of shape (n_nodes,)
        The parent of each node, -1 for the root.
    leaf_nodes : ndarray of int of shape (n_leaves,)
        The node of each leaf.
    counts : ndarray of float64 of shape (n_nodes,)
        Number of training samples at each node; 1/2 for empty nodes, so that bits are finite.
    bits : ndarray of float64 of shape (n_nodes,)
        Bits of the split above each node; 0 for the root.
    """

    tree: Tree
    parent: Array
    leaf_nodes: Array
    counts: Doubles
    bits: Doubles

    @classmethod
    def of(cls, tree: Tree, leaf_mass: Array) -> TreePaths:
        """Count the training samples at each node from the counts of the leaves."""
        left, right = tree.children_left, tree.children_right
        leaf_nodes = np.flatnonzero(left < 0)
        counts: Doubles = np.zeros(len(left))
        counts[leaf_nodes] = leaf_mass
        for nodes in reversed(_levels(left, right)):
            counts[nodes] = counts[left[nodes]] + counts[right[nodes]]
        counts = np.maximum(counts, 0.5)
        parent = parents(tree)
        bits: Doubles = np.zeros(len(left))
        below = parent >= 0
        bits[below] = np.log2(counts[parent[below]] / counts[below])
        return cls(tree, parent, leaf_nodes, counts, bits)

    def bits_by_feature(self, leaves: Array, n_features: int) -> Doubles:
        """Return the bits of each feature on the paths to some leaves, shape (k, p)."""
        feature = self.tree.feature
        table: Doubles = np.zeros((len(leaves), n_features))
        nodes, path = self.leaf_nodes[leaves], np.arange(len(leaves))
        while True:  # move up from all leaves together, one level at a time
            above = self.parent[nodes]
            climbing = above >= 0
            if not climbing.any():
                return table
            nodes, above, path = nodes[climbing], above[climbing], path[climbing]
            table[path, feature[above]] += self.bits[nodes]
            nodes = above

    def explained(self, sums: Doubles, squares: Doubles, n_features: int) -> Doubles:
        r"""Return the share of a target's variance that each split explains beyond chance.

        The best split of n samples on p features of pure noise explains about
        :math:`\ln(n p) / n` of the variance. This share is subtracted.

        Parameters
        ----------
        sums : ndarray of float64 of shape (n_leaves, c)
            Sum of the targets of the training samples in each leaf.
        squares : ndarray of float64 of shape (n_leaves,)
            Sum of their squares.
        n_features : int
            Number of features, p.
        """
        left, right = self.tree.children_left, self.tree.children_right
        total: Doubles = np.zeros((len(left), sums.shape[1] + 1))
        total[self.leaf_nodes] = np.column_stack([sums, squares])
        levels = _levels(left, right)
        for nodes in reversed(levels):
            total[nodes] = total[left[nodes]] + total[right[nodes]]
        means = total / self.counts[:, None]
        variance = np.maximum(means[:, -1] - (means[:, :-1] ** 2).sum(axis=1), 0.0)
        inside = variance * self.counts
        share: Doubles = np.zeros(len(left))
        inner = np.concatenate(levels)
        below = inside[left[inner]] + inside[right[inner]]
        counts = np.maximum(self.counts[inner], 2)
        by_chance = variance[inner] * np.log(counts * n_features) / counts
        gained = (inside[inner] - below) / self.counts[inner]
        share[inner] = np.maximum(gained - by_chance, 0.0)
        return share / variance[0] if variance[0] > 0 else share

    def weighted(self, share: Doubles) -> TreePaths:
        """Return paths in which the bits of each split are multiplied by a share."""
        below = self.parent >= 0
        bits = np.where(below, self.bits * share[self.parent], 0.0)
        return replace(self, bits=bits)

    def climb(self, leaf: int) -> Iterator[tuple[int, int]]:
        """Yield each node from a leaf up to the child of the root, with its parent."""
        node = int(self.leaf_nodes[leaf])
        while (above := int(self.parent[node])) >= 0:
            yield node, above
            node = above

    def parting(self, first: int, second: int) -> tuple[int, int]:
        """Return the node at which the paths to two leaves separate, and its depth."""
        on_path = [above for _, above in self.climb(first)]
        depth = {node: len(on_path) - 1 - k for k, node in enumerate(on_path)}
        node = next(above for _, above in self.climb(second) if above in depth)
        return node, depth[node]


@dataclass(frozen=True)
class Box:
    """The values of each feature for which a sample reaches all leaves of a set.

    Attributes
    ----------
    low, high : ndarray of float64 of shape (p,)
        The values are above ``low`` and up to ``high``; infinite if unbounded.
    missing : ndarray of bool of shape (p,)
        Whether a missing value reaches the leaves too.
    by_category : ndarray of bool of shape (p,)
        Whether a split is categorical, so that an interval cannot describe the values.
    among, beyond : dict of int to set of int
        Codes of the allowed categories, and of the excluded categories.
    """

    low: Doubles
    high: Doubles
    missing: npt.NDArray[np.bool_]
    by_category: npt.NDArray[np.bool_]
    among: dict[int, frozenset[int]]
    beyond: dict[int, frozenset[int]]

    @classmethod
    def unbounded(cls, n_features: int) -> Box:
        """Return the box of all values."""
        return cls(
            np.full(n_features, -np.inf),
            np.full(n_features, np.inf),
            np.ones(n_features, dtype=bool),
            np.zeros(n_features, dtype=bool),
            {},
            {},
        )

    def narrow(self, paths: TreePaths, leaf: int) -> None:
        """Keep only the values that reach a leaf."""
        tree = paths.tree
        left, feature, threshold = tree.children_left, tree.feature, tree.threshold
        missing_left = tree.missing_go_to_left
        for node, above in paths.climb(leaf):
            f, value, to_left = feature[above], threshold[above], left[above] == node
            self.missing[f] &= bool(missing_left[above]) == to_left
            if np.isnan(value):
                self.by_category[f] = True
                # Trees of some libraries do not have this attribute.
                known = getattr(tree, "categories", {}).get(above)
                if known is not None:
                    self._keep(int(f), known[0], is_listed=known[1] == to_left)
            elif to_left:
                self.high[f] = min(self.high[f], value)
            else:
                self.low[f] = max(self.low[f], value)

    def _keep(self, feature: int, codes: frozenset[int], *, is_listed: bool) -> None:
        """Keep only these categories, or all others."""
        if is_listed:
            self.among[feature] = self.among.get(feature, codes) & codes
        else:
            self.beyond[feature] = self.beyond.get(feature, frozenset()) | codes


def _levels(left: Array, right: Array) -> list[Array]:
    """Return the inner nodes of each depth, from the root down."""
    nodes, levels = np.zeros(1, dtype=np.int64), []
    while len(nodes):
        inner = nodes[left[nodes] >= 0]
        levels.append(inner)
        nodes = np.concatenate([left[inner], right[inner]])
    return levels
