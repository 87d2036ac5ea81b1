"""Detect how numbers are written: decimal sign, thousands separator, currency, parentheses.

"33.932" can be 33.932 or 33932. This is decided by the other numbers of the column, then by an
option, then by the other columns of the file. If it stays unclear, it is read as a decimal, with a
note. Amounts of money do not have three decimals: "$33.932" is 33932.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"

# Forms of numbers: the decimal sign and the thousands separators.
NUMBER_FORMS = {
    "": (".", ""),
    "thousands": (".", ","),
    "decimal commas": (",", "."),
    "dot thousands": (",", "."),
    "spaces": (".", SPACES),
    "spaces and decimal commas": (",", SPACES),
    "apostrophes": (".", APOSTROPHES),
}

# Forms that may be assumed although the values are ambiguous.
_UNSURE = ("", "thousands", "decimal commas")
# The decimal sign if an ambiguous sign is a thousands separator.
_OTHER = {"?.": ",", "?,": "."}

_UNCLEAR = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")
_ENOUGH = 20  # numbers that are enough to decide the decimal sign of a column
_FEW = 0.05  # smaller shares of such numbers may be typos


def _grouped(signs: str) -> str:
    return rf"[1-9]\d{{0,2}}(?:[{signs}]\d{{3}})+"


# Numbers that reveal the decimal sign, directly or by repeated thousands separators.
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


_SIGNS = "$€£¥₹₩₽₺₪₫₴₦฿₱₡₲₵₸₼₾"
_CODES = (
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KES "
    "KRW MAD MXN MYR NGN NOK NZD PEN PHP PKR PLN RMB RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD "
    "VND ZAR eur usd gbp chf kr zł Kč Ft lei Fr SFr Rs"
)
_MONEY = rf"(?:[A-Z]{{0,2}}[{_SIGNS}]|(?:{'|'.join(_CODES.split())})\.?)"
_MINUS = "[-+\N{MINUS SIGN}]"
_BLANK = f"[{SPACES}]*"
_AMOUNT = re.compile(
    rf"(?P<open>\()?{_BLANK}(?P<outer>{_MINUS})?(?P<prefix>{_BLANK}{_MONEY}{_BLANK})?"
    rf"(?P<inner>{_MINUS})?(?P<number>[.,]?\d(?:[\d.,{SPACES}{APOSTROPHES}]*\d)?)"
    rf"(?P<suffix>{_BLANK}(?:%|{_MONEY}))?{_BLANK}(?P<close>\))?"
)
_SAME = {"€": "EUR", "£": "GBP"}


@dataclass(frozen=True)
class Notation:
    """The notation of the numbers of a column, such as ($1,234.50) or 148,42 €."""

    form: str = ""  # one of NUMBER_FORMS, of DATE_FORMS, or "durations"
    prefix: str = ""  # the currency or "%", with the blanks between it and the digits
    suffix: str = ""
    brackets: bool = False  # parentheses for negative numbers
    units: tuple[str, ...] = ()  # the currencies if there are several; the column stays text
    unsure: bool = False  # whether the form is ambiguous

    @property
    def unit(self) -> str:
        """The currency or "%" as written; "" for a plain number."""
        return (self.prefix or self.suffix).strip(SPACES)

    @property
    def currency(self) -> str:
        """The unit, with one name for a sign and its code."""
        return _SAME.get(self.unit, self.unit)

    @property
    def is_amount(self) -> bool:
        """Whether the numbers have a currency, "%" or parentheses."""
        return bool(self.prefix or self.suffix or self.brackets)

    def bare(self, text: str) -> str:
        """Return the number in a text, or the text itself if it is not an amount in this unit."""
        amount = read_amount(text) if self.is_amount else None
        return amount[0] if amount and amount[1].currency in ("", self.currency) else text

    def plain(self, text: str) -> str:
        """Return a number with a decimal point, without unit and thousands separators."""
        decimal, between = NUMBER_FORMS[self.form]
        text = self.bare(text)
        if between and _GROUPED[self.form].fullmatch(text):
            text = text.translate(_WITHOUT[self.form])
        return text.replace(",", ".") if decimal == "," else text

    def write(self, number: str, like: Iterable[str] = ()) -> str:
        """Return a number with a decimal point in the notation of the column.

        If the form allows several thousands separators, the one in the bare numbers ``like`` is
        used.
        """
        decimal, between = NUMBER_FORMS[self.form]
        between = next((sign for sign in "".join(like) if sign in between), between[:1])
        whole, point, rest = number.removeprefix("-").partition(".")
        if self.form != "decimal commas":  # usually written without thousands separators
            whole = re.sub(r"(?<=\d)(?=(\d{3})+$)", between, whole)
        amount = f"{self.prefix}{whole}{decimal if point else ''}{rest}{self.suffix}"
        if not number.startswith("-"):
            return amount
        return f"({amount})" if self.brackets else f"-{amount}"


PLAIN = Notation()


class Stated(NamedTuple):
    """The signs given by the user: "." or ","; for thousands also "space" or "none"."""

    decimal: str | None = None
    thousands: str | None = None


UNSTATED = Stated()


class Signs(NamedTuple):
    """The decimal sign of a column, and whether it is certain."""

    decimal: str = "."
    sure: bool = True


class Evidence:
    """Counts the decimal signs in the numbers of each column."""

    def __init__(self) -> None:
        self._shown: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def add(self, column: int, sign: str, count: int = 1) -> bool:
        """Count a sign in a column; return whether the column is decided."""
        shown = self._shown[column]
        shown[sign] += count
        return shown[sign] >= _ENOUGH and sign in _SHOWN

    def decide(self, stated: Stated = UNSTATED, *, comma: str = ".") -> dict[int, Signs]:
        """Return the signs of each column.

        Parameters
        ----------
        stated : Stated
            The signs given by the user.
        comma : {".", ","}
            The decimal sign of "1,234" if it is ambiguous.
        """
        own = {column: _majority(shown) for column, shown in self._shown.items()}
        clear = {column for column, shown in self._shown.items() if _is_clear(shown)}
        of_file = _agreed(own[column] for column in clear) or _agreed(own.values())
        decided = {}
        for column, shown in self._shown.items():
            n_points, n_commas = shown["?."], shown["?,"]
            unclear = "," if n_commas > n_points else "."
            # A few typos in a column do not override all other columns.
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
    """Return whether enough numbers reveal the decimal sign, compared with ambiguous ones."""
    n_clear = shown["."] + shown[","]
    return n_clear > 0 and n_clear >= _FEW * (shown["?."] + shown["?,"])


def _agreed(signs: Iterable[str | None]) -> str | None:
    """Return the sign that all columns with a sign agree on; None if they do not."""
    found = {sign for sign in signs if sign is not None}
    return found.pop() if len(found) == 1 else None


def _of_options(stated: Stated, unclear: str) -> str | None:
    """Return the decimal sign that follows from the options, for an ambiguous sign."""
    if stated.decimal is not None or stated.thousands is None:
        return stated.decimal
    return {".": ",", ",": "."}.get(stated.thousands, unclear)


def show_sign(text: str) -> str:
    """Return the decimal sign that a number reveals.

    "?." and "?," mean that the sign may also be a thousands separator. "" means no sign.

    Examples
    --------
    >>> from leafkernel.tables._notation import show_sign
    >>> [show_sign(text) for text in ("0.125", "1.234,5", "1.234.567", "33.932", "1,500", "12")]
    ['.', ',', ',', '?.', '?,', '']
    """
    if match := _UNCLEAR.fullmatch(text):
        return f"?{match[1]}"
    return next((sign for sign, number in _SHOWN.items() if number.fullmatch(text)), "")


def form_of(texts: list[str], decimal: str) -> str:
    """Return the form of numbers with this decimal sign."""
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


def read_amount(text: str) -> tuple[str, Notation] | None:
    """Return the number of an amount and its notation; None if the text is not an amount.

    Examples
    --------
    >>> from leafkernel.tables._notation import read_amount
    >>> read_amount("(1,234.50)")[0], read_amount("148,42 €")[1].unit
    ('-1,234.50', '€')
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict(default="")
    doubled = part["prefix"] and part["suffix"]
    minus, brackets = part["outer"] + part["inner"], bool(part["open"])
    if brackets != bool(part["close"]) or len(minus) + brackets > 1 or doubled:
        return None
    is_negative = brackets or minus in ("-", "\N{MINUS SIGN}")
    number = ("-" if is_negative else "") + part["number"]
    return number, Notation("", part["prefix"], part["suffix"], brackets)


