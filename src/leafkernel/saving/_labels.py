"""Save targets and row labels as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._optional import require
from leafkernel.saving._folder import FolderReader, FolderWriter


def write_values(writer: FolderWriter, name: str, values: Any) -> dict[str, Any] | None:
    """Write targets or labels, and return the information needed to read them."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return {"array": writer.array(name, array)}
    flat = [value.item() if isinstance(value, np.generic) else value for value in array.ravel()]
    kinds = {type(value) for value in flat}
    if kinds <= {str}:
        texts = np.array(flat, dtype=str).reshape(array.shape)
        return {"array": writer.array(name, texts), "object": True}
    if kinds <= {str, int, float, bool, type(None)} and not any(v != v for v in flat):  # noqa: PLR0124 - NaN
        return {"list": flat, "shape": list(array.shape)}
    names = sorted(kind.__name__ for kind in kinds)
    raise TypeError(
        f"{name} contains values of type {', '.join(names)}, which cannot be saved. Fit with "
        "numbers, text or dates."
    )


def read_values(reader: FolderReader, told: dict[str, Any] | None) -> Any:
    """Return the values that were written."""
    if told is None:
        return None
    if "list" in told:
        values = np.empty(len(told["list"]), dtype=object)
        values[:] = told["list"]
        return values.reshape(told["shape"])
    array = reader.need(told["array"])
    return array.astype(object) if told.get("object") else array


def write_index(writer: FolderWriter, index: Any) -> dict[str, Any]:
    """Write the labels of rows."""
    if isinstance(index, range):
        return {"n": len(index)}
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    return {
        "levels": [write_values(writer, f"index_{i}", level) for i, level in enumerate(levels)],
        "names": [None if name is None else str(name) for name in index.names],
    }


def read_index(reader: FolderReader, told: dict[str, Any]) -> Any:
    """Return the labels of rows."""
    if "n" in told:
        return range(told["n"])
    pandas = require("pandas", extra="cli")
    levels = [read_values(reader, level) for level in told["levels"]]
    if len(levels) == 1:
        return pandas.Index(levels[0], name=told["names"][0])
    return pandas.MultiIndex.from_arrays(levels, names=told["names"])
