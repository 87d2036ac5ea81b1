"""From a table as it is in a file to what a forest takes, with every step said in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel._validation import shorten
from leafkernel.cli._target import check_classes, check_rows, find_column, read_target
from leafkernel.cli._wanted import ignored
from leafkernel.cli.errors import TableError
from leafkernel.tables._amounts import Style
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._kinds import as_numbers, understand
from leafkernel.tables._missing import quote
from leafkernel.tables._schema import Column
from leafkernel.tables._signs import Signs
from leafkernel.tables._values import Floats, Mask, Values, as_shown, codes_of, read_feature

__all__ = ["Column", "Prepared", "prepare"]

_MAX_CLASSES = 100
_ROWS_A_VALUE = 10  # of a feature that tells the class, so that it does not by chance


@dataclass(frozen=True)
class Prepared:
    """A table that is ready for a forest and for people."""

    # Numbers as they are, categories as codes, NaN where missing: shape (n, n_features).
    features: Any
    columns: tuple[Column, ...]  # the features, in order
    # The same rows for people: the features (numbers, or text with None where missing), then
    # columns that are no features, as text.
    shown: Any
    target: npt.NDArray[Any]  # labels (str) or numbers (float64)
    target_name: str
    target_form: str  # how its numbers are written in the file, as in Column
    task: str  # "classification" or "regression"
    ids: npt.NDArray[np.object_] | None  # names of the rows; None: they have only numbers
    id_name: str  # the column that names the rows; "row" if there is none
    rows: npt.NDArray[np.int64]  # the number of each row in the file, from 0
    notes: tuple[str, ...]  # what was done to the table, in sentences
    target_style: Style | None = None

    def encode(self, frame: Any) -> Any:
        """Return the features of another table with the same columns.

        Columns that are no features may be missing in it. Categories that are not known become
        missing. ``features.attrs["notes"]`` lists what a reader should know.

        Raises
        ------
        TableError
            If a feature is not among the columns.

        Examples
        --------
        >>> import pandas as pd
        >>> from leafkernel.cli.columns import prepare
        >>> frame = pd.DataFrame({"leg": ["six", "two"] * 10, "kind": ["ant", "bird"] * 10})
        >>> new = prepare(frame, "kind").encode(pd.DataFrame({"leg": ["two", "ten"]}))
        >>> new["leg"].tolist(), new.attrs["notes"]  # doctest: +ELLIPSIS
        ([1.0, nan], ["Column 'leg' (1 value) holds categories that the forest has not seen, ...
        """
        names = clean_names(frame.columns, Findings())
        absent = [quote(column.name) for column in self.columns if column.name not in names]
        if absent:
            raise TableError(
                f"The other table has no column {shorten(absent)}, which the forest needs. Its "
                f"columns: {shorten([quote(name) for name in names], most=10)}."
            )
        findings = Findings()
        features = {
            column.name: _encode(frame.iloc[:, names.index(column.name)], column, findings)
            for column in self.columns
        }
        encoded = pd.DataFrame(features, columns=[column.name for column in self.columns])
        encoded.attrs["notes"] = [*frame.attrs.get("notes", []), *findings.sentences()]
        return encoded


def _encode(series: Any, column: Column, findings: Findings) -> Floats:
    values = read_feature(series)
    if column.categories is not None:
        codes = codes_of(values.labels(), column.categories)
        unknown = int((np.isnan(codes) & ~values.missing()).sum())
        if unknown:
            findings.add_count("unknown", column.name, unknown)
        return codes
    values = as_numbers(values, column.form, column.style)
    findings.add_losses(column.name, values)
    assert values.numbers is not None
    return values.numbers


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
    """Find out what the columns of a table are, and make features of them.

    Numbers stay; text with few different values, and booleans, become categories; dates become
    days. Columns that name rows, hold free text or never change are no features. Rows without a
    target are left out. Everything that was done is said in ``notes``.

    Parameters
    ----------
    frame : DataFrame of shape (rows, columns)
        As ``read_file`` gives it: the index holds the number of each row in the file.
    target : str
        Name of the column to predict.
    task : {"classification", "regression"} or None, default=None
        None: classification for text, booleans and few whole numbers, else regression.
    id_column : str or None, default=None
        The column that names rows; None: the first that looks so.
    drop : iterable of str, default=()
        Columns to leave out.
    keep : iterable of str, default=()
        Columns that are features even if they are empty, never change or look like names of rows.
    kinds : mapping or None, default=None
        What columns are, by name: "number", "category", "date" or "ignore"; the rest is detected.

    Returns
    -------
    prepared : Prepared

    Raises
    ------
    TableError
        If the table cannot be used: no such column, too few rows, nothing to learn, no features.

    Examples
    --------
    >>> import pandas as pd
    >>> from leafkernel.cli.columns import prepare
    >>> frame = pd.DataFrame({"size": ["1,5", "2,5"] * 10, "kind": ["ant", "bee"] * 10})
    >>> prepare(frame, "kind").features["size"].tolist()[:2]
    [1.5, 2.5]
    """
    findings = Findings()
    names = clean_names(frame.columns, findings)
    place = {name: i for i, name in enumerate(names)}
    find_column(target, names, "the target")
    kinds = {find_column(name, names, "--as"): kind for name, kind in (kinds or {}).items()}
    dropped = [*(find_column(name, names, "--drop") for name in drop), *ignored(kinds)]
    if id_column is not None:
        find_column(id_column, names, "--id")
    if target in dropped or target == id_column:
        raise TableError(
            f"The target {quote(target)} cannot also be dropped, ignored or name the rows. Choose "
            "another column with --target."
        )
    check_rows(len(frame), len(frame))

    series = frame.iloc[:, place[target]]
    signs = frame.attrs.get("signs", {})
    values, task, why = read_target(
        series,
        target,
        task=task,
        findings=findings,
        signs=signs.get(place[target]),
        kind=kinds.get(target),
    )
    kept = ~values.missing()
    check_rows(int(kept.sum()), len(frame))
    notes = [*frame.attrs.get("notes", []), *_missing_note(target, kept), *why]
    labels, more = _target(values, kept, target, task)

    rows = _row_numbers(frame)[kept]
    rest = [name for name in names if name != target and name not in dropped]
    table = _Sorted(rows, findings, id_column, frozenset(keep))
    for name in rest:
        series = frame.iloc[np.flatnonzero(kept), place[name]]
        table.add(name, series, signs.get(place[name]), kinds.get(name))
    if not table.columns:
        raise TableError(_no_features(target, rest, findings))
    for name, feature in table.features.items():
        if _tells(feature, labels):
            findings.add("leak", name)
    return Prepared(
        features=pd.DataFrame(table.features),
        columns=tuple(table.columns),
        shown=pd.DataFrame({**table.shown, **table.others}),
        target=labels,
        target_name=target,
        target_form=values.form if task == "regression" else "",
        task=task,
        ids=table.ids,
        id_name=table.id_name,
        rows=rows,
        notes=(*notes, *more, *findings.sentences(), *table.notes),
        target_style=values.style if task == "regression" else None,
    )


class _Sorted:
    """The columns of a table, sorted into features, others and the names of rows."""

    def __init__(
        self,
        rows: npt.NDArray[np.int64],
        findings: Findings,
        id_column: str | None,
        keep: frozenset[str],
    ) -> None:
        self.columns: list[Column] = []
        self.features: dict[str, Floats] = {}
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


def _row_numbers(frame: Any) -> npt.NDArray[np.int64]:
    """Return the number of each row in the file, which is the index if it can be one."""
    index = frame.index
    if pd.api.types.is_integer_dtype(index.dtype) and index.is_unique and index.min() >= 0:
        return np.asarray(index, dtype=np.int64)
    return np.arange(len(frame), dtype=np.int64)


def _missing_note(target: str, kept: Mask) -> list[str]:
    gone = int((~kept).sum())
    if not gone:
        return []
    said = "1 row was" if gone == 1 else f"{gone:,} rows were"
    return [f"{said} left out because the target {quote(target)} is missing there."]


def _target(values: Values, kept: Mask, name: str, task: str) -> tuple[npt.NDArray[Any], list[str]]:
    """Return the target of the rows that are kept, and notes on it."""
    if task == "classification":
        labels = values.labels()[kept]
        advice = (
            "Use --task regression, or put similar values together."
            if values.numbers is not None
            else "Put similar classes together, or choose another column with --target."
        )
        notes = check_classes(labels, name, max_classes=_MAX_CLASSES, advice=advice)
        return labels.astype(str), notes
    assert values.numbers is not None
    numbers = values.numbers[kept]
    if numbers.min() == numbers.max():
        raise TableError(
            f"The target {quote(name)} is {numbers[0]:g} in all {len(numbers):,} rows that can be "
            "used, so there is nothing to learn. Choose another column with --target."
        )
    return numbers, []


def _tells(feature: Floats, target: npt.NDArray[Any]) -> bool:
    """Say whether a feature alone gives the target: each value has one class, or a line does."""
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
        return f"The table has no column beside the target {quote(target)} to learn from."
    why = " ".join(findings.sentences())
    return f"No column is left to learn the target {quote(target)} from. {why}".rstrip()
