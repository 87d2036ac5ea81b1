"""Amounts of money, percentages, and negative numbers in brackets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

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
class Amount:
    """A number with its currency, percent sign or brackets, such as "($1,234.50)".

    Attributes
    ----------
    number : str
        The digits, with a minus if the amount is negative: "-1,234.50".
    prefix, suffix : str
        The currency or "%", with the blanks between it and the digits.
    brackets : bool
        Whether brackets stand for the minus.
    """

    number: str
    prefix: str = ""
    suffix: str = ""
    brackets: bool = False

    @property
    def unit(self) -> str:
        """The currency or "%"; "" for a plain number."""
        unit = (self.prefix or self.suffix).strip(SPACES)
        return _SAME.get(unit, unit)


@dataclass(frozen=True)
class Style:
    """How the amounts of a column are written."""

    prefix: str = ""
    suffix: str = ""
    brackets: bool = False

    @property
    def unit(self) -> str:
        """The currency or "%" as it is written; "" for plain numbers in brackets."""
        return (self.prefix or self.suffix).strip(SPACES)

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
        mine = Amount("", self.prefix, self.suffix).unit
        return amount.number if amount is not None and amount.unit in ("", mine) else text


def read_amount(text: str) -> Amount | None:
    """Return the parts of an amount; None if a text is none.

    Examples
    --------
    >>> from leafkernel.tables._amounts import read_amount
    >>> read_amount("(1,234.50)").number, read_amount("148,42 €").unit
    ('-1,234.50', 'EUR')
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict(default="")
    doubled = part["prefix"] and part["suffix"]
    minus = part["outer"] + part["inner"]
    if bool(part["open"]) != bool(part["close"]) or len(minus) + bool(part["open"]) > 1 or doubled:
        return None
    is_negative = part["open"] or minus in ("-", "\N{MINUS SIGN}")
    number = ("-" if is_negative else "") + part["number"]
    return Amount(number, part["prefix"], part["suffix"], bool(part["open"]))


def sign_of(text: str) -> str:
    """Return the decimal sign that a number or an amount shows, as :func:`show_sign` does.

    Three digits after the sign of an amount of money are thousands.
    """
    amount = read_amount(text)
    if amount is None:
        return show_sign(text)
    sign = show_sign(amount.number)
    if sign in _OTHER and amount.unit not in ("", "%"):
        return _OTHER[sign]
    return sign


def find_style(texts: Iterable[str]) -> tuple[Style | None, tuple[str, ...]]:
    """Return how the amounts of a column are written, and the units that it has.

    The style is None if the column has plain numbers only, or several units.
    """
    amounts = [amount for amount in map(read_amount, texts) if amount is not None]
    written = {amount.unit: (amount.prefix or amount.suffix).strip(SPACES) for amount in amounts}
    units = Counter(amount.unit for amount in amounts if amount.unit)
    brackets = any(amount.brackets for amount in amounts)
    if len(units) > 1:
        return None, tuple(written[unit] for unit, _ in units.most_common())
    # Brackets around whole numbers only are no minus: (1), (2) and (3) may be footnotes.
    notes = all(each.brackets and each.number[1:].isdigit() for each in amounts)
    if not units and (not brackets or notes):
        return None, ()
    around = Counter((each.prefix, each.suffix) for each in amounts if each.unit or not units)
    prefix, suffix = around.most_common(1)[0][0]
    return Style(prefix, suffix, brackets), tuple(units)
