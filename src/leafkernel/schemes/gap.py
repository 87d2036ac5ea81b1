"""RF-GAP."""

from __future__ import annotations

from dataclasses import dataclass

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import Weights, WeightScheme, ratio
from leafkernel.weighting import Weighting, locked


@dataclass(frozen=True)
class Gap(WeightScheme):
    r"""Geometry- and accuracy-preserving proximity: the forest's own prediction, as weights.

    .. math:: q_t(x) = \frac{o_t(x)}{S(x)}, \qquad
              w_t(x) = \frac{c_t(x)}{M_{\mathrm{in}}(\ell_t(x))}

    Rows sum to one, and ``P @ y`` is the forest's out-of-bag prediction; for unseen samples, its
    prediction. Not symmetric; zero on the diagonal. A row that no tree left out of bag is zero.
    Needs in-bag weights.

    The identity holds where a leaf predicts the weighted mean of its training targets: not for
    ``criterion="absolute_error"`` (medians) and not under ``monotonic_cst`` (clipped means).

    References
    ----------
    J. S. Rhodes, A. Cutler, K. R. Moon, "Geometry- and accuracy-preserving random forest
    proximities", IEEE TPAMI 45 (2023).
    """

    name = "gap"
    needs = frozenset({"in_bag"})
    predicts = True
    own_proximity = 0.0

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return q."""
        return Weighting(by_sample=ratio(1.0, samples.n_oob_trees[:, 0]), by_entry=samples.is_oob)

    def reference(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return w."""
        by_leaf = forest.once(self.name, lambda: locked(ratio(1.0, forest.in_bag_mass)))
        return Weighting(by_leaf=by_leaf, by_entry=samples.in_bag)

    def adjusted_diagonal(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the mean of w over the trees that drew each sample, shape (n,)."""
        weight = self.reference(samples, forest).dense(samples.leaf).sum(axis=1)
        return ratio(weight, forest.n_trees - samples.n_oob_trees[:, 0])
