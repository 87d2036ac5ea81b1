"""What the training rows predict of each other and of new rows, and how well."""

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
    """Targets of rows, and predictions of them by the other training rows."""

    classes: Array | None  # shape (c,); None for numbers
    target: Array  # codes of classes, or numbers; -1 or NaN for new rows
    # Share of each class (n, c), or the prediction (n, 1); NaN where a row has no neighbors.
    averages: Doubles
    out_of_bag: bool  # whether that is the forest's own out-of-bag prediction

    @classmethod
    def of(cls, prox: ForestProximity, y: Any) -> Judgement:
        """Predict every training row from its proximities."""
        given = read_targets(prox, y)
        target = np.asarray(given.values if given.classes is None else given.codes)
        target = target.astype(np.float64) if given.classes is None else target
        averages = _average(prox, given.numbers(), None)
        return cls(given.classes, target, averages, Inside.of(prox).is_out_of_bag)

    def of_new(self, prox: ForestProximity, X: Any) -> Judgement:
        """Predict new rows from their proximities to the training rows, which these are."""
        if self.classes is None:
            values, unknown = self.target[:, None], np.nan
        else:
            values, unknown = np.eye(len(self.classes))[self.target], -1
        averages = _average(prox, values, X)
        target = np.full(len(averages), unknown, dtype=self.target.dtype)
        return replace(self, target=target, averages=averages)

    def followed_by(self, new: Judgement) -> Judgement:
        """Return the rows with new rows after them."""
        target = np.concatenate([self.target, new.target])
        return replace(self, target=target, averages=np.concatenate([self.averages, new.averages]))

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which rows have a prediction."""
        known: npt.NDArray[np.bool_] = ~np.isnan(self.averages[:, 0])
        return known

    @property
    def predicted(self) -> Array:
        """Codes of classes, -1 where there is none; or numbers, NaN where there is none."""
        if self.classes is None:
            return self.averages[:, 0]
        best = np.nan_to_num(self.averages, nan=-1.0).argmax(axis=1)
        return np.where(self.known, best, -1)

    @property
    def errors(self) -> Doubles:
        """What is missing to all of the true class, or the distance from the target."""
        if self.classes is None:
            distance: Doubles = np.abs(self.target - self.averages[:, 0])
            return distance
        of_truth = self.averages[np.arange(len(self.target)), self.target]
        # Sums of shares are one only to rounding.
        return np.where(self.target < 0, np.nan, np.maximum(1 - of_truth, 0))

    def column(self, name: str, values: Array) -> PageColumn:
        """Return targets or predictions for the page."""
        if self.classes is None:
            return PageColumn(name, "number", values)
        return PageColumn(name, "category", values, tuple(map(str, self.classes)))

    def score(self) -> dict[str, Any]:
        """Say how good the predictions are, beside those of someone who looks at no feature."""
        kind = "Out-of-bag" if self.out_of_bag else "Neighbors'"
        known = self.known
        target, predicted = self.target[known], self.predicted[known]
        if len(target) == 0:
            return {"label": f"{kind} score", "text": "none: no row has a neighbor that counts"}
        if self.classes is not None:
            hits = float(np.mean(target == predicted))
            commonest = float(np.bincount(self.target).max() / len(self.target))
            return {
                "label": f"{kind} accuracy",
                "value": hits,
                "text": f"{hits:.1%}",
                "baseline": {"label": "always the most common class", "text": f"{commonest:.1%}"},
            }
        error = float(np.sqrt(np.mean((target - predicted) ** 2)))
        spread = float(self.target.std())
        explained = 1 - error**2 / spread**2 if spread > 0 else 0.0
        return {
            "label": f"{kind} R²",
            "value": explained,
            "text": f"{explained:.3f}",
            "baseline": {
                "label": f"typical error {error:.4g}; when always predicting the mean",
                "text": f"{spread:.4g}",
            },
        }

    def line(self) -> str:
        """Say the score in one line."""
        score = self.score()
        baseline = score.get("baseline")
        beside = f" ({baseline['label']}: {baseline['text']})" if baseline else ""
        return f"{score['label']} {score['text']}{beside}"


def _average(prox: ForestProximity, values: Array, X: Any) -> Doubles:
    """Return means of values, weighted by proximity; NaN for rows without any proximity."""
    sums = prox.weighted_sums(np.column_stack([values, np.ones(len(values))]), X)
    mass = sums[:, -1:]
    averages: Doubles = np.full((len(sums), values.shape[1]), np.nan)
    np.divide(sums[:, :-1], mass, out=averages, where=mass > 0)
    return averages
