"""HDBSCAN on the graph of nearest neighbors."""

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

# The distance of samples that share every leaf. A zero would remove the edge.
_TOUCHING = 1e-12


class ProximityHDBSCAN(ProximityTask, ClusterMixin, BaseEstimator):
    """Cluster samples with HDBSCAN on the graph of nearest neighbors.

    Use it to find clusters of any shape if their number is unknown. Samples that belong to no
    cluster are noise. Distances are 1 - p. Parts of the graph that are not connected are at
    distance 1, which corresponds to p = 0.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "uniform", and a scheme gets a random forest. By
        default, "uniform" with a random forest. Without y, the default forest has totally random
        trees.
    min_cluster_size : int, default=10
        Smallest size of a cluster.
    min_samples : int, default=None
        Number of neighbors that define the density of a sample. By default, ``min_cluster_size``.
    n_neighbors : int, default=30
        Number of neighbors in the graph. At least ``min_samples`` are used.
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
        Cluster of each training sample, -1 for noise.
    probabilities_ : ndarray of shape (n,)
        Strength with which each training sample belongs to its cluster.

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
        # Samples without similar samples are noise.
        alone = np.asarray(graph.max(axis=1).todense()).ravel() <= 0
        self.labels_ = np.where(alone, -1, model.labels_)
        self.probabilities_ = np.where(alone, 0.0, model.probabilities_)

    def _own_figures(self) -> dict[str, str]:
        alone = int((self.labels_ < 0).sum())
        return {"clusters": f"{self.labels_.max() + 1} ({alone:,} rows in none)"}

    def predict(self, X: Any) -> Labels:
        """Return the cluster with the largest total proximity to each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples, treated as new data.

        Returns
        -------
        ndarray of int of shape (m,)
            Clusters. -1 for samples that are most similar to noise, or without proximity.
        """
        check_is_fitted(self, "proximity_")
        return vote(self.proximity_, self.labels_, X)


def _in_one_piece(graph: csr_array) -> csr_array:
    """Return the distances of a graph of neighbors, with its parts connected at distance 1."""
    graph = both_ways(graph)
    n_parts, part = connected_components(graph, directed=False)
    first = np.unique(part, return_index=True)[1]
    places = (np.concatenate([first[:-1], first[1:]]), np.concatenate([first[1:], first[:-1]]))
    links = csr_array((np.ones(2 * (n_parts - 1)), places), shape=graph.shape)
    near = distances(graph.astype(np.float64))
    near.data = np.maximum(near.data, _TOUCHING)
    whole = near + links
    # Older versions of SciPy require 32-bit indices for spanning trees.
    whole.indices, whole.indptr = whole.indices.astype(np.int32), whole.indptr.astype(np.int32)
    return whole