def sign_of(text: str) -> str:
    """Return the decimal sign that a number or an amount reveals. See ``show_sign``.

    In amounts of money, a sign before three digits is a thousands separator.
    """
    amount = read_amount(text)
    if amount is None:
        return show_sign(text)
    sign = show_sign(amount[0])
    return sign if amount[1].unit in ("", "%") else _OTHER.get(sign, sign)


def find_notation(texts: list[str], signs: Signs | None = None) -> Notation:
    """Return the notation of the numbers among some texts.

    ``signs`` are the signs of the column. If None, they are detected from the texts.
    """
    around = _find_around([amount for amount in map(read_amount, texts) if amount is not None])
    if around.units:
        return around
    if signs is None:
        evidence = Evidence()
        for text in texts:
            evidence.add(0, sign_of(text))
        signs = evidence.decide().get(0, Signs())
    form = form_of([around.bare(text) for text in texts], signs.decimal)
    return replace(around, form=form, unsure=not signs.sure and form in _UNSURE)


def _find_around(amounts: list[tuple[str, Notation]]) -> Notation:
    """Return the most frequent prefix and suffix, or the units if there are several."""
    found = [each for _, each in amounts]
    written = {each.currency: each.unit for each in found if each.unit}
    units = Counter(each.currency for each in found if each.unit)
    if len(units) > 1:
        return Notation(units=tuple(written[unit] for unit, _ in units.most_common()))
    brackets = any(each.brackets for each in found)
    # If all numbers are whole and in parentheses, such as (1), (2) and (3), they may be footnotes.
    are_notes = all(each.brackets and number[1:].isdigit() for number, each in amounts)
    if not units and (not brackets or are_notes):
        return PLAIN
    around = Counter((each.prefix, each.suffix) for each in found if each.unit or not units)
    return Notation("", *around.most_common(1)[0][0], brackets)
