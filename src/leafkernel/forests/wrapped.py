"""Forests inside of something else: pipelines, searches, frozen estimators."""

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

from leafkernel._validation import describe
from leafkernel.forests._base import (
    Array,
    FittedForest,
    InBag,
    LeafAverages,
    numbered_names,
)
from leafkernel.forests._trees import Tree


def unfreeze(estimator: Any) -> Any:
    """Return what a FrozenEstimator holds, and anything else as it is."""
    if FrozenEstimator is not None and isinstance(estimator, FrozenEstimator):
        return unfreeze(estimator.estimator)
    return estimator


def innermost(estimator: Any) -> Any:
    """Return the estimator that is to grow or has grown the trees."""
    estimator = unfreeze(estimator)
    if isinstance(estimator, BaseSearchCV):
        return innermost(getattr(estimator, "best_estimator_", estimator.estimator))
    if isinstance(estimator, Pipeline):
        return innermost(estimator.steps[-1][1])
    return estimator


def weights_for(estimator: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the argument of fit that takes sample weights, if any, to the forest inside."""
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
    """Return the forest inside of a fitted wrapper, or None if it is not one."""
    if isinstance(estimator, BaseSearchCV):
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError(
                f"{describe(estimator, refit=estimator.refit)} keeps no best estimator; use "
                "refit=True, or fit the forest with best_params_ yourself."
            )
        return adapt_inner(estimator.best_estimator_)
    if isinstance(estimator, Pipeline):
        return PipelineForest(estimator, adapt_inner(estimator.steps[-1][1]))
    return None


class PipelineForest(FittedForest):
    """The forest at the end of a pipeline, whose other steps are applied first."""

    def __init__(self, estimator: Pipeline, last: FittedForest) -> None:
        self.estimator = estimator
        self._last = last
        # A copy, so that fitting the pipeline again elsewhere changes nothing.
        self._steps = deepcopy([step for _, step in estimator.steps[:-1]])
        self._n_last = getattr(last.estimator, "n_features_in_", 0)
        self.leaf_offsets = last.leaf_offsets

    def _transform(self, X: Any) -> Any:
        for step in self._steps:
            # A sampler has a part in fitting alone: what comes later it passes on.
            if step is not None and step != "passthrough" and hasattr(step, "transform"):
                X = step.transform(X)
        return X

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        return self._last.leaves(self._transform(X), n_threads=n_threads)

    @property
    def learns_leaves(self) -> bool:  # type: ignore[override]
        """Whether the leaves of the forest are known only by the samples of fit."""
        return self._last.learns_leaves

    def for_workers(self) -> FittedForest:
        """Return the forest with no more than other processes need to route and to draw."""
        other = copy(self)
        other._last = self._last.for_workers()
        other.estimator = None  # its last step is the whole forest
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

    def is_boosted(self) -> bool:
        """Return whether the values of its leaves add up to its score."""
        return self._last.is_boosted()

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return how the trees were trained on these samples, their own training set."""
        X = None if X is None else self._transform(X)
        return self._last.in_bag(X, y, sample_weight, leaf, n_threads=n_threads)

    def in_bag_of_trees(
        self, trees: slice, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
    ) -> InBag:
        """Return how some trees were trained on all samples."""
        return self._last.in_bag_of_trees(trees, y, sample_weight, n_samples, n_threads=n_threads)

    def check_in_bag(self, masses: Array, *, n_threads: int = 1) -> None:
        """Refuse in-bag weights that, summed over each leaf, are not those of the trees."""
        self._last.check_in_bag(masses, n_threads=n_threads)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return each tree's weight in the ensemble, shape (T,)."""
        return self._last.tree_weights(leaf_mass)

    def contributions(
        self, y: Any, sample_weight: Any, leaf: Array, *, objective: Any = None
    ) -> Array:
        """Return the part of each training sample in the value of its leaf in each tree."""
        found = self._last.contributions(y, sample_weight, leaf, objective=objective)
        self.outputs = self._last.outputs
        return found

    def leaf_averages(self, y: Any, sample_weight: Any, leaf: Array) -> LeafAverages:
        """Return how a model of squared loss averages residuals over its leaves."""
        return self._last.leaf_averages(y, sample_weight, leaf)

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features) on the path to each leaf, in columns of the last step."""
        return self._last.path_features()

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits, in columns of the last step."""
        return self._last.trees()

    def feature_names(self, names: Array) -> Array:
        """Return the names of the columns of the last step, as far as the others tell them."""
        for step in self._steps:
            if step is None or step == "passthrough" or not hasattr(step, "transform"):
                continue
            try:
                names = np.asarray(step.get_feature_names_out(names), dtype=object)
            except (AttributeError, ValueError):  # it cannot tell, or was fitted on other names
                names = numbered_names(self._n_last)
                break
        return self._last.feature_names(_without_prefixes(names, self._steps))

    def categories(self) -> dict[int, list[Any]]:
        """Return what the codes of categories stand for in the last step."""
        return self._last.categories()

    def __str__(self) -> str:
        return str(self._last)


def _without_prefixes(names: Array, steps: list[Any]) -> Array:
    """Remove the names of parts that scikit-learn puts before those of features: ``num__age``.

    They stay if two features would have the same name without.
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
