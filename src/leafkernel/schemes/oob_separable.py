"""The separable out-of-bag proximity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme, ratio
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class SeparableOutOfBag(WeightScheme):
    r"""Out-of-bag proximity with S(x, x') replaced by S(x) S(x') / T, so that it is a kernel.

    .. math:: q_t(x) = w_t(x) = \frac{\sqrt{T}\, o_t(x)}{S(x)}

    Symmetric and positive semidefinite. Its ratio to the exact ``"oob"`` tends to 1 as trees and
    samples grow; single entries can exceed 1. Needs in-bag weights.

    References
    ----------
    A. Aumon, G. Wolf, K. R. Moon, J. S. Rhodes, "Revisiting forest proximities via sparse
    leaf-incidence kernels" (2026).
    """

    name = "oob_separable"
    needs = frozenset({"in_bag"})

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return q = w."""
        by_sample = ratio(np.sqrt(forest.n_trees), samples.n_oob_trees[:, 0])
        return Weighting(by_sample=by_sample, by_entry=samples.is_oob)
