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

from leafkernel.cli._amounts import Style, find_style, read_amount, sign_of
from leafkernel.cli._dates import DATE_FORMS, find_date_form, to_iso
from leafkernel.cli._missing import MISSING
from leafkernel.cli._signs import Evidence, Signs, form_of, show_sign, to_plain

Numbers = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]  # str, or None where missing

NEARLY_ALL = 0.9  # of the values must be numbers for the column to be one of numbers
# Fewer are enough if all others are one word without a digit ("none", "-"): this part of the
# values, and so many different ones that they are no codes.
_MOST, _MANY = 0.8, 10
_EXACT = 2**53  # whole numbers beyond it run together as floats
_LARGEST = float(np.finfo(np.float32).max)  # forests take single precision
_LONGEST_NESTED = 200

# Digits that name something: with a zero in front, or too many for a float.
_CODE = re.compile(r"0\d+|[-+]?\d{16,}")
# Forms for which a column may be taken though nothing tells that it is in this form.
_UNSURE = ("", "thousands", "decimal commas")


@dataclass(frozen=True)
class Values:
    """One column: numbers (NaN missing), or else texts (None missing).

    Attributes
    ----------
    numbers : ndarray of shape (rows,) or None
    texts : ndarray of shape (rows,) or None
    form : str
        How numbers were written: one of ``NUMBER_FORMS``, of ``DATE_FORMS``, or "durations".
    unsure : bool
        Whether nothing told which of two forms it is.
    counts : dict
        How many values became missing, by reason: "not numbers", "too large".
    strays : Counter
        The texts that are not numbers, with their counts.
    order : tuple of str or None
        Categories in an order that the file gives.
    style : Style or None
        The currency, percent sign or brackets around the numbers.
    units : tuple of str
        The currencies of a column that has several, and so is not read as numbers.
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
    style: Style | None = None
    units: tuple[str, ...] = ()
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
    if form not in DATE_FORMS:
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
    codes, texts = _different(values.texts)
    if not texts or any(_CODE.fullmatch(text) for text in texts):
        return values
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))

    def nearly_all(known: npt.NDArray[np.bool_]) -> bool:
        return bool(counts[known].sum() >= NEARLY_ALL * counts.sum())

    def has_marker(known: npt.NDArray[np.bool_]) -> bool:
        """Return whether all that is no number is one word, which then stands for a gap."""
        words = [text for text, is_known in zip(texts, known, strict=True) if not is_known]
        many = known.sum() >= _MANY and counts[known].sum() >= _MOST * counts.sum()
        return bool(many and len(words) == 1 and not any(map(str.isdigit, words[0])))

    style, units = find_style(texts)
    if len(units) > 1:
        amounts = np.array([read_amount(text) is not None for text in texts])
        return replace(values, units=units) if nearly_all(amounts) else values
    signs = signs or _find_signs(texts, style)
    for form in (_form_of(texts, signs, style), "dates"):
        parsed = _parse(texts, form, style)
        if nearly_all(~np.isnan(parsed)) or has_marker(~np.isnan(parsed)):
            found = _from_parsed(parsed, texts, codes, form, style)
            return replace(found, unsure=not signs.sure and form in _UNSURE)
    return values


def as_numbers(values: Values, form: str, style: Style | None = None) -> Values:
    """Return text as numbers that are written in a given form; the rest is missing."""
    if values.texts is None:
        return values
    codes, texts = _different(values.texts)
    return _from_parsed(_parse(texts, form, style), texts, codes, form, style)


def force_numbers(values: Values, signs: Signs | None = None) -> Values:
    """Return text as numbers, however few there are; the rest is missing."""
    if values.texts is None:
        return values
    _, texts = _different(values.texts)
    style, units = find_style(texts)
    if len(units) > 1:
        return replace(values, units=units)
    signs = signs or _find_signs(texts, style)
    return as_numbers(values, _form_of(texts, signs, style), style)


def force_dates(values: Values) -> Values:
    """Return text as dates, with the day or the month first; the rest is missing.

    Raises
    ------
    ValueError
        If the values do not tell whether the day is first. The message says why.
    """
    if values.texts is None:
        return values
    return as_numbers(values, find_date_form(_different(values.texts)[1]))


def _different(texts: Texts) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the different texts, and the place of each value among them; -1 if missing."""
    codes, different = pd.factorize(texts)
    return codes, [str(text) for text in different]


def _find_signs(texts: list[str], style: Style | None) -> Signs:
    evidence = Evidence()
    for text in texts:
        evidence.add(0, show_sign(text) if style is None else sign_of(text))
    return evidence.decide().get(0, Signs())


def _form_of(texts: list[str], signs: Signs, style: Style | None) -> str:
    return form_of(_bare(texts, style), signs.decimal)


def _bare(texts: list[str], style: Style | None) -> list[str]:
    return texts if style is None else [style.read(text) for text in texts]


def _from_parsed(
    parsed: Numbers,
    texts: list[str],
    codes: npt.NDArray[np.int64],
    form: str,
    style: Style | None,
) -> Values:
    """Return the values whose different texts are these numbers, NaN if they are none."""
    numbers = np.append(parsed, np.nan)[codes]  # missing has the code -1
    found = _finite(numbers)
    lost = codes[np.isnan(numbers) & (codes >= 0)]
    strays = Counter(texts[code] for code in lost.tolist())
    counts = {**found.counts, "not numbers": len(lost)} if strays else found.counts
    return replace(found, form=form, counts=counts, strays=strays, style=style)


def _parse(texts: list[str], form: str, style: Style | None = None) -> Numbers:
    if form in DATE_FORMS or form == "durations":
        return _parse_dates(texts, form)
    bare = _bare(texts, style)
    plain = pd.Series([to_plain(text, form) for text in bare] if form else bare, dtype=object)
    return np.asarray(pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64))


def _parse_dates(texts: list[str], form: str) -> Numbers:
    dates = pd.Series([to_iso(text, form) for text in texts], dtype=object)
    return _days(pd.to_datetime(dates, format="ISO8601", utc=True, errors="coerce"))
