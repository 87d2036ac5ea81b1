"""Proximities as kernels and graphs for other learners."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel
from sklearn.neighbors import sort_graph_by_row_values
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import check_choice, check_count, check_flag, check_names_out, warn
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import ProximityTask, check_similarity
from leafkernel.tasks._graphs import both_ways, distances

# Tolerance for a diagonal that is lower than that of the scheme.
_ROUNDING = 1e-6

_BOUNDS = (1e-5, 1e5)


class _ColumnsOfSamples(ProximityTask, TransformerMixin, BaseEstimator):
    """A transformer whose output has a column for each training sample."""

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the output columns, one for each training sample.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only checked against the names seen in ``fit``.

        Returns
        -------
        ndarray of str of shape (n,)
            ``sample0``, ``sample1``, …
        """
        check_is_fitted(self, "proximity_")
        check_names_out(self, input_features)
        n = self.proximity_.n_samples_fit_
        return np.array([f"sample{i}" for i in range(n)], dtype=object)


class ProximityKernel(_ColumnsOfSamples):
    """Transform samples to rows of the proximity matrix, for ``kernel="precomputed"``.

    Use it in a Pipeline before ``SVC(kernel="precomputed")``, ``KernelRidge(kernel="precomputed")``
    or ``SpectralClustering(affinity="precomputed")``. This builds the full matrix of n² numbers.
    For more than about 10,000 samples, use leaf coordinates in a linear model, which is equivalent:
    ``make_pipeline(ForestProximity(forest, "kerf"), LinearSVC())``.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The kernel. A forest gets the scheme "kerf", and a scheme gets a random forest. By default,
        "kerf" with a random forest. "kerf", "uniform", "boosted" and "oob_separable" are positive
        semidefinite, as these learners require. "gap", "ih", "oob" and ``diagonal="zero"`` are not,
        and ``fit`` warns about them.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from leafkernel.tasks import ProximityKernel
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(ProximityKernel("uniform", random_state=0), SVC(kernel="precomputed"))
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _default_scheme = "kerf"
    _default_unsupervised_scheme = "kerf"

    def __init__(
        self, proximity: Any = None, *, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.proximity = proximity
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        scheme, shift = proximity.scheme_, Inside.of(proximity).kernel.diagonal_shift()
        lowered = shift is not None and shift.min() < -_ROUNDING
        if not scheme.symmetric or scheme.divides_by_shared_oob or lowered:
            reason = f"diagonal={proximity.diagonal!r}" if lowered else f"{scheme.name!r}"
            advice = "diagonal='scheme'" if lowered else "'kerf', 'uniform' or 'oob_separable'"
            warn(
                f"With {reason}, the kernel is not positive semidefinite, so SVC and other kernel "
                f"machines may not converge. Use {advice}."
            )

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> npt.NDArray[np.float64]:
        """Fit, and return the kernel matrix of the training samples.

        Training samples are compared using their out-of-bag trees if the scheme uses them.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,), default=None
            Targets of the forest.
        sample_weight : array-like of shape (n,), default=None
            Sample weights for fitting the forest.

        Returns
        -------
        ndarray of shape (n, n)
            The kernel.
        """
        return _dense(self.fit(X, y, sample_weight).proximity_, None)

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the kernel matrix between samples and the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples, treated as new data.

        Returns
        -------
        ndarray of shape (m, n)
            The kernel.
        """
        check_is_fitted(self, "proximity_")
        return _dense(self.proximity_, X)


