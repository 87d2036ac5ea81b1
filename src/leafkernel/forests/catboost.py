"""Adapter for CatBoost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from leafkernel._optional import require
from leafkernel._validation import check_names, column_names
from leafkernel.forests._base import Array, FittedForest, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._catboost_training import retraced_training
from leafkernel.forests._gradients import Training
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._trees import Tree, TreeArrays, global_ids, offsets_of
from leafkernel.tree_nodes import TreeNodes

#: Feature, threshold (NaN for a category), and whether missing values go left.
Split = tuple[int, float, bool]

NAMES = "CatBoostClassifier, CatBoostRegressor, CatBoostRanker and CatBoost (catboost)"


def kinds() -> tuple[type, ...]:
    """Return the classes that :func:`adapt` accepts."""
    return (require("catboost", extra="boosting").CatBoost,)


def adapt(estimator: Any, **_: int) -> FittedForest:
    """Return the adapter of a fitted CatBoost model."""
    return CatBoostForest(estimator)


class CatBoostForest(BoostedTrees):
    """Trees of CatBoost: one for each round, with a value for each class in each leaf."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._model = deepcopy(estimator)  # further training has no effect here
        if not estimator.tree_count_:
            raise ValueError(f"forest is {self}, which has no trees. Train it first.")
        self.leaf_offsets = offsets_of(np.asarray(estimator.get_tree_leaf_counts(), dtype=np.int64))

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        names = list(self._model.feature_names_)
        if names != [str(i) for i in range(len(names))]:
            check_names(names, column_names(X), str(self))
        n_columns = np.shape(X)[1] if not hasattr(X, "shape") else X.shape[1]
        if n_columns != len(names):
            raise ValueError(
                f"X has {n_columns} columns, but {self} was trained on {len(names)}. Pass the same "
                "columns."
            )
        found = self._model.calc_leaf_indexes(X, thread_count=n_threads)
        return global_ids(found, self.leaf_offsets)

    def predicts_numbers(self) -> bool:
        """Return whether the forest is known to be a regressor."""
        # Rankers also claim to be regressors, but they are not.
        catboost = require("catboost", extra="boosting")
        return isinstance(self.estimator, catboost.CatBoostRegressor)

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,) or (L, n_classes)."""
        scale = float(self._model.get_scale_and_bias()[0])
        values = scale * np.asarray(self._model.get_leaf_values())
        return values.reshape(int(self.leaf_offsets[-1]), -1)

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return the information needed to retrace the training."""
        return retraced_training(self, y, sample_weight, n_samples, objective)

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features). Every path of an oblivious tree has all its features."""
        try:
            splits_of_trees = self._splits()
        except Unavailable as error:
            raise Unavailable(f"{error}; use 'kerf'") from error
        offsets, features = [np.zeros(1, dtype=np.int64)], []
        for t, splits in enumerate(splits_of_trees):
            n_leaves = int(self.leaf_offsets[t + 1] - self.leaf_offsets[t])
            distinct = np.unique([feature for feature, _, _ in splits]).astype(np.int64)
            features.append(np.tile(distinct, n_leaves))
            offsets.append(offsets[-1][-1] + len(distinct) * np.arange(1, n_leaves + 1))
        return np.concatenate(offsets), np.concatenate(features)

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits, which compare float32 values."""
        return [_as_arrays(splits) for splits in self._splits()]

    def nodes(self) -> TreeNodes:
        """Return the nodes of all trees, depth first. Symmetric trees need no splits for this."""
        depths = np.log2(np.diff(self.leaf_offsets))
        policy = self._model.get_all_params().get("grow_policy", "SymmetricTree")
        if policy != "SymmetricTree" or (depths != depths.astype(int)).any():
            raise Unavailable(
                f"{self} provides them only with grow_policy='SymmetricTree'. Train it with that, "
                "or use 'kerf'"
            )
        return TreeNodes.of([_as_arrays([(-1, np.nan, False)] * int(d)) for d in depths])

    def _splits(self) -> list[list[Split]]:
        """Return the splits of each tree, one for each level."""
        with tempfile.TemporaryDirectory() as folder:  # CatBoost writes JSON only to files
            path = Path(folder) / "model.json"
            self._model.save_model(str(path), format="json")
            model = json.loads(path.read_text())
        if "oblivious_trees" not in model:
            raise Unavailable(
                f"the splits of {self} can be read only with grow_policy='SymmetricTree'"
            )
        info = model["features_info"]
        column = {
            kind: {f["feature_index"]: f["flat_feature_index"] for f in info.get(f"{kind}s", [])}
            for kind in ("float_feature", "categorical_feature")
        }
        missing_last = {
            f["feature_index"]: f.get("nan_value_treatment") == "AsTrue"
            for f in info.get("float_features", [])
        }
        found = []
        for tree in model["oblivious_trees"]:
            of_tree: list[Split] = []
            for split in tree["splits"] or []:
                if split["split_type"] == "FloatFeature":
                    number = split["float_feature_index"]
                    to_left = not missing_last[number]
                    border = float(np.float32(split["border"]))
                    of_tree.append((column["float_feature"][number], border, to_left))
                elif split["split_type"] == "OneHotFeature":
                    number = split["cat_feature_index"]
                    of_tree.append((column["categorical_feature"][number], np.nan, False))
                else:
                    raise Unavailable(
                        f"{self} splits on statistics of categories ({split['split_type']}), not "
                        "on single features"
                    )
            found.append(of_tree)
        return found


def _as_arrays(splits: list[Split]) -> TreeArrays:
    """Return the nodes of an oblivious tree.

    Level k has 2^k nodes. They are numbered by the splits so far: bit i is 1 if split i goes
    right. The leaves are therefore numbered as in CatBoost.
    """
    depth = len(splits)
    left, right, taken = [], [], []
    for level, split in enumerate(splits):
        below = 2 ** (level + 1) - 1 + np.arange(2**level)
        left.append(below)
        right.append(below + 2**level)
        taken += [split] * 2**level
    leaves = np.full(2**depth, -1)
    features, thresholds, missing_left = zip(*taken, *[(-1, -1.0, False)] * 2**depth, strict=True)
    return TreeArrays(
        np.concatenate([*left, leaves]),
        np.concatenate([*right, leaves]),
        np.array(features),
        np.array(thresholds),
        np.array(missing_left),
    )
