"""Symmetric graphs of nearest neighbors."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

# The proximity of neighbors that share no leaf. A zero would remove the edge.
_UNLIKE = 1e-12


def both_ways(graph: csr_array) -> csr_array:
    """Return a symmetric graph of proximities, with the larger value of both directions."""
    arrays = (np.maximum(graph.data, _UNLIKE), graph.indices, graph.indptr)
    graph = csr_array(arrays, shape=graph.shape)
    return graph.maximum(graph.T).tocsr()


def distances(graph: csr_array) -> csr_array:
    """Return the graph of distances 1 - p for a graph of proximities, with a zero diagonal."""
    own = np.arange(graph.shape[0])
    rows = np.repeat(own, np.diff(graph.indptr))
    data = np.concatenate([np.maximum(1 - graph.data, 0), np.zeros(len(own), graph.dtype)])
    places = (np.concatenate([rows, own]), np.concatenate([graph.indices, own]))
    found = csr_array((data, places), shape=graph.shape)
    found.sort_indices()  # ties are broken by position
    return found
