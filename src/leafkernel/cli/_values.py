"""The values of a column, of whatever type: as numbers, or as text."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.cli._missing import MISSING
from leafkernel.cli._signs import Evidence, Signs, form_of, to_plain

Numbers = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]  # str, or None where missing

NEARLY_ALL = 0.9  # of the values must be numbers for the column to be one of numbers
_EXACT = 2**53  # whole numbers beyond it run together as floats
_LARGEST = float(np.finfo(np.float32).max)  # forests take single precision
_LONGEST_NESTED = 200

# Digits that name something: with a zero in front, or too many for a float.
_CODE = re.compile(r"0\d+|[-+]?\d{16,}")
# Forms for which a column may be taken though nothing tells that it is in this form.
_UNSURE = ("", "thousands", "decimal commas")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")


@dataclass(frozen=True)
class Values:
    """One column: numbers (NaN missing), or else texts (None missing).

    Attributes
    ----------
    numbers : ndarray of shape (rows,) or None
    texts : ndarray of shape (rows,) or None
    form : str
        How numbers were written: one of ``NUMBER_FORMS``, "dates" or "durations".
    unsure : bool
        Whether nothing told which of two forms it is.
    counts : dict
        How many values became missing, by reason: "not numbers", "too large".
    strays : Counter
        The texts that are not numbers, with their counts.
    order : tuple of str or None
        Categories in an order that the file gives.
    nested : bool
        Lists and such, which are only shown.
    """

    numbers: Numbers | None = None
    texts: Texts | None = None
    form: str = ""
    unsure: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    strays: Counter[str] = field(default_factory=Counter)
    order: tuple[str, ...] | None = None
    nested: bool = False

    def labels(self) -> Texts:
        """Return the values as text: whole numbers without a point, None where missing."""
        if self.texts is not None:
            return self.texts
        assert self.numbers is not None
        return np.array([_label(number) for number in self.numbers.tolist()] + [None], object)[:-1]

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return which values are missing."""
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.asarray(pd.isna(self.texts), dtype=bool)


def _label(number: float) -> str | None:
    if number != number:  # noqa: PLR0124 - NaN
        return None
    return str(int(number)) if number.is_integer() else repr(number)


# --- from any type


