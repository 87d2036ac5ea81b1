"""Trees of scikit-learn, packed for a native walk to their leaves.

Read on scikit-learn 1.4.0 to 1.9.1: a sample, as float32, goes left where ``x <= threshold`` and,
if x is missing, where ``missing_go_to_left``. Leaves come out exactly as ``apply`` gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

import leafkernel._native as core
from leafkernel.forests._base import Array
from leafkernel.weighting import leaf_id_type


@dataclass(frozen=True)
class RouteTable:
    """All nodes of a forest in the form that ``cpp/include/leafkernel/route.hpp`` describes.

    Attributes
    ----------
    nodes : ndarray of uint64
        Threshold, feature and left child of each node; trees one behind the other.
    missing_go_left : ndarray of uint8
        Where a missing value goes.
    leaf_of_node : ndarray of int32
        Number of each leaf within its tree.
    tree_offsets, leaf_offsets : ndarray of int64 of shape (T + 1,)
        First node and first leaf of each tree.
    left_bits : int
        Bits of the left child; the feature has the other bits of 32.
    n_features : int
        Number of features of a sample.
    """

    nodes: npt.NDArray[np.uint64]
    missing_go_left: npt.NDArray[np.uint8]
    leaf_of_node: npt.NDArray[np.int32]
    tree_offsets: npt.NDArray[np.int64]
    leaf_offsets: npt.NDArray[np.int64]
    left_bits: int
    n_features: int

    @classmethod
    def pack(
        cls, trees: Sequence[Any], n_features: int, *, n_threads: int = 1
    ) -> RouteTable | None:
        """Pack trees; None where a feature and a child do not fit in 32 bits together."""
        left_bits = max(tree.node_count for tree in trees).bit_length()
        if left_bits + max(n_features - 1, 1).bit_length() > 32:
            return None
        packed = core.pack_trees(list(trees), left_bits, n_threads)
        return cls(*packed, left_bits=left_bits, n_features=n_features)

    def leaves(self, X: Any, *, n_threads: int) -> Array:
        """Return global leaf ids, shape (n, T), for X as scikit-learn validates it: float32."""
        wide = leaf_id_type(int(self.leaf_offsets[-1])) is np.int64
        if issparse(X):
            return core.route_sparse(self, X.data, X.indices, X.indptr, X.shape[1], wide, n_threads)
        return core.route_dense(self, np.ascontiguousarray(X), wide, n_threads)
