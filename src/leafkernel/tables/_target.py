"""Read and check the target of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel._suggestions import suggest
from leafkernel._validation import shorten
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
_FEW_NUMBERS = 20  # up to this many different whole numbers are classes
_ROWS_A_NUMBER = 5
_WHOLE_NUMBER = re.compile(r"[-+]?\d+")
_LONG_NUMBER = re.compile(r"[-+]?\d{16,}")


def find_column(name: str, names: list[str], what: str) -> str:
    """Return a column name, or raise an error that lists the columns. ``what`` is the option."""
    if name in names:
        return name
    said = suggest(name.strip(), {each.strip().lower(): each for each in names})
    alike = [each for each in names if each.strip().lower() == name.strip().lower()]
    if alike:
        said = f" Did you mean {alike[0]!r}?"
    listed = shorten([quote(each) for each in names], most=10)
    raise TableError(
        f"{what} {quote(name)} is not a column of the table.{said} Its columns are {listed}."
    )


def find_columns(
    names: list[str], kinds: Mapping[str, str], drop: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Check the columns of --as and --drop; return their kinds and the columns to leave out."""
    known = {find_column(name, names, "--as"): kind for name, kind in kinds.items()}
    ignored = [name for name, kind in known.items() if kind == "ignore"]
    return known, [*(find_column(name, names, "--drop") for name in drop), *ignored]


def name_classes(labels: Iterable[Any], classes: Iterable[str]) -> list[str | None]:
    """Return labels as they are written in the table. Unknown labels and None stay the same."""
    exact = {str(label): str(label) for label in classes}
    alike = {class_key(label): label for label in exact}
    return [
        None if label is None else exact.get(str(label), alike.get(class_key(label), str(label)))
        for label in labels
    ]


def class_key(label: Any) -> str:
    """Return the same key for different spellings of a class: 01, 1 and 1.0, or TRUE and True."""
    text = str(label).strip()
    try:
        return str(float(text))
    except ValueError:
        return text.casefold()


@dataclass(frozen=True)
class Target:
    """A valid target."""

    column: Column
    task: str  # "classification" or "regression"
    kept: Mask  # the rows that have a target
    values: npt.NDArray[Any]  # the targets of these rows: labels (str) or numbers (float64)
    notes: list[str]


def learn_target(series: Any, name: str, *, findings: Findings, **stated: Any) -> Target:
    """Read a target. Raise an error if it cannot be learned.

    ``stated`` has the ``task``, the ``signs`` of its numbers and its ``kind``. Each is None if
    unknown.
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
            f"The target {quote(name)} is {numbers[0]:g} in all {n:,} usable rows, so there is "
            "nothing to learn. Choose another column with --target."
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
    """Return the values of a target, the task, and notes on how they were determined."""
    raw = read_feature(series)
    if raw.missing().all():
        raise TableError(
            f"The target {quote(name)} is missing in all {len(series):,} rows. Choose another "
            "column with --target."
        )
    if raw.nested:
        raise TableError(
            f"The target {quote(name)} has lists or other nested values. Choose a column of "
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
            f"--task regression cannot be used: the target {quote(name)} has text ({examples}). "
            "Use --task classification."
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
            f"The target {quote(name)} looks like a row number, because it increases by one in "
            "each row. If so, choose another column with --target."
        )
    return values, task, notes


def _refuse_long_numbers(values: Values, name: str) -> None:
    present = [text for text in values.labels() if text is not None]
    long = list(dict.fromkeys(text for text in present if _LONG_NUMBER.fullmatch(text)))
    if long and all(_WHOLE_NUMBER.fullmatch(text) for text in present):
        raise TableError(
            f"--task regression cannot be used: the target {name} has whole numbers with more than "
            f"15 digits ({shorten(long, 3)}), which floating-point numbers cannot store exactly. "
            "If they are ids, choose another column with --target."
        )


def _reading_notes(values: Values, name: str, findings: Findings) -> list[str]:
    """Return notes on values that became missing. They belong to the note on omitted rows."""
    findings.add_values(name, replace(values, counts={}))
    own = Findings()
    own.add_losses(name, values)
    return own.sentences()


def _counts_up(values: Values, index: Any) -> bool:
    """Return whether numbers are row numbers. The index has the row numbers of the file."""
    if values.numbers is None or values.form or not pd.api.types.is_integer_dtype(index.dtype):
        return False
    return len(pd.unique(values.numbers - np.asarray(index, dtype=np.float64))) == 1


def _infer_task(values: Values, name: str) -> tuple[str, str]:
    if values.numbers is None:
        return "classification", f"The target {name} is categorical, so this is classification."
    present = values.numbers[~np.isnan(values.numbers)]
    n_distinct = len(pd.unique(present))
    few = n_distinct <= min(_FEW_NUMBERS, max(len(present) / _ROWS_A_NUMBER, 2))
    few = few and not values.form and (present == np.floor(present)).all()
    if few and not values.notation.is_amount:
        return "classification", (
            f"The target {name} has only {n_distinct} different whole numbers, which are treated "
            "as classes. Use --task regression to predict numbers."
        )
    what = values.form if values.form in (*DATE_FORMS, "durations") else "numbers"
    return "regression", f"The target {name} has {what}, so this is regression."


def _check_classes(labels: npt.NDArray[Any], name: str, *, are_numbers: bool) -> list[str]:
    """Raise an error for classes that cannot be learned; return notes on classes of one row."""
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise TableError(
            f"The target {quote(name)} has only one class, {quote(classes[0])}, in all "
            f"{len(labels):,} usable rows, so there is nothing to learn. Choose another column "
            "with --target."
        )
    if len(classes) > _MAX_CLASSES:
        advice = (
            "Use --task regression, or merge similar values."
            if are_numbers
            else "Merge similar classes, or choose another column with --target."
        )
        raise TableError(
            f"The target {quote(name)} has {len(classes):,} classes, but at most {_MAX_CLASSES} "
            f"are supported. {advice}"
        )
    if counts.max() == 1:
        raise TableError(
            f"The target {quote(name)} has a different class in each of the {len(labels):,} rows, "
            "so there is nothing to learn. Choose another column with --target."
        )
    single = [quote(str(each)) for each in classes[counts == 1]]
    if len(single) == 1:
        return [f"Class {single[0]} has only one row, so no other row can predict it."]
    if single:
        return [
            f"{len(single):,} classes have only one row each, so no other row can predict them: "
            f"{shorten(single)}."
        ]
    return []


def check_rows(n_usable: int, n_rows: int) -> None:
    """Raise an error if a table has too few rows."""
    if n_rows == 0:
        raise TableError("The table has column names but no rows.")
    if n_usable < MIN_ROWS:
        of = "" if n_usable == n_rows else f" of {n_rows:,} (the target is missing in the others)"
        plural = "row" if n_usable == 1 else "rows"
        raise TableError(
            f"The table has {n_usable} usable {plural}{of}, but a forest needs at least {MIN_ROWS}."
        )
