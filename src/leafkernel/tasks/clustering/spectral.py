"""Spectral clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import check_count
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import ProximityTask, without_self
from leafkernel.tasks.clustering._votes import Labels, check_clusters
from leafkernel.tasks.embedding._kernel_maps import DiffusionMap, Proximities


class ProximitySpectralClustering(ProximityTask, ClusterMixin, BaseEstimator):
    """Cluster samples with spectral clustering of the proximities.

    Use it to find a given number of clusters of any shape. It runs k-means on a spectral embedding,
    without building the proximity matrix.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "kerf", and a scheme gets a random forest. By
        default, "kerf" with a random forest. Without y, the default forest has totally random
        trees.
    n_clusters : int, default=8
        Number of clusters.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest and of k-means.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    labels_ : ndarray of int of shape (n,)
        Cluster of each training sample.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from leafkernel.tasks import ProximitySpectralClustering
    >>> X, y = load_wine(return_X_y=True)
    >>> model = ProximitySpectralClustering(n_clusters=3, random_state=0).fit(X, y)
    >>> bool(adjusted_rand_score(y, model.labels_) > 0.9)
    True
    """

    _default_scheme = "kerf"
    _default_unsupervised_scheme = "kerf"

    def __init__(
        self,
        proximity: Any = None,
        *,
        n_clusters: int = 8,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.n_clusters = n_clusters
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        check_count("n_clusters", self.n_clusters)
        return y

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        k = check_clusters(self.n_clusters, proximity)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self._map = DiffusionMap.fit(
            Proximities(without_self(proximity)),
            proximity.n_samples_fit_,
            max(k - 1, 1),
            random_state=seed,
        )
        self._kmeans = KMeans(k, n_init=10, random_state=seed).fit(self._map.coordinates)
        self.labels_ = self._kmeans.labels_

    def _own_figures(self) -> dict[str, str]:
        return {"clusters": f"{self.labels_.max() + 1}"}

    def predict(self, X: Any) -> Labels:
        """Return the cluster of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples, treated as new data.

        Returns
        -------
        ndarray of int of shape (m,)
            Clusters.
        """
        check_is_fitted(self, "proximity_")
        return np.asarray(self._kmeans.predict(self._map.transform(X)))
