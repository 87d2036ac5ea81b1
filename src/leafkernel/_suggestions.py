"""Suggestions for misspelled names. It imports nothing heavy, because the command line uses it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(value: object, options: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the option closest to a misspelled value, or ``""``."""
    if not isinstance(value, str):
        return ""
    word = value.lower()
    nearest = difflib.get_close_matches(word, list(options), n=1, cutoff=0.5)
    # Misspelled words mostly start correctly. Other words must be very similar.
    is_likely = bool(nearest) and (
        nearest[0][0] == word[:1] or difflib.SequenceMatcher(None, nearest[0], word).ratio() > 0.8
    )
    return f" Did you mean {nearest[0]!r}?" if is_likely else ""
