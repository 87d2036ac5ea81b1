"""What was found in the columns of a table, told in one sentence for each kind of finding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from leafkernel._validation import shorten
from leafkernel.tables._missing import count_words, is_missing, quote
from leafkernel.tables._values import MAX_CATEGORIES, Values

_NO_FEATURE = "so [it is|they are] shown but [is not a feature|are not features]"
_DAYS = "which are days since 1970 for the forest"
_READ = "[was|were] read as numbers"

# "[is|are]" is "is" for one column and "are" for several. The columns come first if a sentence does
# not say where they are named; several are then listed at its end.
_SENTENCES = {
    "unnamed": "[A column|{n} columns] without a name [was|were] named {names}.",
    "duplicate": "[A column|{n} columns] with the name of another [was|were] renamed to {names}.",
    "empty": "[is|are] empty and [was|were] left out.",
    "constant": "[has|have] the same value in all rows and [was|were] left out.",
    "id": f"[has|have] another value in each row, as names of rows have, {_NO_FEATURE}.",
    "nested": f"[holds|hold] lists or other nested values, {_NO_FEATURE}.",
    "text": "[has|have] too many different texts for categories (more than "
    f"{MAX_CATEGORIES:,}, or than half of [its|their] rows), {_NO_FEATURE}.",
    "other dates": "[seems|seem] to hold dates, but not ISO dates (such as 2024-12-31), "
    f"{_NO_FEATURE}. Use --as COLUMN=date to read [it|them] as dates.",
    "dates": f"[holds|hold] dates, {_DAYS}.",
    "year-first dates": f"[holds|hold] dates with the year first, {_DAYS}.",
    "month-first dates": f"[holds|hold] dates with the month first, {_DAYS}.",
    "day-first dates": f"[holds|hold] dates with the day first, {_DAYS}.",
    "durations": "[holds|hold] lengths of time, which are days for the forest.",
    "decimal commas": f"{_READ} with decimal commas.",
    "thousands": f"{_READ} with commas between thousands.",
    "dot thousands": "[was|were] read as whole numbers with dots between thousands.",
    "spaces": f"{_READ} with spaces between thousands.",
    "spaces and decimal commas": f"{_READ} with spaces between thousands and decimal commas.",
    "apostrophes": f"{_READ} with apostrophes between thousands.",
    "percentages": "[was|were] read as percentages, with 8.3% as the number 8.3.",
    "brackets": f"{_READ} in which brackets stand for a minus, with (5) as -5.",
    "currencies": "[holds|hold] amounts in several currencies, so [it was|they were] not read as "
    "numbers. Convert them to one currency.",
    "unsure points": f"{_READ} with decimal points, but the points could also stand between "
    "thousands. If 1.234 means 1234 there, use --thousands '.' instead.",
    "unsure thousands": f"{_READ} with commas between thousands, but the commas could also be "
    "decimal commas. If 1,234 means 1.234 there, use --decimal ',' instead.",
    "unsure decimal commas": f"{_READ} with decimal commas, but the commas could also stand "
    "between thousands. If 1,234 means 1234 there, use --thousands ',' instead.",
    "not numbers": "Text among the numbers of [column {names}|{n} columns] was taken as missing"
    "[|: {names}].",
    "too large": "[holds|hold] numbers that are infinite or too large for a forest, which were "
    "taken as missing.",
    "unknown": "[holds|hold] categories that the forest has not seen, which were taken as missing.",
    "leak": "[alone tells the target; if it was made from it, leave it|each tell the target "
    "alone; if they were made from it, leave them] out with --drop.",
}


class Findings:
    """What was found in which columns."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, what: str, name: str, detail: str = "") -> None:
        """Note something of a column, with a detail."""
        said = f"{quote(name)} ({detail})" if detail else quote(name)
        self._found.setdefault(what, []).append(said)

    def add_count(
        self, what: str, name: str, count: int, words: Counter[str] | None = None
    ) -> None:
        """Note something of a column, with the number of values that it concerns and examples."""
        examples = f": {count_words(words)}" if words else ""
        self.add(what, name, f"{count:,} value{'s' * (count != 1)}{examples}")

    def add_values(self, name: str, values: Values) -> None:
        """Note how numbers were read."""
        notation = values.notation
        if notation.unsure:
            self.add(f"unsure {notation.form or 'points'}", name)
        elif notation.form:
            self.add(notation.form, name)
        if notation.units:
            self.add("currencies", name, ", ".join(notation.units))
        if notation.is_amount:
            unit = notation.unit
            self.add({"%": "percentages", "": "brackets"}.get(unit, f"amounts in {unit}"), name)
        self.add_losses(name, values)

    def add_losses(self, name: str, values: Values) -> None:
        """Note which values became missing."""
        for what, count in values.counts.items():
            self.add_count(what, name, count, values.strays if what == "not numbers" else None)

    def sentences(self) -> list[str]:
        """Return a sentence for each kind of finding."""
        amounts = [what for what in self._found if what not in _SENTENCES]
        templates = {**{what: f"[was|were] read as {what}." for what in amounts}, **_SENTENCES}
        return [
            _say(template, self._found[what])
            for what, template in templates.items()
            if what in self._found
        ]


def _say(template: str, names: list[str]) -> str:
    """Return a sentence on some columns."""
    if "{names}" not in template:
        first, end, rest = template.partition(". ")
        first = first if end else first.removesuffix(".")
        template = f"[Column {{names}}|{{n}} columns] {first}[|: {{names}}]{end or '.'}{rest}"
    number = 1 if len(names) == 1 else 2
    said = re.sub(r"\[([^]|]*)\|([^]|]*)\]", lambda match: match[number], template)
    return said.format(n=f"{len(names):,}", names=shorten(names))


def clean_names(names: Iterable[Any], findings: Findings) -> list[str]:
    """Return names of columns as different, not empty strings."""
    given = ["" if _is_nameless(name) else str(name) for name in names]
    taken, seen, cleaned = set(given), set[str](), []
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
    if isinstance(name, str):  # a name may be "NA"
        return not name.strip() or re.fullmatch(r"Unnamed: \d+", name) is not None
    return is_missing(name)


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: the given one, or it with a number behind."""
    new, number = name, 1
    while new in taken:
        number += 1
        new = f"{name} ({number})"
    return new
