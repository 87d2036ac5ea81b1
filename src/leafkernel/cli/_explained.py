"""A row and its explanation: the rows that made its prediction, and why they are similar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.cli._models import own_numbers, own_probabilities
from leafkernel.cli._reasons import ColumnNames, Reason, values_at
from leafkernel.cli._train import Study
from leafkernel.cli.errors import TableError
from leafkernel.tasks import explain_pair, explain_prediction
from leafkernel.tasks.explanation import PredictionExplanation
from leafkernel.tasks.pair_explanation import PairExplanation


@dataclass(frozen=True)
class Pair:
    """Why a row is similar to a training row.

    Attributes
    ----------
    names : dict
        The number of the training row in its file (``neighbor``) and its name (``neighbor_id``).
    proximity : float
    found : PairExplanation
        What the library says.
    together, apart : list of Reason
        The same with the columns of the table.
    """

    names: dict[str, Any]
    proximity: float
    found: PairExplanation
    together: list[Reason]
    apart: list[Reason]


@dataclass(frozen=True)
class Explained:
    """A row and its explanation. Dates are dates.

    Attributes
    ----------
    row : int
        Its number in its file.
    id : str or None
        Its name.
    values : dict
        Its values by column.
    target : object
        Its target; None if it is not known.
    found : PredictionExplanation
        The rows that made its prediction.
    prediction : object
        The prediction that they made: a number, or a dict with the share of each class.
    own : object
        What the model predicts, if that is something else; None if it is not known.
    pairs : list of Pair
    """

    row: int
    id: str | None
    values: dict[str, Any]
    target: Any
    found: PredictionExplanation
    prediction: Any
    own: Any
    pairs: list[Pair]


def explain_rows(
    study: Study, places: list[int], columns: ColumnNames, *, top: int, n_pairs: int
) -> list[Explained]:
    """Explain the predictions of some training rows, or of some rows of --new."""
    prepared, new, names = study.prepared, study.new, study.names_asked()
    table, shown = (study.X, prepared.shown) if new is None else (new.X, new.shown(prepared))
    targets: npt.NDArray[Any] | None = study.y if new is None else new.target(prepared)
    told = []
    for i in places:
        X = table[i : i + 1] if isinstance(table, np.ndarray) else table.iloc[i : i + 1]
        if new is None:
            if not study.judgement.known[i]:
                raise TableError(study.no_prediction(f"Row {names['row'][i]} has", "it"))
            found = explain_prediction(study.prox, row=i, n=top)
        else:
            found = explain_prediction(study.prox, X, n=top)
        values, pairs = values_at(shown, i), []
        near = found.rows[: n_pairs if columns.known else 0]
        for position, proximity in zip(near, found.proximities, strict=False):
            pair = explain_pair(study.prox, i if new is None else X, position)
            reasons = columns.reasons(pair, values, values_at(prepared.shown, position))
            of_pair = study.names(np.array([position]), prefix="neighbor")
            of_pair = {name: value[0] for name, value in of_pair.items()}
            pairs.append(Pair(of_pair, float(proximity), pair, *reasons))
        told.append(
            Explained(
                row=int(names["row"][i]),
                id=str(names["id"][i]) if "id" in names else None,
                values=values,
                target=None if targets is None else study.shown_one(targets[i]),
                found=found,
                prediction=_prediction(study, found),
                own=None if found.is_of_model else _own_prediction(study, X),
                pairs=pairs,
            )
        )
    return told


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
