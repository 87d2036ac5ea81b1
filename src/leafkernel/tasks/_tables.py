"""Tables of numbers and categories: read as floats for a forest, completed in the form they came.

A table is one of three thin readers (arrays, pandas, polars) with the same methods; a
:class:`Schema` is what ``fit`` learned of its columns, and turns tables into floats by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn import __version__
from sklearn.utils import check_array
from sklearn.utils.fixes import parse_version

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_IS_OLD = parse_version(__version__) < parse_version("1.6")
_FINITE = "force_all_finite" if _IS_OLD else "ensure_all_finite"


class Table(Protocol):
    """Columns of X, whatever holds them."""

    shape: tuple[int, int]

    def label(self, j: int) -> str:
        """Name column j in a message."""

    def is_text(self, j: int) -> bool:
        """Return whether column j can only be categories; refuse what is neither."""

    def is_integer(self, j: int) -> bool:
        """Return whether column j has an integer type."""

    def levels(self, j: int) -> list[Any] | None:
        """Return the categories that the column's type declares, in order, if it declares any."""

    def numbers(self, j: int) -> Floats:
        """Return column j as floats of shape (n,), NaN where missing."""

    def objects(self, j: int) -> tuple[Array, Mask]:
        """Return column j as objects of shape (n,), and which of them are missing."""

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Any:
        """Return a copy of X; of each column given, where to write, and all that to write there."""


def read_table(X: Any, *, mixed: bool, estimator: Any) -> Table:
    """Return X, a data frame or an array, as a table; ``mixed`` lets arrays hold objects."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        table: Table = PandasTable(X)
    elif hasattr(X, "with_columns") and hasattr(X, "to_series"):
        table = PolarsTable(X)
    else:
        has_objects = mixed and np.asarray(X).dtype.kind in "OUS"
        dtype = object if has_objects else (np.float64, np.float32)
        options = {_FINITE: "allow-nan", "estimator": estimator, "input_name": "X"}
        try:
            return ArrayTable(check_array(X, dtype=dtype, **options))
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X holds text ({error}); name the columns that hold it in categorical_features."
            ) from error
    if 0 in table.shape:
        raise ValueError(
            f"Found array with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) "
            f"(shape={table.shape}) while a minimum of 1 is required by {type(estimator).__name__}."
        )
    return table


class ArrayTable:
    """A NumPy array of floats or of objects."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self.shape = X.shape

    def label(self, j: int) -> str:
        return f"column {j}"

    def is_text(self, j: int) -> bool:
        return False

    def is_integer(self, j: int) -> bool:
        return False

    def levels(self, j: int) -> list[Any] | None:
        return None

    def numbers(self, j: int) -> Floats:
        if self.X.dtype.kind == "f":
            return self.X[:, j].astype(np.float64)
        objects, missing = self.objects(j)
        numbers = np.full(len(objects), np.nan)
        try:
            numbers[~missing] = objects[~missing].astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.label(j)} holds what is not a number ({error}); name the column in "
                "categorical_features."
            ) from error
        return numbers

    def objects(self, j: int) -> tuple[Array, Mask]:
        objects = self.X[:, j].astype(object)
        return objects, _missing(objects)

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Array:
        result: Array = self.X.copy()
        for j, (where, values) in columns.items():
            result[where, j] = values
        return result


