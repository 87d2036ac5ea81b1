"""Adapter for HistGradientBoosting of scikit-learn.

HistGradientBoosting has no ``apply``. To find the leaves, each tree is copied, and the values of
its leaves are replaced by their numbers. The copy then predicts the leaf. Missing values and
categories are handled as in ``predict``. All of this is private API, checked in scikit-learn 1.4.0
to 1.9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight

from leafkernel.forests._base import Array, Outputs, with_own_names
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training, targets, weights_of
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._sklearn_boosting import (
    sklearn_link,
    sklearn_loss,
    sklearn_targets,
    training_rows,
)
from leafkernel.forests._trees import Tree, TreeArrays, codes_in, offsets_of
from leafkernel.weighting import leaf_id_type


class HistForest(BoostedTrees):
    """Trees on binned features; one for each class and round."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        # Copied, so that fitting the estimator again has no effect here.
        self._model = with_own_names(estimator)
        trees = [tree for of_round in estimator._predictors for tree in of_round]
        self._values = [tree.nodes["value"][tree.nodes["is_leaf"] == 1] for tree in trees]
        self.leaf_offsets = offsets_of([len(values) for values in self._values])
        self._trees = [_number_leaves(tree) for tree in trees]

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        X = self._model._preprocess_X(X, reset=False)
        categories = self._model._bin_mapper.make_known_categories_bitsets()
        leaf = np.empty((len(X), len(self._trees)), leaf_id_type(int(self.leaf_offsets[-1])))
        for t, tree in enumerate(self._trees):
            leaf[:, t] = tree.predict(X, *categories, n_threads) + self.leaf_offsets[t]
        return leaf

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,)."""
        return np.concatenate(self._values)

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return the information needed to retrace the training."""
        model = self.estimator
        coded, labels = sklearn_targets(model, y, n_samples)
        weights = weights_of(sample_weight, n_samples)
        if getattr(model, "class_weight", None) is not None:
            classes = targets(y, n_samples)
            weights *= compute_sample_weight(model.class_weight, classes)
        if model.do_early_stopping_ and model.validation_fraction is not None:
            # Reproduce the split of fit with its stored seed.
            rows = training_rows(
                n_samples, coded, model, model.validation_fraction, model._random_seed
            )
            weights[np.setdiff1d(np.arange(n_samples), rows)] = 0
        base = np.ravel(model._baseline_prediction).astype(np.float64)
        l2, rate = float(model.l2_regularization), float(model.learning_rate)
        return Training(
            coded,
            weights,
            Outputs(
                base,
                np.arange(len(self._trees)) % len(base),
                labels,
                sklearn_link(model._loss, objective),
            ),
            self.leaf_values(),
            len(base),
            sklearn_loss(self, model._loss, objective),
            lambda tree, G, H, held: -rate / (H + l2),  # noqa: ARG005
            tolerance=2e-6,
            derivative_precision=np.float32,
        )

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits."""
        columns = np.arange(self._model.n_features_in_)
        categorical = self._model.is_categorical_
        if categorical is not None:  # the model puts its categorical columns first
            columns = np.concatenate([columns[categorical], columns[~categorical]])
        return [_as_arrays(tree, columns) for tree in self._trees]

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories of each categorical feature, in the order of their codes."""
        categorical = self._model.is_categorical_
        if categorical is None:
            return {}
        encoder = self._model._preprocessor.named_transformers_["encoder"]
        known = zip(np.flatnonzero(categorical), encoder.categories_, strict=True)
        return {int(column): values.tolist() for column, values in known}


def _number_leaves(tree: Any) -> Any:
    """Return a copy of a tree in which the value of each leaf is its number."""
    nodes = tree.nodes.copy()
    is_leaf = nodes["is_leaf"] == 1
    nodes["value"][is_leaf] = np.arange(is_leaf.sum())
    bitsets = tree.binned_left_cat_bitsets.copy(), tree.raw_left_cat_bitsets.copy()
    return type(tree)(nodes, *bitsets)


def _as_arrays(tree: Any, columns: Array) -> TreeArrays:
    nodes = tree.nodes
    is_leaf = nodes["is_leaf"] == 1
    by_category = np.flatnonzero((nodes["is_categorical"] == 1) & ~is_leaf)
    return TreeArrays(
        np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        columns[np.where(is_leaf, 0, nodes["feature_idx"])],
        np.where(nodes["is_categorical"] == 1, np.nan, nodes["num_threshold"]),
        nodes["missing_go_to_left"] == 1,
        {
            int(node): (codes_in(tree.raw_left_cat_bitsets[nodes["bitset_idx"][node]]), True)
            for node in by_category
        },
    )
