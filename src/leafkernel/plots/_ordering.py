"""Order samples so that similar ones are adjacent, and divide them into bins."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from leafkernel.inside import Inside
from leafkernel.plots._style import SEED, Array
from leafkernel.proximity import ForestProximity
from leafkernel.tasks.embedding._spectrum import top_eigenpairs

Rows = npt.NDArray[np.int64]

# Number of coordinates for the order.
_COORDINATES = 10
# Up to this many samples, computing all eigenvectors is as fast as computing a few.
_DENSE_ROWS = 300
# For more samples, cluster centers are ordered first, and then the samples of each cluster.
_MOST_LEAVES = 300
_CLUSTERS = 100
_ROWS_A_CLUSTER = 30
# Smallest share of the plot for a class with enough samples.
_LEAST_SHARE = 0.04


def coordinates(prox: ForestProximity) -> Array:
    """Return coordinates of the training samples that place similar ones close, shape (n, k).

    They are the leading eigenvectors of the centered P, or (P + Pᵀ)/2, each multiplied by the
    square root of its eigenvalue.
    """
    n = prox.n_samples_fit_
    adjoint = None if Inside.of(prox).is_symmetric else prox.operator().T

    def centered(V: Array) -> Array:
        V = V - V.mean(axis=0)
        out = prox.weighted_sums(V)
        if adjoint is not None:
            out = (out + np.asarray(adjoint @ V)) / 2
        return np.asarray(out - out.mean(axis=0))

    # Use few products with many vectors, because some schemes compute all of P for each product.
    solver = "dense" if n <= _DENSE_ROWS else "randomized"
    k = max(1, min(_COORDINATES, n - 1))
    values, vectors = top_eigenpairs(centered, n, k, solver=solver, random_state=SEED)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def seriate(points: Array) -> Rows:
    """Return an order in which adjacent points are close to each other, shape (n,)."""
    n = len(points)
    if n <= 2:
        return np.arange(n)
    if n <= _MOST_LEAVES:
        tree = linkage(points, "average", optimal_ordering=True)
        return np.asarray(leaves_list(tree), dtype=np.int64)
    k = _CLUSTERS
    some = np.random.default_rng(SEED).permutation(n)[: _ROWS_A_CLUSTER * k]
    with warnings.catch_warnings():  # duplicate points and early stopping are fine here
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(k, n_init=1, max_iter=20, random_state=SEED).fit(points[some])
    centers, labels = found.cluster_centers_, found.predict(points)
    chain = seriate(centers)
    order = []
    for place, cluster in enumerate(chain):
        members = np.flatnonzero(labels == cluster)
        # Order the members from the previous center to the next one.
        way = centers[chain[min(place + 1, k - 1)]] - centers[chain[max(place - 1, 0)]]
        order.append(members[np.argsort(points[members] @ way, kind="stable")])
    return np.concatenate(order)


def by_class(points: Array, codes: Array) -> Rows:
    """Return the samples sorted by class, and by similarity within each class."""
    members = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
    return np.concatenate([rows[seriate(points[rows])] for rows in members])


def bin_edges(sizes: Array, n_bins: int) -> Rows:
    """Return the edges of about ``n_bins`` bins of ordered samples. Bins do not cross groups.

    The number of bins of a group depends on its size, but small groups get enough to be visible.

    Parameters
    ----------
    sizes : ndarray of int of shape (k,)
        Size of each group.
    n_bins : int
        Number of bins, but at most the number of samples.

    Returns
    -------
    ndarray of int of shape (b + 1,)
        Edges, from 0 to the number of samples.
    """
    n = int(sizes.sum())
    if n <= n_bins:
        return np.arange(n + 1)
    least = max(1, int(min(_LEAST_SHARE, 0.5 / len(sizes)) * n_bins))
    counts = np.minimum(np.maximum(np.round(sizes / n * n_bins), least), sizes).astype(int)
    edges = [np.zeros(1, dtype=np.int64)]
    for size, count in zip(sizes, counts, strict=True):
        edges.append(edges[-1][-1] + np.linspace(0, size, count + 1)[1:].round().astype(np.int64))
    return np.concatenate(edges)
