"""Columns of a table as a page shows them: numbers, categories or text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from leafkernel.explorer._blob import Blob
from leafkernel.tables._frames import wrap_table
from leafkernel.tables._values import (
    Array,
    are_categories,
    codes_of,
    object_array,
    read_values,
    shorten_text,
)

# A column with more characters than these would make the page slow to open: its texts are cut.
_MOST_CHARACTERS = 5_000_000
_LONGEST_CUT = 200
# Whole numbers up to here are exact in single precision, and others to so many digits.
_EXACT_IN_SINGLE = 2**24
_DIGITS_OF_SINGLE = 6
# Rows for which numbers with more digits are kept in double precision, so that files are exact.
_MOST_DOUBLES = 20_000


@dataclass(frozen=True)
class PageColumn:
    """A column as a page shows it."""

    name: str
    kind: str  # "number", "category" or "text"
    values: Array  # numbers with NaN, codes with -1, or text with None where missing
    categories: tuple[str, ...] = ()  # what the codes stand for
    is_date: bool = False  # numbers are days since 1970
    is_cut: bool = False  # some texts are cut, for they are too much for a page

    @property
    def texts(self) -> Array:
        """The values as text, None where missing, shape (n,)."""
        if self.kind == "category":
            return object_array([*self.categories, None])[self.values]
        if self.kind == "number":
            return object_array(None if np.isnan(x) else f"{x:.17g}" for x in self.values)
        return self.values

    def followed_by(self, new: PageColumn | None, n_new: int) -> PageColumn:
        """Return the column with the values of new rows after its own.

        It keeps its kind if it holds numbers: what is no number is then missing.
        """
        if self.kind == "number":
            numbers = np.full(n_new, np.nan)
            if new is not None and new.kind == "number" and new.is_date == self.is_date:
                numbers = new.values
            return replace(self, values=np.concatenate([self.values, numbers]))
        texts = object_array([None] * n_new) if new is None else new.texts
        return _of_texts(self.name, np.concatenate([self.texts, texts]), kind=self.kind)

    @property
    def missing(self) -> Array:
        """Which values are missing, shape (n,)."""
        if self.kind == "number":
            return np.isnan(self.values)
        return np.array([text is None for text in self.texts], dtype=bool)

    def describe(self, blob: Blob, *, is_feature: bool | None = False) -> dict[str, Any]:
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
            is_long = not whole and not _is_short(known)
            double = large or has_time or (is_long and len(self.values) <= _MOST_DOUBLES)
            about["integer"] = whole
            about["date"] = self.is_date
            about["rounded"] = is_long and not double
            about["data"] = blob.add(self.values, "float64" if double else "float32")
        elif self.kind == "category":
            about["categories"] = list(self.categories)
            about["data"] = blob.add_codes(self.values, len(self.categories))
        else:
            about["values"] = self.values.tolist()
        return about


def read_columns(table: Any, names: dict[int, str]) -> list[PageColumn]:
    """Return the columns of these numbers of a data frame, an array or a sparse matrix."""
    if issparse(table):
        table = table.tocsc()[:, list(names)].toarray()
        names = dict(enumerate(names.values()))
    found = wrap_table(table)
    return [read_column(name, found.column(j)) for j, name in names.items()]


def read_column(name: str, column: Any) -> PageColumn:
    """Return one column: numbers stay numbers, few different texts are categories."""
    values = read_values(column)
    if values.numbers is not None:
        numbers = np.where(np.isinf(values.numbers), np.nan, values.numbers)
        return PageColumn(name, "number", numbers, is_date=values.form == "dates")
    cells = values.cells()
    return _of_texts(name, object_array(x if x is None else as_text(x) for x in cells))


def _of_texts(name: str, texts: Array, kind: str | None = None) -> PageColumn:
    """Return a column of categories, or of text where there are too many different ones."""
    present = [text for text in texts if text is not None]
    known = sorted(set(present))
    if kind == "text" or (kind is None and not are_categories(len(known), len(present))):
        if sum(map(len, present)) <= _MOST_CHARACTERS:
            return PageColumn(name, "text", texts)
        cut = object_array(text and shorten_text(text, _LONGEST_CUT) for text in texts)
        return PageColumn(name, "text", cut, is_cut=True)
    codes = np.nan_to_num(codes_of(texts, known), nan=-1).astype(np.int64)
    return PageColumn(name, "category", codes, tuple(known))


def of_classes(name: str, codes: Array, classes: Array) -> PageColumn:
    """Return the column of a target's classes."""
    return PageColumn(name, "category", np.asarray(codes), tuple(map(as_text, classes)))


def as_text(value: Any) -> str:
    """Return a value as a page holds it: to the letter, because the page can save it."""
    return str(value)


def _is_short(numbers: Array) -> bool:
    """Return whether numbers have no more digits than single precision keeps."""
    size = np.abs(numbers[numbers != 0])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        digits = size * 10.0 ** (_DIGITS_OF_SINGLE - 1 - np.floor(np.log10(size)))
        return bool(np.all(np.abs(digits - np.round(digits)) < 1e-7))
