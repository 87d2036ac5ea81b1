"""Named Dask tasks, and arrays built from them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
from dask.array.dispatch import concatenate_lookup
from scipy.sparse import csr_array, hstack, vstack

# Number of results that one task combines.
_AT_ONCE = 8

_numbers = count()


def task(name: str, function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Return a delayed call, with a name such as ``leafkernel-route`` for the dashboard."""
    # Dask groups tasks by the part of the name before the first number.
    key = f"leafkernel-{name}-{next(_numbers)}-{uuid4().hex}"
    call = dask.delayed(function, pure=False, traverse=True)
    return call(*args, **params, dask_key_name=key)


def known(name: str, value: Any) -> Any:
    """Return an object as a task, so that it is sent once and not with every call."""
    return dask.delayed(value, name=f"leafkernel-{name}-{uuid4().hex}", traverse=False)


def compute(tasks: Any) -> Any:
    """Return the results of tasks, which may be nested in lists."""
    return dask.compute(tasks)[0]


def persist(*tasks: Any) -> list[Any]:
    """Start tasks, and keep their results on the workers."""
    # The forest is part of the graph, so that it is available if a worker fails.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return list(dask.persist(*tasks))


def tree(name: str, function: Callable[..., Any], items: Sequence[Any], **params: Any) -> Any:
    """Combine items by a tree of calls, each of which takes a list of a few items."""
    items = list(items)
    while len(items) > 1:
        groups = [items[i : i + _AT_ONCE] for i in range(0, len(items), _AT_ONCE)]
        items = [
            group[0] if len(group) == 1 else task(name, function, group, **params)
            for group in groups
        ]
    return items[0]


def stack(blocks: Sequence[Any], sizes: Sequence[float], meta: Any) -> da.Array:
    """Return blocks of rows as one array. Sizes may be unknown (NaN)."""
    width = meta.shape[1:]
    arrays = [
        da.from_delayed(block, shape=(size, *width), meta=meta)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def grid(
    blocks: Sequence[Sequence[Any]], sizes: Sequence[float], widths: Sequence[int], dtype: Any
) -> da.Array:
    """Return a grid of sparse blocks as one array."""
    columns = [
        stack([row[j] for row in blocks], sizes, csr_array((0, width), dtype=dtype))
        for j, width in enumerate(widths)
    ]
    return da.concatenate(columns, axis=1, allow_unknown_chunksizes=True)


@concatenate_lookup.register(csr_array)  # type: ignore[untyped-decorator]
def _concatenate(arrays: Sequence[csr_array], axis: int = 0) -> csr_array:
    """Concatenate sparse blocks when an array is computed."""
    return csr_array((vstack if axis == 0 else hstack)(arrays, format="csr"))
