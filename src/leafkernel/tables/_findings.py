"""Notes on the columns of a table, one sentence for each kind of finding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from leafkernel._validation import shorten
from leafkernel.tables._missing import count_words, is_missing, quote
from leafkernel.tables._values import MAX_CATEGORIES, Values

_NO_FEATURE = "so [it is|they are] shown but not used as [a feature|features]"
_DAYS = "which the forest sees as days since 1970"
_READ = "[was|were] read as numbers"

# "[is|are]" is "is" for one column and "are" for several. A sentence without "{names}" begins with
# the column, and several columns are listed at its end.
_SENTENCES = {
    "unnamed": "[A column|{n} columns] without a name [was|were] named {names}.",
    "duplicate": "[A column|{n} columns] with a duplicate name [was|were] renamed to {names}.",
    "empty": "[is|are] empty and [was|were] left out.",
    "constant": "[has|have] the same value in all rows and [was|were] left out.",
    "id": f"[looks|look] like row names, {_NO_FEATURE}.",
    "nested": f"[has|have] lists or other nested values, {_NO_FEATURE}.",
    "text": "[has|have] too many different texts for categories (more than "
    f"{MAX_CATEGORIES:,}, or more than half of the rows), {_NO_FEATURE}.",
    "other dates": "[seems|seem] to have dates, but not ISO dates (such as 2024-12-31), "
    f"{_NO_FEATURE}. Use --as COLUMN=date to read [it|them] as dates.",
    "dates": f"[has|have] dates, {_DAYS}.",
    "year-first dates": f"[has|have] dates with the year first, {_DAYS}.",
    "month-first dates": f"[has|have] dates with the month first, {_DAYS}.",
    "day-first dates": f"[has|have] dates with the day first, {_DAYS}.",
    "durations": "[has|have] durations, which the forest sees as days.",
    "decimal commas": f"{_READ} with decimal commas.",
    "thousands": f"{_READ} with commas as thousands separators.",
    "dot thousands": "[was|were] read as whole numbers with dots as thousands separators.",
    "spaces": f"{_READ} with spaces as thousands separators.",
    "spaces and decimal commas": f"{_READ} with decimal commas, and spaces as thousands "
    "separators.",
    "apostrophes": f"{_READ} with apostrophes as thousands separators.",
    "percentages": "[was|were] read as percentages, so 8.3% is the number 8.3.",
    "brackets": f"{_READ} with parentheses for negative numbers, so (5) is -5.",
    "currencies": "[has|have] amounts in several currencies, so [it was|they were] not read as "
    "numbers. Convert them to one currency.",
    "unsure points": f"{_READ} with decimal points, but the points could also be thousands "
    "separators. If 1.234 means 1234, use --thousands '.'.",
    "unsure thousands": f"{_READ} with commas as thousands separators, but they could also be "
    "decimal commas. If 1,234 means 1.234, use --decimal ','.",
    "unsure decimal commas": f"{_READ} with decimal commas, but the commas could also be thousands "
    "separators. If 1,234 means 1234, use --thousands ','.",
    "not numbers": "Text among the numbers of [column {names}|{n} columns] is treated as missing"
    "[|: {names}].",
    "too large": "[has|have] infinite numbers or numbers that are too large for a forest. They are "
    "treated as missing.",
    "unknown": "[has|have] categories that are not in the training table. They are treated as "
    "missing.",
    "leak": "[determines the target alone|each determine the target alone]. Leave [it|them] out "
    "with --drop if [it was|they were] derived from the target.",
}


class Findings:
    """Collects findings on columns and turns them into sentences."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, what: str, name: str, detail: str = "") -> None:
        """Add a finding on a column, with a detail."""
        said = f"{quote(name)} ({detail})" if detail else quote(name)
        self._found.setdefault(what, []).append(said)

    def add_count(
        self, what: str, name: str, count: int, words: Counter[str] | None = None
    ) -> None:
        """Add a finding on a column, with the number of affected values and examples."""
        examples = f": {count_words(words)}" if words else ""
        self.add(what, name, f"{count:,} value{'s' * (count != 1)}{examples}")

    def add_values(self, name: str, values: Values) -> None:
        """Add findings on how numbers were read."""
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
        """Add findings on values that became missing."""
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
    """Return column names as unique, non-empty strings."""
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
    """Return names unchanged if they are unique, otherwise cleaned."""
    given = [str(name) for name in names]
    return given if len(set(given)) == len(given) else clean_names(names, Findings())


def _is_nameless(name: Any) -> bool:
    if isinstance(name, str):  # a name may be "NA"
        return not name.strip() or re.fullmatch(r"Unnamed: \d+", name) is not None
    return is_missing(name)


def free_name(name: str, taken: set[str]) -> str:
    """Return an unused name: the given one, if needed with a number appended."""
    new, number = name, 1
    while new in taken:
        number += 1
        new = f"{name} ({number})"
    return new
