"""k-medoids clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from leafkernel._row_labels import labels_at
from leafkernel._validation import check_count, warn
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import Array, ProximityTask
from leafkernel.tasks._facility import choose_facilities
from leafkernel.tasks.clustering._votes import Labels, check_clusters, vote
from leafkernel.tasks.prototypes.selection import medoid_rows


class ProximityKMedoids(ProximityTask, ClusterMixin, BaseEstimator):
    """Cluster samples around medoids, which are training samples.

    Use it if you want each cluster to be represented by an actual sample. Each sample belongs to
    its most similar medoid. Medoids are chosen greedily first. Then two steps alternate: samples
    are assigned to medoids, and the most central sample of each cluster becomes its medoid. The
    proximity of most pairs is zero, so a sample may have no proximity to any medoid. It then gets
    the cluster of its similar samples.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "uniform", and a scheme gets a random forest. By
        default, "uniform" with a random forest. Without y, the default forest has totally random
        trees.
    n_clusters : int, default=8
        Number of clusters.
    max_iter : int, default=20
        Largest number of iterations.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    labels_ : ndarray of int of shape (n,)
        Cluster of each training sample.
    medoids_ : ndarray of int of shape (n_clusters,)
        Positions of the medoids in the training samples.
    medoid_labels_ : ndarray of shape (n_clusters,)
        Their labels in the index of the training data frame, or their positions.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from leafkernel.tasks import ProximityKMedoids
    >>> X, y = load_wine(return_X_y=True)
    >>> model = ProximityKMedoids(n_clusters=3, random_state=0).fit(X, y)
    >>> [int(y[row]) for row in sorted(model.medoids_)]
    [0, 1, 2]
    """

    _default_scheme = "uniform"

    def __init__(
        self,
        proximity: Any = None,
        *,
        n_clusters: int = 8,
        max_iter: int = 20,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        check_count("n_clusters", self.n_clusters)
        check_count("max_iter", self.max_iter)
        return y

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        k = check_clusters(self.n_clusters, proximity)
        all_one = np.zeros(proximity.n_samples_fit_, dtype=np.intp)
        medoids, _ = choose_facilities(proximity, all_one, most=k, min_gain=0.0)
        labels = _nearest_medoid(proximity, medoids)
        for turn in range(1, self.max_iter + 1):
            moved = np.array(medoid_rows(proximity, labels.astype(np.intp), k))
            self.n_iter_ = turn
            if np.array_equal(moved, medoids):
                break
            medoids, labels = moved, _nearest_medoid(proximity, moved)
        self.medoids_, self.labels_ = medoids, labels
        self.medoid_labels_ = labels_at(proximity.index_, medoids)

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
            Clusters. -1 for samples without proximity to any training sample.
        """
        check_is_fitted(self, "proximity_")
        near = Inside.of(self.proximity_).proximity_to(self.medoids_, X)
        labels = np.asarray(near.argmax(axis=1)).ravel().astype(np.int64)
        far = np.diff(near.indptr) == 0
        if far.any():
            labels[far] = vote(self.proximity_, self.labels_, X)[far]
        return labels


def _nearest_medoid(prox: ForestProximity, medoids: Array) -> Labels:
    """Return the nearest medoid of each training sample, or that of its similar samples."""
    near = Inside.of(prox).proximity_to(medoids)
    labels = np.asarray(near.argmax(axis=1)).ravel().astype(np.int64)
    labels[np.diff(near.indptr) == 0] = -1
    labels[medoids] = np.arange(len(medoids))
    while (labels < 0).any():
        found = vote(prox, labels, None, among_noise=False)
        reached = (labels < 0) & (found >= 0)
        if not reached.any():
            n_alone = int((labels < 0).sum())
            warn(
                f"{n_alone} of {len(labels)} samples have no proximity to any cluster. They are "
                "assigned to the largest cluster."
            )
            labels[labels < 0] = np.bincount(labels[labels >= 0]).argmax()
            break
        labels[reached] = found[reached]
    return labels
