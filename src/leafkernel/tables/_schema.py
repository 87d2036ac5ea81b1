"""The columns of a table as learned in fit, and the encoding of other tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel._validation import warn
from leafkernel.tables._frames import Table
from leafkernel.tables._missing import missing_notes
from leafkernel.tables._notation import PLAIN, Notation
from leafkernel.tables._values import Array, Floats, Mask, Values, codes_of, object_array


@dataclass(frozen=True)
class Column:
    """A feature."""

    name: Any  # the name, or the position in an array
    kind: str  # "number" or "category"
    categories: tuple[Any, ...] | None = None  # the category of each code; None for numbers
    notation: Notation = PLAIN  # the notation of numbers in the file
    is_integer: bool = False  # whether the column has an integer type

    @classmethod
    def of(cls, name: str, kind: str, values: Values) -> Column:
        """Return the column for values that were read from a file."""
        if kind == "category":
            return cls(name, kind, values.categories())
        return cls(name, kind, notation=values.notation)

    @property
    def form(self) -> str:
        """The form of the numbers."""
        return self.notation.form

    @property
    def label(self) -> str:
        """The name of the column in a message."""
        return f"column {self.name!r}"

    @property
    def n_categories(self) -> int:
        """Number of categories; 0 for numbers."""
        return 0 if self.categories is None else len(self.categories)

    def encode(self, values: Values) -> tuple[Floats, Mask]:
        """Return values as floats of shape (n,), and a mask of missing values.

        Categories become codes. An unknown category becomes NaN but is not in the mask.
        """
        if self.categories is not None:
            return codes_of(values.cells(), self.categories), values.missing()
        if values.numbers is None:
            raise ValueError(
                f"{self.label} had numbers in fit, but has categories now. Pass numbers."
            )
        if np.isinf(values.numbers).any():
            raise ValueError(
                f"Input X contains infinity in {self.label}. Replace it with NaN to have it "
                "imputed, or clip it."
            )
        return values.numbers, values.missing()

    def decode(self, numbers: Floats) -> Array:
        """Return the numbers, rounded for integer columns, or the categories of codes."""
        if self.categories is None:
            return np.rint(numbers) if self.is_integer else numbers
        decoded: Array = object_array(self.categories)[numbers.astype(np.intp)]
        return decoded


@dataclass(frozen=True)
class Schema:
    """The columns of a table as learned in fit."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: Table, listed: Mask) -> Schema:
        """Learn the columns. Listed columns are categories whatever their type."""
        words = sum((values.words for values in table.values), Counter[str]())
        for note in missing_notes(words):
            warn(f"{note} If one of them is a category, rename it.")
        return cls(tuple(_learn(table, j, listed=bool(listed[j])) for j in range(table.shape[1])))

    def encode(self, table: Table) -> tuple[Floats, Mask]:
        """Return a table as floats, and a mask of missing values, both of shape (n, d)."""
        values = np.empty(table.shape)
        missing = np.empty(table.shape, dtype=bool)
        for j, column in enumerate(self.columns):
            values[:, j], missing[:, j] = column.encode(table.values[j])
        return values, missing


def _learn(table: Table, j: int, *, listed: bool) -> Column:
    values, name = table.values[j], table.names[j]
    if values.form:  # dates and durations
        raise TypeError(
            f"column {name!r} of type {table.column(j).dtype} has neither numbers nor categories. "
            "Convert it to numbers (for dates, days since a date) or drop it."
        )
    if values.numbers is not None and not listed:
        return Column(name, "number", is_integer=table.is_integer(j))
    if not listed and not table.has_types:
        raise ValueError(
            f"column {name!r} has values that are not numbers. List it in categorical_features."
        )
    try:
        return Column(name, "category", _categories(values))
    except TypeError as error:
        raise TypeError(
            f"column {name!r} has values that cannot be categories: {error}."
        ) from error


def _categories(values: Values) -> tuple[Any, ...]:
    """Return the categories of a column: in the order of its type, or sorted."""
    occurring = dict.fromkeys(value for value in values.cells() if value is not None)
    if values.order is not None:
        return tuple(level for level in values.order if level in occurring)
    try:
        return tuple(sorted(occurring))
    except TypeError:  # of several types
        return tuple(sorted(occurring, key=lambda value: (type(value).__name__, str(value))))


def list_columns(listed: Any, names: list[str], n_columns: int) -> Mask:
    """Return a mask (d,) of columns that are given as a mask, positions, names or None."""
    mask = np.zeros(n_columns, dtype=bool)
    given = np.asarray([] if listed is None else listed)
    if given.ndim != 1:
        raise ValueError(f"categorical_features must be a list; got {listed!r}.")
    if not given.size:
        return mask
    if given.dtype.kind in "OU":
        unknown = [name for name in given.tolist() if name not in names]
        if unknown:
            among = (
                f"are not columns of X. Its columns are {names}"
                if names
                else "cannot be used because X has no column names. Use positions"
            )
            raise ValueError(f"categorical_features={unknown} {among}.")
        given = np.array([names.index(name) for name in given.tolist()], dtype=int)
    if given.dtype.kind not in "bui":
        raise TypeError(f"categorical_features must be a mask, positions or names; got {listed!r}.")
    if given.dtype.kind == "b" and len(given) != n_columns:
        raise ValueError(
            f"categorical_features is a mask of length {len(given)}, but X has {n_columns} columns."
        )
    if given.dtype.kind != "b" and not 0 <= given.min() <= given.max() < n_columns:
        raise ValueError(
            f"categorical_features must be between 0 and {n_columns - 1}; got {given.tolist()}."
        )
    mask[given] = True
    return mask
