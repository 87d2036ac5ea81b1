"""The values of one column of pandas, polars or NumPy, as numbers or as objects.

The imputer, the plots, the explorer and the command line all read columns with ``read_values``.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._missing import is_missing
from leafkernel.tables._notation import PLAIN, Notation

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MAX_CATEGORIES = 1000
_EXACT = 2**53  # larger whole numbers are not exact as floats
_LARGEST = float(np.finfo(np.float32).max)  # forests use single precision
_LONGEST_NESTED = 200
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True)
class Values:
    """One column: either numbers (NaN if missing) or objects (None if missing)."""

    # Dates are days since 1970, and durations are days.
    numbers: Floats | None = None
    objects: Array | None = None  # the original values
    order: tuple[Any, ...] | None = None  # categories in the order of the type
    nested: bool = False  # whether there are lists or similar objects, which are only shown
    notation: Notation = PLAIN  # the notation of the numbers
    counts: dict[str, int] = field(default_factory=dict)  # values made missing, by reason
    strays: Counter[str] = field(default_factory=Counter)  # texts that are not numbers
    words: Counter[str] = field(default_factory=Counter)  # texts for missing values

    @property
    def form(self) -> str:
        """The form of the numbers."""
        return self.notation.form

    @cached_property
    def texts(self) -> Array | None:
        """The objects as stripped text; None if the column has numbers."""
        if self.objects is None:
            return None
        longest = _LONGEST_NESTED if self.nested else None
        return object_array(
            value if value is None else shorten_text(_text(value), longest)
            for value in self.objects
        )

    def cells(self) -> Array:
        """Return the values as objects, None if missing."""
        if self.objects is not None:
            return self.objects
        assert self.numbers is not None
        cells = self.numbers.astype(object)
        cells[self.missing()] = None
        return cells

    def labels(self) -> Array:
        """Return the values as text: whole numbers without a point, None if missing."""
        if self.texts is not None:
            return self.texts
        return object_array(x if x is None else _text(x) for x in self.cells())

    def missing(self) -> Mask:
        """Return a mask of missing values."""
        if self.numbers is not None:
            return np.isnan(self.numbers)
        assert self.objects is not None
        return _is_none(self.objects)

    def written(self) -> Array:
        """Return the values as text like ``labels``, but keep the blanks around text."""
        both = zip(self.cells(), self.labels(), strict=True)
        return object_array(cell if isinstance(cell, str) else label for cell, label in both)

    def categories(self) -> tuple[str, ...]:
        """Return the unique labels: in the order of the type, else sorted."""
        present = {text for text in self.labels() if text is not None}
        if self.order is not None:
            return tuple(dict.fromkeys(x for x in map(_text, self.order) if x in present))
        return tuple(sorted(present))


def read_values(column: Any) -> Values:
    """Read a column of pandas, polars or NumPy as numbers if possible, else as objects.

    Examples
    --------
    >>> import numpy as np
    >>> from leafkernel.tables._values import read_values
    >>> read_values(np.array([1, 2.5, None], dtype=object)).numbers
    array([1. , 2.5, nan])
    >>> read_values(np.array(["red", "NA"])).objects
    array(['red', None], dtype=object)
    """
    array, order = _as_array(column)
    if array.dtype.kind in "uif":
        return Values(array.astype(np.float64))
    if array.dtype.kind == "M":
        return Values(_days(array - np.datetime64(0, "s")), notation=Notation("dates"))
    if array.dtype.kind == "m":
        return Values(_days(array), notation=Notation("durations"))
    objects = object_array(None if is_missing(value) else value for value in array)
    words = Counter(x.strip() for x in array[_is_none(objects)] if isinstance(x, str) and x.strip())
    kinds = {type(value) for value in objects if value is not None}
    if order is not None:
        return Values(objects=objects, order=order, words=words)
    if kinds and _all(kinds, Real, Decimal) and kinds.isdisjoint({bool, np.bool_}):
        numbers = np.array([_to_float(value) for value in objects])
        return Values(numbers, words=words)
    if kinds and _all(kinds, datetime.date, np.datetime64):  # datetime and Timestamp are dates
        dates = np.array([_utc(value) for value in objects], dtype="datetime64[us]")
        return read_values(dates)
    if kinds and _all(kinds, datetime.timedelta, np.timedelta64):
        return read_values(np.array(objects, dtype="timedelta64[us]"))
    simple = (str, bool, np.bool_, Real, complex, np.number, Decimal, datetime.date)
    return Values(objects=objects, nested=not _all(kinds, *simple), words=words)


def read_feature(column: Any) -> Values:
    """Read a column as a feature of a forest.

    Numbers that are too large become missing. Whole numbers that are too long to be exact stay
    objects.
    """
    values = read_values(column)
    if values.numbers is None or values.form:
        return values
    with np.errstate(invalid="ignore"):
        large = np.abs(values.numbers) > _EXACT
    if large.any():
        cells = object_array([None if is_missing(value) else value for value in column])
        if all(isinstance(value, (int, np.integer)) for value in cells if value is not None):
            return Values(objects=cells)
    return without_large(values)


def without_large(values: Values) -> Values:
    """Return values in which infinity and numbers that are too large for a forest are missing."""
    assert values.numbers is not None
    large = np.abs(values.numbers) > _LARGEST
    if not large.any():
        return values
    counts = {**values.counts, "too large": int(large.sum())}
    return replace(values, numbers=np.where(large, np.nan, values.numbers), counts=counts)


def _as_array(column: Any) -> tuple[Array, tuple[Any, ...] | None]:
    """Return a column as an array of numbers, dates, durations or objects, and its order."""
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "pyarrow_dtype"):  # of pandas
        plain = column.array.__arrow_array__().to_pandas(date_as_object=False)
        return _as_array(plain)
    if hasattr(column, "iloc"):
        if hasattr(dtype, "categories"):
            return column.astype(object).to_numpy(), tuple(dtype.categories)
        if hasattr(dtype, "tz"):
            return column.dt.tz_convert(None).to_numpy(), None
        if dtype.kind in "uif":
            return column.to_numpy(dtype=np.float64, na_value=np.nan), None
        return column.to_numpy() if dtype.kind in "mM" else column.astype(object).to_numpy(), None
    if hasattr(column, "to_list"):  # polars
        if dtype.is_numeric() or dtype.is_temporal():
            return np.asarray(column.to_numpy()), None
        order = getattr(dtype, "categories", None) if str(dtype).startswith("Enum") else None
        return object_array(column.to_list()), None if order is None else tuple(order)
    array = np.asarray(column)
    return array if array.dtype.kind in "uifmMO" else array.astype(object), None


def _is_none(objects: Array) -> Mask:
    return np.array([value is None for value in objects], dtype=bool)


def _all(kinds: set[type], *allowed: type) -> bool:
    return all(issubclass(kind, allowed) for kind in kinds)


def _to_float(value: Any) -> float:
    try:
        return np.nan if value is None else float(value)
    except OverflowError:
        return np.inf


def _utc(value: Any) -> Any:
    """Return a date without time zone, converted to UTC if it had one."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(datetime.timezone.utc).replace(tzinfo=None)


