"""Adapter for XGBoost: the scikit-learn interface and native boosters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from leafkernel._optional import require
from leafkernel.forests._base import Array, FittedForest, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._routing import RouteTable
from leafkernel.forests._trees import (
    Tree,
    TreeArrays,
    count_leaves,
    offsets_of,
)
from leafkernel.forests._xgboost_training import Trained, retraced_training
from leafkernel.weighting import leaf_id_type

NAMES = "XGBClassifier, XGBRegressor, XGBRanker, XGBRF... and Booster (xgboost)"


def kinds() -> tuple[type, ...]:
    """Return the classes that :func:`adapt` accepts."""
    xgboost = require("xgboost", extra="boosting")
    return xgboost.XGBModel, xgboost.Booster


def adapt(estimator: Any, **_: int) -> FittedForest:
    """Return the adapter of a fitted XGBoost model."""
    if hasattr(estimator, "get_booster"):
        return XGBoostForest(estimator, estimator.get_booster(), best_iteration(estimator))
    # The predict method of a booster uses every tree, even after early stopping.
    return XGBoostForest(estimator, estimator, None)


def best_iteration(model: Any) -> int | None:
    """Return the round selected by early stopping, at which ``predict`` stops."""
    try:
        return int(model.best_iteration)
    except AttributeError:
        return None


class XGBoostForest(BoostedTrees):
    """Trees of XGBoost, for each round, class and parallel tree used by ``predict``."""

    def __init__(self, estimator: Any, booster: Any, best: int | None) -> None:
        self.estimator = estimator
        self._booster = booster.copy()  # further training has no effect here
        self._categories: dict[int, list[Any]] = {}
        self._missing = getattr(estimator, "missing", np.nan)
        # The documented JSON form of a model: plain arrays for each tree.
        model = json.loads(bytes(booster.save_raw(raw_format="json")))
        boosting = model["learner"]["gradient_booster"]
        if boosting["name"] not in ("gbtree", "dart"):
            raise ValueError(
                f"forest is {self} with booster={boosting['name']!r}, which has no trees. Train it "
                "with 'gbtree' or 'dart'."
            )
        trees = boosting.get("gbtree", boosting)["model"]
        # Weights of dropped trees: next to the model up to 3.2, inside it in 3.4.
        drop = boosting.get("weight_drop") or trees.get("weight_drop")
        rounds = trees["iteration_indptr"]
        self._n_rounds = len(rounds) - 1 if best is None else best + 1
        n_trees = rounds[self._n_rounds]
        if n_trees == 0:
            raise ValueError(f"forest is {self}, which has no trees. Train it first.")
        self._n_parallel = int(trees["gbtree_model_param"]["num_parallel_tree"])
        self._trees = [_as_arrays(tree) for tree in trees["trees"][:n_trees]]
        self._values = [_values(tree) for tree in trees["trees"][:n_trees]]
        self._drop = np.ones(n_trees) if not drop else np.asarray(drop[:n_trees])
        self._learner = {
            name: model["learner"][name] for name in ("objective", "learner_model_param")
        }
        self._tree_info = np.asarray(trees["tree_info"][:n_trees], dtype=np.int64)
        self._is_dart = boosting["name"] == "dart"
        self._config = json.loads(booster.save_config())
        self.leaf_offsets = count_leaves(self._trees)
        self._node_offsets = offsets_of([len(tree.children_left) for tree in self._trees])
        is_leaf = np.concatenate([tree.children_left < 0 for tree in self._trees])
        kind = leaf_id_type(int(self.leaf_offsets[-1]))
        self._leaf_of_node = (np.cumsum(is_leaf) - 1).astype(kind)

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        # Same as the apply method of the models, which ignores categories in old versions.
        found = self._booster.predict(
            self._data(X, n_threads), pred_leaf=True, iteration_range=(0, self._n_rounds)
        )
        # Ordered by round, class and parallel tree, like the list of trees.
        nodes = np.asarray(found).reshape(-1, len(self._trees)).astype(np.int64)
        leaf: Array = self._leaf_of_node[nodes + self._node_offsets[:-1]]
        return leaf

    def packed(self, X: Any) -> tuple[RouteTable, Any] | None:
        """Return packed trees and X as float32, the type that XGBoost compares."""
        if not np.isnan(self._missing):
            return None
        return self.pack_numbers(X, self._booster.num_features())

    def training_leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaves of the training samples, and store the names of their categories."""
        if hasattr(X, "iloc"):
            self._categories = {
                j: list(X.iloc[:, j].cat.categories)
                for j, dtype in enumerate(X.dtypes)
                if hasattr(dtype, "categories")
            }
        return self.leaves(X, n_threads=n_threads)

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories of pandas columns, in the order of their codes."""
        return self._categories

    def _data(self, X: Any, n_threads: int) -> Any:
        xgboost = require("xgboost", extra="boosting")
        names = {}
        if not hasattr(X, "columns"):  # arrays have no names and types; take the booster's
            booster = self._booster
            names = {"feature_names": booster.feature_names, "feature_types": booster.feature_types}
        elif isinstance(self.estimator, xgboost.XGBRanker) and "qid" in X.columns:
            X = X.drop(columns="qid")  # the query id is not a feature
        n_features = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
        if n_features != self._booster.num_features():  # XGBoost may crash
            raise ValueError(
                f"X has {n_features} features, but {self} is expecting "
                f"{self._booster.num_features()} features as input."
            )
        return xgboost.DMatrix(
            X, missing=self._missing, nthread=n_threads, enable_categorical=True, **names
        )

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,) or (L, n_outputs)."""
        found = []
        for values, tree, kept in zip(self._values, self._trees, self._drop, strict=True):
            if values is None:
                raise Unavailable(
                    f"{self} has leaves with several values in an unknown format; pass your own "
                    "weights with Boosted(tree_weights=...), or use 'uniform'"
                )
            found.append(kept * values[tree.children_left < 0])
        return np.concatenate(found)

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return the information needed to retrace the training."""
        trained = Trained(
            self,
            self._learner,
            self._config,
            self._tree_info,
            self._n_parallel,
            self._is_dart,
            self._start(),
        )
        return retraced_training(trained, y, sample_weight, n_samples, objective)

    def _start(self) -> Array:
        """Return the approximate raw scores before the first tree.

        They are the scores of one row minus its leaf values.
        """
        row = self._data(np.full((1, self._booster.num_features()), np.nan), 1)
        rounds = (0, self._n_rounds)
        scores = self._booster.predict(row, output_margin=True, iteration_range=rounds).ravel()
        nodes = self._booster.predict(row, pred_leaf=True, iteration_range=rounds).ravel()
        leaf = self._leaf_of_node[nodes.astype(np.int64) + self._node_offsets[:-1]]
        values = self.leaf_values()[leaf]
        if values.ndim == 2:
            return np.asarray(scores - values.sum(axis=0))
        added = np.bincount(self._tree_info, values, len(scores))
        return np.asarray(scores - added)

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits, which compare float32 values."""
        return self._trees

    def draws_samples(self) -> bool:
        """Return whether the trees were trained independently, each on a random subset."""
        return self._n_parallel > 1


