"""Text that a spreadsheet would run as a formula."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from leafkernel._validation import shorten
from leafkernel.cli._amounts import read_amount
from leafkernel.cli._kinds import quote
from leafkernel.cli._signs import SPACES

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


def may_hold_text(column: Any) -> bool:
    """Return whether the type of a column allows text."""
    types = pd.api.types
    return not (types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype))


def formula_notes(frame: Any) -> list[str]:
    """Return a note on the columns of a table that hold formulas; none if no column does."""
    found = []
    for i, name in enumerate(frame.columns):
        column = frame.iloc[:, i]
        count = sum(map(is_formula, column)) if may_hold_text(column) else 0
        count += is_formula(name)
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

    Parameters
    ----------
    frame : DataFrame of shape (rows, columns)

    Returns
    -------
    frame : DataFrame of shape (rows, columns)
        A copy.

    Examples
    --------
    >>> import pandas as pd
    >>> from leafkernel.cli.files import defuse
    >>> defuse(pd.DataFrame({"note": ["=1+1", "fine", "-5"]}))["note"].tolist()
    ["'=1+1", 'fine', '-5']
    """
    safe = frame.copy()
    for i in range(safe.shape[1]):
        column = safe.iloc[:, i]
        if may_hold_text(column):
            values = [escape(value) for value in column]
            safe.isetitem(i, pd.Series(values, index=safe.index, dtype=object))
    safe.columns = [escape(name) for name in safe.columns]
    return safe


def escape(value: Any) -> Any:
    """Return a cell, with an apostrophe if a spreadsheet would run it."""
    return f"'{value}" if is_formula(value) else value
