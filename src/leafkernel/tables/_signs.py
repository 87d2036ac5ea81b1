"""Which sign in a number stands before its decimals, and which between its thousands.

"33.932" can be 33.932 or 33932. The other numbers of its column tell which, then an option, then
the other columns of the file. Where nothing tells, it is read as a decimal and a note says so.
Amounts of money have no three decimals: "$33.932" is 33932.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"

# How numbers can be written: the decimal sign, and the signs between thousands.
NUMBER_FORMS = {
    "": (".", ""),
    "thousands": (".", ","),
    "decimal commas": (",", "."),
    "dot thousands": (",", "."),
    "spaces": (".", SPACES),
    "spaces and decimal commas": (",", SPACES),
    "apostrophes": (".", APOSTROPHES),
}

_UNCLEAR = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")
_ENOUGH = 20  # numbers that show the decimal sign of their column
_FEW = 0.05  # share of them that may be mistakes


def _grouped(signs: str) -> str:
    return rf"[1-9]\d{{0,2}}(?:[{signs}]\d{{3}})+"


# Numbers that show their decimal sign, or by several other signs that it is not those.
_SHOWN = {
    sign: re.compile(
        rf"[-+]?(?:(?:\d*|{_grouped(other + SPACES + APOSTROPHES)})[{sign}]\d+(?:[eE][-+]?\d+)?"
        rf"|[1-9]\d{{0,2}}(?:[{other}]\d{{3}}){{2,}})"
    )
    for sign, other in (".,", ",.")
}
_SPACED = re.compile(rf"[-+]?{_grouped(SPACES)}(?:[.,]\d+)?")
_GROUPED = {
    form: re.compile(rf"[-+]?{_grouped(between)}(?:[{decimal}]\d+)?")
    for form, (decimal, between) in NUMBER_FORMS.items()
    if between
}
_WITHOUT = {form: str.maketrans("", "", between) for form, (_, between) in NUMBER_FORMS.items()}


class Stated(NamedTuple):
    """The signs that the user named: "." or ","; for thousands also "space" or "none"."""

    decimal: str | None = None
    thousands: str | None = None


UNSTATED = Stated()


class Signs(NamedTuple):
    """The decimal sign of a column, and whether something tells that it is this one."""

    decimal: str = "."
    sure: bool = True


class Evidence:
    """What the numbers of a table tell about their signs, by column."""

    def __init__(self) -> None:
        self._shown: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def add(self, column: int, sign: str, count: int = 1) -> bool:
        """Count the sign that values of a column show; return whether that is enough."""
        shown = self._shown[column]
        shown[sign] += count
        return shown[sign] >= _ENOUGH and sign in _SHOWN

    def decide(self, stated: Stated = UNSTATED, *, comma: str = ".") -> dict[int, Signs]:
        """Return the signs of each column.

        Parameters
        ----------
        stated : Stated
            The signs that the user named.
        comma : {".", ","}
            The decimal sign of "1,234" where nothing tells.
        """
        own = {column: _majority(shown) for column, shown in self._shown.items()}
        clear = {column for column, shown in self._shown.items() if _is_clear(shown)}
        of_file = _agreed(own[column] for column in clear) or _agreed(own.values())
        decided = {}
        for column, shown in self._shown.items():
            n_points, n_commas = shown["?."], shown["?,"]
            unclear = "," if n_commas > n_points else "."
            # A few mistyped numbers do not decide against all other columns.
            trusted = own[column] if column in clear or own[column] == of_file else None
            is_disputed = shown["."] and shown[","]
            known = (
                (None if is_disputed else trusted)
                or _of_options(stated, unclear)
                or trusted
                or (of_file if own[column] is None else None)
            )
            guess = own[column] or (comma if unclear == "," else ".")
            decided[column] = Signs(known or guess, bool(known) or n_points + n_commas == 0)
        return decided


def _majority(shown: Counter[str]) -> str | None:
    if shown["."] == shown[","]:
        return None
    return "." if shown["."] > shown[","] else ","


def _is_clear(shown: Counter[str]) -> bool:
    """Return whether numbers that show their decimal sign are not just a few among others."""
    n_clear = shown["."] + shown[","]
    return n_clear > 0 and n_clear >= _FEW * (shown["?."] + shown["?,"])


def _agreed(signs: Iterable[str | None]) -> str | None:
    """Return the sign that all columns with one have."""
    found = {sign for sign in signs if sign is not None}
    return found.pop() if len(found) == 1 else None


def _of_options(stated: Stated, unclear: str) -> str | None:
    """Return the decimal sign that follows from the options for a sign that is unclear."""
    if stated.decimal is not None or stated.thousands is None:
        return stated.decimal
    return {".": ",", ",": "."}.get(stated.thousands, unclear)


def show_sign(text: str) -> str:
    """Return the decimal sign that a number shows.

    "?." and "?," stand for a sign that may also separate thousands, "" for none.

    Examples
    --------
    >>> from leafkernel.tables._signs import show_sign
    >>> [show_sign(text) for text in ("0.125", "1.234,5", "1.234.567", "33.932", "1,500", "12")]
    ['.', ',', ',', '?.', '?,', '']
    """
    if match := _UNCLEAR.fullmatch(text):
        return f"?{match[1]}"
    return next((sign for sign, number in _SHOWN.items() if number.fullmatch(text)), "")


def form_of(texts: list[str], decimal: str) -> str:
    """Return the form in which numbers with this decimal sign are written."""
    commas = any("," in text and show_sign(text) for text in texts)
    signs = set("".join(texts))
    if not signs.isdisjoint(SPACES) and any(map(_SPACED.fullmatch, texts)):
        return "spaces and decimal commas" if decimal == "," and commas else "spaces"
    if not signs.isdisjoint(APOSTROPHES) and any(map(_GROUPED["apostrophes"].fullmatch, texts)):
        return "apostrophes"
    if commas:
        return "thousands" if decimal == "." else "decimal commas"
    points = decimal == "," and any("." in text and show_sign(text) for text in texts)
    return "dot thousands" if points else ""


def to_plain(text: str, form: str) -> str:
    """Return a number of some form with a decimal point and nothing between thousands."""
    decimal, between = NUMBER_FORMS[form]
    if between and _GROUPED[form].fullmatch(text):
        text = text.translate(_WITHOUT[form])
    return text.replace(",", ".") if decimal == "," else text


def from_plain(text: str, form: str, like: Iterable[str] = ()) -> str:
    """Write a number with a decimal point in another form, as :func:`to_plain` reads it.

    The sign between thousands is the one that is found in ``like``, if the form allows several.
    """
    decimal, between = NUMBER_FORMS[form]
    between = next((sign for sign in "".join(like) if sign in between), between[:1])
    whole, point, rest = text.partition(".")
    if form != "decimal commas":  # which is mostly written without dots
        whole = re.sub(r"(?<=\d)(?=(\d{3})+$)", between, whole)
    return f"{whole}{decimal if point else ''}{rest}"