def read_values(series: Any) -> Values:
    """Return a column as numbers if its type says so, else as text without blanks around it."""
    types = pd.api.types
    if isinstance(series.dtype, pd.ArrowDtype):
        arrow = series.array.__arrow_array__()
        series = pd.Series(arrow.to_pandas(date_as_object=False).array)
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        found = read_values(series.astype(object))
        order = read_values(pd.Series(dtype.categories).astype(object)).labels()
        return Values(texts=found.labels(), order=tuple(x for x in order if x is not None))
    if types.is_bool_dtype(dtype):
        return _from_objects(series)
    if types.is_datetime64_any_dtype(dtype):
        return Values(_days(series), form="dates")
    if types.is_timedelta64_dtype(dtype):
        return Values(series.to_numpy() / np.timedelta64(1, "D"), form="durations")
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        if types.is_integer_dtype(dtype) and _beyond_exact(series.min(), series.max()):
            return _from_texts(series.astype(object), series.isna())
        return _finite(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return _from_objects(series)


def _beyond_exact(*numbers: Any) -> bool:
    return any(not pd.isna(number) and abs(int(number)) > _EXACT for number in numbers)


def _days(series: Any) -> Numbers:
    """Return dates as days since 1970 began, in UTC where they have a time zone."""
    dates = pd.to_datetime(series, utc=True, errors="coerce").dt.tz_localize(None).to_numpy()
    days = (dates - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    return np.asarray(days, dtype=np.float64)


def as_shown(numbers: Numbers, form: str) -> npt.NDArray[Any]:
    """Return numbers as people read them: dates, to the second, where they are days since 1970."""
    if form != "dates":
        return numbers
    known = ~np.isnan(numbers)
    dates = np.full(len(numbers), np.datetime64("NaT", "s"))  # few centuries fit in nanoseconds
    dates[known] = np.round(numbers[known] * 86400).astype(np.int64).astype("datetime64[s]")
    return dates


def _from_objects(series: Any) -> Values:
    missing = series.isna().to_numpy(dtype=bool)
    values = series.astype(object)
    kinds = {type(value) for value in values[~missing]}
    if not kinds:
        return Values(np.full(len(series), np.nan))
    if _all(kinds, bool, np.bool_) or _all(kinds, str):
        return _from_texts(values, missing)
    if _all(kinds, int, float, np.integer, np.floating, Decimal) and bool not in kinds:
        whole = _all(kinds, int, np.integer)
        if whole and _beyond_exact(values[~missing].min(), values[~missing].max()):
            return _from_texts(values, missing)
        return _finite(np.array([_to_float(value) for value in values], dtype=np.float64))
    if _all(kinds, datetime.date, np.datetime64):  # datetime and Timestamp are dates
        return Values(_days(values.where(~missing, None)), form="dates")
    if _all(kinds, datetime.timedelta, np.timedelta64):
        lengths = pd.to_timedelta(values, errors="coerce").to_numpy()
        return Values(np.asarray(lengths / np.timedelta64(1, "D"), np.float64), form="durations")
    if not _all(kinds, str, bool, np.bool_, int, float, complex, np.number, Decimal, datetime.date):
        shown = [None if gone else _show(v) for v, gone in zip(values, missing, strict=True)]
        return Values(texts=np.array([*shown, None], dtype=object)[:-1], nested=True)
    return _from_texts(values, missing)


def _all(kinds: set[type], *allowed: type) -> bool:
    return all(issubclass(kind, allowed) for kind in kinds)


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):  # None, pandas.NA, a Decimal that is none
        return np.nan


def _show(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_NESTED else text[: _LONGEST_NESTED - 1] + "…"


def _from_texts(values: Any, missing: Any) -> Values:
    texts = np.empty(len(values), dtype=object)
    for i, (value, gone) in enumerate(zip(values, missing, strict=True)):
        text = None if gone else str(value).strip()
        texts[i] = None if not text or text in MISSING else text
    return Values(texts=texts)


def _finite(numbers: Numbers) -> Values:
    """Make numbers missing that a forest cannot take."""
    large = np.abs(numbers) > _LARGEST  # infinity too
    if not large.any():
        return Values(numbers)
    return Values(np.where(large, np.nan, numbers), counts={"too large": int(large.sum())})


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
    codes, different = pd.factorize(values.texts)
    texts = [str(text) for text in different]
    if not texts or any(_CODE.fullmatch(text) for text in texts):
        return values
    if signs is None:
        evidence = Evidence()
        for text in texts:
            evidence.add(0, text)
        signs = evidence.decide()[0]
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    for form in (form_of(texts, signs.decimal), "dates"):
        parsed = _parse(texts, form)
        if counts[~np.isnan(parsed)].sum() >= NEARLY_ALL * counts.sum():
            found = _from_parsed(parsed, texts, codes, form)
            return replace(found, unsure=not signs.sure and form in _UNSURE)
    return values


def as_numbers(values: Values, form: str) -> Values:
    """Return text as numbers that are written in a given form; the rest is missing."""
    if values.texts is None:
        return values
    codes, different = pd.factorize(values.texts)
    texts = [str(text) for text in different]
    return _from_parsed(_parse(texts, form), texts, codes, form)


def _from_parsed(
    parsed: Numbers, texts: list[str], codes: npt.NDArray[np.int64], form: str
) -> Values:
    """Return the values whose different texts are these numbers, NaN if they are none."""
    numbers = np.append(parsed, np.nan)[codes]  # missing has the code -1
    found = _finite(numbers)
    lost = codes[np.isnan(numbers) & (codes >= 0)]
    strays = Counter(texts[code] for code in lost.tolist())
    counts = {**found.counts, "not numbers": len(lost)} if strays else found.counts
    return replace(found, form=form, counts=counts, strays=strays)


def _parse(texts: list[str], form: str) -> Numbers:
    if form in ("dates", "durations"):
        return _parse_dates(texts)
    plain = pd.Series([to_plain(text, form) for text in texts] if form else texts, dtype=object)
    return np.asarray(pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64))


def _parse_dates(texts: list[str]) -> Numbers:
    dates = [text if _DATE.fullmatch(text) else None for text in texts]
    found = pd.to_datetime(
        pd.Series(dates, dtype=object), format="ISO8601", utc=True, errors="coerce"
    )
    return _days(found)
