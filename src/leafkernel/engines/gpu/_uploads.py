"""Copies of arrays on the device that several steps share."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.engines.gpu._copies import to_device
from leafkernel.engines.gpu._device import load_cupy

#: Arrays that are kept: the leaves that were found last, the in-bag weights, and a slice of leaves.
_MOST_KEPT = 3
#: Keys of arrays in main memory, with a weak reference and the copy on the device.
_KEPT: dict[tuple[Any, ...], tuple[Any, Any]] = {}


def remember(array: npt.NDArray[Any], on_device: Any) -> None:
    """Keep the copy of an array as long as the array exists. The array must not change."""
    key = _key(array)
    _KEPT.pop(key, None)
    for old in [*_KEPT][: len(_KEPT) + 1 - _MOST_KEPT]:
        _KEPT.pop(old, None)
    _KEPT[key] = weakref.ref(_owner(array), lambda _: _KEPT.pop(key, None)), on_device


def known_on_device(array: npt.NDArray[Any]) -> Any:
    """Return the copy of an array, or None if none is kept."""
    found = _KEPT.get(_key(array))
    return None if found is None or found[0]() is not _owner(array) else found[1]


def upload(array: npt.NDArray[Any]) -> Any:
    """Return the copy of an array if one is kept, else a new copy."""
    found = known_on_device(array)
    return to_device(array) if found is None else found


def forget(array: npt.NDArray[Any] | None = None) -> None:
    """Free the copy of an array, or all copies."""
    for key in [*_KEPT] if array is None else [_key(array)]:
        _KEPT.pop(key, None)


def _owner(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _key(array: npt.NDArray[Any]) -> tuple[Any, ...]:
    device = load_cupy().cuda.Device().id
    return device, array.ctypes.data, array.shape, array.strides, array.dtype.str
