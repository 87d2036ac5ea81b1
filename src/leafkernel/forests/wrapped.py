"""Adapters for forests inside pipelines, searches and frozen estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

try:
    from sklearn.frozen import FrozenEstimator
except ImportError:  # scikit-learn < 1.6
    FrozenEstimator = None

from leafkernel._optional import is_on_gpu
from leafkernel._validation import describe
from leafkernel.forests._base import (
    Array,
    FittedForest,
    InBag,
    LeafAverages,
    numbered_names,
)
from leafkernel.forests._routing import RouteTable
from leafkernel.forests._trees import Tree
from leafkernel.tree_nodes import TreeNodes


def unfreeze(estimator: Any) -> Any:
    """Return the estimator in a FrozenEstimator. Return other estimators unchanged."""
    if FrozenEstimator is not None and isinstance(estimator, FrozenEstimator):
        return unfreeze(estimator.estimator)
    return estimator


def innermost(estimator: Any) -> Any:
    """Return the estimator that grows the trees."""
    estimator = unfreeze(estimator)
    if isinstance(estimator, BaseSearchCV):
        return innermost(getattr(estimator, "best_estimator_", estimator.estimator))
    if isinstance(estimator, Pipeline):
        return innermost(estimator.steps[-1][1])
    return estimator


def weights_for(estimator: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the fit parameter that passes sample weights to the inner forest."""
    if sample_weight is None:
        return {}
    way = ""
    while isinstance(estimator := unfreeze(estimator), (BaseSearchCV, Pipeline)):
        if isinstance(estimator, Pipeline):
            name, estimator = estimator.steps[-1]
            way += f"{name}__"
        else:
            estimator = estimator.estimator
    return {f"{way}sample_weight": sample_weight}


def adapt(estimator: Any, adapt_inner: Callable[[Any], FittedForest]) -> FittedForest | None:
    """Return the adapter of the forest in a fitted wrapper, or None for other estimators."""
    if isinstance(estimator, BaseSearchCV):
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError(
                f"forest is {describe(estimator, refit=estimator.refit)}, which has no "
                "best_estimator_. Use refit=True, or fit a forest with best_params_."
            )
        return adapt_inner(estimator.best_estimator_)
    if isinstance(estimator, Pipeline):
        return PipelineForest(estimator, adapt_inner(estimator.steps[-1][1]))
    return None


class PipelineForest(FittedForest):
    """The forest at the end of a pipeline. The other steps transform X first."""

    def __init__(self, estimator: Pipeline, last: FittedForest) -> None:
        self.estimator = estimator
        self._last = last
        # Copied, so that fitting the pipeline again has no effect here.
        self._steps = deepcopy([step for _, step in estimator.steps[:-1]])
        self._n_last = getattr(last.estimator, "n_features_in_", 0)
        self.leaf_offsets = last.leaf_offsets

    def _transform(self, X: Any) -> Any:
        for step in self._steps:
            # Samplers have no transform; they are used only in fitting.
            if step is not None and step != "passthrough" and hasattr(step, "transform"):
                X = step.transform(X)
        return X

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        return self._last.leaves(self._transform(X), n_threads=n_threads)

    def packed(self, X: Any) -> tuple[RouteTable, Any] | None:
        """Return packed trees and the transformed X as float32. X must be in main memory."""
        return None if is_on_gpu(X) else self._last.packed(self._transform(X))

    @property
    def learns_leaves(self) -> bool:  # type: ignore[override]
        """Whether the set of leaves is learned from the training samples."""
        return self._last.learns_leaves

    def for_workers(self) -> FittedForest:
        """Return a smaller copy that can still route samples and recover in-bag weights."""
        other = copy(self)
        other._last = self._last.for_workers()
        other.estimator = None  # it contains the whole forest
        return other

    def training_leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaves of the training samples."""
        leaf = self._last.training_leaves(self._transform(X), n_threads=n_threads)
        self.leaf_offsets = self._last.leaf_offsets
        return leaf

    def features(self, X: Any) -> Array:
        """Return the samples as the forest gets them."""
        return self._last.features(self._transform(X))

    def predicts_numbers(self) -> bool:
        """Return whether the forest is known to be a regressor."""
        return self._last.predicts_numbers()

    def predicts_classes(self) -> bool:
        """Return whether the forest is known to be a classifier."""
        return self._last.predicts_classes()

    def is_boosted(self) -> bool:
        """Return whether the score of the model is the sum of its leaf values."""
        return self._last.is_boosted()

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of the training samples."""
        X = None if X is None else self._transform(X)
        return self._last.in_bag(X, y, sample_weight, leaf, n_threads=n_threads)

    def in_bag_of_trees(
        self, trees: slice, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of all training samples in some trees."""
        return self._last.in_bag_of_trees(trees, y, sample_weight, n_samples, n_threads=n_threads)

    def check_in_bag(self, masses: Array, *, n_threads: int = 1) -> None:
        """Raise an error if the in-bag weights in each leaf do not match the fitted trees."""
        self._last.check_in_bag(masses, n_threads=n_threads)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the weight of each tree, shape (T,)."""
        return self._last.tree_weights(leaf_mass)

    def contributions(
        self, y: Any, sample_weight: Any, leaf: Array, *, objective: Any = None
    ) -> Array:
        """Return the contribution of each training sample to the value of its leaf in each tree."""
        found = self._last.contributions(y, sample_weight, leaf, objective=objective)
        self.outputs = self._last.outputs
        return found

    def leaf_averages(self, y: Any, sample_weight: Any, leaf: Array) -> LeafAverages:
        """Return a model with squared loss as averages of residuals over its leaves."""
        return self._last.leaf_averages(y, sample_weight, leaf)

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features) on the path to each leaf, as columns of the last step."""
        return self._last.path_features()

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits, on the columns of the last step."""
        return self._last.trees()

    def nodes(self) -> TreeNodes:
        """Return the nodes of all trees, depth first."""
        return self._last.nodes()

    def feature_names(self, names: Array) -> Array:
        """Return the names of the columns of the last step, if the other steps provide them."""
        for step in self._steps:
            if step is None or step == "passthrough" or not hasattr(step, "transform"):
                continue
            try:
                names = np.asarray(step.get_feature_names_out(names), dtype=object)
            except (AttributeError, ValueError):  # no names, or fitted on other names
                names = numbered_names(self._n_last)
                break
        return self._last.feature_names(_without_prefixes(names, self._steps))

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories behind the integer codes in the last step."""
        return self._last.categories()

    def __str__(self) -> str:
        return str(self._last)


def _without_prefixes(names: Array, steps: list[Any]) -> Array:
    """Remove the prefixes that scikit-learn adds to feature names: ``num__age``.

    They are kept if two features would have the same name without them.
    """
    parts = {
        part[0]
        for step in steps
        for part in (*getattr(step, "transformers", ()), *getattr(step, "transformer_list", ()))
    } | {"remainder"}
    short = []
    for name in names:
        part, separator, rest = str(name).partition("__")
        short.append(rest if separator and part in parts else name)
    return np.array(short, dtype=object) if len({*short}) == len(short) else names
