"""What the columns of a table are: features, names of rows, text, or nothing of use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel._validation import shorten
from leafkernel.cli._dates import DATE_FORMS
from leafkernel.cli._missing import count_words
from leafkernel.cli._values import NEARLY_ALL, Texts, Values

MAX_CATEGORIES = 1000
MAX_DISTINCT = 0.5  # of the rows, in a column of categories
_LONGEST_ID = 64
_LONGEST_NAME = 60
_ID_NAME = re.compile(
    r"(.*[\W_])?(?i:id|uid|uuid|guid)|(?i:index|row|key)|.*[a-z](ID|Id)", re.DOTALL
)
# 31/12/2024, 31.12.24, 2024/12/31 and the like, with or without a time.
_OTHER_DATE = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}([./-])\d{1,2}\4\d{1,2})([T ,].*)?", re.DOTALL
)

# Sentences for one column and for many.
_NOTES = {
    "unnamed": (
        "A column without a name was named {names}.",
        "{n} columns without a name were named {names}.",
    ),
    "duplicate": (
        "A column with the name of another was renamed to {names}.",
        "{n} columns with the name of another were renamed to {names}.",
    ),
    "empty": (
        "Column {names} is empty and was left out.",
        "{n} columns are empty and were left out: {names}.",
    ),
    "constant": (
        "Column {names} has the same value in all rows and was left out.",
        "{n} columns have the same value in all rows and were left out: {names}.",
    ),
    "id": (
        "Column {names} has another value in each row, as names of rows have, so it is shown but "
        "is not a feature.",
        "{n} columns have another value in each row, as names of rows have, so they are shown but "
        "are not features: {names}.",
    ),
    "nested": (
        "Column {names} holds lists or other nested values, so it is shown but is not a feature.",
        "{n} columns hold lists or other nested values, so they are shown but are not features: "
        "{names}.",
    ),
    "text": (
        f"Column {{names}} has too many different texts for categories (more than "
        f"{MAX_CATEGORIES:,}, or than half of its rows), so it is shown but is not a feature.",
        f"{{n}} columns have too many different texts for categories (more than "
        f"{MAX_CATEGORIES:,}, or than half of their rows), so they are shown but are not features: "
        "{names}.",
    ),
    "other dates": (
        "Column {names} seems to hold dates, but not ISO dates (such as 2024-12-31), so it is "
        "shown but is not a feature. Use --as COLUMN=date to read it as dates.",
        "{n} columns seem to hold dates, but not ISO dates (such as 2024-12-31), so they are "
        "shown but are not features: {names}. Use --as COLUMN=date to read them as dates.",
    ),
    "dates": (
        "Column {names} holds dates, which are days since 1970 for the forest.",
        "{n} columns hold dates, which are days since 1970 for the forest: {names}.",
    ),
    **{
        f"{first}-first dates": (
            f"Column {{names}} holds dates with the {first} first, which are days since 1970 for "
            "the forest.",
            f"{{n}} columns hold dates with the {first} first, which are days since 1970 for the "
            "forest: {names}.",
        )
        for first in ("year", "month", "day")
    },
    "durations": (
        "Column {names} holds lengths of time, which are days for the forest.",
        "{n} columns hold lengths of time, which are days for the forest: {names}.",
    ),
    "decimal commas": (
        "Column {names} was read as numbers with decimal commas.",
        "{n} columns were read as numbers with decimal commas: {names}.",
    ),
    "thousands": (
        "Column {names} was read as numbers with commas between thousands.",
        "{n} columns were read as numbers with commas between thousands: {names}.",
    ),
    "dot thousands": (
        "Column {names} was read as whole numbers with dots between thousands.",
        "{n} columns were read as whole numbers with dots between thousands: {names}.",
    ),
    "spaces": (
        "Column {names} was read as numbers with spaces between thousands.",
        "{n} columns were read as numbers with spaces between thousands: {names}.",
    ),
    "spaces and decimal commas": (
        "Column {names} was read as numbers with spaces between thousands and decimal commas.",
        "{n} columns were read as numbers with spaces between thousands and decimal commas: "
        "{names}.",
    ),
    "apostrophes": (
        "Column {names} was read as numbers with apostrophes between thousands.",
        "{n} columns were read as numbers with apostrophes between thousands: {names}.",
    ),
    "percentages": (
        "Column {names} was read as percentages: 8.3% is the number 8.3.",
        "{n} columns were read as percentages, with 8.3% as the number 8.3: {names}.",
    ),
    "brackets": (
        "Column {names} was read as numbers in which brackets stand for a minus: (5) is -5.",
        "{n} columns were read as numbers in which brackets stand for a minus, with (5) as -5: "
        "{names}.",
    ),
    "currencies": (
        "Column {names} holds amounts in several currencies, so it was not read as numbers. "
        "Convert them to one currency.",
        "{n} columns hold amounts in several currencies, so they were not read as numbers: "
        "{names}. Convert them to one currency.",
    ),
    "unsure points": (
        "Column {names} was read as numbers with decimal points, but the points could also stand "
        "between thousands. If 1.234 means 1234 there, use --thousands '.' instead.",
        "{n} columns were read as numbers with decimal points, but the points could also stand "
        "between thousands. If 1.234 means 1234 there, use --thousands '.' instead: {names}.",
    ),
    "unsure thousands": (
        "Column {names} was read as numbers with commas between thousands, but the commas could "
        "also be decimal commas. If 1,234 means 1.234 there, use --decimal ',' instead.",
        "{n} columns were read as numbers with commas between thousands, but the commas could also "
        "be decimal commas. If 1,234 means 1.234 there, use --decimal ',' instead: {names}.",
    ),
    "unsure decimal commas": (
        "Column {names} was read as numbers with decimal commas, but the commas could also stand "
        "between thousands. If 1,234 means 1234 there, use --thousands ',' instead.",
        "{n} columns were read as numbers with decimal commas, but the commas could also stand "
        "between thousands. If 1,234 means 1234 there, use --thousands ',' instead: {names}.",
    ),
    "not numbers": (
        "Text among the numbers of column {names} was taken as missing.",
        "Text among the numbers of {n} columns was taken as missing: {names}.",
    ),
    "too large": (
        "Column {names} holds numbers that are infinite or too large for a forest, which were "
        "taken as missing.",
        "{n} columns hold numbers that are infinite or too large for a forest, which were taken "
        "as missing: {names}.",
    ),
    "unknown": (
        "Column {names} holds categories that the forest has not seen, which were taken as "
        "missing.",
        "{n} columns hold categories that the forest has not seen, which were taken as missing: "
        "{names}.",
    ),
    "leak": (
        "Column {names} alone tells the target; if it was made from it, leave it out with --drop.",
        "{n} columns each tell the target alone; if they were made from it, leave them out with "
        "--drop: {names}.",
    ),
}


class Findings:
    """What was found in which columns, to be told in one sentence for each kind of finding."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(
        self, what: str, name: str, count: int | None = None, words: Counter[str] | None = None
    ) -> None:
        """Note something of a column, with the number of values that it concerns and examples."""
        values = "value" if count == 1 else "values"
        examples = f": {count_words(words)}" if words else ""
        self._add(what, name, "" if count is None else f"{count:,} {values}{examples}")

    def _add(self, what: str, name: str, detail: str) -> None:
        said = f"{quote(name)} ({detail})" if detail else quote(name)
        self._found.setdefault(what, []).append(said)

    def add_values(self, name: str, values: Values) -> None:
        """Note how numbers were read."""
        if values.unsure:
            self.add(f"unsure {values.form or 'points'}", name)
        elif values.form:
            self.add(values.form, name)
        if values.units:
            self._add("currencies", name, ", ".join(values.units))
        if values.style is not None:
            unit = values.style.unit
            kinds = {"%": "percentages", "": "brackets"}
            self.add(kinds.get(unit, f"amounts in {unit}"), name)
        self.add_losses(name, values)

    def add_losses(self, name: str, values: Values) -> None:
        """Note which values became missing."""
        for what, count in values.counts.items():
            self.add(what, name, count, values.strays if what == "not numbers" else None)

    def sentences(self) -> list[str]:
        """Return a sentence for each kind of finding."""
        said = []
        amounts = {
            what: (
                f"Column {{names}} was read as {what}.",
                f"{{n}} columns were read as {what}: {{names}}.",
            )
            for what in self._found
            if what.startswith("amounts in ")
        }
        for what, (one, many) in {**amounts, **_NOTES}.items():
            if names := self._found.get(what):
                template = one if len(names) == 1 else many
                said.append(template.format(n=f"{len(names):,}", names=shorten(names)))
        return said


