"""Kernels whose columns are not the leaves of the forest, in their order.

A *cell* is a set of leaves of one tree that a kernel treats as one leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leafkernel._state import FieldsState
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.weighting import leaf_id_type


@dataclass(frozen=True)
class Cells(FieldsState):
    """The cells of a kernel: every leaf belongs to one. They are numbered tree after tree.

    Attributes
    ----------
    of_leaf : ndarray of int of shape (L,)
        Cell of each leaf.
    offsets : ndarray of int64 of shape (T + 1,)
        First cell of each tree, followed by the number of cells.
    nodes : ndarray of int64 of shape (C,)
        Node of each cell, in ``forest.nodes``: the root of the subtree with its leaves.
    """

    of_leaf: Array
    offsets: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]

    @classmethod
    def below(cls, forest: ForestStats, is_cell: npt.NDArray[np.bool_]) -> Cells:
        """Return the cells whose nodes are marked. Each path to a leaf has exactly one of them."""
        nodes = forest.nodes
        marked = np.flatnonzero(is_cell)
        # Subtrees are contiguous, so the cell of a leaf is the last one that begins before it.
        of_node = np.cumsum(is_cell) - 1
        offsets = np.searchsorted(marked, nodes.offsets).astype(np.int64)
        kind = leaf_id_type(len(marked))
        # No sample reaches a leaf without a node. It belongs to the first cell of its tree.
        tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.leaf_offsets))
        of_leaf = np.where(nodes.of_leaf < 0, offsets[tree], of_node[nodes.of_leaf])
        return cls(of_leaf.astype(kind), offsets, marked)

    def samples(self, samples: Samples) -> Samples:
        """Return samples with their cells as leaves."""
        return replace(samples, leaf=self.of_leaf[samples.leaf])

    def stats(self, forest: ForestStats) -> ForestStats:
        """Return the statistics of a forest with the cells as leaves."""
        n_cells, in_bag, paths = len(self.nodes), forest.in_bag_masses, forest.features_on_paths
        mass = np.bincount(self.of_leaf, forest.leaf_mass, n_cells)
        return replace(
            forest,
            leaf_offsets=self.offsets,
            leaf_mass=np.rint(mass).astype(np.int64),
            in_bag_masses=None if in_bag is None else np.bincount(self.of_leaf, in_bag, n_cells),
            features_on_paths=None if paths is None else forest.nodes.features_on_paths(self.nodes),
        )
