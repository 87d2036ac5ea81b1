"""Parse dates: ISO dates, and dates that start with the day or the month."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Forms of dates. Only the first is detected automatically.
DATE_FORMS = ("dates", "year-first dates", "day-first dates", "month-first dates")

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_YEAR_FIRST = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(|[T ]\d{1,2}:\d{2}.*)")
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(|[T ]\d{1,2}:\d{2}.*)")


def to_iso(text: str, form: str) -> str | None:
    """Return a date of a given form as an ISO date; None if it has another form.

    Examples
    --------
    >>> from leafkernel.tables._dates import to_iso
    >>> to_iso("31/12/2024", "day-first dates"), to_iso("31/12/2024", "month-first dates")
    ('2024-12-31', None)
    """
    if _ISO.fullmatch(text):
        return text
    if form == "dates":
        return None
    if match := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, time = match.groups()
    elif form != "year-first dates" and (match := _YEAR_LAST.fullmatch(text)):
        first, _, second, year, time = match.groups()
        day, month = (first, second) if form == "day-first dates" else (second, first)
    else:
        return None
    return f"{year}-{int(month):02}-{int(day):02}{time}" if 1 <= int(month) <= 12 else None


def find_date_form(texts: Iterable[str]) -> str:
    """Return the form of dates. Raise ValueError if it is ambiguous."""
    pairs = [(int(match[1]), int(match[3])) for match in map(_YEAR_LAST.fullmatch, texts) if match]
    if not pairs:
        return "year-first dates"
    day_first = any(first > 12 for first, _ in pairs)
    month_first = any(second > 12 for _, second in pairs)
    if day_first and month_first:
        raise ValueError("some dates start with the day and others with the month")
    if not day_first and not month_first:
        raise ValueError("it is not clear whether the dates start with the day or the month")
    return "day-first dates" if day_first else "month-first dates"
