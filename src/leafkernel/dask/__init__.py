"""Proximities of data that is spread over a cluster, with Dask.

:class:`leafkernel.ForestProximity` takes Dask arrays and data frames, and its methods then return
lazy Dask arrays. Every partition of the training data becomes a *part*: a kernel over its own
samples with the leaf masses of all. Parts stay where Dask made them. Queries go to all parts, and
the results of parts are put together: side by side, by a tree of sums, or by a tree of merges.
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
from leafkernel.dask.writing import write_neighbors

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
]
