"""What a column is: numbers or dates, maybe written as text, categories, names of rows, or text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.tables._amounts import Style, find_style, read_amount, sign_of
from leafkernel.tables._dates import DATE_FORMS, find_date_form, to_iso
from leafkernel.tables._missing import quote
from leafkernel.tables._signs import Evidence, Signs, form_of, to_plain
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

NEARLY_ALL = 0.9  # of the values must be numbers for the column to be one of numbers
# Fewer are enough if all others are one word without a digit ("none", "-"): this part of the
# values, and so many different ones that they are no codes.
_MOST, _MANY = 0.8, 10
# Digits that name something, which a number would not keep: a zero in front, or too many of them.
CODE = r"0\d+|[-+]?\d{16,}"
_IS_CODE = re.compile(CODE).fullmatch
# Forms for which a column may be taken though nothing tells that it is in this form.
_UNSURE = ("", "thousands", "decimal commas")

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


# --- numbers and dates that are written as text


def settle(values: Values, signs: Signs | None = None) -> Values:
    """Return text as numbers if nearly all of it is numbers or dates.

    ``signs`` are those of the column, as the file tells them; None: as its own values do.
    """
    if values.numbers is not None:
        is_comma = signs is not None and signs.decimal == "," and not values.form
        return replace(values, form="decimal commas") if is_comma else values
    if values.texts is None or values.nested or values.order is not None:
        return values
    codes, texts = _different(values.texts)
    if not texts or any(map(_IS_CODE, texts)):
        return values
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    style, units = find_style(texts)
    if len(units) > 1:
        is_amount = np.array([read_amount(text) is not None for text in texts])
        return replace(values, units=units) if _are_enough(is_amount, texts, counts) else values
    signs = signs or _find_signs(texts)
    for form in (form_of(_bare(texts, style), signs.decimal), "dates"):
        parsed = _parse(texts, form, style)
        if _are_enough(~np.isnan(parsed), texts, counts):
            found = _from_parsed(parsed, texts, codes, form, style)
            return replace(found, unsure=not signs.sure and form in _UNSURE)
    return values


def _are_enough(known: Mask, texts: list[str], counts: npt.NDArray[np.intp]) -> bool:
    """Return whether nearly all is known, or all else is one word, which then stands for a gap."""
    share = counts[known].sum() / counts.sum()
    if share >= NEARLY_ALL:
        return True
    others = [text for text, is_known in zip(texts, known, strict=True) if not is_known]
    is_word = len(others) == 1 and not any(map(str.isdigit, others[0]))
    return bool(is_word and known.sum() >= _MANY and share >= _MOST)


def as_numbers(values: Values, form: str, style: Style | None = None) -> Values:
    """Return text as numbers that are written in a given form; the rest is missing."""
    if values.texts is None:
        return values
    codes, texts = _different(values.texts)
    return _from_parsed(_parse(texts, form, style), texts, codes, form, style)


def read_as(values: Values, kind: str, name: str, signs: Signs | None) -> Values:
    """Return the values of a column as a "number", "date" or "category", as the user says.

    Raises
    ------
    TableError
        If no value is of that kind, or if the values do not tell how they are to be read.
    """
    if kind == "category":
        return Values(objects=values.labels(), order=values.order)
    found = values
    if values.texts is not None:
        _, texts = _different(values.texts)
        if kind == "date":
            try:
                found = as_numbers(values, find_date_form(texts))
            except ValueError as error:
                raise TableError(
                    f"--as {name}=date: {error}, so write them as ISO dates, such as 2024-12-31."
                ) from None
        else:
            style, units = find_style(texts)
            if len(units) > 1:
                raise TableError(
                    f"--as {name}=number: the column has amounts in several currencies "
                    f"({', '.join(units)}). Convert them to one currency."
                )
            decimal = (signs or _find_signs(texts)).decimal
            found = as_numbers(values, form_of(_bare(texts, style), decimal), style)
    if found.missing().all() or (found.form in DATE_FORMS) != (kind == "date"):
        first = [text for text in dict.fromkeys(values.labels()) if text][:3]
        raise TableError(
            f"--as {name}={kind}: no value of the column is a {kind}. It holds "
            f"{', '.join(map(quote, first)) or 'nothing'}."
        )
    return found


def _different(texts: Array) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return the place of each value among the different texts, -1 if missing, and these."""
    codes, different = pd.factorize(texts)
    return codes, [str(text) for text in different]


def _find_signs(texts: list[str]) -> Signs:
    evidence = Evidence()
    for text in texts:
        evidence.add(0, sign_of(text))
    return evidence.decide().get(0, Signs())


def _bare(texts: list[str], style: Style | None) -> list[str]:
    return texts if style is None else [style.read(text) for text in texts]


def _from_parsed(
    parsed: Floats,
    texts: list[str],
    codes: npt.NDArray[np.intp],
    form: str,
    style: Style | None,
) -> Values:
    """Return the values whose different texts are these numbers, NaN if they are none."""
    numbers = np.append(parsed, np.nan)[codes]  # missing has the code -1
    lost = codes[np.isnan(numbers) & (codes >= 0)]
    strays = Counter(texts[code] for code in lost.tolist())
    counts = {"not numbers": len(lost)} if strays else {}
    return without_large(Values(numbers, form=form, style=style, counts=counts, strays=strays))


def _parse(texts: list[str], form: str, style: Style | None = None) -> Floats:
    if form in (*DATE_FORMS, "durations"):
        dates = pd.Series([to_iso(text, form) for text in texts], dtype=object)
        found = read_values(pd.to_datetime(dates, format="ISO8601", utc=True, errors="coerce"))
        assert found.numbers is not None
        return found.numbers
    bare = _bare(texts, style)
    plain = pd.Series([to_plain(text, form) for text in bare] if form else bare, dtype=object)
    return np.asarray(pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64))
