"""The explanation of a row: the training rows behind its prediction, and why they are similar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leafkernel._validation import shorten
from leafkernel.cli._models import own_numbers, own_probabilities
from leafkernel.cli._train import Study
from leafkernel.cli.errors import OptionError, TableError
from leafkernel.explorer._forest import link_features, read_splits
from leafkernel.proximity import ForestProximity
from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._schema import Column
from leafkernel.tables._values import as_shown
from leafkernel.tasks import explain_pair, explain_prediction
from leafkernel.tasks._scores import Scores, predicted_output, toward_output
from leafkernel.tasks.explanation import PredictionExplanation
from leafkernel.tasks.pair_explanation import PairExplanation
from leafkernel.tasks.score_explanation import ScoreExplanation

_LONGEST = 28  # characters of a value or a name
_MOST_CATEGORIES = 4
EXACT = 1e15  # smaller whole numbers are written with all digits


@dataclass(frozen=True)
class Explained:
    """A row and its explanation."""

    # The content for a JSON document. Predictions are numbers, dates or shares of classes. The
    # prediction of the model is included if it is known and comes from another computation.
    about: dict[str, Any]
    values: dict[str, Any]  # by column
    found: PredictionExplanation | ScoreExplanation


def explain_rows(
    study: Study,
    places: list[int],
    columns: ColumnNames,
    *,
    top: int,
    n_pairs: int,
    exact: ForestProximity | None = None,
    of_class: str | None = None,
) -> list[Explained]:
    """Explain the predictions of some training rows, or of some rows of --new.

    ``exact`` has the contributions of training rows to the scores of a boosted model. If it is
    given, the score of ``of_class`` is explained, by default that of the predicted class.
    """
    new, rows, names = study.new, study.rows, study.rows.names()
    table = study.X if new is None else new.X
    told = []
    for i in places:
        X = table[i : i + 1] if isinstance(table, np.ndarray) else table.iloc[i : i + 1]
        asked = {"row": i} if new is None else {"x": X}
        found: PredictionExplanation | ScoreExplanation
        if exact is not None:
            found = _explain_score(exact, asked, of_class, top)
            more = _about_score(study, found, X)
            order = np.argsort(-np.abs(found.contributions), kind="stable")
            others = found.rows[order][found.rows[order] != (i if new is None else -1)]
        else:
            if new is None and not study.judgement.known[i]:
                raise TableError(study.no_prediction(f"Row {names['row'][i]} has", "it"))
            vote = explain_prediction(study.prox, n=top, **asked)
            assert isinstance(vote, PredictionExplanation)
            found, others, more = vote, vote.rows, _about_vote(study, vote, X)
        values = _values_at(rows.shown, i)
        about = {
            "row": int(names["row"][i]),
            "id": str(names["id"][i]) if "id" in names else None,
            "target": None if rows.target is None else study.shown_one(rows.target[i]),
            **more,
            "pairs": [
                _pair(study, i if new is None else X, values, position, columns)
                for position in others[: n_pairs if columns.known else 0].tolist()
            ],
        }
        told.append(Explained(about, values, found))
    return told


def _about_vote(study: Study, found: PredictionExplanation, X: Any) -> dict[str, Any]:
    return {
        "prediction": _prediction(study, found),
        "is_of_model": found.is_of_model,
        "model_prediction": None if found.is_of_model else _own_prediction(study, X),
        "made_by": found.n_rows,
        "shown": found.shown,
    }


def _about_score(study: Study, found: ScoreExplanation, X: Any) -> dict[str, Any]:
    own = _own_prediction(study, X)
    return {
        "prediction": found.prediction if own is None else own,
        "is_of_model": True,
        "model_prediction": None,
        "made_by": found.n_rows,
        "class": None if found.output is None else str(found.output),
        "sentence": found.sentence(),
        **{name: getattr(found, name) for name in ("base_score", "total", "score")},
        **{name: getattr(found, name) for name in ("n_up", "up_total", "n_down", "down_total")},
        "link": found.link,
        "linked_prediction": found.prediction,
        "base_prediction": found.base_prediction,
    }


def _explain_score(
    exact: ForestProximity, asked: dict[str, Any], of_class: str | None, top: int
) -> ScoreExplanation:
    """Explain the score of a class, by default of the predicted class."""
    labels = [str(label) for label in Scores(exact).labels.tolist()]
    if of_class is not None and of_class not in labels:
        known = shorten([repr(label) for label in labels])
        remedy = f"Use one of {known}."
        if len(labels) == 1:
            remedy = (
                f"A model of two classes has one score, for the class {known}. Leave out --class."
            )
        raise OptionError(f"--class {of_class} has no score in this model. {remedy}")
    number = 0
    if of_class is not None:
        number = labels.index(of_class)
    elif len(labels) > 1:
        number = predicted_output(exact, **asked)
    found = explain_prediction(toward_output(exact, number), n=top, **asked)
    assert isinstance(found, ScoreExplanation)
    return found


def _pair(
    study: Study, sample: Any, values: Any, position: int, columns: ColumnNames
) -> dict[str, Any]:
    """Explain why a sample with these values is similar to a training row."""
    found = explain_pair(study.prox, sample, position)
    together, apart = columns.reasons(found, values, _values_at(study.prepared.shown, position))
    names = study.prepared.names(np.array([position]), prefix="neighbor")
    return {
        **{name: each[0] for name, each in names.items()},
        "proximity": None if found.proximity is None else float(found.proximity),
        "trees": len(found.trees),
        "trees_that_count": int(np.count_nonzero(found.tree_shares)),
        "together": together,
        "apart": apart,
    }


def _prediction(study: Study, found: PredictionExplanation) -> Any:
    if found.classes is None:
        return study.shown_one(found.prediction)
    return dict(zip(map(str, found.classes), found.prediction.tolist(), strict=True))


def _own_prediction(study: Study, X: Any) -> Any:
    model = study.prox.forest_
    if study.judgement.classes is None:
        number = own_numbers(model, X)
        return None if number is None else study.shown_one(number[0])
    own = own_probabilities(model, X, [str(label) for label in study.judgement.classes])
    return None if own is None else dict(zip(own[0], own[1][0].tolist(), strict=True))


# --- why two rows are similar


class ColumnNames:
    """Maps the features that trees split on to the columns of the table.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study) -> None:
        prepared, forest = study.prepared, study.prox.forest_
        trees, features = read_splits(study.prox)
        #: Whether the splits of the trees can be read.
        self.known = trees is not None
        is_frame = isinstance(study.X, pd.DataFrame)
        names = [str(name) for name in (prepared.shown if is_frame else prepared.features).columns]
        links = link_features(study.prox, features, study.X, names, columns_are_x=False)
        # A pipeline may change the values of a column and keep its name.
        self._changed = hasattr(forest, "steps") or hasattr(forest, "best_estimator_")
        self._names, self._linked = [], []
        for feature, link in zip(features, links, strict=True):
            name = None if link is None else names[link]
            if name is None and self._changed:
                name = _column_of(feature, names)
            self._names.append(feature if name is None else name)
            self._linked.append(name is not None)
        self._columns = {column.name: column for column in prepared.columns}

    def reasons(
        self, pair: PairExplanation, *values: Mapping[str, Any]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the columns that keep a pair together and those that separate it, sorted.

        ``values`` has the values of the two rows by column. Each reason has a ``column`` and the
        ``values`` of both rows. A column that keeps them together has a ``share`` of the similarity
        and the range ``within`` which they stay together. A column that separates them has the
        number of ``trees`` in which it does so, and the value ``at`` which they are split.
        """
        together: dict[str, Any] = {}
        apart: dict[str, Any] = {}
        for f in np.flatnonzero(pair.bits > 0).tolist():
            found = {"share": float(pair.shares[f]), "within": self._within(f, pair, values)}
            self._add(together, f, found, values)
        for f in np.flatnonzero(pair.parted_in).tolist():
            found = {"trees": float(pair.parted_in[f]), "at": self._at(f, pair)}
            self._add(apart, f, found, values)
        return (
            sorted(together.values(), key=lambda reason: -reason["share"]),
            sorted(apart.values(), key=lambda reason: -reason["trees"]),
        )

    def _add(
        self, reasons: dict[str, Any], f: int, found: dict[str, Any], values: Sequence[Any]
    ) -> None:
        """Add the result for a feature to the reason of its column."""
        name = self._names[f]
        (weight, number), (where, _) = found.items()
        if name in reasons:
            reasons[name] |= {weight: reasons[name][weight] + number, where: None}
        else:
            texts = [self._say(name, row.get(name)) if self._linked[f] else "" for row in values]
            reasons[name] = {"column": name, "values": texts, **found}

    def _is_unseen(self, name: str, value: Any) -> bool:
        """Return whether a value is a category that the forest was not trained with."""
        column = self._columns.get(name)
        if column is None or not column.categories or pd.isna(value):
            return False
        return value not in column.categories

    def _say(self, name: str, value: Any) -> str:
        return text_of(value) + " (unseen)" * self._is_unseen(name, value)

    def _column(self, feature: int) -> Column | None:
        return self._columns.get(self._names[feature]) if self._linked[feature] else None

    def _within(
        self, f: int, pair: PairExplanation, values: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """Return the values of a feature for which a pair stays together; None if unknown."""
        low, high = float(pair.low[f]), float(pair.high[f])
        if np.isnan(low) or (self._changed and self._linked[f]):
            return None
        if low == np.inf:
            return "missing"
        column, name = self._column(f), self._names[f]
        both = [row.get(name) for row in values]
        if column is not None and column.categories:
            held = [each for k, each in enumerate(column.categories) if low < k <= high]
            is_any = len(held) == len(column.categories)
            text = "any" if is_any else shorten([text_of(x) for x in held], _MOST_CATEGORIES)
        else:
            text = _interval(low, high, "" if column is None else column.form, both)
        is_lost = any(pd.isna(value) or self._is_unseen(name, value) for value in both)
        also = is_lost and self._linked[f] and pair.missing_stays[f]
        return f"{text} or missing" if also else text

    def _at(self, f: int, pair: PairExplanation) -> str | None:
        """Return the approximate value at which a feature splits a pair; None if unknown."""
        column = self._column(f)
        coded = column is not None and column.categories
        thresholds = pair.partings.thresholds[pair.partings.features == f]
        known = thresholds[np.isfinite(thresholds)]
        if not len(known) or coded or (self._changed and self._linked[f]):
            return None
        return f"about {_end(float(np.median(known)), '' if column is None else column.form)}"


def _column_of(feature: str, names: list[str]) -> str | None:
    """Return the column from which a pipeline made a feature, based on scikit-learn's names.

    Examples
    --------
    >>> from leafkernel.cli._explained import _column_of
    >>> _column_of("onehotencoder__pond_north", ["pond", "weight"])
    'pond'
    """
    bare = feature.split("__", 1)[-1]
    made = [name for name in names if bare == name or bare.startswith(f"{name}_")]
    return max(made, key=len, default=None)


def _interval(low: float, high: float, form: str, values: list[Any]) -> str:
    """Describe the numbers above ``low`` and up to ``high``, which include both values."""
    if low == -np.inf:
        return "any" if high == np.inf else f"up to {_end(high, form)}"
    start = _end(low, form)
    # XGBoost splits at "less than 3", that is "up to" the number just below 3.
    word = "from" if start in map(text_of, values) else "above"
    return f"{word} {start}" + ("" if high == np.inf else f", up to {_end(high, form)}")


def _end(value: float, form: str) -> str:
    return text_of(as_shown(np.array([value]), form)[0] if form in DATE_FORMS else value)


# --- text


def text_of(value: Any) -> str:
    """Return a cell as text: numbers with up to seven digits, dates without a time of 00:00."""
    if pd.isna(value):
        return "missing"
    if isinstance(value, (np.datetime64, pd.Timestamp)):
        text = str(pd.Timestamp(value))
        return text.removesuffix(" 00:00:00").removesuffix(":00")
    if isinstance(value, (float, np.floating)):
        whole = float(value).is_integer() and abs(value) < EXACT
        return str(int(value)) if whole else f"{value:.7g}"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _values_at(shown: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the values of a row by their columns."""
    return {str(name): shown.iloc[row, j] for j, name in enumerate(shown.columns)}
