"""Properties of the forest for a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._validation import column_names
from leafkernel.forests._base import numbered_names
from leafkernel.leaf_index import Samples
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._paths import read_trees

Array = npt.NDArray[Any]

# The rows behind each prediction are counted only if P has at most this many entries.
_MOST_COUNTED = 1e9
_WORDS = {"RandomForest": "a random forest", "ExtraTrees": "extremely randomized trees"}


def read_splits(prox: ForestProximity) -> tuple[Any, list[str]]:
    """Return the trees and the names of their features; None and [] if they cannot be read."""
    try:
        trees, names = read_trees(prox, "a page")
    except ValueError:
        return None, []
    return trees, [str(name) for name in names]


def link_features(
    prox: ForestProximity, features: list[str], X: Any, columns: list[str], *, columns_are_x: bool
) -> list[int | None]:
    """Return the column of the page for each feature of the trees, or None.

    Features are the columns of X, unless a pipeline transforms them. The columns of the page are
    those of X, or are matched by name.
    """
    first: dict[str, int] = {}
    for j, name in enumerate(columns):
        first.setdefault(name, j)
    known = getattr(prox, "feature_names_in_", None)
    inputs = numbered_names(prox.n_features_in_) if known is None else known
    if features != [str(name) for name in inputs]:
        return [first.get(name) for name in features]
    if columns_are_x:
        return [j if j < len(columns) else None for j in range(len(features))]
    names = column_names(X)
    if names:
        return [first.get(name) for name in names]
    same = len(columns) == len(features)
    return [j if same else first.get(name) for j, name in enumerate(features)]


def read_importances(prox: ForestProximity, n_features: int) -> Array | None:
    """Return the feature importances of the forest; None if it has none."""
    try:
        found = np.asarray(getattr(_inner(prox), "feature_importances_", None), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    total = found.sum()
    if found.shape != (n_features,) or not np.isfinite(total) or total <= 0:
        return None
    shares: Array = found / total
    return shares


def count_makers(prox: ForestProximity, X: Samples | None = None) -> Array | None:
    """Return the number of training rows with some proximity to each row, shape (n,).

    The rows are those of X, or by default the training rows.
    """
    n = prox.n_samples_fit_
    n_rows = n if X is None else X.n_samples
    if n_rows * n > _MOST_COUNTED and prox.forecast(X).nonzeros > _MOST_COUNTED:
        return None
    blocks = prox.iter_proximity(X, sort=False)
    return np.concatenate([np.diff(block.indptr) for _, block in blocks])


def name_forest(prox: ForestProximity) -> str:
    """Return the name of the forest for a sentence."""
    name = type(_inner(prox)).__name__
    words = next((text for start, text in _WORDS.items() if name.startswith(start)), name)
    trees = "tree" if prox.n_trees_ == 1 else "trees"
    return f"{words} with {prox.n_trees_:,} {trees}"


def _inner(prox: ForestProximity) -> Any:
    """Return the ensemble inside of a search or a pipeline."""
    forest = getattr(prox.forest_, "best_estimator_", prox.forest_)
    return forest.steps[-1][1] if hasattr(forest, "steps") else forest
