"""Sorting the columns of a table into features, others, and the names of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.tables._findings import Findings
from leafkernel.tables._kinds import understand
from leafkernel.tables._missing import quote
from leafkernel.tables._schema import Column
from leafkernel.tables._signs import Signs
from leafkernel.tables._values import Values, as_shown, codes_of, read_feature


class Table:
    """The columns of a table, sorted into features, others and the names of rows."""

    def __init__(
        self,
        rows: npt.NDArray[np.int64],
        findings: Findings,
        id_column: str | None,
        keep: frozenset[str],
    ) -> None:
        self.columns: list[Column] = []
        self.features: dict[str, npt.NDArray[np.float64]] = {}
        self.shown: dict[str, Any] = {}
        self.others: dict[str, Any] = {}
        self.ids: npt.NDArray[np.object_] | None = None
        self.id_name = "row"
        self.notes: list[str] = []
        self._rows, self._findings, self._id_column = rows, findings, id_column
        self._keep = keep

    def add(self, name: str, series: Any, signs: Signs | None, wanted: str | None = None) -> None:
        """Put a column where it belongs.

        ``signs`` are those of its numbers, ``wanted`` is what the user says that it is.
        """
        if name == self._id_column:
            self._name_rows(name, series)
            self.others[name] = pd.Series(read_feature(series).written(), dtype=object)
            return
        values, kind = understand(name, series, signs, self._rows, wanted)
        if name in self._keep and kind in ("empty", "constant", "id"):
            kind = "category" if values.numbers is None else "number"
        is_feature = kind in ("number", "category")
        if is_feature or values.units:
            self._findings.add_values(name, values)
        if is_feature:
            self._add_feature(name, kind, values)
            return
        self._findings.add(kind, name)
        if kind not in ("empty", "constant"):
            self.others[name] = pd.Series(read_feature(series).written(), dtype=object)
        if kind == "id" and self.ids is None and self._id_column is None:
            self._name_rows(name, series)

    def _add_feature(self, name: str, kind: str, values: Values) -> None:
        if values.numbers is not None:
            self.columns.append(Column(name, kind, form=values.form, style=values.style))
            self.features[name] = values.numbers
            self.shown[name] = pd.Series(as_shown(values.numbers, values.form))
            return
        labels, categories = values.labels(), values.categories()
        self.columns.append(Column(name, kind, categories))
        self.features[name] = codes_of(labels, categories)
        self.shown[name] = pd.Series(labels, dtype=object)

    def _name_rows(self, name: str, series: Any) -> None:
        self.ids, self.id_name = row_names(series, self._rows), name
        repeated = len(self.ids) - len(set(self.ids))
        if repeated:
            self.notes.append(
                f"Column {quote(name)} names the rows, but {repeated:,} of its names occur more "
                "than once."
            )


def row_names(series: Any, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    """Return the names of rows: text as it is written, "row 3" where the name is missing."""
    names = read_feature(series).written()
    for i in np.flatnonzero(pd.isna(names)):
        names[i] = f"row {rows[i]}"
    return names