class PandasTable:
    """A pandas data frame, with NumPy, nullable and Arrow types."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape
        self.pandas: Any = import_module("pandas")

    def label(self, j: int) -> str:
        return f"column {self.X.columns[j]!r}"

    def is_text(self, j: int) -> bool:
        dtype, types = self.X.dtypes.iloc[j], self.pandas.api.types
        if types.is_bool_dtype(dtype) or isinstance(dtype, self.pandas.CategoricalDtype):
            return True
        if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
            return False
        if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
            return True
        raise _neither(self.label(j), dtype)

    def is_integer(self, j: int) -> bool:
        if self._has_integer_type(j):
            return True
        dtype = self.X.dtypes.iloc[j]
        if not isinstance(dtype, np.dtype) or dtype.kind != "f":
            return False
        # pandas makes floats of integers with gaps, unless they are of a type of its own.
        known = self.numbers(j)
        known = known[~np.isnan(known)]
        return bool(len(known) < len(self.X) and (known % 1 == 0).all())

    def _has_integer_type(self, j: int) -> bool:
        return bool(self.pandas.api.types.is_integer_dtype(self.X.dtypes.iloc[j]))

    def levels(self, j: int) -> list[Any] | None:
        dtype = self.X.dtypes.iloc[j]
        known = isinstance(dtype, self.pandas.CategoricalDtype)
        return list(dtype.categories) if known else None

    def numbers(self, j: int) -> Floats:
        column = self.X.iloc[:, j]
        numbers: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
        return numbers

    def objects(self, j: int) -> tuple[Array, Mask]:
        column = self.X.iloc[:, j]
        return column.astype(object).to_numpy(), column.isna().to_numpy()

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Any:
        result = self.X.copy()
        for j, (where, found) in columns.items():
            column, values = result.iloc[:, j].copy(), found
            if isinstance(column.dtype, self.pandas.CategoricalDtype):
                unknown = [v for v in dict.fromkeys(values) if v not in column.cat.categories]
                column = column.cat.add_categories(unknown)
            elif values.dtype.kind == "f" and self._has_integer_type(j):
                if (values == np.rint(values)).all():
                    values = _integers(values, column.dtype.numpy_dtype)
                else:  # the column had a float type in fit
                    arrow = isinstance(column.dtype, self.pandas.ArrowDtype)
                    column = column.astype("double[pyarrow]" if arrow else "Float64")
            column.iloc[np.flatnonzero(where)] = self.pandas.array(values, dtype=column.dtype)
            result.isetitem(j, column)
        return result


class PolarsTable:
    """A polars data frame."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape
        self.polars: Any = import_module("polars")

    def label(self, j: int) -> str:
        return f"column {self.X.columns[j]!r}"

    def is_text(self, j: int) -> bool:
        dtype, pl = self.X.dtypes[j], self.polars
        if dtype.is_numeric():
            return False
        if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
            return True
        raise _neither(self.label(j), dtype)

    def is_integer(self, j: int) -> bool:
        return bool(self.X.dtypes[j].is_integer())

    def levels(self, j: int) -> list[Any] | None:
        dtype = self.X.dtypes[j]
        return list(dtype.categories) if dtype == self.polars.Enum else None

    def numbers(self, j: int) -> Floats:
        column = self.X.to_series(j).cast(self.polars.Float64)
        return np.array(column.to_numpy(), dtype=np.float64)

    def objects(self, j: int) -> tuple[Array, Mask]:
        objects = _object_array(self.X.to_series(j).to_list())
        return objects, _missing(objects)

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Any:
        result = []
        for j, (where, found) in columns.items():
            column, values = self.X.to_series(j), found
            dtype = column.dtype
            if values.dtype.kind == "f" and dtype.is_integer() and (values % 1 == 0).all():
                values = _integers(values, np.dtype(str(dtype).lower())).astype(object)
            if values.dtype.kind == "f":
                numbers = self.numbers(j)
                numbers[where] = values
                dtype = dtype if dtype.is_float() else self.polars.Float64
                result.append(self.polars.Series(column.name, numbers).cast(dtype))
            else:
                objects, _ = self.objects(j)
                objects[where] = values
                result.append(self.polars.Series(column.name, objects.tolist(), dtype=dtype))
        return self.X.with_columns(result)


@dataclass(frozen=True)
class Column:
    """What fit learned of a column: its name, its categories if it has any, and its type."""

    label: str
    categories: tuple[Any, ...] | None
    is_integer: bool = False

    @property
    def n_categories(self) -> int:
        """Number of categories; 0 for numbers."""
        return 0 if self.categories is None else len(self.categories)

    def encode(self, table: Table, j: int) -> tuple[Floats, Mask]:
        """Return column j as floats of shape (n,), and which values are missing.

        Categories become their numbers; one that is not known becomes NaN but is not missing.
        """
        if self.categories is None:
            if table.is_text(j):
                raise ValueError(f"{self.label} held numbers in fit, but holds categories now.")
            numbers = table.numbers(j)
            if np.isinf(numbers).any():
                raise ValueError(
                    f"Input X contains infinity in {self.label}; make it missing (NaN) to have it "
                    "imputed, or clip it."
                )
            return numbers, np.isnan(numbers)
        objects, missing = table.objects(j)
        code = {category: float(k) for k, category in enumerate(self.categories)}
        codes = np.array([code.get(value, np.nan) for value in objects], dtype=np.float64)
        codes[missing] = np.nan
        return codes, missing

    def decode(self, numbers: Floats) -> Array:
        """Return numbers, whole ones for integers, or the categories of numbers as objects."""
        if self.categories is None:
            return np.rint(numbers) if self.is_integer else numbers
        decoded: Array = _object_array(self.categories)[numbers.astype(np.intp)]
        return decoded


