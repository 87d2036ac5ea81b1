"""Clusters around medoids."""

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
    """Clusters around training samples: each sample goes to the medoid that it is most similar to.

    Medoids are chosen greedily, then moved in turns: samples to the nearest medoid, the medoid to
    the middle of its samples. A forest's similarity is zero for most pairs, so a sample may be
    similar to no medoid: it then goes where the samples go that it is similar to.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from; by default "uniform" on a random forest, or on totally
        random trees where ``fit`` is given no y.
    n_clusters : int, default=8
        Number of clusters.
    max_iter : int, default=20
        Most turns.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    labels_ : ndarray of int of shape (n,)
        Cluster of each training sample.
    medoids_ : ndarray of int of shape (n_clusters,)
        Positions of the training samples in the middle.
    medoid_labels_ : ndarray of shape (n_clusters,)
        Their labels in the index of the data frame, or their positions if there was none.
    n_iter_ : int
        Turns taken.

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
        """Return the cluster of each sample, all taken as unseen.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples.

        Returns
        -------
        ndarray of int of shape (m,)
            Clusters; -1 for a sample that is similar to no training sample.
        """
        check_is_fitted(self, "proximity_")
        near = Inside.of(self.proximity_).proximity_to(self.medoids_, X)
        labels = np.asarray(near.argmax(axis=1)).ravel().astype(np.int64)
        far = np.diff(near.indptr) == 0
        if far.any():
            labels[far] = vote(self.proximity_, self.labels_, X)[far]
        return labels


def _nearest_medoid(prox: ForestProximity, medoids: Array) -> Labels:
    """Return the nearest medoid of each training sample, or what its like have."""
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
                f"{n_alone} of {len(labels)} samples are similar to no sample of any cluster; they "
                "go to the largest."
            )
            labels[labels < 0] = np.bincount(labels[labels >= 0]).argmax()
            break
        labels[reached] = found[reached]
    return labels
