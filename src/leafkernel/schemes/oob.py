"""The exact out-of-bag proximity."""

from __future__ import annotations

from dataclasses import dataclass

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class OutOfBag(WeightScheme):
    r"""Exact out-of-bag proximity: shared leaves among the trees that saw neither sample.

    .. math:: P(x, x') = \frac{1}{S(x, x')} \sum_t o_t(x)\, o_t(x')\, [\ell_t(x) = \ell_t(x')],
              \qquad S(x, x') = \sum_t o_t(x)\, o_t(x')

    Symmetric, with ones on the diagonal (zero for a sample that no tree left out of bag; R puts one
    there, as ``diagonal="one"`` does), but not positive semidefinite in general: the number of
    shared trees S(x, x') belongs to the pair. So there is no query map, reference map or operator;
    ``"oob_separable"`` has them and is nearly the same. Needs in-bag weights.

    References
    ----------
    A. Liaw, M. Wiener, "Classification and regression by randomForest", R News 2 (2002).
    """

    name = "oob"
    own_proximity = 1.0
    needs = frozenset({"in_bag"})
    divides_by_shared_oob = True

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return o; each sum is then divided by S(x, x')."""
        return Weighting(by_entry=samples.is_oob)
