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
    r"""Shared leaves, each tree counted by its weight in the ensemble.

    .. math:: q_t(x) = w_t(x) = \sqrt{\frac{w_t}{\sum_s w_s}}

    By default w_t is the variance over the training samples of what tree t adds to the model, so
    that the first trees of a boosted ensemble, which do most of the work, count most. Symmetric
    and positive semidefinite, with ones on the diagonal. Needs tree weights.

    Parameters
    ----------
    tree_weights : array-like of shape (T,), default=None
        Nonnegative weight of each tree, for any forest; by default the ensemble's own.

    References
    ----------
    S. Tan, M. Soloviev, G. Hooker, M. T. Wells, "Tree space prototypes: another look at making
    tree ensembles interpretable", FODS (2020).
    """

    tree_weights: npt.ArrayLike | None = None

    name = "boosted"
    own_proximity = 1.0

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Tree weights, unless they were given."""
        return frozenset({"tree_weights"} if self.tree_weights is None else ())

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return q = w."""
        if self.tree_weights is None:
            by_leaf = forest.once(self.name, lambda: _by_leaf(forest.tree_weights, forest))
        else:
            weights = check_tree_weights(self.tree_weights, forest.n_trees)
            digest = sha256(weights.tobytes()).hexdigest()
            by_leaf = forest.once(f"{self.name} {digest}", lambda: _by_leaf(weights, forest))
        return Weighting(by_leaf=by_leaf)


def _by_leaf(weights: npt.NDArray[np.float64], forest: ForestStats) -> npt.NDArray[np.float64]:
    # By a power of two, which rounds nothing: the sum of very large weights would be infinite.
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])
    share = np.sqrt(ratio(weights, weights.sum()))
    return np.repeat(share, np.diff(forest.leaf_offsets))
