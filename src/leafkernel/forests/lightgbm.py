"""LightGBM: the scikit-learn interface and native boosters."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._optional import require
from leafkernel.forests._base import Array, FittedForest, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._trees import TreeArrays, features_on_paths, global_ids, offsets_of

NAMES = "LGBMClassifier, LGBMRegressor, LGBMRanker and Booster (lightgbm)"


def kinds() -> tuple[type, ...]:
    """Return the classes that :func:`adapt` takes."""
    lightgbm = require("lightgbm", extra="boosting")
    return lightgbm.LGBMModel, lightgbm.Booster


def adapt(estimator: Any, **_: int) -> FittedForest:
    """Return a fitted model of LightGBM as a forest."""
    return LightGBMForest(estimator, getattr(estimator, "booster_", estimator))


class LightGBMForest(BoostedTrees):
    """Trees of LightGBM: one for each class and round, those rounds that ``predict`` uses."""

    def __init__(self, estimator: Any, booster: Any) -> None:
        self.estimator = estimator
        # Both dump_model and predict stop at the best iteration by themselves.
        self._dump = booster.dump_model()
        if not self._dump["tree_info"]:
            raise ValueError(f"{self} has no trees; train it first.")
        self.leaf_offsets = offsets_of([tree["num_leaves"] for tree in self._dump["tree_info"]])

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        found = np.asarray(self.estimator.predict(X, pred_leaf=True, num_threads=n_threads))
        found = found.reshape(-1, len(self.leaf_offsets) - 1)
        return global_ids(found, self.leaf_offsets)

    def leaf_values(self) -> Array:
        """Return what each leaf adds to the model, shape (L,)."""
        values = np.zeros(int(self.leaf_offsets[-1]))
        for t, tree in enumerate(self._dump["tree_info"]):
            for node in _walk(tree["tree_structure"]):
                if "leaf_coeff" in node:
                    raise Unavailable(
                        f"{self} has linear_tree=True, whose leaves add more than one value; give "
                        "weights of your own with Boosted(tree_weights=...), or use 'uniform'"
                    )
                if "leaf_value" in node:
                    leaf = int(self.leaf_offsets[t]) + node.get("leaf_index", 0)
                    values[leaf] = node["leaf_value"]
        if self.averages():
            values *= self._dump["num_tree_per_iteration"] / len(self._dump["tree_info"])
        return values

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features): the distinct features on the path to each leaf, ascending."""
        return features_on_paths([_as_arrays(tree) for tree in self._dump["tree_info"]])

    def averages(self) -> bool:
        """Return whether the trees are averaged: ``boosting_type="rf"``."""
        return bool(self._dump.get("average_output", False))

    def draws_samples(self) -> bool:
        """Return whether the trees were grown apart, each on a draw of the samples."""
        return self.averages()


def _walk(root: dict[str, Any]) -> Any:
    """Yield the nodes of a dumped tree; deep trees do not exhaust the stack."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        if "left_child" in node:
            waiting += [node["right_child"], node["left_child"]]


def _as_arrays(tree: dict[str, Any]) -> TreeArrays:
    """Return a dumped tree as arrays: inner nodes, then the leaves in their order."""
    n_inner = int(tree["num_leaves"]) - 1

    def place(node: dict[str, Any]) -> int:
        if "left_child" in node:
            return int(node["split_index"])
        index: int = node.get("leaf_index", 0)
        return n_inner + index

    left, right, feature = np.full((3, n_inner + tree["num_leaves"]), -1)
    for node in _walk(tree["tree_structure"]):
        if "left_child" in node:
            at = place(node)
            left[at], right[at] = place(node["left_child"]), place(node["right_child"])
            feature[at] = node["split_feature"]
    return TreeArrays(left, right, feature)
