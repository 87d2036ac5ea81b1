"""Detect the kind of a column: numbers, dates, categories, row names or free text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.tables._dates import DATE_FORMS, find_date_form, to_iso
from leafkernel.tables._missing import quote
from leafkernel.tables._notation import Notation, Signs, find_notation, read_amount
from leafkernel.tables._values import (
    Array,
    Floats,
    Mask,
    Values,
    are_categories,
    read_feature,
    read_values,
    without_large,
)
from leafkernel.tables.errors import TableError

NEARLY_ALL = 0.9  # share of the values that must be numbers in a column of numbers
# A smaller share is enough if all other values are the same word without a digit ("none", "-")
# and there are at least _MANY different numbers, so that they are not codes.
_MOST, _MANY = 0.8, 10
# Codes that would change as numbers: digits with a leading zero, or more than 15 digits.
CODE = r"0\d+|[-+]?\d{16,}"
_IS_CODE = re.compile(CODE).fullmatch

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
    """Return the values of a column and its kind, see ``find_kind``.

    ``signs`` are the separators of its numbers, ``rows`` are the row numbers in the file, and
    ``wanted`` is the kind given by the user: "number", "date" or "category".
    """
    values = read_feature(column)
    if wanted is not None:
        kind = "category" if wanted == "category" else "number"
        return read_as(values, wanted, name, signs), kind
    values = settle(values, signs)
    return values, find_kind(name, values, rows)


def find_kind(name: str, values: Values, rows: npt.NDArray[np.int64]) -> str:
    """Return number, category, id, text, other dates, nested, constant or empty."""
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
    """Return whether a column of unique values has the names of the rows."""
    if values.form in DATE_FORMS or values.notation.is_amount or _look_like_dates(values):
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
    """Return whether texts are dates in a form that does not tell the day from the month."""
    if values.texts is None:
        return False
    present = [text for text in values.texts if text is not None]
    dates = sum(_OTHER_DATE.fullmatch(text) is not None for text in present)
    return dates >= NEARLY_ALL * max(len(present), 1)


def is_id_name(name: str) -> bool:
    """Return whether the name of a column is like id, patient_id, RowID or index."""
    return _ID_NAME.fullmatch(name.strip()) is not None


# --- numbers and dates that are written as text


def settle(values: Values, signs: Signs | None = None) -> Values:
    """Convert text to numbers if nearly all of it is numbers or dates.

    ``signs`` are the separators of the numbers. If None, they are detected from the values.
    """
    if values.numbers is not None:
        is_comma = signs is not None and signs.decimal == "," and not values.form
        return replace(values, notation=Notation("decimal commas")) if is_comma else values
    if values.texts is None or values.nested or values.order is not None:
        return values
    codes, texts = _different(values.texts)
    if not texts or any(map(_IS_CODE, texts)):
        return values
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    notation = find_notation(texts, signs)
    if notation.units:
        is_amount = np.array([read_amount(text) is not None for text in texts])
        is_known = _are_enough(is_amount, texts, counts)
        return replace(values, notation=notation) if is_known else values
    for each in (notation, Notation("dates")):
        parsed = _parse(texts, each)
        if _are_enough(~np.isnan(parsed), texts, counts):
            return _from_parsed(parsed, texts, codes, each)
    return values


def _are_enough(known: Mask, texts: list[str], counts: npt.NDArray[np.intp]) -> bool:
    """Return whether nearly all values are known, or all others are one word for "missing"."""
    share = counts[known].sum() / counts.sum()
    if share >= NEARLY_ALL:
        return True
    others = [text for text, is_known in zip(texts, known, strict=True) if not is_known]
    is_word = len(others) == 1 and not any(map(str.isdigit, others[0]))
    return bool(is_word and known.sum() >= _MANY and share >= _MOST)


def as_numbers(values: Values, notation: Notation) -> Values:
    """Convert text in a given notation to numbers. Other text becomes missing."""
    if values.texts is None:
        return values
    codes, texts = _different(values.texts)
    return _from_parsed(_parse(texts, notation), texts, codes, notation)


def read_as(values: Values, kind: str, name: str, signs: Signs | None) -> Values:
    """Read a column as the kind given by the user: "number", "date" or "category".

    Raises
    ------
    TableError
        If no value is of this kind, or if the values are ambiguous.
    """
    if kind == "category":
        return Values(objects=values.labels(), order=values.order)
    found = values
    if values.texts is not None:
        _, texts = _different(values.texts)
        if kind == "date":
            try:
                found = as_numbers(values, Notation(find_date_form(texts)))
            except ValueError as error:
                raise TableError(
                    f"--as {name}=date: {error}. Write them as ISO dates, such as 2024-12-31."
                ) from None
        else:
            notation = find_notation(texts, signs)
            if notation.units:
                raise TableError(
                    f"--as {name}=number: the column has several currencies "
                    f"({', '.join(notation.units)}). Convert the amounts to one currency."
                )
            found = as_numbers(values, replace(notation, unsure=False))
    if found.missing().all() or (found.form in DATE_FORMS) != (kind == "date"):
        first = [text for text in dict.fromkeys(values.labels()) if text][:3]
        raise TableError(
            f"--as {name}={kind}: no value of the column is a {kind}. The first values are "
            f"{', '.join(map(quote, first)) or 'all missing'}."
        )
    return found


def _different(texts: Array) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return the index of each value among the unique texts (-1 if missing), and these texts."""
    codes, different = pd.factorize(texts)
    return codes, [str(text) for text in different]


def _from_parsed(
    parsed: Floats, texts: list[str], codes: npt.NDArray[np.intp], notation: Notation
) -> Values:
    """Return the values of a column, given the numbers of its unique texts (NaN if not one)."""
    numbers = np.append(parsed, np.nan)[codes]  # missing has the code -1
    lost = codes[np.isnan(numbers) & (codes >= 0)]
    strays = Counter(texts[code] for code in lost.tolist())
    counts = {"not numbers": len(lost)} if strays else {}
    return without_large(Values(numbers, notation=notation, counts=counts, strays=strays))


def _parse(texts: list[str], notation: Notation) -> Floats:
    if notation.form in (*DATE_FORMS, "durations"):
        dates = pd.Series([to_iso(text, notation.form) for text in texts], dtype=object)
        found = read_values(pd.to_datetime(dates, format="ISO8601", utc=True, errors="coerce"))
        assert found.numbers is not None
        return found.numbers
    plain = pd.Series([notation.plain(text) for text in texts], dtype=object)
    return np.asarray(pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64))
