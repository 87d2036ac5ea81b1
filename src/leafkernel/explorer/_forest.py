"""What a page tells of the forest itself."""

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

# Counting the rows behind each prediction means making P; where it is larger, it is not counted.
_MOST_COUNTED = 1e9
_WORDS = {"RandomForest": "a random forest", "ExtraTrees": "extremely randomized trees"}


def read_splits(prox: ForestProximity) -> tuple[Any, list[str]]:
    """Return the trees, where they tell their splits, and the names of what they split on."""
    try:
        trees, names = read_trees(prox, "a page")
    except ValueError:
        return None, []
    return trees, [str(name) for name in names]


def link_features(
    prox: ForestProximity, features: list[str], X: Any, columns: list[str], *, columns_are_x: bool
) -> list[int | None]:
    """Return the column on the page of each feature that the trees split on, where it has one.

    Features are columns of X, one by one, unless a pipeline made others of them; columns of the
    page are X's or are known by their names.
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
    """Return the forest's own importances, where it has one for each feature."""
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
    """Return how many training rows have a part in each row's prediction, shape (n,).

    The rows are new ones, or by default the training rows.
    """
    n = prox.n_samples_fit_
    n_rows = n if X is None else X.n_samples
    if n_rows * n > _MOST_COUNTED and prox.forecast(X).nonzeros > _MOST_COUNTED:
        return None
    blocks = prox.iter_proximity(X, sort=False)
    return np.concatenate([np.diff(block.indptr) for _, block in blocks])


def name_forest(prox: ForestProximity) -> str:
    """Name the forest in a sentence."""
    name = type(_inner(prox)).__name__
    words = next((text for start, text in _WORDS.items() if name.startswith(start)), name)
    trees = "tree" if prox.n_trees_ == 1 else "trees"
    return f"{words} of {prox.n_trees_:,} {trees}"


def _inner(prox: ForestProximity) -> Any:
    """Return the ensemble itself: out of a search, the end of a pipeline."""
    forest = getattr(prox.forest_, "best_estimator_", prox.forest_)
    return forest.steps[-1][1] if hasattr(forest, "steps") else forest
