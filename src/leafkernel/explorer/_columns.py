"""The columns of a page, and the features of the forest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from leafkernel._validation import column_names
from leafkernel.explorer._blob import Blob
from leafkernel.explorer._forest import link_features, read_importances
from leafkernel.forests import RawLeaves
from leafkernel.forests._base import numbered_names
from leafkernel.proximity import ForestProximity
from leafkernel.tables._frames import wrap_table
from leafkernel.tables._values import (
    Array,
    are_categories,
    codes_of,
    object_array,
    read_values,
    shorten_text,
)

# Largest number of columns on a page, because more are slow to open.
_MOST_COLUMNS = 300
# If a column has more characters, its texts are truncated, because the page would be slow to open.
_MOST_CHARACTERS = 5_000_000
_LONGEST_CUT = 200
# Largest whole number that is exact in single precision, and the digits of other numbers.
_EXACT_IN_SINGLE = 2**24
_DIGITS_OF_SINGLE = 6
# Up to this many rows, longer numbers are stored in double precision, so that files are exact.
_MOST_DOUBLES = 20_000


@dataclass(frozen=True)
class PageColumn:
    """A column of a page."""

    name: str
    kind: str  # "number", "category" or "text"
    values: Array  # numbers, codes or text; NaN, -1 or None if missing
    categories: tuple[str, ...] = ()  # the category of each code
    is_date: bool = False  # whether numbers are days since 1970
    is_cut: bool = False  # whether texts are truncated

    @property
    def texts(self) -> Array:
        """The values as text, None if missing, shape (n,)."""
        if self.kind == "category":
            return object_array([*self.categories, None])[self.values]
        if self.kind == "number":
            return object_array(None if np.isnan(x) else f"{x:.17g}" for x in self.values)
        return self.values

    def followed_by(self, new: PageColumn | None, n_new: int) -> PageColumn:
        """Return the column with the values of new rows appended.

        A column of numbers stays one. Other values become missing.
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
        """Mask of missing values, shape (n,)."""
        if self.kind == "number":
            return np.isnan(self.values)
        return np.array([text is None for text in self.texts], dtype=bool)

    def describe(self, blob: Blob, *, is_feature: bool | None = False) -> dict[str, Any]:
        """Add the values to a blob, and return the header of the column."""
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
            has_time = self.is_date and not whole  # single precision has only minutes
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
    """Read columns of a data frame, an array or a sparse matrix, given by number and name."""
    if issparse(table):
        table = table.tocsc()[:, list(names)].toarray()
        names = dict(enumerate(names.values()))
    found = wrap_table(table)
    return [read_column(name, found.column(j)) for j, name in names.items()]


def read_column(name: str, column: Any) -> PageColumn:
    """Read one column. Numbers stay numbers, and few different texts become categories."""
    values = read_values(column)
    if values.numbers is not None:
        numbers = np.where(np.isinf(values.numbers), np.nan, values.numbers)
        return PageColumn(name, "number", numbers, is_date=values.form == "dates")
    cells = values.cells()
    return _of_texts(name, object_array(x if x is None else str(x) for x in cells))


def _of_texts(name: str, texts: Array, kind: str | None = None) -> PageColumn:
    """Return a column of categories, or of text if there are too many different ones."""
    present = [text for text in texts if text is not None]
    known = sorted(set(present))
    if kind == "text" or (kind is None and not are_categories(len(known), len(present))):
        if sum(map(len, present)) <= _MOST_CHARACTERS:
            return PageColumn(name, "text", texts)
        cut = object_array(text and shorten_text(text, _LONGEST_CUT) for text in texts)
        return PageColumn(name, "text", cut, is_cut=True)
    codes = np.nan_to_num(codes_of(texts, known), nan=-1).astype(np.int64)
    return PageColumn(name, "category", codes, tuple(known))


