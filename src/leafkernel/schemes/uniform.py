"""Breiman's proximity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class Uniform(WeightScheme):
    r"""Breiman's original proximity: the share of trees in which two samples share a leaf.

    .. math:: q_t(x) = w_t(x) = \frac{1}{\sqrt{T}}

    Symmetric and positive semidefinite, with ones on the diagonal. Needs nothing but leaves.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45 (2001).
    """

    name = "uniform"
    own_proximity = 1.0

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return q = w."""
        return Weighting(scale=1.0 / np.sqrt(forest.n_trees))
