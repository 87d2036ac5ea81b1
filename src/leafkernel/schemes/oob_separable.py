"""The separable out-of-bag proximity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme, ratio
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class SeparableOutOfBag(WeightScheme):
    r"""Out-of-bag proximity as a kernel: S(x, x') is replaced by S(x) S(x') / T.

    .. math:: q_t(x) = w_t(x) = \frac{\sqrt{T}\, o_t(x)}{S(x)}

    Use it instead of ``"oob"`` if you need an operator or leaf coordinates. It is symmetric and
    positive semidefinite. Its ratio to ``"oob"`` tends to 1 as the numbers of trees and samples
    grow. Single entries can exceed 1. Needs in-bag weights.

    References
    ----------
    A. Aumon, G. Wolf, K. R. Moon, J. S. Rhodes, "Revisiting forest proximities via sparse
    leaf-incidence kernels" (2026).

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> leaves, in_bag = [[1, 4], [1, 5], [2, 5]], [[0, 1], [0, 0], [1, 0]]
    >>> prox = ForestProximity.from_leaves(
    ...     leaves, in_bag=in_bag, weight_scheme="oob_separable", dtype="float64"
    ... )
    >>> prox.proximity().toarray().round(3)
    array([[2., 1., 0.],
           [1., 1., 1.],
           [0., 1., 2.]])
    """

    name = "oob_separable"
    needs = frozenset({"in_bag"})

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are also the reference weights."""
        by_sample = ratio(np.sqrt(forest.n_trees), samples.n_oob_trees[:, 0])
        return Weighting(by_sample=by_sample, by_entry=samples.is_oob)
