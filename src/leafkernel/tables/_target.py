"""The target of a table: classes or numbers, and whether a forest can learn it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel._validation import shorten, suggest
from leafkernel.tables import MIN_ROWS
from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._findings import Findings
from leafkernel.tables._kinds import read_as, settle
from leafkernel.tables._missing import quote
from leafkernel.tables._notation import Signs
from leafkernel.tables._schema import Column
from leafkernel.tables._values import Mask, Values, read_feature
from leafkernel.tables.errors import TableError

_MAX_CLASSES = 100
_FEW_NUMBERS = 20  # different whole numbers that still are classes
_ROWS_A_NUMBER = 5
_WHOLE_NUMBER = re.compile(r"[-+]?\d+")
_LONG_NUMBER = re.compile(r"[-+]?\d{16,}")


def find_column(name: str, names: list[str], what: str) -> str:
    """Return a name that is among the columns, or say which are."""
    if name in names:
        return name
    said = suggest(name.strip(), {each.strip().lower(): each for each in names})
    alike = [each for each in names if each.strip().lower() == name.strip().lower()]
    if alike:
        said = f" Did you mean {alike[0]!r}?"
    listed = shorten([quote(each) for each in names], most=10)
    raise TableError(f"There is no column {quote(name)} for {what}.{said} Columns: {listed}.")


def find_columns(
    names: list[str], kinds: Mapping[str, str], drop: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Return what columns are to be read as, and the columns to leave out, if all are there."""
    known = {find_column(name, names, "--as"): kind for name, kind in kinds.items()}
    ignored = [name for name, kind in known.items() if kind == "ignore"]
    return known, [*(find_column(name, names, "--drop") for name in drop), *ignored]


def name_classes(labels: Iterable[Any], classes: Iterable[str]) -> list[str | None]:
    """Return labels as the table writes them, where they are among its classes; None stays."""
    exact = {str(label): str(label) for label in classes}
    alike = {class_key(label): label for label in exact}
    return [
        None if label is None else exact.get(str(label), alike.get(class_key(label), str(label)))
        for label in labels
    ]


def class_key(label: Any) -> str:
    """Return what is the same for a class however it was read: 01, 1 and 1.0, or TRUE and True."""
    text = str(label).strip()
    try:
        return str(float(text))
    except ValueError:
        return text.casefold()


@dataclass(frozen=True)
class Target:
    """A target that can be learned."""

    column: Column
    task: str  # "classification" or "regression"
    kept: Mask  # the rows that have a target
    values: npt.NDArray[Any]  # of these rows: labels (str) or numbers (float64)
    notes: list[str]


def learn_target(series: Any, name: str, *, findings: Findings, **stated: Any) -> Target:
    """Read a target and refuse one that cannot be learned.

    ``stated`` is what is known of it: the ``task``, the ``signs`` in its numbers and its ``kind``,
    each None where nobody said it.
    """
    values, task, why = _read_target(series, name, findings=findings, **stated)
    kept = ~values.missing()
    n, gone = int(kept.sum()), int((~kept).sum())
    check_rows(n, len(series))
    notes = why
    if gone:
        rows = "1 row was" if gone == 1 else f"{gone:,} rows were"
        notes = [f"{rows} left out because the target {quote(name)} is missing there.", *why]
    if task == "classification":
        labels = values.labels()[kept]
        notes = [*notes, *_check_classes(labels, name, are_numbers=values.numbers is not None)]
        column = Column.of(name, "category", values)
        return Target(column, task, kept, labels.astype(str), notes)
    assert values.numbers is not None
    numbers = values.numbers[kept]
    if numbers.min() == numbers.max():
        raise TableError(
            f"The target {quote(name)} is {numbers[0]:g} in all {n:,} rows that can be used, so "
            "there is nothing to learn. Choose another column with --target."
        )
    return Target(Column.of(name, "number", values), task, kept, numbers, notes)


