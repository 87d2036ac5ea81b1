"""Detect missing values in files, data frames and arrays."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np

from leafkernel._validation import shorten

_LONGEST_WORD = 30
_WITH_NAN = (float, complex, Decimal, np.inexact, np.datetime64, np.timedelta64)
# Texts for missing values.
MISSING = frozenset(
    [
        *("", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NA or NaT, or a text that means missing.

    Examples
    --------
    >>> from leafkernel.tables._missing import is_missing
    >>> [is_missing(value) for value in (None, float("nan"), " NA ", "", 0, "Nantes")]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return value.strip() in MISSING
    if isinstance(value, _WITH_NAN):
        return bool(value != value)  # noqa: PLR0124
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas


def count_words(words: Counter[str], most: int = 5) -> str:
    """Return words with their counts, the most frequent first.

    Examples
    --------
    >>> from collections import Counter
    >>> from leafkernel.tables._missing import count_words
    >>> count_words(Counter({"?": 1, "NA": 1200}))
    "'NA' (1,200 times), '?' (once)"
    """
    if words.total() == 1:
        return quote(next(iter(words)), _LONGEST_WORD)
    said = [
        f"{quote(word, _LONGEST_WORD)} ({'once' if count == 1 else f'{count:,} times'})"
        for word, count in words.most_common()
    ]
    return shorten(said, most)


def missing_notes(words: Counter[str]) -> list[str]:
    """Return a note on the texts that are treated as missing; an empty list if there are none."""
    if not words:
        return []
    if words.total() == 1:
        return [f"A cell with the text {count_words(words)} is treated as missing."]
    return [
        f"Cells with these texts are treated as missing: {count_words(words, most=len(MISSING))}."
    ]


def quote(name: str, longest: int = 60) -> str:
    """Return a name in quotes, shortened and safe for a terminal."""
    return repr(name if len(name) <= longest else name[: longest - 1] + "…")