def _is_short(numbers: Array) -> bool:
    """Return whether single precision can store all digits of the numbers."""
    size = np.abs(numbers[numbers != 0])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        digits = size * 10.0 ** (_DIGITS_OF_SINGLE - 1 - np.floor(np.log10(size)))
        return bool(np.all(np.abs(digits - np.round(digits)) < 1e-7))


# --- the columns of a table


@dataclass(frozen=True)
class PageTable:
    """The columns on a page and the features of the forest."""

    columns: list[PageColumn]  # columns of the training rows
    kept: dict[int, str]  # number in the table and name of each column
    features: list[str]  # names of the features that the trees split on
    links: list[int | None]  # the column of each feature; None if it has none
    importances: Array | None  # feature importances of the forest
    notes: list[str]

    @classmethod
    def of(cls, prox: ForestProximity, X: Any, shown: Any, features: list[str]) -> PageTable:
        """Read the columns of ``shown``, or of X if it is None."""
        table = X if shown is None else shown
        names = _column_names(prox, table)
        importances = read_importances(prox, len(features))
        links = link_features(prox, features, X, names, columns_are_x=shown is None)
        kept, notes = _most_important(len(names), links, importances)
        place = {j: k for k, j in enumerate(kept)}
        found = {j: names[j] for j in kept}
        columns = read_columns(table, found)
        for column in columns:
            if column.is_cut:
                notes.append(
                    f"Column {column.name!r} has long texts. The page and its downloads have only "
                    "the first 200 characters of each value."
                )
        placed = [None if j is None else place.get(j) for j in links]
        return cls(columns, found, features, placed, importances, notes)

    def followed_by(self, new: Any, n_new: int, *, by_name: bool) -> list[PageColumn]:
        """Return the columns with the values of new rows appended."""
        wanted = {j: (j, name) for j, name in self.kept.items()}
        if by_name:
            names = column_names(new)
            wanted = {
                j: (names.index(name), name) for j, name in self.kept.items() if name in names
            }
        read = read_columns(new, dict(wanted.values()))
        found = dict(zip(wanted, read, strict=True))
        return [
            column.followed_by(found.get(j), n_new)
            for j, column in zip(self.kept, self.columns, strict=True)
        ]

    def describe(self, blob: Blob, columns: list[PageColumn]) -> dict[str, Any]:
        """Add the columns to a blob, and return their headers."""
        return {
            "columns": [
                column.describe(blob, is_feature=_is_feature(j, self.links))
                for j, column in enumerate(columns)
            ],
            "features": [
                {
                    "name": str(feature if link is None else columns[link].name),
                    "column": link,
                    "importance": None if self.importances is None else float(self.importances[j]),
                }
                for j, (feature, link) in enumerate(zip(self.features, self.links, strict=True))
            ],
        }


def _column_names(prox: ForestProximity, table: Any) -> list[str]:
    names = column_names(table)
    if names:
        return names
    if isinstance(prox.forest_, RawLeaves):
        return []  # leaf ids are not readable columns
    known = getattr(prox, "feature_names_in_", None)
    n_columns = np.shape(table)[1]
    if known is None or len(known) != n_columns:
        known = numbered_names(n_columns)
    return [str(name) for name in known]


def _most_important(
    n_columns: int, links: list[int | None], importances: Array | None
) -> tuple[list[int], list[str]]:
    """Return the columns to show, and a note if some are left out."""
    if n_columns <= _MOST_COLUMNS:
        return list(range(n_columns)), []
    weight = np.zeros(n_columns)
    if importances is not None:
        for link, importance in zip(links, importances, strict=True):
            if link is not None:
                weight[link] += importance
    kept = np.sort(np.argsort(-weight, kind="stable")[:_MOST_COLUMNS])
    which = "most important" if weight.any() else "first"
    return kept.tolist(), [f"The page shows the {which} {_MOST_COLUMNS} of {n_columns} columns."]


def _is_feature(column: int, links: list[int | None]) -> bool | None:
    """Return whether the forest splits on a column; None if unknown."""
    if column in links:
        return True
    return None if None in links or not links else False