def quote(name: str) -> str:
    """Return a name in quotes, safe for a terminal and not too long."""
    return repr(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")


def clean_names(names: Iterable[Any], findings: Findings) -> list[str]:
    """Return names of columns as different, not empty strings."""
    given = ["" if _is_nameless(name) else str(name) for name in names]
    taken, cleaned = set(given), []
    seen: set[str] = set()
    for place, name in enumerate(given, start=1):
        new = name
        if not name:
            new = free_name(f"column {place}", taken)
            findings.add("unnamed", new)
        elif name in seen:
            new = free_name(name, taken)
            findings.add("duplicate", new)
        seen.add(new)
        taken.add(new)
        cleaned.append(new)
    return cleaned


def unique_names(names: Iterable[Any]) -> list[str]:
    """Return names as they are if all of them differ, else cleaned."""
    given = [str(name) for name in names]
    return given if len(set(given)) == len(given) else clean_names(names, Findings())


def _is_nameless(name: Any) -> bool:
    if isinstance(name, str):
        return not name.strip() or re.fullmatch(r"Unnamed: \d+", name) is not None
    return name is None or bool(pd.api.types.is_scalar(name) and pd.isna(name))


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: the given one, or it with a number behind."""
    new, number = name, 1
    while new in taken:
        number += 1
        new = f"{name} ({number})"
    return new


def find_kind(name: str, values: Values, rows: npt.NDArray[np.int64]) -> str:
    """Say what a column is: number, category, id, text, other dates, nested, constant or empty."""
    missing = values.missing()
    if missing.all():
        return "empty"
    if values.nested:
        return "nested"
    present = values.labels()[~missing] if values.numbers is None else values.numbers[~missing]
    n_distinct = len(pd.unique(present))
    if n_distinct == 1 and not missing.any():
        return "constant"
    if n_distinct == len(present) > 1 and _is_id(name, values, rows, complete=not missing.any()):
        return "id"
    if values.numbers is not None:
        return "number"
    few = n_distinct <= min(MAX_CATEGORIES, max(MAX_DISTINCT * len(present), 1))
    if few:
        return "category"
    return "other dates" if _look_like_dates(values) else "text"


def _is_id(name: str, values: Values, rows: npt.NDArray[np.int64], *, complete: bool) -> bool:
    """Say whether a column whose values all differ names the rows."""
    if values.form in DATE_FORMS or values.style is not None or _look_like_dates(values):
        return False
    if values.texts is not None:
        short = all(text is None or len(text) <= _LONGEST_ID for text in values.texts)
        return short and (complete or is_id_name(name))
    assert values.numbers is not None
    whole = values.numbers[~np.isnan(values.numbers)]
    if (whole != np.floor(whole)).any():
        return False
    counting = complete and len(pd.unique(values.numbers - rows)) == 1
    return counting or is_id_name(name)


def _look_like_dates(values: Values) -> bool:
    """Say whether text is dates in a form that leaves open which number is the day."""
    if values.texts is None:
        return False
    present = [text for text in values.texts if text is not None]
    dates = sum(_OTHER_DATE.fullmatch(text) is not None for text in present)
    return dates >= NEARLY_ALL * max(len(present), 1)


def is_id_name(name: str) -> bool:
    """Say whether a column is called id, patient_id, RowID, index or such."""
    return _ID_NAME.fullmatch(name.strip()) is not None


def order_of(values: Values) -> tuple[str, ...]:
    """Return the categories of a column: in the order that the file gives, else sorted."""
    texts = values.labels()
    present = {text for text in texts if text is not None}
    if values.order is not None:
        return tuple(dict.fromkeys(text for text in values.order if text in present))
    return tuple(sorted(present))


def codes_of(texts: Texts, categories: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return the place of each text among the categories; NaN if missing or not among them."""
    place = {text: float(i) for i, text in enumerate(categories)}
    return np.array([place.get(text, np.nan) for text in texts], dtype=np.float64)
