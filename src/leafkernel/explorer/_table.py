"""Which columns a page shows, and what the forest makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._validation import column_names
from leafkernel.explorer._blob import Blob
from leafkernel.explorer._columns import PageColumn, as_text, read_columns
from leafkernel.explorer._forest import link_features, read_importances
from leafkernel.forests import RawLeaves
from leafkernel.forests._base import numbered_names
from leafkernel.proximity import ForestProximity

Array = npt.NDArray[Any]

# Columns that a page shows, the most important first: more make it slow to open.
_MOST_COLUMNS = 300


@dataclass(frozen=True)
class PageTable:
    """The columns on a page and the features of the forest."""

    columns: list[PageColumn]  # of the training rows
    kept: dict[int, str]  # number in the table and name of each column
    features: list[str]  # names of the features that the trees split on
    links: list[int | None]  # the column on the page of each feature, where it has one
    importances: Array | None  # the forest's own
    notes: list[str]  # what a reader should know

    @classmethod
    def of(cls, prox: ForestProximity, X: Any, shown: Any, features: list[str]) -> PageTable:
        """Read the columns of ``shown``, or of X where that is None."""
        table = X if shown is None else shown
        names = _column_names(prox, table)
        importances = read_importances(prox, len(features))
        links = link_features(prox, features, X, names, columns_are_x=shown is None)
        kept, notes = _most_important(len(names), links, importances)
        place = {j: k for k, j in enumerate(kept)}
        found = {j: names[j] for j in kept}
        columns = read_columns(table, found)
        for column in columns:
            if column.is_cut:
                notes.append(
                    f"Column {column.name!r} holds much text. The page, and files that it saves, "
                    "have the first 200 characters of each value."
                )
        placed = [None if j is None else place.get(j) for j in links]
        return cls(columns, found, features, placed, importances, notes)

    def followed_by(self, new: Any, n_new: int, *, by_name: bool) -> list[PageColumn]:
        """Return the columns with the values of a table of new rows after their own."""
        wanted = {j: (j, name) for j, name in self.kept.items()}
        if by_name:
            names = column_names(new)
            wanted = {
                j: (names.index(name), name) for j, name in self.kept.items() if name in names
            }
        read = read_columns(new, dict(wanted.values()))
        found = dict(zip(wanted, read, strict=True))
        return [
            column.followed_by(found.get(j), n_new)
            for j, column in zip(self.kept, self.columns, strict=True)
        ]

    def describe(self, blob: Blob, columns: list[PageColumn]) -> dict[str, Any]:
        """Put the columns into a blob, and return what its header says of them."""
        return {
            "columns": [
                column.describe(blob, is_feature=_is_feature(j, self.links))
                for j, column in enumerate(columns)
            ],
            "features": [
                {
                    "name": as_text(feature if link is None else columns[link].name),
                    "column": link,
                    "importance": None if self.importances is None else float(self.importances[j]),
                }
                for j, (feature, link) in enumerate(zip(self.features, self.links, strict=True))
            ],
        }


def _column_names(prox: ForestProximity, table: Any) -> list[str]:
    names = column_names(table)
    if names:
        return names
    if isinstance(prox.forest_, RawLeaves):
        return []  # ids of leaves are nothing to look at
    known = getattr(prox, "feature_names_in_", None)
    n_columns = np.shape(table)[1]
    if known is None or len(known) != n_columns:
        known = numbered_names(n_columns)
    return [str(name) for name in known]


def _most_important(
    n_columns: int, links: list[int | None], importances: Array | None
) -> tuple[list[int], list[str]]:
    """Return the columns to show, and a note where that is not all of them."""
    if n_columns <= _MOST_COLUMNS:
        return list(range(n_columns)), []
    weight = np.zeros(n_columns)
    if importances is not None:
        for link, importance in zip(links, importances, strict=True):
            if link is not None:
                weight[link] += importance
    kept = np.sort(np.argsort(-weight, kind="stable")[:_MOST_COLUMNS])
    which = "most important" if weight.any() else "first"
    return kept.tolist(), [f"The page shows the {which} {_MOST_COLUMNS} of {n_columns} columns."]


def _is_feature(column: int, links: list[int | None]) -> bool | None:
    """Return whether the forest splits on a column; None where that is not known."""
    if column in links:
        return True
    return None if None in links or not links else False
