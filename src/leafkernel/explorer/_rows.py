"""Predictions, neighbors and explanations of the rows of a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.explorer._blob import Blob
from leafkernel.explorer._columns import PageColumn
from leafkernel.explorer._forest import count_makers
from leafkernel.explorer._judgement import Judgement
from leafkernel.explorer._why import Reasons, explain_neighbors
from leafkernel.proximity import ForestProximity

Array = npt.NDArray[Any]

# Largest number of classes whose shares are shown.
_MOST_SHARES = 20


@dataclass(frozen=True)
class PageRows:
    """Results for r rows."""

    judgement: Judgement  # targets and predictions
    outliers: Array  # outlier scores (r,); NaN for new rows
    neighbors: npt.NDArray[np.int64]  # training rows (r, k); -1 if there are no more
    proximity: Array  # proximities to the neighbors (r, k)
    makers: Array | None  # number of training rows with some proximity (r,); None: not counted
    reasons: Reasons | None = None  # why neighbors are similar; None if splits cannot be read

    @classmethod
    def of(
        cls, prox: ForestProximity, judgement: Judgement, outliers: Array | None, k: int, X: Any
    ) -> PageRows:
        """Return the results for the training rows, or for the new rows X."""
        judgement = judgement if X is None else judgement.of_new(prox, X)
        if outliers is None:
            outliers = np.full(len(judgement.target), np.nan)
        proximity, neighbors = prox.kneighbors(X, n_neighbors=k)
        neighbors = np.where(proximity > 0, neighbors, -1)
        return cls(judgement, outliers, neighbors, proximity, count_makers(prox, X))

    def explained(self, prox: ForestProximity, trees: Any, n_features: int, X: Any) -> PageRows:
        """Return the same rows with reasons, if the splits of the trees can be read."""
        if trees is None:
            return self
        known = np.maximum(self.neighbors, 0)
        reasons = explain_neighbors(prox, trees, known, n_features, X=X)
        return replace(self, reasons=reasons)

    def followed_by(self, new: PageRows | None) -> PageRows:
        """Return these rows with the new rows appended."""
        if new is None:
            return self
        names = ("outliers", "neighbors", "proximity", "makers", "reasons")
        joined = (_join(getattr(self, name), getattr(new, name)) for name in names)
        return PageRows(self.judgement.followed_by(new.judgement), *joined)

    def describe(self, blob: Blob, target_name: str, n_trees: int) -> dict[str, Any]:
        """Add the rows to a blob, and return their header."""
        judged = self.judgement
        columns = {
            "target": judged.column(target_name, judged.target),
            "prediction": judged.column("prediction", judged.predicted),
            "outlier": PageColumn("outlier score", "number", self.outliers),
            "error": PageColumn("error", "number", judged.errors),
        }
        return {
            **{name: column.describe(blob) for name, column in columns.items()},
            "probabilities": self._shares(blob, columns["target"].categories),
            "neighbors": {
                "k": self.neighbors.shape[1],
                "rows": blob.add(self.neighbors, "int32"),
                "proximity": blob.add(self.proximity, "float32"),
                "makers": None if self.makers is None else blob.add(self.makers, "int32"),
            },
            "why": self._why(blob, n_trees),
        }

    def _shares(self, blob: Blob, classes: tuple[str, ...]) -> dict[str, Any] | None:
        if not 0 < len(classes) <= _MOST_SHARES:
            return None
        return {"classes": list(classes), "data": blob.add(self.judgement.averages, "float32")}

    def _why(self, blob: Blob, n_trees: int) -> dict[str, Any] | None:
        if self.reasons is None:
            return None
        none = self.neighbors < 0
        features = np.where(none[:, :, None], -1, self.reasons.features)
        trees = np.where(none, 0, self.reasons.trees)
        return {
            "m": features.shape[2],
            "feature": blob.add_codes(features, int(features.max()) + 1),
            "percent": blob.add(np.round(100 * self.reasons.shares), "uint8"),
            "trees": blob.add(np.minimum(trees, np.iinfo(np.uint16).max), "uint16"),
            "n_trees": n_trees,
        }


def _join(first: Any, second: Any) -> Any:
    """Concatenate arrays or tuples of arrays; None if one of them is None."""
    if first is None or second is None:
        return None
    if isinstance(first, tuple):
        return type(first)(*map(_join, first, second))
    return np.concatenate([first, second])
