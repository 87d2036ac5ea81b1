"""The base class of kernels that compare whole paths."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from leafkernel.cells import Cells
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.schemes._base import WeightScheme
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class NodeWeights:
    r"""Weights of the nodes of all trees. They define a kernel that compares whole paths.

    .. math:: P(x, x') = \sum_t \sum_{a \,\in\, \text{both paths}}
              m(a)\, r^{\,d(x, a)}\, r^{\,d(x', a)}

    The sum is over the nodes a that lie on the paths of both samples in tree t. d(x, a) is the
    number of edges between a and the leaf of x.

    Parameters
    ----------
    weights : ndarray of shape (N,)
        m(a) of each node, in the order of ``forest.nodes``. Nonnegative.
    decay : float, default=1.0
        r: factor for each edge between the node and the leaf, greater than 0 and at most 1.

    Examples
    --------
    Count shared splits, with less weight for splits far above the leaf:

    >>> import numpy as np
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.schemes import NodeWeights, PathScheme
    >>> class SharedSplits(PathScheme):
    ...     def node_weights(self, forest):
    ...         return NodeWeights(np.where(forest.nodes.is_leaf, 0.0, 1.0), decay=0.9)
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, random_state=0)
    >>> ForestProximity(forest, SharedSplits()).fit(X, y).kneighbors(n_neighbors=3)[1].shape
    (150, 3)
    """

    weights: Array
    decay: float = 1.0


class PathScheme(WeightScheme):
    r"""Base class for kernels that compare whole paths, not only leaves.

    .. math:: P(x, x') = \sum_t \sum_{a \,\in\, \text{both paths}}
              m(a)\, r^{\,d(x, a)}\, r^{\,d(x', a)}

    Subclass it, and return the weights m of the nodes and the decay r from :meth:`node_weights`. An
    example is in :class:`NodeWeights`. The kernel is symmetric and positive semidefinite. All
    samples share the roots, so P usually has no zeros. Neighbors, products and tasks never build P.
    A product takes one pass up and one pass down each tree.
    """

    needs = frozenset({"trees"})

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return weights of one. The nodes have the weights."""
        return Weighting()

    @abstractmethod
    def node_weights(self, forest: ForestStats) -> NodeWeights:
        """Return the weights of the nodes.

        Parameters
        ----------
        forest : ForestStats
            Statistics of the leaves and trees. ``forest.nodes`` has the nodes.

        Returns
        -------
        NodeWeights
            The weights.
        """

    def cells(self, forest: ForestStats) -> Cells:
        """Return each leaf as its own cell, depth first."""
        return Cells.below(forest, forest.nodes.is_leaf)