def _days(lengths: Array) -> Floats:
    return np.asarray(lengths / _DAY, dtype=np.float64)


def _text(value: Any) -> str:
    """Return a value as text: whole numbers without a point."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(float(value))
    return str(value).strip()


def object_array(values: Iterable[Any]) -> Array:
    """Return values as an array of objects. NumPy itself would unpack tuples and lists."""
    given = list(values)
    array = np.empty(len(given), dtype=object)
    for i, value in enumerate(given):
        array[i] = value
    return array


def shorten_text(text: str, longest: int | None) -> str:
    """Return a text, cut if it is too long."""
    return text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"


def are_categories(n_different: int, n_values: int) -> bool:
    """Return whether texts are few enough for categories: at most 1000 and half of the values."""
    return n_different <= min(MAX_CATEGORIES, max(n_values // 2, 2))


def as_shown(numbers: Floats, form: str) -> Array:
    """Return numbers in their original form: days since 1970 as dates, to the second."""
    if form not in DATE_FORMS:
        return numbers
    known = ~np.isnan(numbers)
    dates = np.full(len(numbers), np.datetime64("NaT", "s"))  # few centuries fit in nanoseconds
    dates[known] = np.round(numbers[known] * 86400).astype(np.int64).astype("datetime64[s]")
    return dates


def codes_of(values: Iterable[Any], categories: Iterable[Any]) -> Floats:
    """Return the code of each value among the categories; NaN if missing or unknown."""
    place = {category: float(code) for code, category in enumerate(categories)}
    return np.array([place.get(value, np.nan) for value in values], dtype=np.float64)
