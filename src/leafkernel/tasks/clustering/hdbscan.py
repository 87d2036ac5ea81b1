"""Clusters of any shape, from the graph of nearest neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import HDBSCAN
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import check_count
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import ProximityTask
from leafkernel.tasks._graphs import both_ways, distances
from leafkernel.tasks.clustering._votes import Labels, check_enough, vote

# The distance of samples that share every leaf: a zero would be no edge.
_TOUCHING = 1e-12


class ProximityHDBSCAN(ProximityTask, ClusterMixin, BaseEstimator):
    """Clusters of any shape and number, and noise, from the graph of nearest neighbors.

    Distances are 1 - p. What the graph leaves apart is at distance 1, as it is where p is zero.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from; by default "uniform" on a random forest, or on totally
        random trees where ``fit`` is given no y.
    min_cluster_size : int, default=10
        Smallest cluster.
    min_samples : int, default=None
        Neighbors that make a sample dense; by default ``min_cluster_size``.
    n_neighbors : int, default=30
        Neighbors in the graph, at least ``min_samples``.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    labels_ : ndarray of int of shape (n,)
        Cluster of each training sample, -1 for noise.
    probabilities_ : ndarray of shape (n,)
        How strongly each belongs to its cluster.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from leafkernel.tasks import ProximityHDBSCAN
    >>> X, y = load_wine(return_X_y=True)
    >>> model = ProximityHDBSCAN(min_cluster_size=15, random_state=0).fit(X, y)
    >>> int(model.labels_.max()) + 1
    3
    """

    _default_scheme = "uniform"

    def __init__(
        self,
        proximity: Any = None,
        *,
        min_cluster_size: int = 10,
        min_samples: int | None = None,
        n_neighbors: int = 30,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        check_count("min_cluster_size", self.min_cluster_size, at_least=2)
        check_count("n_neighbors", self.n_neighbors)
        if self.min_samples is not None:
            check_count("min_samples", self.min_samples)
        return y

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        check_enough(proximity)
        n = proximity.n_samples_fit_
        dense = self.min_cluster_size if self.min_samples is None else self.min_samples
        graph = proximity.kneighbors_graph(n_neighbors=min(max(self.n_neighbors, dense), n - 1))
        model = HDBSCAN(
            min_cluster_size=min(self.min_cluster_size, n),
            min_samples=min(dense, n),
            metric="precomputed",
            copy=False,
        )
        model.fit(_in_one_piece(graph))
        alone = np.asarray(graph.max(axis=1).todense()).ravel() <= 0  # alike to none: noise
        self.labels_ = np.where(alone, -1, model.labels_)
        self.probabilities_ = np.where(alone, 0.0, model.probabilities_)

    def _own_figures(self) -> dict[str, str]:
        alone = int((self.labels_ < 0).sum())
        return {"clusters": f"{self.labels_.max() + 1} ({alone:,} rows in none)"}

    def predict(self, X: Any) -> Labels:
        """Return the cluster that most of each sample's proximity falls on.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples, all taken as unseen.

        Returns
        -------
        ndarray of int of shape (m,)
            Clusters; -1 where noise, or nothing, is what a sample is most similar to.
        """
        check_is_fitted(self, "proximity_")
        return vote(self.proximity_, self.labels_, X)


def _in_one_piece(graph: csr_array) -> csr_array:
    """Return the distances of a graph of neighbors, its parts linked at distance 1."""
    graph = both_ways(graph)
    n_parts, part = connected_components(graph, directed=False)
    first = np.unique(part, return_index=True)[1]
    places = (np.concatenate([first[:-1], first[1:]]), np.concatenate([first[1:], first[:-1]]))
    links = csr_array((np.ones(2 * (n_parts - 1)), places), shape=graph.shape)
    near = distances(graph.astype(np.float64))
    near.data = np.maximum(near.data, _TOUCHING)
    whole = near + links
    # SciPy's trees want 32-bit indices on older versions.
    whole.indices, whole.indptr = whole.indices.astype(np.int32), whole.indptr.astype(np.int32)
    return whole
