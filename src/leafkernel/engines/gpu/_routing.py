"""Routing of samples to leaves on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.engines.gpu._copies import to_device
from leafkernel.engines.gpu._device import c_name, finished, kernel, load_cupy, usable_bytes
from leafkernel.engines.gpu._results import in_main_memory
from leafkernel.engines.gpu._uploads import remember
from leafkernel.forests import RouteTable
from leafkernel.weighting import leaf_id_type

# With fewer leaves to find, copies take longer than routing on the CPU.
_FEW = 1 << 18
_ROWS_PER_BLOCK = 256


def route(table: RouteTable, X: Any) -> npt.NDArray[Any] | None:
    """Return the leaf of each sample in each tree, shape (n, T), in main memory.

    X is a float32 array, in main memory or on the device. The result is None if the samples are so
    few that the CPU is faster.
    """
    n_trees = len(table.leaf_offsets) - 1
    if X.shape[0] * n_trees < _FEW and isinstance(X, np.ndarray):
        return None
    kind = np.dtype(leaf_id_type(int(table.leaf_offsets[-1])))
    room, of_row = usable_bytes(), X.shape[1] * 4 + n_trees * kind.itemsize
    if X.shape[0] * of_row > room:
        return _route_in_blocks(table, X, n_trees, kind, max(1, room // (3 * of_row)))
    leaves = _route(table, X, n_trees, kind)
    with in_main_memory() as results:
        found: npt.NDArray[Any] = results.take(leaves)
    remember(found, leaves)
    return found


def _route_in_blocks(
    table: RouteTable, X: Any, n_trees: int, kind: np.dtype[Any], n_rows: int
) -> npt.NDArray[Any]:
    """Route samples that do not fit on the device together."""
    found = np.empty((X.shape[0], n_trees), kind)
    with in_main_memory() as results:
        for begin in range(0, X.shape[0], n_rows):
            rows = slice(begin, begin + n_rows)
            leaves = _route(table, X[rows], n_trees, kind)
            results.wait()  # for the block before
            results.put(leaves, found[rows])
    return found


def _route(table: RouteTable, X: Any, n_trees: int, kind: np.dtype[Any]) -> Any:
    """Return the leaf of each sample in each tree, on the device."""
    cupy, packed = load_cupy(), table.packed
    X = cupy.ascontiguousarray(to_device(X))
    leaves = cupy.empty((X.shape[0], n_trees), kind)
    kept = vars(table).setdefault("_on_device", {})
    device = cupy.cuda.Device().id
    if device not in kept:
        arrays = (
            packed.nodes,
            packed.tree_offsets,
            packed.missing_go_left,
            packed.leaf_of_node,
            packed.leaf_offsets,
        )
        kept[device] = finished(tuple(map(to_device, arrays)))
    n_rows = X.shape[0]
    if not n_rows:
        return leaves
    kernel("route.cu", "route", Column=c_name(leaves.dtype))(
        *kept[device],
        np.int32(n_trees),
        np.int32(packed.left_bits),
        X,
        np.int64(n_rows),
        np.int64(X.shape[1]),
        leaves,
        n_blocks=n_trees * -(-n_rows // _ROWS_PER_BLOCK),
        n_threads=_ROWS_PER_BLOCK,
    )
    return leaves
