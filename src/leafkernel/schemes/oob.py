"""The exact out-of-bag proximity."""

from __future__ import annotations

from dataclasses import dataclass

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class OutOfBag(WeightScheme):
    r"""Fraction of shared leaves among the trees in which both samples are out-of-bag.

    .. math:: P(x, x') = \frac{1}{S(x, x')} \sum_t o_t(x)\, o_t(x')\, [\ell_t(x) = \ell_t(x')],
              \qquad S(x, x') = \sum_t o_t(x)\, o_t(x')

    Use it to reproduce ``oob.prox=TRUE`` of R's randomForest. It is symmetric, with ones on the
    diagonal. If a sample is in bag in every tree, its diagonal entry is zero; R uses one, as does
    ``diagonal="one"``. The proximity is not positive semidefinite in general.

    The denominator S(x, x') belongs to the pair, so there is no query map, reference map or
    operator. ``"oob_separable"`` has them and is nearly the same. Needs in-bag weights.

    References
    ----------
    A. Liaw, M. Wiener, "Classification and regression by randomForest", R News 2 (2002).

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> leaves, in_bag = [[1, 4], [1, 5], [2, 5]], [[0, 1], [0, 0], [1, 0]]
    >>> prox = ForestProximity.from_leaves(
    ...     leaves, in_bag=in_bag, weight_scheme="oob", dtype="float64"
    ... )
    >>> prox.proximity().toarray().round(3)
    array([[1., 1., 0.],
           [1., 1., 1.],
           [0., 1., 1.]])
    """

    name = "oob"
    own_proximity = 1.0
    needs = frozenset({"in_bag"})
    divides_by_shared_oob = True

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the out-of-bag flags o. The engine divides each sum by S(x, x')."""
        return Weighting(by_entry=samples.is_oob)
