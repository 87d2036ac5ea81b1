"""Why two rows are similar, with the columns and the categories of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.cells import cell_len, set_cell_size

from leafkernel._validation import shorten
from leafkernel.cli._train import Study
from leafkernel.explorer._forest import link_features, read_splits
from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._schema import Column
from leafkernel.tables._values import as_shown
from leafkernel.tasks.pair_explanation import PairExplanation

_LONGEST = 28  # letters of a value or a name
_MOST_CATEGORIES = 4
_EXACT = 1e15  # whole numbers below are written with all digits


@dataclass(frozen=True)
class Reason:
    """A column that keeps two rows together, or at which they part.

    Attributes
    ----------
    column : str
        The column of the table, or a feature that a pipeline made.
    weight : float
        The share of the similarity that it decides, or the number of trees in which they part.
    values : tuple of str
        The values of the two rows; empty for a feature that is no column.
    where : str
        The values for which they stay together, or at which they part; empty where unknown.
    """

    column: str
    weight: float
    values: tuple[str, str]
    where: str


class ColumnNames:
    """What the features that trees split on are in the table.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study) -> None:
        prepared, forest = study.prepared, study.prox.forest_
        trees, features = read_splits(study.prox)
        #: Whether the trees tell their splits.
        self.known = trees is not None
        is_frame = isinstance(study.X, pd.DataFrame)
        names = [str(name) for name in (prepared.shown if is_frame else prepared.features).columns]
        links = link_features(study.prox, features, study.X, names, columns_are_x=False)
        found = [None if link is None else names[link] for link in links]
        # A pipeline may have changed the values of a column that keeps its name.
        self._changed = hasattr(forest, "steps") or hasattr(forest, "best_estimator_")
        if self._changed:
            found = [
                _column_of(feature, names) if name is None else name
                for feature, name in zip(features, found, strict=True)
            ]
        self._names = [
            feature if name is None else name for feature, name in zip(features, found, strict=True)
        ]
        self._linked = [name is not None for name in found]
        self._columns = {column.name: column for column in prepared.columns}

    def together(
        self, pair: PairExplanation, first: Mapping[str, Any], second: Mapping[str, Any]
    ) -> list[Reason]:
        """Return what keeps a pair together, given the values of both; the most important first."""
        weights = {f: float(pair.shares[f]) for f in np.flatnonzero(pair.bits > 0).tolist()}
        where = {f: self._within(f, pair, first, second) for f in weights}
        return self._reasons(weights, where, first, second)

    def apart(
        self, pair: PairExplanation, first: Mapping[str, Any], second: Mapping[str, Any]
    ) -> list[Reason]:
        """Return at which columns a pair parts, given the values of both; the most often first."""
        weights = {f: float(pair.parted_in[f]) for f in np.flatnonzero(pair.parted_in).tolist()}
        where = {f: self._at(f, pair) for f in weights}
        return self._reasons(weights, where, first, second)

    def _reasons(
        self,
        weights: dict[int, float],
        where: dict[int, str],
        first: Mapping[str, Any],
        second: Mapping[str, Any],
    ) -> list[Reason]:
        """Add up the features of each column."""
        by_name: dict[str, list[int]] = {}
        for f in weights:
            by_name.setdefault(self._names[f], []).append(f)
        reasons = []
        for name, features in by_name.items():
            is_column = self._linked[features[0]]
            values = self._say(name, first.get(name)), self._say(name, second.get(name))
            reasons.append(
                Reason(
                    name,
                    sum(weights[f] for f in features),
                    values if is_column else ("", ""),
                    where[features[0]] if len(features) == 1 else "",
                )
            )
        return sorted(reasons, key=lambda reason: -reason.weight)

    def _is_unseen(self, name: str, value: Any) -> bool:
        """Return whether a value is a category that the forest was not trained with."""
        column = self._columns.get(name)
        if column is None or not column.categories or is_missing(value):
            return False
        return value not in column.categories

    def _say(self, name: str, value: Any) -> str:
        return text_of(value) + " (unseen)" * self._is_unseen(name, value)

    def _column(self, feature: int) -> Column | None:
        return self._columns.get(self._names[feature]) if self._linked[feature] else None

    def _within(
        self, f: int, pair: PairExplanation, first: Mapping[str, Any], second: Mapping[str, Any]
    ) -> str:
        low, high = float(pair.low[f]), float(pair.high[f])
        if np.isnan(low) or (self._changed and self._linked[f]):
            return ""
        if low == np.inf:
            return "missing"
        column, name = self._column(f), self._names[f]
        values = [row.get(name) for row in (first, second)]
        if column is not None and column.categories:
            held = [each for k, each in enumerate(column.categories) if low < k <= high]
            is_any = len(held) == len(column.categories)
            text = "any" if is_any else shorten([text_of(x) for x in held], _MOST_CATEGORIES)
        else:
            text = _interval(low, high, "" if column is None else column.form, values)
        is_lost = any(is_missing(value) or self._is_unseen(name, value) for value in values)
        also = is_lost and self._linked[f] and pair.missing_stays[f]
        return f"{text} or missing" if also else text

    def _at(self, f: int, pair: PairExplanation) -> str:
        column = self._column(f)
        coded = column is not None and column.categories
        thresholds = pair.partings.thresholds[pair.partings.features == f]
        known = thresholds[np.isfinite(thresholds)]
        if not len(known) or coded or (self._changed and self._linked[f]):
            return ""
        return f"about {_end(float(np.median(known)), '' if column is None else column.form)}"


