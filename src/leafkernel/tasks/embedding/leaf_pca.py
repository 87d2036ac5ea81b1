"""Principal component analysis of leaf coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._validation import check_choice, check_count
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks.embedding._base import Embedding
from leafkernel.tasks.embedding._kernel_maps import LeafCoordinates, PrincipalMap
from leafkernel.tasks.embedding._spectrum import SOLVERS


class LeafPCA(Embedding):
    """Principal component analysis of leaf coordinates, which is kernel PCA with proximities.

    Use it to reduce the leaf coordinates to a few features, or as the input of UMAP and t-SNE. The
    leaf coordinates of a sample are its row of the query map Q, with one column for each leaf. The
    components are computed from products with Q Qᵀ only. Time and memory grow with the number of
    samples and trees, not with the number of leaves.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "kerf", and a scheme gets a random forest. By
        default, "kerf" with a random forest, as in the paper, or "uniform" with totally random
        trees without y. All schemes except "oob" can be used.
    n_components : int, default=50
        Number of components, but at most the number of training samples.
    solver : {"auto", "arpack", "randomized", "dense"}, default="auto"
        "arpack" and "dense" are accurate, and "dense" is for up to a few hundred samples. "auto"
        chooses one of them. "randomized" takes a fixed number of passes, and is less accurate if
        the variances of the components decrease slowly. If they hardly decrease, ARPACK does not
        converge, and the randomized solver is used with a warning (or the dense one for up to 4096
        samples).
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest and of the solver.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    embedding_ : ndarray of shape (n, n_components)
        Coordinates of the training samples.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of each component.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each component in the total variance.
    singular_values_ : ndarray of shape (n_components,)
        Singular values of the centered coordinates.

    Notes
    -----
    ``fit_transform`` uses the out-of-bag trees of training samples if the scheme does so, and
    ``transform`` treats all samples as new data. Both agree for schemes without in-bag weights
    ("uniform", "kerf", "boosted").

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
    # With "kerf", a sample that is alone in its leaves is far from all others.
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
        total = Inside.of(proximity).kernel.query_norms().sum() - float(
            kernel.of_training(np.ones((n, 1))).mean()
        )
        self.explained_variance_ratio_ = self._map.values / max(total, np.finfo(float).tiny)

    def _own_figures(self) -> dict[str, str]:
        explained = ", ".join(f"{share:.1%}" for share in self.explained_variance_ratio_[:3])
        more = ", …" if len(self.explained_variance_ratio_) > 3 else ""
        return {"explained variance": explained + more}
