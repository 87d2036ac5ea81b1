"""Amounts of money, percentages, and negative numbers in brackets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from leafkernel.tables._signs import APOSTROPHES, SPACES, show_sign

# The decimal sign, if a sign that is unclear stands between thousands.
_OTHER = {"?.": ",", "?,": "."}

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
class Style:
    """What stands around a number, such as "$" and brackets in "($1,234.50)"."""

    prefix: str = ""  # the currency or "%", with the blanks between it and the digits
    suffix: str = ""
    brackets: bool = False  # for a minus

    @property
    def unit(self) -> str:
        """The currency or "%" as it is written; "" for a plain number."""
        return (self.prefix or self.suffix).strip(SPACES)

    @property
    def currency(self) -> str:
        """The unit, the same for a sign and its code."""
        return _SAME.get(self.unit, self.unit)

    def write(self, number: str) -> str:
        """Return a number, such as "-12.50", as the column would show it."""
        bare = number.removeprefix("-")
        amount = f"{self.prefix}{bare}{self.suffix}"
        if bare == number:
            return amount
        return f"({amount})" if self.brackets else f"-{amount}"

    def read(self, text: str) -> str:
        """Return the number in a text, or the text if it is no amount in this unit."""
        amount = read_amount(text)
        is_mine = amount is not None and amount.style.currency in ("", self.currency)
        return amount.number if amount is not None and is_mine else text


class Amount(NamedTuple):
    """A number, with a minus if it is negative, and what stands around it."""

    number: str
    style: Style


def read_amount(text: str) -> Amount | None:
    """Return the parts of an amount; None if a text is none.

    Examples
    --------
    >>> from leafkernel.tables._amounts import read_amount
    >>> read_amount("(1,234.50)").number, read_amount("148,42 €").style.unit
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
    return Amount(number, Style(part["prefix"], part["suffix"], brackets))


def sign_of(text: str) -> str:
    """Return the decimal sign that a number or an amount shows, as :func:`show_sign` does.

    Three digits after the sign of an amount of money are thousands.
    """
    amount = read_amount(text)
    if amount is None:
        return show_sign(text)
    sign = show_sign(amount.number)
    return sign if amount.style.unit in ("", "%") else _OTHER.get(sign, sign)


def find_style(texts: Iterable[str]) -> tuple[Style | None, tuple[str, ...]]:
    """Return how the amounts of a column are written, and the units that it has.

    The style is None if the column has plain numbers only, or several units.
    """
    amounts = [amount for amount in map(read_amount, texts) if amount is not None]
    styles = [amount.style for amount in amounts]
    written = {style.currency: style.unit for style in styles if style.unit}
    units = Counter(style.currency for style in styles if style.unit)
    if len(units) > 1:
        return None, tuple(written[unit] for unit, _ in units.most_common())
    brackets = any(style.brackets for style in styles)
    # Brackets around whole numbers only are no minus: (1), (2) and (3) may be footnotes.
    notes = all(each.style.brackets and each.number[1:].isdigit() for each in amounts)
    if not units and (not brackets or notes):
        return None, ()
    around = Counter((each.prefix, each.suffix) for each in styles if each.unit or not units)
    return Style(*around.most_common(1)[0][0], brackets), tuple(units)
