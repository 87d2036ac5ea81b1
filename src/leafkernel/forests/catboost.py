"""CatBoost."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from leafkernel._optional import require
from leafkernel._validation import check_names, column_names
from leafkernel.forests._base import Array, FittedForest, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._trees import global_ids, offsets_of

NAMES = "CatBoostClassifier, CatBoostRegressor, CatBoostRanker and CatBoost (catboost)"


def kinds() -> tuple[type, ...]:
    """Return the classes that :func:`adapt` takes."""
    return (require("catboost", extra="boosting").CatBoost,)


def adapt(estimator: Any, **_: int) -> FittedForest:
    """Return a fitted model of CatBoost as a forest."""
    return CatBoostForest(estimator)


class CatBoostForest(BoostedTrees):
    """Trees of CatBoost: one for each round, whose leaves hold a value for each class."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._model = deepcopy(estimator)  # training it again elsewhere changes nothing
        if not estimator.tree_count_:
            raise ValueError(f"{self} has no trees; train it first.")
        self.leaf_offsets = offsets_of(np.asarray(estimator.get_tree_leaf_counts(), dtype=np.int64))

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        names = list(self._model.feature_names_)
        if names != [str(i) for i in range(len(names))]:
            check_names(names, column_names(X), str(self))
        n_columns = np.shape(X)[1] if not hasattr(X, "shape") else X.shape[1]
        if n_columns != len(names):
            raise ValueError(
                f"X has {n_columns} columns, but {self} was trained on {len(names)}; give the same."
            )
        found = self._model.calc_leaf_indexes(X, thread_count=n_threads)
        return global_ids(found, self.leaf_offsets)

    def predicts_numbers(self) -> bool:
        """Return whether the forest is known to be a regressor."""
        # Not for rankers, whatever they tell scikit-learn.
        catboost = require("catboost", extra="boosting")
        return isinstance(self.estimator, catboost.CatBoostRegressor)

    def leaf_values(self) -> Array:
        """Return what each leaf adds to the model, shape (L,) or (L, n_classes)."""
        scale = float(self._model.get_scale_and_bias()[0])
        values = scale * np.asarray(self._model.get_leaf_values())
        return values.reshape(int(self.leaf_offsets[-1]), -1)

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features): all features of an oblivious tree are on all its paths."""
        offsets, features = [np.zeros(1, dtype=np.int64)], []
        for t, splits in enumerate(self._splits()):
            n_leaves = int(self.leaf_offsets[t + 1] - self.leaf_offsets[t])
            distinct = np.unique(splits).astype(np.int64)
            features.append(np.tile(distinct, n_leaves))
            offsets.append(offsets[-1][-1] + len(distinct) * np.arange(1, n_leaves + 1))
        return np.concatenate(offsets), np.concatenate(features)

    def _splits(self) -> list[list[int]]:
        """Return the features that each tree splits on."""
        with tempfile.TemporaryDirectory() as folder:  # it can be written to a file alone
            path = Path(folder) / "model.json"
            self._model.save_model(str(path), format="json")
            model = json.loads(path.read_text())
        if "oblivious_trees" not in model:
            raise Unavailable(
                f"{self} with its grow_policy has paths that are not understood; use "
                "grow_policy='SymmetricTree', or 'kerf'"
            )
        info = model["features_info"]
        column = {
            kind: {f["feature_index"]: f["flat_feature_index"] for f in info.get(f"{kind}s", [])}
            for kind in ("float_feature", "categorical_feature")
        }
        found = []
        for tree in model["oblivious_trees"]:
            of_tree = []
            for split in tree["splits"] or []:
                if split["split_type"] == "FloatFeature":
                    of_tree.append(column["float_feature"][split["float_feature_index"]])
                elif split["split_type"] == "OneHotFeature":
                    of_tree.append(column["categorical_feature"][split["cat_feature_index"]])
                else:
                    raise Unavailable(
                        f"{self} splits on statistics of categories ({split['split_type']}), which "
                        "belong to no single feature; use 'kerf'"
                    )
            found.append(of_tree)
        return found
