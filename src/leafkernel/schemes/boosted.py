"""The proximity of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from leafkernel._validation import check_tree_weights
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme, ratio
from leafkernel.weighting import Weighting


@dataclass(frozen=True, eq=False)
class Boosted(WeightScheme):
    r"""Shared leaves, weighted by the importance of each tree. Use it for boosted trees.

    .. math:: q_t(x) = w_t(x) = \sqrt{\frac{v_t}{\sum_s v_s}}

    By default, v_t is the variance over the training samples of the values that tree t adds to the
    prediction. The first trees of a boosted ensemble then count most. The proximity is symmetric
    and positive semidefinite, with ones on the diagonal. Needs tree weights.

    Parameters
    ----------
    tree_weights : array-like of shape (T,), default=None
        Nonnegative weight of each tree. By default, the weights of the ensemble.

    References
    ----------
    S. Tan, M. Soloviev, G. Hooker, M. T. Wells, "Tree space prototypes: another look at making
    tree ensembles interpretable", FODS (2020).

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.schemes import Boosted
    >>> leaves = [[1, 4], [1, 5], [2, 5]]
    >>> prox = ForestProximity.from_leaves(
    ...     leaves, weight_scheme=Boosted(tree_weights=[3, 1]), dtype="float64"
    ... )
    >>> prox.proximity().toarray().round(3)
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.25],
           [0.  , 0.25, 1.  ]])
    """

    tree_weights: npt.ArrayLike | None = None

    name = "boosted"
    own_proximity = 1.0

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Tree weights, unless they were passed to the constructor."""
        return frozenset({"tree_weights"} if self.tree_weights is None else ())

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are also the reference weights."""
        if self.tree_weights is None:
            by_leaf = forest.once(self.name, lambda: _by_leaf(forest.tree_weights, forest))
        else:
            weights = check_tree_weights(self.tree_weights, forest.n_trees)
            digest = sha256(weights.tobytes()).hexdigest()
            by_leaf = forest.once(f"{self.name} {digest}", lambda: _by_leaf(weights, forest))
        return Weighting(by_leaf=by_leaf)


def _by_leaf(weights: npt.NDArray[np.float64], forest: ForestStats) -> npt.NDArray[np.float64]:
    # Scale by a power of two, which is exact. Otherwise the sum of huge weights could overflow.
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])
    share = np.sqrt(ratio(weights, weights.sum()))
    return np.repeat(share, np.diff(forest.leaf_offsets))
