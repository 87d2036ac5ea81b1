"""Principal components of leaf coordinates, without the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._validation import check_choice, check_count
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks.embedding._base import Embedding
from leafkernel.tasks.embedding._kernel_maps import LeafCoordinates, PrincipalMap
from leafkernel.tasks.embedding._spectrum import SOLVERS

_ROWS_AT_ONCE = 1 << 14


class LeafPCA(Embedding):
    """Principal component analysis of leaf coordinates: kernel PCA of a forest's similarity.

    A sample's leaf coordinates are its row of the query map Q, one column for each leaf of the
    forest. Their principal components show the large directions in which the forest sees the data.
    They are found from products with Q Qᵀ alone, in time and memory that grow with the number of
    samples and trees and not with the number of leaves.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the leaf coordinates come from; by default "kerf" on a random forest, as in the paper,
        or on totally random trees where ``fit`` is given no y. Any scheme but the exact "oob".
    n_components : int, default=50
        Number of components; as many as there are training samples, if those are fewer.
    solver : {"auto", "arpack", "randomized", "dense"}, default="auto"
        "arpack" is accurate, "dense" too and for a few hundred samples; "auto" takes one of them.
        "randomized" takes a fixed number of passes, and is less accurate the slower the variances
        of the components fall. Where they hardly fall at all, ARPACK gives up and the randomised
        solver takes over, with a warning.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest and of the solver's first vectors.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    embedding_ : ndarray of shape (n, n_components)
        Scores of the training samples.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each component.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the total.
    singular_values_ : ndarray of shape (n_components,)
        Singular values of the centered coordinates.

    Notes
    -----
    ``fit_transform`` gives the training samples in their training role and ``transform`` takes
    every sample as unseen. For schemes without in-bag weights ("uniform", "kerf", "boosted") both
    agree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leafkernel.tasks import LeafPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> pca = LeafPCA(n_components=2, random_state=0).fit(X, y)
    >>> pca.embedding_.shape, pca.transform(X[:3]).shape
    ((150, 2), (3, 2))
    """

    _default_scheme = "kerf"
    # Under "kerf" a row that totally random trees leave alone is far from all others.
    _default_unsupervised_scheme = "uniform"

    def __init__(
        self,
        proximity: Any = None,
        *,
        n_components: int = 50,
        solver: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.n_components = n_components
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        check_count("n_components", self.n_components)
        check_choice("solver", self.solver, SOLVERS)
        return y

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        n = proximity.n_samples_fit_
        k = min(self.n_components, n)
        kernel = LeafCoordinates(proximity)
        self._map = PrincipalMap.fit(
            kernel, n, k, solver=self.solver, random_state=self.random_state
        )
        self.embedding_ = self._map.scores
        self.singular_values_ = np.sqrt(self._map.values)
        self.explained_variance_ = self._map.values / max(n - 1, 1)
        total = _squared_norms(proximity).sum() - float(kernel.of_training(np.ones((n, 1))).mean())
        self.explained_variance_ratio_ = self._map.values / max(total, np.finfo(float).tiny)

    def _own_figures(self) -> dict[str, str]:
        explained = ", ".join(f"{share:.1%}" for share in self.explained_variance_ratio_[:3])
        more = ", …" if len(self.explained_variance_ratio_) > 3 else ""
        return {"explained variance": explained + more}


def _squared_norms(prox: ForestProximity) -> npt.NDArray[np.float64]:
    """Return the squared length of each training sample's leaf coordinates."""
    query = Inside.of(prox).kernel.query
    norms = np.empty(query.n_rows)
    for begin in range(0, query.n_rows, _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        norms[rows] = query.row_dots(query, rows)
    return norms
