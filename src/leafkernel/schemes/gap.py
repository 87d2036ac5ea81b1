"""RF-GAP, the geometry- and accuracy-preserving proximity."""

from __future__ import annotations

from dataclasses import dataclass

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import Weights, WeightScheme, ratio
from leafkernel.weighting import Weighting, locked


@dataclass(frozen=True)
class Gap(WeightScheme):
    r"""RF-GAP: the weights that the forest predicts with. The default scheme.

    .. math:: q_t(x) = \frac{o_t(x)}{S(x)}, \qquad
              w_t(x) = \frac{c_t(x)}{M_{\mathrm{in}}(\ell_t(x))}

    Rows sum to one. ``P @ y`` is the forest's out-of-bag prediction for the training samples, and
    its usual prediction for new samples. The proximity is not symmetric, and its diagonal is zero.
    If a sample is in bag in every tree, its row is zero. Needs in-bag weights.

    The prediction is exact if each leaf predicts the weighted mean of its training targets. This
    excludes ``criterion="absolute_error"`` (medians) and ``monotonic_cst`` (clipped means).

    References
    ----------
    J. S. Rhodes, A. Cutler, K. R. Moon, "Geometry- and accuracy-preserving random forest
    proximities", IEEE TPAMI 45 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0, oob_score=True).fit(X, y)
    >>> prox = ForestProximity(forest, "gap").fit(X, y)
    >>> bool(np.allclose(prox.weighted_sums(np.eye(3)[y]), forest.oob_decision_function_))
    True
    """

    name = "gap"
    needs = frozenset({"in_bag"})
    predicts = True
    own_proximity = 0.0

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights."""
        return Weighting(by_sample=ratio(1.0, samples.n_oob_trees[:, 0]), by_entry=samples.is_oob)

    def reference(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the reference weights."""
        by_leaf = forest.once(self.name, lambda: locked(ratio(1.0, forest.in_bag_mass)))
        return Weighting(by_leaf=by_leaf, by_entry=samples.in_bag)

    def adjusted_diagonal(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the mean reference weight of each sample over its in-bag trees, shape (n,)."""
        weight = self.reference(samples, forest).dense(samples.leaf).sum(axis=1)
        return ratio(weight, forest.n_trees - samples.n_oob_trees[:, 0])
