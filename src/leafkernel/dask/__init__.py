"""Proximities of data that is spread over a cluster, with Dask.

:class:`leafkernel.ForestProximity` takes Dask arrays and data frames, and its methods then return
lazy Dask arrays. The numbers are those of the same data in memory.

How it works: every partition of the training data becomes a *part*, a kernel over its own samples
with the leaf masses of all. Parts stay on the workers that made them. Queries go to all parts, and
the results of the parts are put together: blocks of P side by side, sums by a tree of additions,
neighbors by a tree of merges. A part on a worker that dies is made again on another one.

Every block of queries meets every part, so use few large partitions: one for each thread of the
cluster is best. More than 128 are put together. Targets, ``y``, are fetched: they are one vector.

To get both arrays of neighbors at once, compute them together:
``similarity, neighbors = dask.compute(*prox.kneighbors(X))``.

Tasks that need sums, neighbors, blocks or columns of P run on such a proximity and return arrays in
memory: predictions, outlier scores, label errors, prototypes, medoids, clusters and graphs. Tasks
that need the leaves of all training samples in one process, such as Leaf PCA, say so.

Examples
--------
>>> import dask
>>> import dask.array as da
>>> from sklearn.datasets import load_iris
>>> from sklearn.ensemble import RandomForestClassifier
>>> from leafkernel import ForestProximity
>>> X, y = load_iris(return_X_y=True)
>>> forest = RandomForestClassifier(random_state=0).fit(X, y)
>>> prox = ForestProximity(forest).fit(da.from_array(X, chunks=(50, 4)), y)
>>> similarity, neighbors = dask.compute(*prox.kneighbors(n_neighbors=3))
>>> neighbors.shape
(150, 3)
"""

from leafkernel.dask.data import meta_of
from leafkernel.dask.fitting import fit
from leafkernel.dask.methods import (
    kneighbors,
    proximity,
    query_map,
    reference_map,
    route,
    weighted_average,
    weighted_sums,
)
from leafkernel.dask.writing import write_neighbors, write_proximity

__all__ = [
    "fit",
    "kneighbors",
    "meta_of",
    "proximity",
    "query_map",
    "reference_map",
    "route",
    "weighted_average",
    "weighted_sums",
    "write_neighbors",
    "write_proximity",
]