def _read_target(
    series: Any,
    name: str,
    *,
    task: str | None,
    findings: Findings,
    signs: Signs | None,
    kind: str | None = None,
) -> tuple[Values, str, list[str]]:
    """Return the values of a target, the task, and why it is that task if nobody said it."""
    raw = read_feature(series)
    if raw.missing().all():
        raise TableError(
            f"The target {quote(name)} is missing in all {len(series):,} rows. Choose another "
            "column with --target."
        )
    if raw.nested:
        raise TableError(
            f"The target {quote(name)} holds lists or other nested values. Choose a column of "
            "classes or numbers with --target."
        )
    if kind == "category":
        raw = read_as(raw, kind, name, signs)
    values = settle(raw, signs) if kind in (None, "category") else read_as(raw, kind, name, signs)
    if kind is not None:
        expected = "classification" if kind == "category" else "regression"
        task = task or expected
    if task == "regression" and values.numbers is None:
        _refuse_long_numbers(values, quote(name))
        examples = shorten([quote(text) for text in dict.fromkeys(values.labels()) if text], 3)
        raise TableError(
            f"The target {quote(name)} holds text ({examples}), so it cannot be predicted as a "
            "number. Use --task classification."
        )
    if task is not None:
        values = (
            raw
            if task == "classification" and raw.texts is not None and kind != "number"
            else values
        )
        return values, task, _reading_notes(values, name, findings)
    task, why = _infer_task(values, quote(name))
    notes = [*_reading_notes(values, name, findings), why]
    if _counts_up(values, series.index):
        notes.append(
            f"The target {quote(name)} looks like row numbers: it is one more in each row than in "
            "the one before. If that is what it is, choose another column with --target."
        )
    return values, task, notes


def _refuse_long_numbers(values: Values, name: str) -> None:
    present = [text for text in values.labels() if text is not None]
    long = list(dict.fromkeys(text for text in present if _LONG_NUMBER.fullmatch(text)))
    if long and all(_WHOLE_NUMBER.fullmatch(text) for text in present):
        raise TableError(
            f"The target {name} holds whole numbers of more than 15 digits "
            f"({shorten(long, 3)}), which are not exact as numbers, so it cannot be predicted as a "
            "number. If they are ids, choose another column with --target."
        )


def _reading_notes(values: Values, name: str, findings: Findings) -> list[str]:
    """Return why values became missing, to be told beside how many rows were left out for it."""
    findings.add_values(name, replace(values, counts={}))
    own = Findings()
    own.add_losses(name, values)
    return own.sentences()


def _counts_up(values: Values, index: Any) -> bool:
    """Say whether numbers are those of the rows in the file, which the index holds."""
    if values.numbers is None or values.form or not pd.api.types.is_integer_dtype(index.dtype):
        return False
    return len(pd.unique(values.numbers - np.asarray(index, dtype=np.float64))) == 1


def _infer_task(values: Values, name: str) -> tuple[str, str]:
    if values.numbers is None:
        return "classification", f"The target {name} holds categories: this is classification."
    present = values.numbers[~np.isnan(values.numbers)]
    n_distinct = len(pd.unique(present))
    few = n_distinct <= min(_FEW_NUMBERS, max(len(present) / _ROWS_A_NUMBER, 2))
    few = few and not values.form and (present == np.floor(present)).all()
    if few and not values.notation.is_amount:
        return "classification", (
            f"The target {name} has {n_distinct} different whole numbers, which were taken as "
            "classes; use --task regression to predict the number."
        )
    what = values.form if values.form in (*DATE_FORMS, "durations") else "numbers"
    return "regression", f"The target {name} holds {what}: this is regression."


def _check_classes(labels: npt.NDArray[Any], name: str, *, are_numbers: bool) -> list[str]:
    """Refuse classes that cannot be learned; return notes on those that hardly can."""
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise TableError(
            f"The target {quote(name)} has a single class, {quote(classes[0])}, in all "
            f"{len(labels):,} rows that can be used, so there is nothing to learn. Choose another "
            "column with --target."
        )
    if len(classes) > _MAX_CLASSES:
        advice = (
            "Use --task regression, or put similar values together."
            if are_numbers
            else "Put similar classes together, or choose another column with --target."
        )
        raise TableError(
            f"The target {quote(name)} has {len(classes):,} classes; more than {_MAX_CLASSES} are "
            f"not shown well. {advice}"
        )
    if counts.max() == 1:
        raise TableError(
            f"The target {quote(name)} has another class in each of {len(labels):,} rows, so there "
            "is nothing to learn. Choose another column with --target."
        )
    single = [quote(str(each)) for each in classes[counts == 1]]
    if len(single) == 1:
        return [f"Class {single[0]} has a single row, which no other row can predict."]
    if single:
        return [
            f"{len(single):,} classes have a single row, which no other row can predict: "
            f"{shorten(single)}."
        ]
    return []


def check_rows(n_usable: int, n_rows: int) -> None:
    """Refuse a table with too few rows to learn from."""
    if n_rows == 0:
        raise TableError("The table has names of columns but no rows below them.")
    if n_usable < MIN_ROWS:
        of = "" if n_usable == n_rows else f" of {n_rows:,} (the target is missing in the others)"
        plural = "row" if n_usable == 1 else "rows"
        raise TableError(
            f"The table has {n_usable} usable {plural}{of}; a forest needs at least {MIN_ROWS}."
        )