@dataclass(frozen=True)
class Schema:
    """What fit learned of a table."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: Table, listed: Mask) -> Schema:
        """Learn the columns; those that are listed are categories whatever their type."""
        columns = []
        for j in range(table.shape[1]):
            is_category = table.is_text(j) or listed[j]
            categories = _categories(table, j) if is_category else None
            columns.append(Column(table.label(j), categories, table.is_integer(j)))
        return cls(tuple(columns))

    def encode(self, table: Table) -> tuple[Floats, Mask]:
        """Return a table as floats, and which values are missing, both of shape (n, d)."""
        values = np.empty(table.shape)
        missing = np.empty(table.shape, dtype=bool)
        for j, column in enumerate(self.columns):
            values[:, j], missing[:, j] = column.encode(table, j)
        return values, missing


def list_columns(listed: Any, names: list[str], n_columns: int) -> Mask:
    """Return a mask (d,) of columns given as a mask, as positions, as names, or as None."""
    mask = np.zeros(n_columns, dtype=bool)
    if listed is None:
        return mask
    given = np.asarray(listed)
    if given.ndim != 1:
        raise ValueError(f"categorical_features must be a list; got {listed!r}.")
    if given.dtype.kind in "OU":
        unknown = [name for name in given.tolist() if name not in names]
        if unknown:
            among = f"the columns are {names}" if names else "X has no column names: give positions"
            raise ValueError(f"categorical_features names {unknown}, but {among}.")
        given = np.array([names.index(name) for name in given.tolist()], dtype=int)
    elif given.dtype.kind == "b" and len(given) != n_columns:
        raise ValueError(
            f"categorical_features is a mask of {len(given)}, but X has {n_columns} columns."
        )
    elif (
        given.size and given.dtype.kind in "ui" and not -1 < given.min() <= given.max() < n_columns
    ):
        raise ValueError(
            f"categorical_features must lie between 0 and {n_columns - 1}; got {given.tolist()}."
        )
    elif given.size and given.dtype.kind not in "bui":
        raise TypeError(f"categorical_features must be a mask, positions or names; got {listed!r}.")
    mask[given if given.size else []] = True
    return mask


def _categories(table: Table, j: int) -> tuple[Any, ...]:
    """Return the categories that occur in a column: in the order of its type, or sorted."""
    objects, missing = table.objects(j)
    try:
        occurring = dict.fromkeys(objects[~missing].tolist())
    except TypeError as error:
        raise TypeError(f"{table.label(j)} holds what cannot be a category: {error}.") from error
    levels = table.levels(j)
    if levels is not None:
        return tuple(level for level in levels if level in occurring)
    try:
        return tuple(sorted(occurring))
    except TypeError:  # of several types
        return tuple(sorted(occurring, key=lambda value: (type(value).__name__, str(value))))


def _missing(objects: Array) -> Mask:
    """Return which objects are None, NaN or pandas' NA."""
    return np.array([is_missing(value) for value in objects], dtype=bool)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _integers(values: Floats, dtype: Any) -> Array:
    """Return whole floats as integers; rounding may have led out of the range of the type."""
    limits = np.iinfo(dtype)
    return np.array([min(max(int(v), limits.min), limits.max) for v in values], dtype=dtype)


def _object_array(values: Any) -> Array:
    array = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):  # one by one: NumPy would look into tuples
        array[k] = value
    return array


def _neither(label: str, dtype: Any) -> TypeError:
    return TypeError(
        f"{label} of type {dtype} holds neither numbers nor categories; make numbers of it (for "
        "dates, days since a date) or drop it."
    )
