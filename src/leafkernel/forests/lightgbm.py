"""Adapter for LightGBM: the scikit-learn interface and native boosters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from leafkernel._optional import require
from leafkernel._validation import check_names, column_names
from leafkernel.forests._base import Array, FittedForest, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training
from leafkernel.forests._lightgbm_training import Trained, retraced_training
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._routing import RouteTable
from leafkernel.forests._trees import (
    Tree,
    TreeArrays,
    codes_in,
    global_ids,
    offsets_of,
)

# A parameter line at the end of a model file.
_PARAMETER = re.compile(r"^\[(\w+): (.*)\]$", re.MULTILINE)

# Codes of LightGBM for the values that count as missing.
_NOTHING, _ZERO = 0, 1

NAMES = "LGBMClassifier, LGBMRegressor, LGBMRanker and Booster (lightgbm)"


def kinds() -> tuple[type, ...]:
    """Return the classes that :func:`adapt` accepts."""
    lightgbm = require("lightgbm", extra="boosting")
    return lightgbm.LGBMModel, lightgbm.Booster


def adapt(estimator: Any, **_: int) -> FittedForest:
    """Return the adapter of a fitted LightGBM model."""
    return LightGBMForest(estimator, getattr(estimator, "booster_", estimator))


class LightGBMForest(BoostedTrees):
    """Trees of LightGBM: one for each class and round, up to the best round."""

    def __init__(self, estimator: Any, booster: Any) -> None:
        self.estimator = estimator
        # The text of a model file: arrays for each tree. Like predict, it stops at the best round.
        text = booster.model_to_string()
        header, *trees = text.partition("\nend of trees")[0].split("\nTree=")
        if not trees:
            raise ValueError(f"forest is {self}, which has no trees. Train it first.")
        self._averages = "average_output" in header.splitlines()
        read = [_read(tree) for tree in trees]
        self._trees = [_as_arrays(tree) for tree in read]
        self._values = [_numbers(tree["leaf_value"], np.float64) for tree in read]
        self._linear = any(tree.get("is_linear") == "1" for tree in read)
        # Copied, so that further training of the model has no effect here.
        self._categories = _read_categories(header, booster.pandas_categorical)
        self._booster = require("lightgbm", extra="boosting").Booster(model_str=text)
        self._n_outputs = int(booster.num_model_per_iteration())
        self._rounds = len(trees) // self._n_outputs
        self._shrinkage = np.array([float(tree.get("shrinkage", 1)) for tree in read])
        self._objective = _read(header).get("objective", "")
        # The text lists the parameters. LightGBM 4.0 omits some; the booster may have them.
        given = getattr(booster, "params", None) or {}
        self._params = {
            **{name: str(int(v) if isinstance(v, bool) else v) for name, v in given.items()},
            **dict(_PARAMETER.findall(text.partition("\nparameters:")[2])),
        }
        self.leaf_offsets = offsets_of([len(values) for values in self._values])

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        names = self._booster.feature_name()
        if names != [f"Column_{i}" for i in range(len(names))]:
            # LightGBM replaces whitespace in names by underscores.
            check_names(names, ["_".join(n.split()) for n in column_names(X)], str(self))
        if not (issparse(X) or hasattr(X, "iloc")):  # data frames are passed on with categories
            X = np.asarray(X)
        if X.shape[0] == 0:
            return global_ids(np.zeros((0, len(self._trees))), self.leaf_offsets)
        found = np.asarray(self._booster.predict(X, pred_leaf=True, num_threads=n_threads))
        return global_ids(found.reshape(X.shape[0], len(self._trees)), self.leaf_offsets)

    def packed(self, X: Any) -> tuple[RouteTable, Any] | None:
        """Return packed trees and X as float32, if X loses nothing by it.

        LightGBM compares float64 values.
        """
        found = self.pack_numbers(X, self._booster.num_feature())
        if found is None or X.dtype == np.float32:
            return found
        # On a GPU, only float32 is used.
        same = isinstance(X, np.ndarray) and np.array_equal(
            X, found[1], equal_nan=X.dtype.kind == "f"
        )
        return found if same else None

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,)."""
        if self._linear:
            raise Unavailable(
                f"{self} has linear_tree=True, so its leaves have no constant value; pass your own "
                "weights with Boosted(tree_weights=...), or use 'uniform'"
            )
        return np.concatenate(self._values) / (self._rounds if self._averages else 1)

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return the information needed to retrace the training."""
        return retraced_training(
            Trained(
                self,
                self._objective,
                self._params,
                self._n_outputs,
                self._shrinkage,
                self._trees,
                averages=self._averages,
            ),
            y,
            sample_weight,
            n_samples,
            objective,
        )

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits."""
        return self._trees

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories of pandas columns, in the order of their codes."""
        return self._categories

    def draws_samples(self) -> bool:
        """Return whether the trees were trained independently: ``boosting_type="rf"``."""
        return self._averages


def _read(tree: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in tree.splitlines())
    return {name: value for name, _, value in pairs}


def _numbers(text: str, dtype: Any) -> Array:
    return np.array(text.split(), dtype=dtype)


def _as_arrays(tree: dict[str, str]) -> TreeArrays:
    """Return a tree as arrays: inner nodes first, then the leaves in their order."""
    n_leaves = int(tree["num_leaves"])

    def of_inner(name: str, dtype: Any = np.int64) -> Array:
        return _numbers(tree.get(name, "") if n_leaves > 1 else "", dtype)

    def with_leaves(inner: Array) -> Array:
        return np.concatenate([inner, np.full(n_leaves, -1, dtype=inner.dtype)])

    def child(name: str) -> Array:  # leaf k is stored as -k - 1
        inner = of_inner(name)
        return with_leaves(np.where(inner < 0, n_leaves - 2 - inner, inner))

    # Bits of the decision type: categorical split; missing values go left; kind of missing values.
    kind, threshold = of_inner("decision_type"), of_inner("threshold", np.float64)
    missing = (kind >> 2) & 3
    # Without missing values, NaN is read as 0. If 0 counts as missing, no threshold describes the
    # split.
    missing_left = np.where(missing == _NOTHING, threshold >= 0, (kind & 2) > 0)
    by_category = np.flatnonzero(kind & 1)
    begins, bits = of_inner("cat_boundaries"), of_inner("cat_threshold", np.uint32)
    categories = {
        int(node): (codes_in(bits[begins[k] : begins[k + 1]]), True)
        for node, k in zip(by_category, threshold[by_category].astype(int), strict=True)
    }
    threshold = np.where(((kind & 1) > 0) | (missing == _ZERO), np.nan, threshold)
    return TreeArrays(
        child("left_child"),
        child("right_child"),
        with_leaves(of_inner("split_feature")),
        with_leaves(threshold),
        with_leaves(missing_left.astype(np.int8)),
        categories,
    )


def _read_categories(header: str, of_pandas: list[list[Any]] | None) -> dict[int, list[Any]]:
    """Return the categories of each categorical feature, as named in pandas."""
    infos = _read(header).get("feature_infos", "").split()
    # Numeric features have "[low:high]", categorical ones "0:1:2", unused ones "none".
    features = [f for f, info in enumerate(infos) if not info.startswith("[") and info != "none"]
    if not of_pandas or len(of_pandas) != len(features):
        return {}
    return dict(zip(features, of_pandas, strict=True))
