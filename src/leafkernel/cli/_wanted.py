"""What the user says that columns are, with --as."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from leafkernel.cli.errors import OptionError

KINDS = ("number", "category", "date", "ignore")


def parse_kinds(given: Iterable[str]) -> dict[str, str]:
    """Return the kind of each column that ``--as COLUMN=KIND`` names."""
    kinds: dict[str, str] = {}
    for each in given:
        name, equals, kind = each.rpartition("=")
        if not equals or not name:
            raise OptionError(f"write {each!r} as COLUMN=KIND, such as price=number.")
        if kind not in KINDS:
            nearest = get_close_matches(kind.lower(), KINDS, n=1)
            meant = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise OptionError(
                f"there is no kind {kind!r} for {name!r}.{meant} Use one of {', '.join(KINDS)}."
            )
        if kinds.setdefault(name, kind) != kind:
            raise OptionError(f"{name!r} is given twice, as {kinds[name]} and as {kind}.")
    return kinds