def _column_of(feature: str, names: list[str]) -> str | None:
    """Return the column that a pipeline made a feature of, by the names that scikit-learn gives.

    Examples
    --------
    >>> from leafkernel.cli._reasons import _column_of
    >>> _column_of("onehotencoder__pond_north", ["pond", "weight"])
    'pond'
    """
    bare = feature.split("__", 1)[-1]
    made = [name for name in names if bare == name or bare.startswith(f"{name}_")]
    return max(made, key=len, default=None)


def _interval(low: float, high: float, form: str, values: list[Any]) -> str:
    """Say in words which numbers are above ``low`` and up to ``high``, with both values inside."""
    if low == -np.inf:
        return "any" if high == np.inf else f"up to {_end(high, form)}"
    start = _end(low, form)
    # XGBoost asks for "less than 3", which is "up to" the number just below 3.
    word = "from" if start in map(text_of, values) else "above"
    return f"{word} {start}" + ("" if high == np.inf else f", up to {_end(high, form)}")


def _end(value: float, form: str) -> str:
    return text_of(as_shown(np.array([value]), form)[0] if form in DATE_FORMS else value)


# --- text


def is_missing(value: Any) -> bool:
    """Return whether a cell holds nothing."""
    return value is None or bool(pd.isna(value))


def text_of(value: Any) -> str:
    """Return a cell as text: numbers with up to seven digits, dates without an empty time."""
    if is_missing(value):
        return "missing"
    if isinstance(value, (np.datetime64, pd.Timestamp)):
        text = str(pd.Timestamp(value))
        return text.removesuffix(" 00:00:00").removesuffix(":00")
    if isinstance(value, (float, np.floating)):
        whole = float(value).is_integer() and abs(value) < _EXACT
        return str(int(value)) if whole else f"{value:.7g}"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def say_number(value: float) -> str:
    """Return a number that was computed, rounded so that people can read it."""
    return f"{value:.0f}" if 1e5 <= abs(value) < _EXACT else f"{value:.4g}"


def grid(heads: Sequence[str], lines: Iterable[Sequence[str]], right: Iterable[str]) -> list[str]:
    """Return lines of text in columns, of which those with some heads stand on the right."""
    rows = [list(heads), *map(list, lines)]
    widths = [max(cell_len(row[j]) for row in rows) for j in range(len(heads))]
    on_right = set(right)
    texts = []
    for row in rows:
        cells = [
            " " * (width - cell_len(cell)) + cell
            if head in on_right
            else set_cell_size(cell, width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        texts.append("  " + "  ".join(cells).rstrip())
    return texts


def values_at(shown: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the values of a row by their columns."""
    return {str(name): shown.iloc[row, j] for j, name in enumerate(shown.columns)}
