"""The kernel of random forests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme, ratio
from leafkernel.weighting import Weighting, locked


@dataclass(frozen=True)
class Kerf(WeightScheme):
    r"""KeRF: a collision counts less in a leaf that holds many samples.

    .. math:: q_t(x) = w_t(x) = \frac{1}{\sqrt{T\, M(\ell_t(x))}}

    Symmetric and positive semidefinite. On the training samples rows sum to one, so ``P @ y`` is
    the average over trees of the mean of y in the leaf. Needs nothing but leaves.

    References
    ----------
    E. Scornet, "Random forests and kernel methods", IEEE Trans. Inf. Theory 62 (2016).
    """

    name = "kerf"

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return q = w."""
        by_leaf = forest.once(
            self.name, lambda: locked(np.sqrt(ratio(1.0, forest.n_trees * forest.leaf_mass)))
        )
        return Weighting(by_leaf=by_leaf)
