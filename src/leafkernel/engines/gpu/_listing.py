"""Lists of the samples of each leaf, and their sums, made on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.engines.gpu._copies import to_device
from leafkernel.engines.gpu._device import attribute, c_name, kernel, load_cupy, offsets_of
from leafkernel.engines.gpu._uploads import known_on_device, remember
from leafkernel.incidence import WeighedRows

_THREADS = 256
#: Members that a kernel may read past the end of a list.
_PADDING = 8
#: Warps in a block that sorts lists. Each one has a bitmap of 8 KiB.
_SORTING_WARPS = 4
_BITMAP_BYTES = 65_536 // 8


def list_members(
    columns: Any, weights: Any, first: npt.NDArray[np.int64], part_size: int, n_parts: int
) -> tuple[Any, Any, Any]:
    """List samples by part and leaf, ascending within a list.

    Parameters
    ----------
    columns : cupy.ndarray of shape (n, G)
        The leaf of each sample in each group; -1 for entries that do not count.
    weights : cupy.ndarray of shape (n, G) or None
        Their weights.
    first : ndarray of int64 of shape (G + 1,)
        First leaf of each group.
    part_size, n_parts : int
        Samples in a part, and the number of parts.

    Returns
    -------
    list_offsets, members, member_weights : cupy.ndarray
        As in :class:`DeviceIndex`. ``member_weights`` may be None.
    """
    cupy, (n_samples, n_groups), n_leaves = load_cupy(), columns.shape, int(first[-1])
    n_lists = n_parts * n_leaves
    counts = cupy.zeros(n_lists, np.uint32)
    entries = columns, np.int64(n_samples), np.int32(n_groups)
    sizes = np.int64(n_leaves), np.int32(part_size)
    n_blocks = -(-n_samples * n_groups // _THREADS)
    macros: dict[str, Any] = {"Column": c_name(columns.dtype)}
    kernel("list_members.cu", "count_members", **macros)(
        *entries, *sizes, counts, n_blocks=n_blocks
    )
    offsets = offsets_of(counts)
    n_members = int(offsets[-1])
    offsets = narrow(offsets, n_members)
    macros["ListOffset"] = c_name(offsets.dtype)
    members = cupy.zeros(n_members + _PADDING, np.uint16)
    kernel("list_members.cu", "scatter_members", **macros)(
        *entries, *sizes, offsets, counts, members, n_blocks=n_blocks
    )
    kernel("list_members.cu", "sort_members", **macros)(
        offsets,
        np.int64(n_lists),
        members,
        n_blocks=min(-(-n_lists // _SORTING_WARPS), 8 * attribute("MultiProcessorCount")),
        n_threads=32 * _SORTING_WARPS,
        shared_bytes=_SORTING_WARPS * _BITMAP_BYTES,
    )
    if weights is None:
        return offsets, members, None
    member_weights = cupy.empty(n_members, weights.dtype)
    macros["MemberWeight"] = c_name(weights.dtype)
    kernel("list_members.cu", "gather_weights", **macros)(
        offsets,
        members,
        np.int64(n_leaves),
        np.int64(n_lists),
        np.int32(part_size),
        cupy.asarray(first),
        np.int32(n_groups),
        weights,
        member_weights,
        n_warps=n_lists,
    )
    return offsets, members, member_weights


def count_leaves(
    rows: WeighedRows,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None] | None:
    """Return the number of samples and the sum of their weights in each leaf, in main memory.

    The result is None if the leaves are not on the device, or if the weights are not counts: only
    sums of counts do not depend on the order.
    """
    columns, weights = known_on_device(rows.incidence.columns), rows.weights
    if columns is None or (weights is not None and weights.dtype != np.uint8):
        return None
    try:
        return _count_leaves(rows, columns)
    except MemoryError:
        return None


def _count_leaves(
    rows: WeighedRows, columns: Any
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    cupy, weights = load_cupy(), rows.weights
    if weights is not None:
        counts = to_device(weights)
        remember(weights, counts)  # the weights of the index are often the same array
    n_leaves = rows.incidence.coordinates.n_columns
    sizes = cupy.zeros(n_leaves, np.uint64)
    sums = None if weights is None else cupy.zeros(n_leaves, np.uint64)
    kernel("list_members.cu", "sum_leaf_weights", Column=c_name(columns.dtype))(
        columns,
        np.int64(columns.shape[0]),
        np.int32(columns.shape[1]),
        None if weights is None else counts,
        sizes,
        sums,
        n_blocks=-(-columns.size // _THREADS),
    )
    mass = cupy.asnumpy(sizes).astype(np.int64)
    return mass, None if sums is None else cupy.asnumpy(sums).astype(np.float64)


def padded(members: Any) -> Any:
    """Return members with room to read several at once."""
    cupy = load_cupy()
    return cupy.concatenate([members, cupy.zeros(_PADDING, members.dtype)])


def narrow(offsets: Any, n_members: int) -> Any:
    """Return offsets in 32 bits if they fit."""
    return offsets.astype(np.uint32) if n_members < np.iinfo(np.uint32).max else offsets
