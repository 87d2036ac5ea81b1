"""The kernel of random partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leafkernel._validation import check_choice, check_count
from leafkernel.cells import Cells
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._paths import NodeWeights, PathScheme
from leafkernel.tree_nodes import TreeNodes
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class RandomPartition(PathScheme):
    r"""RPK: the probability that two samples are together if each tree is cut at a random depth.

    .. math:: P(x, x') = \frac{1}{T} \sum_t \frac{1}{h_t + 1} \sum_{k=0}^{h_t}
              [\,a_{t,k}(x) = a_{t,k}(x')\,]

    h_t is the depth of tree t. a_{t,k}(x) is the node that x reaches if tree t is cut at depth k:
    the node at that depth on its path, or its leaf if the path is shorter. Use it to compare
    samples at all scales, from the first split to the leaves. It is symmetric and positive
    semidefinite, with ones on the diagonal.

    It is the product of two maps. The coordinate of x is :math:`\sqrt{1/(T (h_t + 1))}` at each
    ancestor of its leaf ℓ, and :math:`\sqrt{(h_t - \mathrm{depth}(\ell) + 1)/(T (h_t + 1))}` at ℓ.

    Needs the nodes of the trees.

    Parameters
    ----------
    depths : {"expected", "sampled"}, default="expected"
        "expected" is the formula above: the mean over all depths. "sampled" draws one depth for
        each tree, as in the paper. It is noisier, and it is a scheme of leaves: all engines can
        compute it.
    random_state : int, default=0
        Seed of the drawn depths.

    References
    ----------
    A. Davies, Z. Ghahramani, "The random forest kernel and other kernels for big data from random
    partitions", arXiv:1402.4293 (2014).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(20, random_state=0), "rpk").fit(X, y)
    >>> prox.proximity().nnz == 150 * 150  # all samples share the roots
    True
    """

    depths: Literal["expected", "sampled"] = "expected"
    random_state: int = 0

    name = "rpk"
    own_proximity = 1.0

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the weights of the drawn cells, or one if the nodes have the weights."""
        return Weighting(scale=1.0 if self._is_expected else 1 / np.sqrt(forest.n_trees))

    def node_weights(self, forest: ForestStats) -> NodeWeights | None:  # type: ignore[override]
        """Return the weights of the nodes, or None if depths are sampled."""
        if not self._is_expected:
            return None
        nodes = forest.nodes
        most = _heights(nodes)[nodes.tree]
        depths = np.where(nodes.is_leaf, most - nodes.depth + 1, 1)
        return NodeWeights(depths / (most + 1) / forest.n_trees)

    def cells(self, forest: ForestStats) -> Cells:
        """Return each leaf as its own cell, or the nodes at the drawn depth of each tree."""
        if self._is_expected:
            return super().cells(forest)
        nodes = forest.nodes
        seed = check_count("random_state", self.random_state, at_least=0)
        drawn = np.random.default_rng(seed).integers(0, _heights(nodes), endpoint=True)
        depth = drawn[nodes.tree]
        is_cell = (nodes.depth == depth) | (nodes.is_leaf & (nodes.depth < depth))
        return Cells.below(forest, is_cell)

    @property
    def _is_expected(self) -> bool:
        check_choice("depths", self.depths, ("expected", "sampled"))
        return self.depths == "expected"


def _heights(nodes: TreeNodes) -> np.ndarray:
    """Return the largest depth in each tree, shape (T,)."""
    return np.maximum.reduceat(nodes.depth, nodes.offsets[:-1])
