"""Predictions of rows from their proximities to training rows, and their score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.explorer._columns import PageColumn
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import read_targets

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """Targets of rows, and their predictions from the other training rows."""

    classes: Array | None  # shape (c,); None for numbers
    target: Array  # class codes or numbers; -1 or NaN for new rows
    # Share of each class (n, c), or the prediction (n, 1); NaN for rows without neighbors.
    averages: Doubles
    out_of_bag: bool  # whether these are the out-of-bag predictions of the forest

    @classmethod
    def of(cls, prox: ForestProximity, y: Any) -> Judgement:
        """Predict each training row from its proximities."""
        given = read_targets(prox, y)
        target = np.asarray(given.values if given.classes is None else given.codes)
        target = target.astype(np.float64) if given.classes is None else target
        averages = _average(prox, given.numbers(), None)
        return cls(given.classes, target, averages, Inside.of(prox).is_out_of_bag)

    def of_new(self, prox: ForestProximity, X: Any) -> Judgement:
        """Predict new rows from their proximities to these training rows."""
        if self.classes is None:
            values, unknown = self.target[:, None], np.nan
        else:
            values, unknown = np.eye(len(self.classes))[self.target], -1
        averages = _average(prox, values, X)
        target = np.full(len(averages), unknown, dtype=self.target.dtype)
        return replace(self, target=target, averages=averages)

    def followed_by(self, new: Judgement) -> Judgement:
        """Return these rows with new rows appended."""
        target = np.concatenate([self.target, new.target])
        return replace(self, target=target, averages=np.concatenate([self.averages, new.averages]))

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Mask of rows with a prediction."""
        known: npt.NDArray[np.bool_] = ~np.isnan(self.averages[:, 0])
        return known

    @property
    def predicted(self) -> Array:
        """Class codes (-1 without prediction) or numbers (NaN without prediction)."""
        if self.classes is None:
            return self.averages[:, 0]
        best = np.nan_to_num(self.averages, nan=-1.0).argmax(axis=1)
        return np.where(self.known, best, -1)

    @property
    def errors(self) -> Doubles:
        """One minus the share of the true class, or the distance from the target."""
        if self.classes is None:
            distance: Doubles = np.abs(self.target - self.averages[:, 0])
            return distance
        of_truth = self.averages[np.arange(len(self.target)), self.target]
        # Rounding can make shares slightly larger than one.
        return np.where(self.target < 0, np.nan, np.maximum(1 - of_truth, 0))

    def column(self, name: str, values: Array) -> PageColumn:
        """Return targets or predictions as a column of the page."""
        if self.classes is None:
            return PageColumn(name, "number", values)
        return PageColumn(name, "category", values, tuple(map(str, self.classes)))

    def score(self) -> dict[str, Any]:
        """Return the score of the predictions, and a baseline that ignores the features."""
        kind = "Out-of-bag" if self.out_of_bag else "Neighbors'"
        known = self.known
        target, predicted = self.target[known], self.predicted[known]
        if len(target) == 0:
            return {"label": f"{kind} score", "text": "none, because no row has a neighbor"}
        if self.classes is not None:
            hits = float(np.mean(target == predicted))
            commonest = float(np.bincount(self.target).max() / len(self.target))
            return {
                "label": f"{kind} accuracy",
                "value": hits,
                "text": f"{hits:.1%}",
                "baseline": {"label": "most common class", "text": f"{commonest:.1%}"},
            }
        error = float(np.sqrt(np.mean((target - predicted) ** 2)))
        spread = float(self.target.std())
        explained = 1 - error**2 / spread**2 if spread > 0 else 0.0
        return {
            "label": f"{kind} R²",
            "value": explained,
            "text": f"{explained:.3f}",
            "baseline": {
                "label": f"typical error {error:.4g}; predicting the mean",
                "text": f"{spread:.4g}",
            },
        }

    def line(self) -> str:
        """Return the score in one line of text."""
        score = self.score()
        baseline = score.get("baseline")
        beside = f" ({baseline['label']}: {baseline['text']})" if baseline else ""
        return f"{score['label']} {score['text']}{beside}"


def _average(prox: ForestProximity, values: Array, X: Any) -> Doubles:
    """Return means of values weighted by proximity; NaN for rows without proximity."""
    sums = prox.weighted_sums(np.column_stack([values, np.ones(len(values))]), X)
    mass = sums[:, -1:]
    averages: Doubles = np.full((len(sums), values.shape[1]), np.nan)
    np.divide(sums[:, :-1], mass, out=averages, where=mass > 0)
    return averages
