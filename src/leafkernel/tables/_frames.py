"""Read columns of arrays, pandas and polars, and make copies with new values."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import __version__
from sklearn.utils import check_array
from sklearn.utils.fixes import parse_version

from leafkernel.tables._values import Array, Floats, Mask, Values, object_array, read_values

_IS_OLD = parse_version(__version__) < parse_version("1.6")
_FINITE = "force_all_finite" if _IS_OLD else "ensure_all_finite"


def read_table(X: Any, *, mixed: bool, estimator: Any) -> Table:
    """Return X as a table after scikit-learn's checks. ``mixed`` allows arrays of objects."""
    if not (hasattr(X, "iloc") or hasattr(X, "with_columns")):
        has_objects = mixed and np.asarray(X).dtype.kind in "OUS"
        dtype = object if has_objects else (np.float64, np.float32)
        options = {_FINITE: "allow-nan", "estimator": estimator, "input_name": "X"}
        try:
            return Table(check_array(X, dtype=dtype, **options))
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X has text ({error}). List the columns with text in categorical_features."
            ) from error
    table = wrap_table(X)
    if 0 in table.shape:
        raise ValueError(
            f"Found array with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) "
            f"(shape={table.shape}) while a minimum of 1 is required by {type(estimator).__name__}."
        )
    return table


def wrap_table(X: Any) -> Table:
    """Return a data frame or an array as a table."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return PandasTable(X)
    if hasattr(X, "with_columns") and hasattr(X, "to_series"):
        return PolarsTable(X)
    return Table(np.asarray(X))


class Table:
    """A table in a NumPy array of floats or objects, and the base class of other tables."""

    has_types = False  # whether each column has its own type

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.names: list[Any] = list(getattr(X, "columns", range(X.shape[1])))

    @cached_property
    def values(self) -> list[Values]:
        """The values of each column."""
        return [read_values(self.column(j)) for j in range(self.shape[1])]

    def column(self, j: int) -> Any:
        """Return column j."""
        return self.X[:, j]

    def is_integer(self, j: int) -> bool:  # noqa: ARG002 - an array has no column types
        """Return whether the type of column j is an integer."""
        return False

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Any:
        """Return a copy of X with new values. ``columns`` has a mask and the values of each."""
        result: Array = self.X.copy()
        for j, (where, values) in columns.items():
            result[where, j] = values
        return result


class PandasTable(Table):
    """A pandas data frame, with NumPy, nullable and Arrow types."""

    has_types = True

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self.pandas: Any = import_module("pandas")

    def column(self, j: int) -> Any:
        return self.X.iloc[:, j]

    def is_integer(self, j: int) -> bool:
        dtype = self.X.dtypes.iloc[j]
        if self.pandas.api.types.is_integer_dtype(dtype):
            return True
        numbers = self.values[j].numbers
        if numbers is None or not isinstance(dtype, np.dtype):
            return False
        # pandas stores integers with missing values as floats or objects, unless they are nullable.
        known = numbers[~np.isnan(numbers)]
        return bool(len(known) < len(self.X) and (known % 1 == 0).all())

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Any:
        result = self.X.copy()
        for j, (where, found) in columns.items():
            column, values = self.column(j).copy(), found
            if isinstance(column.dtype, self.pandas.CategoricalDtype):
                unknown = [v for v in dict.fromkeys(values) if v not in column.cat.categories]
                column = column.cat.add_categories(unknown)
            elif values.dtype.kind == "f" and self.pandas.api.types.is_integer_dtype(column.dtype):
                if (values == np.rint(values)).all():
                    values = _integers(values, column.dtype.numpy_dtype)
                else:  # the column was of a float type in fit
                    arrow = isinstance(column.dtype, self.pandas.ArrowDtype)
                    column = column.astype("double[pyarrow]" if arrow else "Float64")
            column.iloc[np.flatnonzero(where)] = self.pandas.array(values, dtype=column.dtype)
            result.isetitem(j, column)
        return result


class PolarsTable(Table):
    """A polars data frame."""

    has_types = True

    def column(self, j: int) -> Any:
        return self.X.to_series(j)

    def is_integer(self, j: int) -> bool:
        return bool(self.X.dtypes[j].is_integer())

    def completed(self, columns: dict[int, tuple[Mask, Array]]) -> Any:
        polars: Any = import_module("polars")
        result = []
        for j, (where, values) in columns.items():
            column = self.column(j)
            if column.dtype.is_integer() and (values.astype(np.float64) % 1 != 0).any():
                column = column.cast(polars.Float64)  # its type in fit
            dtype, objects = column.dtype, object_array(column.to_list())
            objects[where] = values
            if dtype.is_integer():
                objects[where] = _integers(values, np.dtype(str(dtype).lower())).tolist()
            result.append(polars.Series(column.name, objects.tolist(), dtype=dtype))
        return self.X.with_columns(result)


def _integers(values: Floats, dtype: Any) -> Array:
    """Return whole floats as integers, clipped to the range of the type."""
    limits = np.iinfo(dtype)
    return np.array([min(max(int(v), limits.min), limits.max) for v in values], dtype=dtype)
