"""KeRF, the kernel of random forests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme, ratio
from leafkernel.weighting import Weighting, locked


@dataclass(frozen=True)
class Kerf(WeightScheme):
    r"""KeRF: shared leaves, with less weight for leaves that contain many samples.

    .. math:: q_t(x) = w_t(x) = \frac{1}{\sqrt{T\, M(\ell_t(x))}}

    Use it as a kernel, for embeddings and spectral methods. It is symmetric and positive
    semidefinite. Rows of the training samples sum to one, and ``P @ y`` is the average over trees
    of the mean of y in the leaf. Needs only leaves.

    References
    ----------
    E. Scornet, "Random forests and kernel methods", IEEE Trans. Inf. Theory 62 (2016).

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> leaves = [[1, 4], [1, 5], [2, 5]]
    >>> prox = ForestProximity.from_leaves(leaves, weight_scheme="kerf", dtype="float64")
    >>> prox.proximity().toarray().round(3)
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.5 , 0.25],
           [0.  , 0.25, 0.75]])
    """

    name = "kerf"

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are also the reference weights."""
        by_leaf = forest.once(
            self.name, lambda: locked(np.sqrt(ratio(1.0, forest.n_trees * forest.leaf_mass)))
        )
        return Weighting(by_leaf=by_leaf)
