"""Breiman's proximity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class Uniform(WeightScheme):
    r"""Breiman's proximity: the fraction of trees in which two samples share a leaf.

    .. math:: q_t(x) = w_t(x) = \frac{1}{\sqrt{T}}

    Symmetric and positive semidefinite, with ones on the diagonal. Needs only leaves.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> leaves = [[1, 4], [1, 5], [2, 5]]
    >>> prox = ForestProximity.from_leaves(leaves, weight_scheme="uniform", dtype="float64")
    >>> prox.proximity().toarray().round(3)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """

    name = "uniform"
    own_proximity = 1.0

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are also the reference weights."""
        return Weighting(scale=1.0 / np.sqrt(forest.n_trees))
