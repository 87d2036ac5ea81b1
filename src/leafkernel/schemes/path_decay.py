"""The kernel of path lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel._validation import check_positive
from leafkernel.leaf_index import ForestStats
from leafkernel.schemes._paths import NodeWeights, PathScheme


@dataclass(frozen=True)
class PathDecay(PathScheme):
    r"""PBK: similarity decays with the number of edges between two leaves.

    .. math:: P(x, x') = \frac{1}{T} \sum_t e^{-\lambda\, d_t(x, x')}

    d_t is the number of edges on the way from the leaf of x to the leaf of x' in tree t, and 0 in
    the same leaf. Use it if shared leaves are too rare: for small forests, deep trees or few
    samples. It is symmetric and positive semidefinite, with ones on the diagonal. If λ is large, it
    approaches "uniform".

    It is the product of two maps. The coordinate of x at an ancestor a of its leaf ℓ is
    :math:`\sqrt{(1 - e^{-2\lambda})/T}\; e^{-\lambda (\mathrm{depth}(\ell) - \mathrm{depth}(a))}`,
    without the factor :math:`1 - e^{-2\lambda}` at the root.

    Needs the nodes of the trees.

    Parameters
    ----------
    decay : float, default=1.0
        λ: how fast the similarity decays with each edge. Greater than 0.

    References
    ----------
    C. Englund, A. Verikas, "A novel approach to estimate proximity in a random forest: an
    exploratory study", Expert Systems with Applications 39 (2012).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(20, random_state=0), "pbk").fit(X, y)
    >>> prox.kneighbors(n_neighbors=2)[1].shape
    (150, 2)
    """

    decay: float = 1.0

    name = "pbk"
    own_proximity = 1.0

    def node_weights(self, forest: ForestStats) -> NodeWeights:
        """Return the weights of the nodes."""
        decay = check_positive("decay", self.decay)
        is_root = forest.nodes.depth == 0
        weights = np.where(is_root, 1.0, -np.expm1(-2 * decay)) / forest.n_trees
        return NodeWeights(weights, float(np.exp(-decay)))
