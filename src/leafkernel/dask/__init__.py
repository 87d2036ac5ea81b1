"""Proximities of data on a cluster, with Dask.

:class:`leafkernel.ForestProximity` accepts Dask arrays and data frames. Its methods then return
lazy Dask arrays. The results are the same as for data in memory.

Each partition of the training data becomes a *part*: a kernel on its own samples, with the leaf
sizes of all samples. Parts stay on the workers that created them. Queries are sent to all parts,
and the results are combined: blocks of P are placed side by side, sums are added, and neighbors are
merged. If a worker fails, its parts are computed again on another worker.

Every block of queries is compared with every part, so use few large partitions. One for each thread
of the cluster is best. If there are more than 128, neighboring partitions are joined. The targets
``y`` are loaded into memory.

To get both arrays of neighbors, compute them together:
``similarity, neighbors = dask.compute(*prox.kneighbors(X))``.

Tasks that use sums, neighbors, blocks or columns of P work on such a proximity and return arrays in
memory: predictions, outlier scores, label errors, prototypes, medoids, clusters and graphs. Tasks
that need the leaves of all training samples in one process, such as Leaf PCA, raise an error.

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
