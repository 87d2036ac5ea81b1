"""The words that stand for a missing value."""

from __future__ import annotations

from collections import Counter

from leafkernel._validation import shorten

MISSING = frozenset(
    [
        *("?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)


def count_words(words: Counter[str], most: int = 5) -> str:
    """Return words with their counts, the most frequent first.

    Examples
    --------
    >>> from collections import Counter
    >>> from leafkernel.cli._missing import count_words
    >>> count_words(Counter({"?": 1, "NA": 1200}))
    "1,200 say 'NA', 1 says '?'"
    """
    if words.total() == 1:
        return _quote(next(iter(words)))
    said = [
        f"{count:,} {'says' if count == 1 else 'say'} {_quote(word)}"
        for word, count in words.most_common()
    ]
    return shorten(said, most)


def missing_notes(words: Counter[str]) -> list[str]:
    """Return the note on words that were taken as missing; none if there are no such words."""
    if not words:
        return []
    if words.total() == 1:
        return [f"A cell that says {count_words(words)} was taken as missing."]
    return [f"Cells that were taken as missing: {count_words(words, most=len(MISSING))}."]


def _quote(word: str, longest: int = 30) -> str:
    return repr(word if len(word) <= longest else word[: longest - 1] + "…")