class ProximityNeighborsTransformer(_ColumnsOfSamples):
    """Transform samples to a sparse graph of nearest neighbors.

    Use it in a Pipeline before DBSCAN, TSNE, Isomap, KNeighborsClassifier and other estimators with
    ``metric="precomputed"``, like scikit-learn's ``KNeighborsTransformer``.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "uniform", and a scheme gets a random forest. By
        default, "uniform" with a random forest. Without y, the default forest has totally random
        trees.
    n_neighbors : int, default=30
        Number of neighbors of each sample.
    mode : {"distance", "proximity"}, default="distance"
        The values of the graph: distances 1 - p, or proximities p.
    both_ways : bool, default=True
        Whether to make the graph of the training samples symmetric. If False, clustering may
        separate similar samples, because only the first of many neighbors at the same distance
        are in the graph.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from leafkernel.tasks import ProximityNeighborsTransformer
    >>> X, y = load_wine(return_X_y=True)
    >>> graph = ProximityNeighborsTransformer("uniform", random_state=0)
    >>> model = make_pipeline(graph, KNeighborsClassifier(5, metric="precomputed"))
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _default_scheme = "uniform"

    def __init__(
        self,
        proximity: Any = None,
        *,
        n_neighbors: int = 30,
        mode: Literal["distance", "proximity"] = "distance",
        both_ways: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.n_neighbors = n_neighbors
        self.mode = mode
        self.both_ways = both_ways
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        check_count("n_neighbors", self.n_neighbors)
        check_choice("mode", self.mode, ("distance", "proximity"))
        check_flag("both_ways", self.both_ways)
        return y

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        if proximity.n_samples_fit_ < 2:
            raise ValueError(
                "X must have at least 2 training samples for a graph; got n_samples=1."
            )

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> csr_array:
        """Fit, and return the graph of the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,), default=None
            Targets of the forest.
        sample_weight : array-like of shape (n,), default=None
            Sample weights for fitting the forest.

        Returns
        -------
        csr_array of shape (n, n)
            The graph. With distances, each sample is its own first neighbor.
        """
        return self.fit(X, y, sample_weight)._graph(None)

    def transform(self, X: Any) -> csr_array:
        """Return the graph from samples to the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples, treated as new data.

        Returns
        -------
        csr_array of shape (m, n)
            The graph.
        """
        check_is_fitted(self, "proximity_")
        return self._graph(X)

    def _graph(self, X: Any) -> csr_array:
        n = self.proximity_.n_samples_fit_ - (X is None)
        k = min(self.n_neighbors, n)
        if X is not None or not self.both_ways:
            return self.proximity_.kneighbors_graph(X, k, mode=self.mode)
        graph = both_ways(self.proximity_.kneighbors_graph(n_neighbors=k))
        if self.mode == "proximity":
            return graph
        # scikit-learn requires neighbors sorted by distance. Build a new array, so that SciPy does
        # not assume sorted columns.
        sorted_ = sort_graph_by_row_values(distances(graph), warn_when_not_sorted=False)
        return csr_array((sorted_.data, sorted_.indices, sorted_.indptr), shape=graph.shape)


class ForestKernel(Kernel):
    """Use proximities as the covariance of a Gaussian process: ``signal * P + noise * I``.

    Use it to get means and standard deviations for new samples if an RBF kernel fits badly, for
    example with jumps, irrelevant features or features of different scales. It can be added to and
    multiplied with other kernels of scikit-learn.

    The Gaussian process learns both factors. The noise is necessary, because samples that share
    their leaves in all trees can have different targets.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity. Its scheme must be symmetric and must not use in-bag weights, such as
        "uniform" or "kerf", so that training samples and new samples have the same kernel. The
        parameter ``diagonal`` is ignored.
    signal : float, default=1.0
        Factor of the proximity.
    noise : float, default=1.0
        Variance of the noise in the targets.

    Notes
    -----
    Choose a forest that depends little on the targets of the Gaussian process, such as extra trees
    with few features and large leaves (see Examples). A default random forest separates samples by
    their targets, including noise. The process then finds almost no noise, and its standard
    deviations are too small. See docs/answers.md for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import ForestKernel
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = ExtraTreesRegressor(max_features=1 / 3, min_samples_leaf=10, random_state=0)
    >>> prox = ForestProximity(forest, "uniform").fit(X[:300], y[:300])
    >>> process = GaussianProcessRegressor(ForestKernel(prox), normalize_y=True)
    >>> mean, deviation = process.fit(X[:300], y[:300]).predict(X[300:], return_std=True)
    >>> covered = abs(mean - y[300:]) < 1.645 * deviation  # 90% intervals
    >>> bool(0.85 < covered.mean() < 0.95)
    True
    """

    def __init__(self, prox: ForestProximity, signal: float = 1.0, noise: float = 1.0) -> None:
        self.prox = prox
        self.signal = signal
        self.noise = noise

    @property
    def hyperparameter_signal(self) -> Hyperparameter:
        """The factor of the proximity, as a hyperparameter of scikit-learn."""
        return Hyperparameter("signal", "numeric", _BOUNDS)

    @property
    def hyperparameter_noise(self) -> Hyperparameter:
        """The variance of the noise, as a hyperparameter of scikit-learn."""
        return Hyperparameter("noise", "numeric", _BOUNDS)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:  # noqa: FBT001, FBT002 - as scikit-learn calls it
        """Return the kernel between X and Y, shape (n_X, n_Y), and optionally its gradient.

        If Y is None, it is X, and the diagonal includes the noise.
        """
        prox = self._checked()
        left = prox.query_map(X)
        right = left if Y is None else prox.query_map(Y)
        kernel = self.signal * (left @ right.T).toarray().astype(np.float64)
        if Y is not None:
            return kernel
        noise = self.noise * np.eye(len(kernel))
        if eval_gradient:
            # The gradient by the logarithm of each hyperparameter, sorted by name.
            return kernel + noise, np.dstack([noise, kernel])
        return kernel + noise

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the diagonal of the kernel of X, including the noise, shape (n_X,)."""
        coordinates = self._checked().query_map(X)
        squares = np.asarray(coordinates.multiply(coordinates).sum(axis=1), np.float64).ravel()
        return np.asarray(self.signal * squares + self.noise)

    def is_stationary(self) -> bool:
        """Return False, because the kernel is not a function of X - Y."""
        return False

    def __sklearn_clone__(self) -> ForestKernel:
        # A Gaussian process clones its kernel. The clone must keep the fitted proximity.
        return ForestKernel(copy(self.prox), self.signal, self.noise)

    def __repr__(self) -> str:
        prox = repr(self.prox).partition("\n")[0]
        return f"ForestKernel({prox}, signal={self.signal:.3g}, noise={self.noise:.3g})"

    def _checked(self) -> ForestProximity:
        """Return the proximity, or raise an error if it is not a covariance."""
        prox = check_similarity(self.prox, "ForestKernel")
        if not prox.scheme_.symmetric or prox.scheme_.out_of_bag:
            reason = "it differs for training samples and new samples"
            if not prox.scheme_.symmetric:
                reason = "it is not symmetric"
            raise ValueError(
                f"weight_scheme={prox.scheme_.name!r} cannot be used as a covariance: {reason}. "
                "Use 'kerf' or 'uniform'."
            )
        return prox


def _dense(prox: ForestProximity, X: Any) -> npt.NDArray[np.float64]:
    return np.asarray(prox.proximity(X, dense=True), dtype=np.float64)
