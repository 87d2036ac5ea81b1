"""How numbers are written: their decimal sign, the sign between thousands, and what is around them.

"33.932" can be 33.932 or 33932. The other numbers of its column tell which, then an option, then
the other columns of the file. Where nothing tells, it is read as a decimal and a note says so.
Amounts of money have no three decimals: "$33.932" is 33932.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
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

# Forms for which a column may be taken though nothing tells that it is in this form.
_UNSURE = ("", "thousands", "decimal commas")
# The decimal sign, if a sign that is unclear stands between thousands.
_OTHER = {"?.": ",", "?,": "."}

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
    """How the numbers of a column are written, such as ($1,234.50) or 148,42 €."""

    form: str = ""  # one of NUMBER_FORMS, of DATE_FORMS, or "durations"
    prefix: str = ""  # the currency or "%", with the blanks between it and the digits
    suffix: str = ""
    brackets: bool = False  # for a minus
    units: tuple[str, ...] = ()  # the currencies, if there are several: then it stays text
    unsure: bool = False  # nothing told which of two forms it is

    @property
    def unit(self) -> str:
        """The currency or "%" as it is written; "" for a plain number."""
        return (self.prefix or self.suffix).strip(SPACES)

    @property
    def currency(self) -> str:
        """The unit, the same for a sign and its code."""
        return _SAME.get(self.unit, self.unit)

    @property
    def is_amount(self) -> bool:
        """Whether something stands around the numbers."""
        return bool(self.prefix or self.suffix or self.brackets)

    def bare(self, text: str) -> str:
        """Return the number in a text, or the text if it is no amount in this unit."""
        amount = read_amount(text) if self.is_amount else None
        return amount[0] if amount and amount[1].currency in ("", self.currency) else text

    def plain(self, text: str) -> str:
        """Return a number with a decimal point, and nothing around it or between thousands."""
        decimal, between = NUMBER_FORMS[self.form]
        text = self.bare(text)
        if between and _GROUPED[self.form].fullmatch(text):
            text = text.translate(_WITHOUT[self.form])
        return text.replace(",", ".") if decimal == "," else text

    def write(self, number: str, like: Iterable[str] = ()) -> str:
        """Write a number with a decimal point as the column would show it.

        The sign between thousands is the one that is found in the bare numbers ``like``, if the
        form allows several.
        """
        decimal, between = NUMBER_FORMS[self.form]
        between = next((sign for sign in "".join(like) if sign in between), between[:1])
        whole, point, rest = number.removeprefix("-").partition(".")
        if self.form != "decimal commas":  # which is mostly written without dots
            whole = re.sub(r"(?<=\d)(?=(\d{3})+$)", between, whole)
        amount = f"{self.prefix}{whole}{decimal if point else ''}{rest}{self.suffix}"
        if not number.startswith("-"):
            return amount
        return f"({amount})" if self.brackets else f"-{amount}"


PLAIN = Notation()


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
    >>> from leafkernel.tables._notation import show_sign
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


def read_amount(text: str) -> tuple[str, Notation] | None:
    """Return the number of an amount, and what stands around it; None if a text is none.

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
    """Return the decimal sign that a number or an amount shows, as :func:`show_sign` does.

    Three digits after the sign of an amount of money are thousands.
    """
    amount = read_amount(text)
    if amount is None:
        return show_sign(text)
    sign = show_sign(amount[0])
    return sign if amount[1].unit in ("", "%") else _OTHER.get(sign, sign)


def find_notation(texts: list[str], signs: Signs | None = None) -> Notation:
    """Return how the numbers among some texts are written.

    ``signs`` are those of the column, as the file tells them; None: as the texts themselves do.
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
    """Return what stands around most numbers, or the units if there are several."""
    found = [each for _, each in amounts]
    written = {each.currency: each.unit for each in found if each.unit}
    units = Counter(each.currency for each in found if each.unit)
    if len(units) > 1:
        return Notation(units=tuple(written[unit] for unit, _ in units.most_common()))
    brackets = any(each.brackets for each in found)
    # Brackets around whole numbers only are no minus: (1), (2) and (3) may be footnotes.
    are_notes = all(each.brackets and number[1:].isdigit() for number, each in amounts)
    if not units and (not brackets or are_notes):
        return PLAIN
    around = Counter((each.prefix, each.suffix) for each in found if each.unit or not units)
    return Notation("", *around.most_common(1)[0][0], brackets)
