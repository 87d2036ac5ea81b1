"""Trees of scikit-learn, packed for the compiled routing of samples to leaves.

As in scikit-learn 1.4.0 to 1.9.1, a float32 value x goes left if ``x <= threshold``. Missing values
go left if ``missing_go_to_left``. The leaves are exactly those of ``apply``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

import leafkernel._native as core
from leafkernel._state import FieldsState
from leafkernel.forests._base import Array
from leafkernel.forests._trees import TreeArrays
from leafkernel.weighting import leaf_id_type


@dataclass(frozen=True)
class RouteTable(FieldsState):
    """All nodes of a forest, in the format of ``cpp/include/leafkernel/route.hpp``.

    Attributes
    ----------
    packed : PackedTrees
        Threshold, feature and left child of each node, tree after tree. The compiled core checks
        every node when it creates this object, and does not check them again.
    """

    packed: core.PackedTrees

    @classmethod
    def pack(
        cls, trees: Sequence[Any], n_features: int, *, n_threads: int = 1
    ) -> RouteTable | None:
        """Check and pack trees. Return None if a feature and a child do not fit in 32 bits.

        The arrays are copied, so later changes of the trees have no effect.
        """
        try:
            packed = core.pack_trees(list(trees), n_features, n_threads)
        except ValueError as error:
            raise ValueError(f"{error}. The model is damaged. Load or fit it again.") from error
        return None if packed is None else cls(packed)

    @property
    def leaf_offsets(self) -> npt.NDArray[np.int64]:
        """First leaf of each tree, followed by the number of leaves; shape (T + 1,)."""
        return self.packed.leaf_offsets

    def leaves(self, X: Any, *, n_threads: int) -> Array:
        """Return global leaf ids, shape (n, T), for validated float32 data."""
        wide = leaf_id_type(int(self.leaf_offsets[-1])) is np.int64
        if issparse(X):
            return core.route_sparse(
                self.packed, X.data, X.indices, X.indptr, X.shape[1], wide, n_threads
            )
        return core.route_dense(self.packed, np.ascontiguousarray(X), wide, n_threads)

    def trees(self) -> UnpackedTrees:
        """Return the trees with their splits."""
        return UnpackedTrees(self.packed)


class UnpackedTrees(Sequence[TreeArrays]):
    """The trees of a table with their splits. Each is unpacked when accessed.

    Inner nodes come first, then the leaves in their order. Thresholds are rounded down to float32,
    the type of the compared values.
    """

    def __init__(self, packed: core.PackedTrees) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed.tree_offsets) - 1

    @overload
    def __getitem__(self, which: int) -> TreeArrays: ...

    @overload
    def __getitem__(self, which: slice) -> list[TreeArrays]: ...

    def __getitem__(self, which: int | slice) -> TreeArrays | list[TreeArrays]:
        found = range(len(self))[which]
        return self._unpack(found) if isinstance(found, int) else [self._unpack(t) for t in found]

    def _unpack(self, tree: int) -> TreeArrays:
        packed = self._packed
        nodes = slice(packed.tree_offsets[tree], packed.tree_offsets[tree + 1])
        words = packed.nodes[nodes].view(np.uint32).reshape(-1, 2)
        left = (words[:, 1] & ((1 << packed.left_bits) - 1)).astype(np.int64)
        leaf = packed.leaf_of_node[nodes]
        is_leaf = leaf >= 0
        # `place` is the packed position of each new node; `number` is its inverse.
        n_inner = len(leaf) - int(is_leaf.sum())
        place = np.empty(len(leaf), dtype=np.int64)
        place[:n_inner] = np.flatnonzero(~is_leaf)
        place[n_inner + leaf[is_leaf]] = np.flatnonzero(is_leaf)
        number = np.empty_like(place)
        number[place] = np.arange(len(place))
        inner = place[:n_inner]

        def with_leaves(of_inner: Array, of_leaf: int) -> Array:
            return np.concatenate([of_inner, np.full(len(leaf) - n_inner, of_leaf, of_inner.dtype)])

        return TreeArrays(
            with_leaves(number[left[inner]], -1),
            with_leaves(number[left[inner] + 1], -1),
            with_leaves((words[inner, 1] >> packed.left_bits).astype(np.int64), -2),
            with_leaves(words[inner, 0].view(np.float32).astype(np.float64), -2),
            with_leaves(packed.missing_go_left[nodes][inner], 0),
        )
