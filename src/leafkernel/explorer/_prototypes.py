"""Prototypes of each class for a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.explorer._columns import PageColumn
from leafkernel.explorer._judgement import Judgement
from leafkernel.proximity import ForestProximity
from leafkernel.tasks.prototypes.middles import class_cases

Array = npt.NDArray[Any]

_QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")


def prototypes(
    prox: ForestProximity, judgement: Judgement, columns: list[PageColumn]
) -> list[dict[str, Any]]:
    """Return Breiman's prototype of each class, or of each quarter of a numeric target.

    Each has statistics of every column over its neighbors: median and quartiles, or the most
    frequent category and its share.
    """
    codes, labels = target_groups(judgement)
    sizes = np.bincount(codes, minlength=len(labels))
    k = int(np.clip(sizes.max() // 2, 2, 50))
    cases, members = class_cases(prox, codes, len(labels), k, of_class_itself=True)
    return [
        {
            "label": label,
            "size": int(size),
            "row": int(case),
            "rows": int((rows != case).sum()),
            "features": [
                found
                for j, column in enumerate(columns)
                if (found := _middle(j, column, rows)) is not None
            ],
        }
        for label, size, case, rows in zip(labels, sizes, cases, members, strict=True)
        if len(rows)
    ]


def target_groups(judgement: Judgement) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return the group of each row and the names of groups: classes, or quarters of the target."""
    target = judgement.target
    if judgement.classes is not None:
        return np.asarray(target, dtype=np.intp), list(judgement.column("", target).categories)
    edges = np.unique(np.quantile(target, (0.25, 0.5, 0.75)))
    # If a target has many equal values, some quarters are empty.
    _, codes = np.unique(np.searchsorted(edges, target, side="left"), return_inverse=True)
    n_groups = int(codes.max()) + 1
    names = _QUARTERS if n_groups == len(_QUARTERS) else [f"part {g + 1}" for g in range(n_groups)]
    ranges = [target[codes == g] for g in range(n_groups)]
    labels = [
        f"{name}: {part.min():.4g} to {part.max():.4g}"
        for name, part in zip(names, ranges, strict=True)
    ]
    return codes.astype(np.intp), labels


def _middle(j: int, column: PageColumn, rows: Array) -> dict[str, Any] | None:
    """Return statistics of rows in a column; None for text or if all values are missing."""
    known = rows[~column.missing[rows]]
    if column.kind == "text" or len(known) == 0:
        return None
    values = column.values[known]
    if column.kind == "number":
        low, middle, high = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
        return {"column": j, "middle": middle, "low": low, "high": high}
    counts = np.bincount(values)
    commonest = int(counts.argmax())
    return {"column": j, "value": commonest, "share": float(counts[commonest] / len(known))}
