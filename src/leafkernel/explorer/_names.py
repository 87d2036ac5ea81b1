"""Names of the rows on a page: labels of the index of a data frame, or positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.explorer._blob import Blob

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RowNames:
    """Labels and positions of rows."""

    name: str  # the name of the index, or "row"
    labels: list[str] | None  # a label for each row; None if rows have only positions
    positions: npt.NDArray[np.int64]  # position of each row in its table

    @classmethod
    def of(cls, n: int, *tables: Any, ids: Any, name: str, positions: Any) -> RowNames:
        """Return the given names, or those in the index of the first table that has labels."""
        labels = None if ids is None else [str(i) for i in np.asarray(ids, dtype=object)]
        if labels is None and positions is None:
            indexed = (index_labels(table) for table in tables)
            labels, found = next((each for each in indexed if each[0] is not None), (None, ""))
            name = name or found
        places = np.arange(n) if positions is None else np.asarray(positions, dtype=np.int64)
        return cls(str(name or "row"), labels, places)

    def describe(self, blob: Blob, new: RowNames | None) -> dict[str, Any]:
        """Return the header of the rows, new rows last.

        Positions are included only if they are not 0, 1, 2, ...
        """
        parts = [self] if new is None else [self, new]
        labels: list[str | None] | None = None
        if any(part.labels is not None for part in parts):
            labels = []
            for part in parts:
                labels += part.labels or [None] * len(part.positions)
        positions = np.concatenate([part.positions for part in parts])
        counted = np.concatenate([np.arange(len(part.positions)) for part in parts])
        is_known = np.array_equal(positions, counted)
        given = None if is_known else blob.add(positions, "int32")
        return {"name": self.name, "values": labels, "positions": given}


def index_labels(table: Any) -> tuple[list[str] | None, str]:
    """Return the labels in the index of a pandas object, and its name.

    Returns None and "" for other objects, and for an index that only counts the rows.
    """
    index = getattr(table, "index", None)
    if index is None or callable(index) or not hasattr(index, "nlevels"):
        return None, ""
    if index.nlevels > 1:
        labels = [", ".join(map(str, label)) for label in index.to_list()]
        return labels, ", ".join(str(n) for n in index.names if n is not None)
    if index.dtype.kind in "iu" and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return None, ""
    name = "" if index.name is None else str(index.name)
    return [str(label) for label in index.astype(str)], name
