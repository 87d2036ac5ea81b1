"""A row and its explanation: the rows that made its prediction, and why they are similar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.cli._models import own_numbers, own_probabilities
from leafkernel.cli._reasons import ColumnNames, values_at
from leafkernel.cli._train import Study
from leafkernel.cli.errors import TableError
from leafkernel.tasks import explain_pair, explain_prediction
from leafkernel.tasks.explanation import PredictionExplanation


@dataclass(frozen=True)
class Explained:
    """A row and its explanation."""

    # What a JSON document says of it. Predictions are numbers, dates or shares of classes. The
    # prediction of the model is there if it is another one, and known.
    about: dict[str, Any]
    values: dict[str, Any]  # by column
    found: PredictionExplanation  # the rows that made its prediction


def explain_rows(
    study: Study, places: list[int], columns: ColumnNames, *, top: int, n_pairs: int
) -> list[Explained]:
    """Explain the predictions of some training rows, or of some rows of --new."""
    new, rows, names = study.new, study.rows, study.rows.names()
    table = study.X if new is None else new.X
    told = []
    for i in places:
        X = table[i : i + 1] if isinstance(table, np.ndarray) else table.iloc[i : i + 1]
        if new is None:
            if not study.judgement.known[i]:
                raise TableError(study.no_prediction(f"Row {names['row'][i]} has", "it"))
            found = explain_prediction(study.prox, row=i, n=top)
        else:
            found = explain_prediction(study.prox, X, n=top)
        values = values_at(rows.shown, i)
        about = {
            "row": int(names["row"][i]),
            "id": str(names["id"][i]) if "id" in names else None,
            "target": None if rows.target is None else study.shown_one(rows.target[i]),
            "prediction": _prediction(study, found),
            "is_of_model": found.is_of_model,
            "model_prediction": None if found.is_of_model else _own_prediction(study, X),
            "made_by": found.n_rows,
            "shown": found.shown,
            "pairs": [
                _pair(study, i if new is None else X, values, position, proximity, columns)
                for position, proximity in zip(
                    found.rows[: n_pairs if columns.known else 0], found.proximities, strict=False
                )
            ],
        }
        told.append(Explained(about, values, found))
    return told


def _pair(
    study: Study, sample: Any, values: Any, position: int, proximity: float, columns: ColumnNames
) -> dict[str, Any]:
    """Return why a sample with these values is similar to a training row."""
    found = explain_pair(study.prox, sample, position)
    together, apart = columns.reasons(found, values, values_at(study.prepared.shown, position))
    names = study.prepared.names(np.array([position]), prefix="neighbor")
    return {
        **{name: each[0] for name, each in names.items()},
        "proximity": float(proximity),
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
