"""Text that a spreadsheet would run as a formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from leafkernel._validation import shorten
from leafkernel.tables._amounts import read_amount
from leafkernel.tables._missing import quote
from leafkernel.tables._signs import SPACES

_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(
    rf"[-+]?(\d+[.,]?\d*|[.,]\d+|\d{{1,3}}([.,{SPACES}]\d{{3}})+([.,]\d+)?)([eE][-+]?\d+)?"
)


def is_formula(value: Any) -> bool:
    """Return whether a spreadsheet would run a cell: text with a sign in front, but no number."""
    if not isinstance(value, str) or not value.lstrip(" \0").startswith(_DANGEROUS):
        return False
    text = value.strip(" ")
    if not text.strip("=+-@ "):  # a dash for a missing value, or a line of them
        return False
    return _NUMBER.fullmatch(text) is None and read_amount(text) is None


def text_columns(frame: Any) -> Iterator[tuple[int, Any]]:
    """Yield the place and the values of each column whose type allows text."""
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "uifcmMb":
            yield i, frame.iloc[:, i]


def map_text(frame: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of a table with all of its text changed."""
    changed = frame.copy()
    for i, column in text_columns(frame):
        values = [change(value) if isinstance(value, str) else value for value in column]
        changed.isetitem(i, pd.Series(values, index=frame.index, dtype=object))
    return changed


def formula_notes(frame: Any) -> list[str]:
    """Return a note on the columns of a table that hold formulas; none if no column does."""
    counts = {i: sum(map(is_formula, column)) for i, column in text_columns(frame)}
    found = []
    for i, name in enumerate(frame.columns):
        count = counts.get(i, 0) + is_formula(name)
        if count:
            found.append(f"{quote(str(name))} ({count:,} cell{'s' * (count > 1)})")
    if not found:
        return []
    return [
        "Text that begins with =, +, - or @ was written as it is, but a spreadsheet would run it "
        "as a formula. Use --escape-formulas to put an apostrophe in front of it. Columns: "
        f"{shorten(found, 20)}."
    ]


def defuse(frame: Any) -> Any:
    """Return a table whose text no spreadsheet runs as a formula.

    Text that starts with one of ``= + - @``, a tab or a line end gets an apostrophe in front, in
    cells and in names of columns; numbers stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from leafkernel.tables._formulas import defuse
    >>> defuse(pd.DataFrame({"note": ["=1+1", "fine", "-5"]}))["note"].tolist()
    ["'=1+1", 'fine', '-5']
    """
    safe = map_text(frame, escape)
    safe.columns = [escape(name) for name in safe.columns]
    return safe


def escape(value: Any) -> Any:
    """Return a cell, with an apostrophe if a spreadsheet would run it."""
    return f"'{value}" if is_formula(value) else value
