"""Query rows on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.engines.gpu._copies import to_device
from leafkernel.engines.gpu._device import finished, load_cupy
from leafkernel.engines.gpu._uploads import upload
from leafkernel.incidence import WeighedRows


@dataclass(frozen=True)
class DeviceQuery:
    """The leaves and weights of query rows, on the device.

    Attributes
    ----------
    columns : cupy.ndarray
        Leaves of each row; -1 for entries that do not count.
    offsets : cupy.ndarray of int64 or None
        Start of each row. None if each row has one entry per group.
    weights : cupy.ndarray or None
        Weight of each entry. None means one.
    by_row : cupy.ndarray of float64 or None
        Factor of each row.
    longest : int
        Number of entries of the longest row.
    """

    columns: Any
    offsets: Any
    weights: Any
    by_row: Any
    longest: int

    @classmethod
    def of(cls, query: WeighedRows) -> DeviceQuery:
        """Copy rows to the device. The copy is kept with the rows."""
        cupy = load_cupy()
        kept = vars(query).setdefault("_on_device", {})
        device = cupy.cuda.Device().id
        if device not in kept:
            kept[device] = finished(cls._copy(cupy, query))
        found: DeviceQuery = kept[device]
        return found

    @classmethod
    def is_kept(cls, query: WeighedRows) -> bool:
        """Return whether rows were copied to the device."""
        return load_cupy().cuda.Device().id in vars(query).get("_on_device", {})

    @classmethod
    def _copy(cls, cupy: Any, query: WeighedRows) -> DeviceQuery:
        incidence = query.incidence
        columns, weights = upload(incidence.columns), None
        if query.weights is not None:
            weights = upload(query.weights)
            columns = cupy.where(weights != 0, columns, columns.dtype.type(-1))
        elif query.present is not None:
            is_there = to_device(query.present) != 0
            columns = cupy.where(is_there, columns, columns.dtype.type(-1))
        longest = len(incidence.coordinates.first) - 1
        offsets = None
        if incidence.offsets is not None:
            offsets = cupy.asarray(incidence.offsets)
            longest = int(np.diff(incidence.offsets).max(initial=0))
        by_row = None if query.by_row is None else cupy.asarray(query.by_row)
        return cls(columns, offsets, weights, by_row, longest)
