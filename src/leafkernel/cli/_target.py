"""The target of a table: classes or numbers, and whether a forest can learn it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel._validation import shorten, suggest
from leafkernel.cli._kinds import Findings, quote
from leafkernel.cli._values import Values, read_values, settle
from leafkernel.cli.errors import TableError

MIN_ROWS = 10
_FEW_NUMBERS = 20  # different whole numbers that still are classes
_ROWS_A_NUMBER = 5


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


def read_target(
    series: Any, name: str, *, task: str | None, findings: Findings
) -> tuple[Values, str, list[str]]:
    """Return the values of a target, the task, and why it is that task if nobody said it."""
    raw = read_values(series)
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
    values = settle(raw)
    if task == "regression" and values.numbers is None:
        examples = shorten([quote(text) for text in dict.fromkeys(values.labels()) if text], 3)
        raise TableError(
            f"The target {quote(name)} holds text ({examples}), so it cannot be predicted as a "
            "number. Use --task classification."
        )
    if task is not None:
        values = raw if task == "classification" and raw.texts is not None else values
        findings.add_values(name, values)
        return values, task, []
    task, why = _infer_task(values, quote(name))
    findings.add_values(name, values)
    return values, task, [why]


def _infer_task(values: Values, name: str) -> tuple[str, str]:
    if values.numbers is None:
        return "classification", f"The target {name} holds categories: this is classification."
    present = values.numbers[~np.isnan(values.numbers)]
    n_distinct = len(pd.unique(present))
    few = n_distinct <= min(_FEW_NUMBERS, max(len(present) / _ROWS_A_NUMBER, 2))
    if few and (present == np.floor(present)).all() and not values.form:
        return "classification", (
            f"The target {name} has {n_distinct} different whole numbers, which were taken as "
            "classes; use --task regression to predict the number."
        )
    return "regression", f"The target {name} holds numbers: this is regression."


def check_classes(
    labels: npt.NDArray[Any], name: str, *, max_classes: int, advice: str
) -> list[str]:
    """Refuse classes that cannot be learned; return notes on those that hardly can.

    ``advice`` says what to do about too many classes.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise TableError(
            f"The target {quote(name)} has a single class, {quote(classes[0])}, in all "
            f"{len(labels):,} rows that can be used, so there is nothing to learn. Choose another "
            "column with --target."
        )
    if len(classes) > max_classes:
        raise TableError(
            f"The target {quote(name)} has {len(classes):,} classes; more than {max_classes} are "
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
