"""Prepare a table for a forest: detect the kinds of columns, encode them, and note each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel._validation import shorten
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._kinds import as_numbers, understand
from leafkernel.tables._missing import quote
from leafkernel.tables._notation import Signs
from leafkernel.tables._schema import Column
from leafkernel.tables._target import (
    check_rows,
    find_column,
    find_columns,
    learn_target,
    name_classes,
)
from leafkernel.tables._values import (
    Floats,
    Values,
    as_shown,
    codes_of,
    object_array,
    read_feature,
)
from leafkernel.tables.errors import TableError

__all__ = ["Column", "Prepared", "Rows", "prepare"]

_ROWS_A_VALUE = 10  # rows for each value of a feature, so that it is not a leak by chance


@dataclass(frozen=True)
class Rows:
    """Rows of a table, encoded for a forest and in readable form."""

    # Numbers, categories as codes, NaN if missing: shape (n, n_features).
    features: Any
    # The rows in readable form: the features (numbers, or text with None if missing), then the
    # columns that are not features, as text.
    shown: Any
    # Labels (str) or numbers (float64), None or NaN if missing; None if there are no targets.
    target: npt.NDArray[Any] | None
    ids: npt.NDArray[np.object_] | None  # names of the rows; None if they have no names
    rows: npt.NDArray[np.int64]  # the number of each row in the file, counted from 0
    notes: tuple[str, ...]  # notes on how the table was read

    def names(self, rows: npt.NDArray[Any] | None = None, prefix: str = "") -> dict[str, Any]:
        """Return columns that identify the rows: row numbers in the file, and names."""
        rows = np.arange(len(self.rows)) if rows is None else rows
        columns: dict[str, Any] = {prefix or "row": self.rows[rows]}
        if self.ids is not None:
            columns[f"{prefix}_id" if prefix else "id"] = self.ids[rows]
        return columns


@dataclass(frozen=True)
class Prepared(Rows):
    """A training table. It can read other tables with the same columns."""

    target: npt.NDArray[Any]  # without missing values
    target_column: Column
    columns: tuple[Column, ...]  # the features, in order
    task: str  # "classification" or "regression"
    id_name: str  # the column with the row names; "row" if there is none

    @property
    def target_name(self) -> str:
        """The name of the target."""
        return str(self.target_column.name)

    def read(self, frame: Any, needed: Iterable[str] | None = None) -> Rows:
        """Read another table with the same columns.

        Unknown categories are missing as features, and are shown as they are.

        Parameters
        ----------
        frame : DataFrame of shape (m, columns)
            The other table, as returned by ``read_file``.
        needed : iterable of str or None, default=None
            The columns that the model takes in readable form. If None, the model takes the encoded
            features. Only these columns are required.

        Returns
        -------
        rows : Rows
            The rows. The target is None if the table has no target.

        Raises
        ------
        TableError
            If a required column is missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from leafkernel.tables.preparation import prepare
        >>> frame = pd.DataFrame({"leg": ["six", "two"] * 10, "kind": ["ant", "bird"] * 10})
        >>> new = prepare(frame, "kind").read(pd.DataFrame({"leg": ["two", "ten"]}))
        >>> new.features["leg"].tolist(), new.notes  # doctest: +ELLIPSIS
        ([1.0, nan], ("Column 'leg' (1 value) has categories that are not in the training table...
        """
        names = clean_names(frame.columns, Findings())
        found = {name: frame.iloc[:, j] for j, name in enumerate(names)}
        who = "forest" if needed is None else "model"
        wanted = [column.name for column in self.columns] if needed is None else list(needed)
        absent = [quote(name) for name in wanted if name not in found]
        if absent:
            raise TableError(
                f"the {who} needs {'columns' if len(absent) > 1 else 'column'} {shorten(absent)}, "
                f"which this table does not have. Its columns are "
                f"{shorten([quote(name) for name in names], most=10)}. Use a table with the same "
                "columns as the training table."
            )
        findings, rows = Findings(), _row_numbers(frame)
        known = {column.name: column for column in self.columns}
        features: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        for name in (each for each in self.shown.columns if each in found):
            if name not in known:
                shown[name] = _written(found[name])
                continue
            column, values = known[name], _read_like(known[name], read_feature(found[name]))
            features[name], shown[name] = _encode(column, values), _show(column, values)
            if name in wanted:
                findings.add_losses(name, values)
            unknown = int((np.isnan(features[name]) & ~values.missing()).sum())
            if unknown and needed is None:
                findings.add_count("unknown", name, unknown)
        ids = None
        if self.ids is not None and self.id_name in found:
            ids = row_names(found[self.id_name], rows)
        index = range(len(frame))
        return Rows(
            pd.DataFrame(features, index).reindex(columns=self.features.columns),
            pd.DataFrame(shown, index).reindex(columns=self.shown.columns),
            self._read_target(found.get(self.target_name)),
            ids,
            rows,
            (*frame.attrs.get("notes", ()), *findings.sentences()),
        )

    def _read_target(self, series: Any) -> npt.NDArray[Any] | None:
        """Return the targets of another table. Known classes get the spelling of this table."""
        if series is None or (values := read_feature(series)).missing().all():
            return None
        if self.task == "regression":
            return _read_like(self.target_column, values).numbers
        return object_array(name_classes(values.labels(), np.unique(self.target)))


def _read_like(column: Column, values: Values) -> Values:
    """Read the values of another table in the same way as this column."""
    if column.categories is not None:
        return values
    return as_numbers(values, column.notation)


def _encode(column: Column, values: Values) -> Floats:
    if column.categories is not None:
        return codes_of(values.labels(), column.categories)
    assert values.numbers is not None
    return values.numbers


def _show(column: Column, values: Values) -> Any:
    if column.categories is not None:
        return pd.Series(values.labels(), dtype=object)
    assert values.numbers is not None
    return pd.Series(as_shown(values.numbers, column.form))


def _written(series: Any) -> Any:
    return pd.Series(read_feature(series).written(), dtype=object)


def prepare(
    frame: Any,
    target: str,
    *,
    task: str | None = None,
    id_column: str | None = None,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
) -> Prepared:
    """Detect the kinds of the columns of a table and encode them as features.

    Numbers stay numbers. Booleans and text with few different values become categories. Dates
    become days. Columns with row names, free text or a constant value are not features. Rows
    without a target are left out. ``notes`` of the result describes each step.

    Parameters
    ----------
    frame : DataFrame of shape (rows, columns)
        The table, as returned by ``read_file``. Its index has the row numbers of the file.
    target : str
        Name of the column to predict.
    task : {"classification", "regression"} or None, default=None
        If None, classification for text, booleans and few whole numbers, else regression.
    id_column : str or None, default=None
        The column with the row names. If None, the first column that looks like row names.
    drop : iterable of str, default=()
        Columns to leave out.
    keep : iterable of str, default=()
        Columns that are features even if they are empty, constant or look like row names.
    kinds : mapping or None, default=None
        Kinds of columns by name: "number", "category", "date" or "ignore". The kinds of other
        columns are detected.

    Returns
    -------
    prepared : Prepared

    Raises
    ------
    TableError
        If the table cannot be used: a missing column, too few rows, a constant target or no
        features.

    Examples
    --------
    >>> import pandas as pd
    >>> from leafkernel.tables.preparation import prepare
    >>> frame = pd.DataFrame({"size": ["1,5", "2,5"] * 10, "kind": ["ant", "bee"] * 10})
    >>> prepare(frame, "kind").features["size"].tolist()[:2]
    [1.5, 2.5]
    """
    findings = Findings()
    names = clean_names(frame.columns, findings)
    place = {name: i for i, name in enumerate(names)}
    find_column(target, names, "--target")
    kinds, dropped = find_columns(names, kinds or {}, drop)
    if id_column is not None:
        find_column(id_column, names, "--id")
    if target in dropped or target == id_column:
        raise TableError(
            f"--target {quote(target)} cannot also be dropped, ignored or used for row names. "
            "Choose another column with --target."
        )
    check_rows(len(frame), len(frame))

    signs = frame.attrs.get("signs", {})
    learned = learn_target(
        frame.iloc[:, place[target]],
        target,
        task=task,
        findings=findings,
        signs=signs.get(place[target]),
        kind=kinds.get(target),
    )
    kept = np.flatnonzero(learned.kept)
    rows = _row_numbers(frame)[kept]
    rest = [name for name in names if name != target and name not in dropped]
    table = _Sorted(rows, findings, id_column, frozenset(keep))
    for name in rest:
        series = frame.iloc[kept, place[name]]
        table.add(name, series, signs.get(place[name]), kinds.get(name))
    if not table.columns:
        raise TableError(_no_features(target, rest, findings))
    for name, feature in table.features.items():
        if _tells(feature, learned.values):
            findings.add("leak", name)
    notes = (*frame.attrs.get("notes", ()), *learned.notes, *findings.sentences(), *table.notes)
    return Prepared(
        features=pd.DataFrame(table.features),
        columns=tuple(table.columns),
        shown=pd.DataFrame({**table.shown, **table.others}),
        target=learned.values,
        target_column=learned.column,
        task=learned.task,
        ids=table.ids,
        id_name=table.id_name,
        rows=rows,
        notes=notes,
    )


@dataclass
class _Sorted:
    """The columns of a table, sorted into features, other columns and row names."""

    rows: npt.NDArray[np.int64]
    findings: Findings
    id_column: str | None
    keep: frozenset[str]
    columns: list[Column] = field(default_factory=list)
    features: dict[str, Floats] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ids: npt.NDArray[np.object_] | None = None
    id_name: str = "row"

    def add(self, name: str, series: Any, signs: Signs | None, wanted: str | None = None) -> None:
        """Add a column.

        ``signs`` are the signs of its numbers. ``wanted`` is the kind given by the user.
        """
        if name == self.id_column:
            self._name_rows(name, series)
            self.others[name] = _written(series)
            return
        values, kind = understand(name, series, signs, self.rows, wanted)
        if name in self.keep and kind in ("empty", "constant", "id"):
            kind = "category" if values.numbers is None else "number"
        is_feature = kind in ("number", "category")
        if is_feature or values.notation.units:
            self.findings.add_values(name, values)
        if is_feature:
            column = Column.of(name, kind, values)
            self.columns.append(column)
            self.features[name], self.shown[name] = _encode(column, values), _show(column, values)
            return
        self.findings.add(kind, name)
        if kind not in ("empty", "constant"):
            self.others[name] = _written(series)
        if kind == "id" and self.ids is None and self.id_column is None:
            self._name_rows(name, series)

    def _name_rows(self, name: str, series: Any) -> None:
        self.ids, self.id_name = row_names(series, self.rows), name
        repeated = len(self.ids) - len(set(self.ids))
        if repeated:
            self.notes.append(
                f"Column {quote(name)} has the row names, but {repeated:,} of them are duplicates."
            )


def row_names(series: Any, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    """Return the names of rows as text. A missing name becomes "row 3", for example."""
    names = read_feature(series).written()
    for i in np.flatnonzero(pd.isna(names)):
        names[i] = f"row {rows[i]}"
    return names


def _row_numbers(frame: Any) -> npt.NDArray[np.int64]:
    """Return the number of each row in the file: the index if it is valid, else 0, 1, 2, ..."""
    index = frame.index
    if pd.api.types.is_integer_dtype(index.dtype) and index.is_unique and index.min() >= 0:
        return np.asarray(index, dtype=np.int64)
    return np.arange(len(frame), dtype=np.int64)


def _tells(feature: Floats, target: npt.NDArray[Any]) -> bool:
    """Return whether a feature determines the target: a class for each value, or a line."""
    if target.dtype == np.float64:
        both = ~np.isnan(feature)
        x, y = feature[both], target[both]
        if len(pd.unique(x)) < 3 or len(pd.unique(y)) < 3:
            return False
        x, y = x - x.mean(), y - y.mean()
        x, y = x / np.abs(x).max(), y / np.abs(y).max()
        return bool(abs(x @ y) > (1 - 1e-12) * np.sqrt((x @ x) * (y @ y)))
    values, different = pd.factorize(feature, use_na_sentinel=False)
    classes, names = pd.factorize(target)
    if len(different) * _ROWS_A_VALUE > len(target) and len(different) != len(names):
        return False
    pairs = values.astype(np.int64) * len(names) + classes
    return len(pd.unique(pairs)) == len(different)


def _no_features(target: str, rest: list[str], findings: Findings) -> str:
    if not rest:
        return f"The table has no column except the target {quote(target)}, so it has no features."
    why = " ".join(findings.sentences())
    return f"The table has no features to learn the target {quote(target)}. {why}".rstrip()
