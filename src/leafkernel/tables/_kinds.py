"""What a column is: a number, a category, the name of its row, text, or nothing of use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._settle import NEARLY_ALL, read_as, settle
from leafkernel.tables._signs import Signs
from leafkernel.tables._values import Values, are_categories, read_feature

_LONGEST_ID = 64
_ID_NAME = re.compile(
    r"(.*[\W_])?(?i:id|uid|uuid|guid)|(?i:index|row|key)|.*[a-z](ID|Id)", re.DOTALL
)
# 31/12/2024, 31.12.24, 2024/12/31 and the like, with or without a time.
_OTHER_DATE = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}([./-])\d{1,2}\4\d{1,2})([T ,].*)?", re.DOTALL
)


def understand(
    name: str,
    column: Any,
    signs: Signs | None,
    rows: npt.NDArray[np.int64],
    wanted: str | None = None,
) -> tuple[Values, str]:
    """Return the values of a column, and what it is, as :func:`find_kind` says it.

    ``signs`` are those of its numbers, ``rows`` the numbers of its rows in the file, and
    ``wanted`` is what the user says that it is: "number", "date" or "category".
    """
    values = read_feature(column)
    if wanted is not None:
        kind = "category" if wanted == "category" else "number"
        return read_as(values, wanted, name, signs), kind
    values = settle(values, signs)
    return values, find_kind(name, values, rows)


def find_kind(name: str, values: Values, rows: npt.NDArray[np.int64]) -> str:
    """Say what a column is: number, category, id, text, other dates, nested, constant or empty."""
    missing = values.missing()
    if missing.all():
        return "empty"
    if values.nested:
        return "nested"
    present = (values.labels() if values.numbers is None else values.numbers)[~missing]
    n_distinct = len(pd.unique(present))
    complete = not missing.any()
    if n_distinct == 1 and complete:
        return "constant"
    if n_distinct == len(present) > 1 and _is_id(name, values, rows, complete=complete):
        return "id"
    if values.numbers is not None:
        return "number"
    if are_categories(n_distinct, len(present)):
        return "category"
    return "other dates" if _look_like_dates(values) else "text"


def _is_id(name: str, values: Values, rows: npt.NDArray[np.int64], *, complete: bool) -> bool:
    """Say whether a column whose values all differ names the rows."""
    if values.form in DATE_FORMS or values.style is not None or _look_like_dates(values):
        return False
    if values.texts is not None:
        short = all(text is None or len(text) <= _LONGEST_ID for text in values.texts)
        return short and (complete or is_id_name(name))
    assert values.numbers is not None
    whole = values.numbers[~np.isnan(values.numbers)]
    if (whole != np.floor(whole)).any():
        return False
    counting = complete and len(pd.unique(values.numbers - rows)) == 1
    return counting or is_id_name(name)


def _look_like_dates(values: Values) -> bool:
    """Say whether text is dates in a form that leaves open which number is the day."""
    if values.texts is None:
        return False
    present = [text for text in values.texts if text is not None]
    dates = sum(_OTHER_DATE.fullmatch(text) is not None for text in present)
    return dates >= NEARLY_ALL * max(len(present), 1)


def is_id_name(name: str) -> bool:
    """Say whether a column is called id, patient_id, RowID, index or such."""
    return _ID_NAME.fullmatch(name.strip()) is not None
