"""Columns of a table as a page shows them: numbers, categories or text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.explorer._blob import Blob

Array = npt.NDArray[Any]

# With more values than these, or with as many as half of the rows, a column is text: a legend or a
# colour for each would tell nothing.
_MOST_CATEGORIES = 1000
# Text longer than this is cut on the page.
_LONGEST_TEXT = 200
# Whole numbers up to here are exact in single precision.
_EXACT_IN_SINGLE = 2**24


@dataclass(frozen=True)
class PageColumn:
    """A column as a page shows it.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "category", "text"}
        What it holds.
    values : ndarray of shape (n,)
        Numbers with NaN, codes with -1, or text with None where missing.
    categories : tuple of str
        What the codes stand for.
    is_date : bool
        Whether numbers are days since 1970.
    """

    name: str
    kind: str
    values: Array
    categories: tuple[str, ...] = ()
    is_date: bool = False

    @property
    def missing(self) -> Array:
        """Which values are missing, shape (n,)."""
        if self.kind == "number":
            return np.isnan(self.values)
        if self.kind == "category":
            return self.values < 0
        return np.array([value is None for value in self.values], dtype=bool)

    def describe(self, blob: Blob, *, is_feature: bool = False) -> dict[str, Any]:
        """Put the values into a blob, and return what its header says of the column."""
        about: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "missing": int(self.missing.sum()),
            "feature": is_feature,
        }
        if self.kind == "number":
            known = self.values[~np.isnan(self.values)]
            whole = bool(np.all(known == np.round(known)))
            large = bool(np.any(np.abs(known) > (_EXACT_IN_SINGLE if whole else 1e37)))
            has_time = self.is_date and not whole  # in single precision a day is cut in minutes
            about["integer"] = whole
            about["date"] = self.is_date
            about["data"] = blob.add(self.values, "float64" if large or has_time else "float32")
        elif self.kind == "category":
            about["categories"] = list(self.categories)
            about["data"] = blob.add_codes(self.values, len(self.categories))
        else:
            about["values"] = self.values.tolist()
        return about


def read_columns(table: Any, names: list[str]) -> list[PageColumn]:
    """Return the columns of a data frame or of an array of shape (n, d)."""
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return [read_column(name, table.iloc[:, j]) for j, name in enumerate(names)]
    if hasattr(table, "to_series"):  # polars
        return [read_column(name, table.to_series(j)) for j, name in enumerate(names)]
    array = np.asarray(table)
    return [read_column(name, array[:, j]) for j, name in enumerate(names)]


def read_column(name: str, column: Any) -> PageColumn:
    """Return one column: numbers stay numbers, few different texts are categories."""
    days = _as_days(column)
    if days is not None:
        return PageColumn(name, "number", days, is_date=True)
    numbers = _as_numbers(column)
    if numbers is not None:
        return PageColumn(name, "number", numbers)
    texts = _as_texts(column)
    known = sorted({text for text in texts if text is not None})
    if len(known) > min(_MOST_CATEGORIES, max(len(texts) // 2, 2)):
        return PageColumn(name, "text", texts)
    code = {text: k for k, text in enumerate(known)}
    codes = np.array([-1 if text is None else code[text] for text in texts], dtype=np.int64)
    return PageColumn(name, "category", codes, tuple(known))


def of_classes(name: str, codes: Array, classes: Array) -> PageColumn:
    """Return the column of a target's classes."""
    return PageColumn(name, "category", np.asarray(codes), tuple(map(as_text, classes)))


def as_text(value: Any) -> str:
    """Return a value as a page writes it."""
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _as_days(column: Any) -> Array | None:
    """Return dates as days since 1970, NaN where missing; None if a column holds others."""
    if not str(getattr(column, "dtype", "")).lower().startswith(("datetime", "date", "timestamp")):
        return None
    if hasattr(column, "dt") and getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    dates = np.asarray(column).astype("datetime64[s]")
    days: Array = (dates - np.datetime64(0, "s")) / np.timedelta64(1, "D")
    return days


def _as_numbers(column: Any) -> Array | None:
    """Return a column of numbers as float64, infinite values as missing; None if it holds others.

    Booleans are categories, and text stays text even where it could be read as numbers.
    """
    dtype = str(getattr(column, "dtype", "")).lower()
    is_number = dtype.startswith(("int", "uint", "float", "double", "decimal", "halffloat"))
    if not is_number and np.asarray(column).dtype.kind not in "uif":
        return None
    if hasattr(column, "isna"):
        numbers = np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        numbers = np.array(column, dtype=np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _as_texts(column: Any) -> Array:
    """Return a column as text, None where missing, shape (n,)."""
    if hasattr(column, "isna"):
        missing = np.asarray(column.isna())
        values = np.asarray(column.astype(object))
    else:
        values = np.asarray(column, dtype=object)
        missing = np.array([value is None or value != value for value in values], dtype=bool)  # noqa: PLR0124 - NaN
    texts = np.empty(len(values), dtype=object)
    for row, (value, is_missing) in enumerate(zip(values, missing, strict=True)):
        texts[row] = None if is_missing else as_text(value)
    return texts
