"""Predictions, neighbors and reasons of the training rows, or of new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.explorer._blob import Blob
from leafkernel.explorer._columns import PageColumn, of_classes
from leafkernel.explorer._forest import count_makers
from leafkernel.explorer._judgement import Judgement
from leafkernel.explorer._why import Reasons, explain_neighbors
from leafkernel.proximity import ForestProximity

Array = npt.NDArray[Any]

# Shares of more classes than these are not shown one by one.
_MOST_SHARES = 20


@dataclass(frozen=True)
class PageRows:
    """What the forest says of some rows.

    Attributes
    ----------
    classes : ndarray of shape (c,) or None
        The classes; None for numbers.
    target : ndarray of shape (r,)
        Codes of classes or numbers; -1 or NaN for new rows.
    predicted : ndarray of shape (r,)
        The same of the predictions.
    averages : ndarray of float64 of shape (r, c) or (r, 1)
        Share of each class, or the prediction.
    errors : ndarray of float64 of shape (r,)
        NaN for new rows.
    outliers : ndarray of float64 of shape (r,)
        Outlier scores; NaN for new rows.
    neighbors : ndarray of int64 of shape (r, k)
        Training rows; -1 where there are no more.
    proximity : ndarray of shape (r, k)
        The proximity to each.
    makers : ndarray of int64 of shape (r,) or None
        How many training rows have some proximity; None: not counted.
    reasons : Reasons or None
        Why each neighbor is one; None: the forest does not tell its splits.
    """

    classes: Array | None
    target: Array
    predicted: Array
    averages: Array
    errors: Array
    outliers: Array
    neighbors: npt.NDArray[np.int64]
    proximity: Array
    makers: Array | None
    reasons: Reasons | None

    def explained(self, prox: ForestProximity, trees: Any, n_features: int, X: Any) -> PageRows:
        """Return the same rows with reasons, if there are trees to read them from."""
        if trees is None:
            return self
        known = np.maximum(self.neighbors, 0)
        return replace(self, reasons=explain_neighbors(prox, trees, known, n_features, X=X))

    def followed_by(self, new: PageRows | None) -> PageRows:
        """Return these rows and the new ones after them."""
        if new is None:
            return self
        both = {
            name: np.concatenate([getattr(self, name), getattr(new, name)])
            for name in ("target", "predicted", "averages", "errors", "outliers")
        }
        makers = None
        if self.makers is not None and new.makers is not None:
            makers = np.concatenate([self.makers, new.makers])
        reasons = None
        if self.reasons is not None and new.reasons is not None:
            reasons = self.reasons.followed_by(new.reasons)
        return replace(
            self,
            **both,
            neighbors=np.concatenate([self.neighbors, new.neighbors]),
            proximity=np.concatenate([self.proximity, new.proximity]),
            makers=makers,
            reasons=reasons,
        )

    def describe(self, blob: Blob, target_name: str, n_trees: int) -> dict[str, Any]:
        """Put the rows into a blob, and return what its header says of them."""
        numbers = {"outlier score": self.outliers, "error": self.errors}
        outlier, error = (PageColumn(name, "number", v) for name, v in numbers.items())
        return {
            "target": self._column(target_name, self.target).describe(blob),
            "prediction": self._column("prediction", self.predicted).describe(blob),
            "outlier": outlier.describe(blob),
            "error": error.describe(blob),
            "probabilities": self._shares(blob),
            "neighbors": {
                "k": self.neighbors.shape[1],
                "rows": blob.add(self.neighbors, "int32"),
                "proximity": blob.add(self.proximity, "float32"),
                "makers": None if self.makers is None else blob.add(self.makers, "int32"),
            },
            "why": self._why(blob, n_trees),
        }

    def _column(self, name: str, values: Array) -> PageColumn:
        if self.classes is None:
            return PageColumn(name, "number", values)
        return of_classes(name, values, self.classes)

    def _shares(self, blob: Blob) -> dict[str, Any] | None:
        if self.classes is None or len(self.classes) > _MOST_SHARES:
            return None
        names = self._column("", self.target).categories
        return {"classes": list(names), "data": blob.add(self.averages, "float32")}

    def _why(self, blob: Blob, n_trees: int) -> dict[str, Any] | None:
        reasons = self.reasons
        if reasons is None:
            return None
        none = self.neighbors < 0
        features = np.where(none[:, :, None], -1, reasons.features)
        trees = np.where(none, 0, reasons.trees)
        return {
            "m": features.shape[2],
            "feature": blob.add_codes(features, int(features.max()) + 1),
            "percent": blob.add(np.round(100 * reasons.shares), "uint8"),
            "trees": blob.add(np.minimum(trees, np.iinfo(np.uint16).max), "uint16"),
            "n_trees": n_trees,
        }


def training_rows(
    prox: ForestProximity, judgement: Judgement, outliers: Array, n_neighbors: int
) -> PageRows:
    """Return what the forest says of the training rows, each from the others."""
    neighbors, proximity = _nearest(prox, None, n_neighbors)
    return PageRows(
        judgement.classes,
        judgement.target,
        judgement.predicted,
        judgement.averages,
        judgement.errors,
        outliers,
        neighbors,
        proximity,
        count_makers(prox),
        None,
    )


def new_rows(prox: ForestProximity, judgement: Judgement, X: Any, n_neighbors: int) -> PageRows:
    """Return what the forest says of rows that it was not trained on."""
    classes, target = judgement.classes, judgement.target
    values = target[:, None] if classes is None else np.eye(len(classes))[target]
    sums = prox.weighted_sums(np.column_stack([values, np.ones(len(values))]), X)
    mass = sums[:, -1:]
    averages = np.full((len(sums), values.shape[1]), np.nan)
    np.divide(sums[:, :-1], mass, out=averages, where=mass > 0)
    none = np.full(len(sums), np.nan if classes is None else -1, dtype=target.dtype)
    as_judged = replace(judgement, target=none, averages=averages)
    neighbors, proximity = _nearest(prox, X, n_neighbors)
    return PageRows(
        classes,
        none,
        as_judged.predicted,
        averages,
        np.full(len(sums), np.nan),
        np.full(len(sums), np.nan),
        neighbors,
        proximity,
        count_makers(prox, X),
        None,
    )


def _nearest(prox: ForestProximity, X: Any, n_neighbors: int) -> tuple[Array, Array]:
    proximity, neighbors = prox.kneighbors(X, n_neighbors=n_neighbors)
    return np.where(proximity > 0, neighbors, -1), proximity