def _as_arrays(tree: dict[str, Any]) -> TreeArrays:
    # XGBoost sends x < condition to the left. For float32, this is x <= the previous number.
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    by_category = np.asarray(tree["split_type"]) == 1
    # The listed categories go to the right.
    listed = np.asarray(tree.get("categories", []), dtype=np.int64)
    parts = zip(
        tree.get("categories_nodes", []),
        tree.get("categories_segments", []),
        tree.get("categories_sizes", []),
        strict=True,
    )
    categories = {
        node: (frozenset(listed[begin : begin + size].tolist()), False)
        for node, begin, size in parts
    }
    return TreeArrays(
        np.asarray(tree["left_children"]),
        np.asarray(tree["right_children"]),
        np.asarray(tree["split_indices"]),
        np.where(by_category, np.nan, below),
        np.asarray(tree["default_left"]) == 1,
        categories,
    )


def _values(tree: dict[str, Any]) -> Array | None:
    """Return the value of each node. Only the values of leaves are meaningful."""
    n_outputs = int(tree["tree_param"]["size_leaf_vector"])
    if n_outputs <= 1:
        return np.asarray(tree["split_conditions"], dtype=np.float64)
    weights = np.asarray(tree["base_weights"], dtype=np.float64)
    n_nodes = len(tree["left_children"])
    return weights.reshape(n_nodes, n_outputs) if weights.size == n_nodes * n_outputs else None
