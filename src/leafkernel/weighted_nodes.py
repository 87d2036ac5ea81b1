"""Weighted nodes of trees: the coordinates of kernels that compare whole paths.

The coordinate of a leaf ℓ at an ancestor a (ℓ itself included) is √m(a) · r^(edges between them),
with the weight m and the factor r of :class:`leafkernel.schemes.NodeWeights`. The inner product of
two leaves of a tree sums over their common ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import leafkernel._native as core
from leafkernel._lazy import lazy
from leafkernel._state import FieldsState
from leafkernel.incidence import Coordinates, Incidence, WeighedRows
from leafkernel.schemes import NodeWeights, TreeNodes, WeightScheme
from leafkernel.weighting import Weighting, leaf_id_type, locked

Array = npt.NDArray[Any]

# Number of rows to compute at a time, to avoid an (n, T) array of float64.
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class WeightedNodes(FieldsState):
    """The nodes of trees with their weights.

    Attributes
    ----------
    trees : TreeNodes
        The nodes. The columns of the kernel are the leaves in depth-first order.
    weights : ndarray of float64 of shape (N,)
        Weight of each node.
    edge_factor : float
        Factor for each edge.
    """

    trees: TreeNodes
    weights: npt.NDArray[np.float64]
    edge_factor: float

    @classmethod
    def of(cls, scheme: WeightScheme, given: NodeWeights, nodes: TreeNodes) -> WeightedNodes:
        """Check the node weights of a scheme."""
        where = f"node_weights() of the scheme {scheme.name!r}"
        if not isinstance(given, NodeWeights):
            raise TypeError(
                f"{where} must return NodeWeights; got {type(given).__name__}. Use "
                "NodeWeights(weights)."
            )
        weights = np.array(given.weights, dtype=np.float64)
        if weights.shape != (nodes.n_nodes,):
            raise ValueError(
                f"{where} must return one weight for each of the {nodes.n_nodes} nodes; got an "
                f"array of shape {weights.shape}."
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"{where} must return finite, nonnegative weights.")
        factor: Any = given.edge_factor
        if not isinstance(factor, (float, int)) or not 0 <= factor <= 1:
            raise ValueError(f"{where} must return an edge_factor from 0 to 1; got {factor!r}.")
        return cls(nodes, locked(weights), float(factor))

    @lazy
    def native(self) -> core.WeightedNodes:
        """Return the nodes for the compiled core, which checks them once."""
        return core.WeightedNodes(
            self.trees.offsets, self.trees.parent, self.weights, self.edge_factor
        )

    @lazy
    def node_of_column(self) -> npt.NDArray[np.int64]:
        """Return the node of each leaf, depth first, shape (L,)."""
        return np.flatnonzero(self.trees.is_leaf)

    def dots(self, one: WeighedRows, other: WeighedRows) -> npt.NDArray[np.float64]:
        """Return the inner product of each row with the same row of ``other``, shape (n,).

        Both have the same leaves.
        """
        found = np.empty(one.n_rows)
        for begin in range(0, one.n_rows, _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            norms = self.native.norms[one.incidence.columns[rows]]
            found[rows] = (norms * one.dense(rows) * other.dense(rows)).sum(axis=1)
        return found

    def on_nodes(self, rows: WeighedRows) -> WeighedRows:
        """Return rows with one column for each node on their paths."""
        at: Array = self.node_of_column[rows.incidence.columns]
        lengths = self.trees.depth[at].astype(np.int64) + 1
        # Ancestors come before descendants, so each path is filled from its end.
        place = np.cumsum(lengths.ravel()) - 1
        n_entries = int(place[-1]) + 1 if len(place) else 0
        columns = np.empty(n_entries, leaf_id_type(self.trees.n_nodes))
        weights = np.empty(n_entries)
        at, factor = at.ravel(), rows.dense().ravel()
        while len(at):
            columns[place], weights[place] = at, factor * np.sqrt(self.weights[at])
            at = self.trees.parent[at]
            below_root = at >= 0
            at, place = at[below_root], place[below_root] - 1
            factor = self.edge_factor * factor[below_root]
        offsets = np.concatenate([[0], np.cumsum(lengths.sum(axis=1, dtype=np.int64))])
        coordinates = Coordinates.of_leaves(self.trees.offsets)
        return WeighedRows(
            Incidence.of(locked(columns), coordinates, offsets), Weighting(by_entry=locked(weights))
        )


def find_nodes(scheme: WeightScheme, forest: Any) -> WeightedNodes | None:
    """Return the nodes of a scheme that compares whole paths, or None for schemes of leaves."""
    given = scheme.node_weights(forest)
    return None if given is None else WeightedNodes.of(scheme, given, forest.nodes)
