"""Adapters for tree ensembles of scikit-learn and of packages that use its trees.

They work for every ensemble that stores its trees as ``tree_``, so also for imbalanced-learn,
scikit-survival and quantile-forest. HistGradientBoosting stores its trees in another form and has
its own module.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree as SklearnTree

from leafkernel._optional import is_on_gpu
from leafkernel._validation import check_numbers, describe
from leafkernel.forests._base import Array, FittedForest, InBag, Unavailable, with_own_names
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._bootstrap import check_leaf_masses, recover_bagging, recover_in_bag
from leafkernel.forests._gradients import Training
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._routing import RouteTable
from leafkernel.forests._sklearn_boosting import gradient_boosting
from leafkernel.forests._trees import Tree, count_leaves, weighted_variances
from leafkernel.forests.hist_gradient_boosting import HistForest
from leafkernel.weighting import leaf_id_type

# The private base classes of all bagged forests and all boosted trees, including scikit-survival's.
_BaseForest = next(cls for cls in RandomForestClassifier.__mro__ if cls.__name__ == "BaseForest")
_BOOSTED = next(
    cls for cls in GradientBoostingClassifier.__mro__ if cls.__name__ == "BaseGradientBoosting"
)
_HIST = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
_ADABOOST = (AdaBoostClassifier, AdaBoostRegressor)
_BAGGING = (BaggingClassifier, BaggingRegressor, IsolationForest)
NAMES = (
    "RandomForest, ExtraTrees, RandomTreesEmbedding, GradientBoosting, HistGradientBoosting, "
    "IsolationForest, DecisionTree, ExtraTree, and Bagging and AdaBoost of trees (scikit-learn)"
)


def kinds() -> tuple[type, ...]:
    """Return the classes that :func:`adapt` accepts."""
    survival = getattr(sys.modules.get("sksurv.tree"), "SurvivalTree", BaseDecisionTree)
    return (_BaseForest, _BOOSTED, *_BAGGING, *_ADABOOST, *_HIST, BaseDecisionTree, survival)


def adapt(estimator: Any, *, n_threads: int = 1) -> FittedForest:
    """Return the adapter of a fitted ensemble of scikit-learn."""
    if isinstance(estimator, _BaseForest):
        return BaggedForest(estimator, n_threads)
    if isinstance(estimator, _BOOSTED):
        return BoostedForest(estimator, n_threads)
    if isinstance(estimator, _BAGGING):
        return BaggingOfTrees(estimator, n_threads)
    if isinstance(estimator, _ADABOOST):
        return AdaBoostOfTrees(estimator, n_threads)
    if isinstance(estimator, _HIST):
        return HistForest(estimator)
    return SingleTree(estimator, n_threads)


class _TreesOfSklearn(FittedForest):
    """Trees in the array form of scikit-learn.

    The nodes are copied, and a copy of the estimator validates X. Fitting the estimator again has
    no effect here.
    """

    def __init__(self, estimator: Any, trees: Sequence[Any], n_threads: int) -> None:
        self.estimator = estimator
        self._checker = _without_trees(estimator)
        self._table = RouteTable.pack(trees, estimator.n_features_in_, n_threads=n_threads)
        self._kept = deepcopy(list(trees)) if self._table is None else []
        # Leaves are numbered in the order of their nodes, tree after tree.
        self.leaf_offsets = (
            count_leaves(self._kept) if self._table is None else self._table.leaf_offsets
        )

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        X = self.validate(X)
        if self._table is not None:
            return self._table.leaves(X, n_threads=n_threads)
        leaf = np.empty((X.shape[0], len(self._kept)), leaf_id_type(int(self.leaf_offsets[-1])))
        for t, tree in enumerate(self._kept):
            number = np.cumsum(tree.children_left < 0) - 1
            leaf[:, t] = number[tree.apply(X)] + self.leaf_offsets[t]
        return leaf

    def packed(self, X: Any) -> tuple[RouteTable, Any] | None:
        """Return packed trees and X as float32. X may be an array on a GPU."""
        if self._table is None or issparse(X):
            return None
        if is_on_gpu(X):
            return self._table, self._validate_on_device(X)
        return self._table, self.validate(X)

    def _validate_on_device(self, X: Any) -> Any:
        """Return a CuPy array as float32. The rules are those of :meth:`validate`."""
        # Raises an error if the shape or the type is wrong.
        self.validate(np.zeros((min(X.shape[0], 1), X.shape[1]), dtype=X.dtype))
        X = X.astype(np.float32, copy=False)
        if X.shape[0] and not bool(abs(X).max() <= np.finfo(np.float32).max):  # NaN or infinity
            self.validate(X.get())
        return X

    @abstractmethod
    def validate(self, X: Any) -> Any:
        """Return X as a float32 array or CSR matrix, or raise an error if it is invalid."""

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits, which compare float32 values."""
        return self._kept if self._table is None else self._table.trees()

    def __str__(self) -> str:
        return describe(self.estimator)


class BaggedForest(_TreesOfSklearn):
    """RandomForest, ExtraTrees and similar: independent trees, with or without a bootstrap."""

    def __init__(self, estimator: Any, n_threads: int = 1) -> None:
        super().__init__(estimator, [_tree_of(tree) for tree in estimator.estimators_], n_threads)

    def for_workers(self) -> FittedForest:
        """Return a copy with the routing table and the seeds of the trees, without their nodes."""
        if self._table is None:
            return self
        seeds = copy(self.estimator)
        seeds.estimators_ = [_without_nodes(tree) for tree in seeds.estimators_]
        other = copy(self)
        other.estimator = seeds
        return other

    def validate(self, X: Any) -> Any:
        """Return X as a float32 array or CSR matrix, or raise an error if it is invalid."""
        # Private API that predict and apply call first; checked in scikit-learn 1.4.0 to 1.9.1.
        return self._checker._validate_X_predict(X)

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of the training samples."""
        self._refuse_without_bootstrap()
        forest, n_samples = self.estimator, leaf.shape[0]
        return recover_in_bag(forest, y, sample_weight, n_samples, n_threads=n_threads)

    def in_bag_of_trees(
        self, trees: slice, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of all training samples in some trees only."""
        self._refuse_without_bootstrap()
        some = copy(self.estimator)
        for name in ("estimators_", "samplers_"):
            if hasattr(some, name):
                setattr(some, name, getattr(some, name)[trees])
        return recover_in_bag(some, y, sample_weight, n_samples, n_threads=n_threads)

    def _refuse_without_bootstrap(self) -> None:
        forest = self.estimator
        if not forest.bootstrap and not hasattr(forest, "samplers_"):
            advice = (
                "Use 'kerf' or 'uniform'"
                if isinstance(forest, RandomTreesEmbedding)
                else "Refit with bootstrap=True, or use 'kerf'"
            )
            raise Unavailable(
                f"{describe(forest, bootstrap=False)} has none: every tree was trained on every "
                f"sample. {advice}"
            )

    def check_in_bag(self, masses: Array, *, n_threads: int = 1) -> None:
        """Raise an error if the in-bag weights in each leaf do not match the fitted trees."""
        check_leaf_masses(self.estimator, masses, self.leaf_offsets, n_threads=n_threads)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Raise an error: all trees of a bagged forest have the same weight."""
        raise Unavailable(_all_alike(self))


class BoostedForest(_TreesOfSklearn, BoostedTrees):
    """GradientBoosting: one tree for each class and round."""

    def __init__(self, estimator: Any, n_threads: int = 1) -> None:
        super().__init__(estimator, _trees_of_rounds(estimator), n_threads)

    def validate(self, X: Any) -> Any:
        """Return X as a float32 array or CSR matrix, or raise an error if it is invalid."""
        return check_numbers(self._checker, X)  # apply() checks neither names nor NaN

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,)."""
        if getattr(self.estimator, "dropout_rate", 0) > 0:  # scikit-survival
            raise Unavailable(
                f"{self} with dropout_rate does not provide the final values of its trees; pass "
                "your own weights with Boosted(tree_weights=...), or use 'uniform'"
            )
        trees = _trees_of_rounds(self.estimator)
        values = [tree.value[tree.children_left < 0, 0, 0] for tree in trees]
        return np.concatenate(values) * float(self.estimator.learning_rate)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the variance of each tree's values over the training samples, shape (T,)."""
        if self.estimator.subsample < 1.0:  # the trees counted only their own draws, so use X
            return super().tree_weights(leaf_mass)
        trees = _trees_of_rounds(self.estimator)
        counts = [tree.n_node_samples[tree.children_left < 0] for tree in trees]
        # The trees counted all training samples, even if X contains others.
        return weighted_variances(self.leaf_values(), np.concatenate(counts), self.leaf_offsets)

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return the information needed to retrace the training."""
        return gradient_boosting(self, y, sample_weight, n_samples, objective)


class SingleTree(_TreesOfSklearn):
    """A single DecisionTree or ExtraTree."""

    def __init__(self, estimator: Any, n_threads: int = 1) -> None:
        super().__init__(estimator, [_tree_of(estimator)], n_threads)

    def validate(self, X: Any) -> Any:
        """Return X as a float32 array or CSR matrix, or raise an error if it is invalid."""
        return self._checker._validate_X_predict(X, check_input=True)

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Raise an error: no sample is out-of-bag."""
        raise Unavailable(
            f"{self} is one tree, which was trained on every sample; use 'kerf' or 'uniform'"
        )

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Raise an error: there is only one tree."""
        raise Unavailable(f"{self} is one tree, which needs no weight; use 'uniform'")


class _TreesOfOthers(_TreesOfSklearn):
    """Ensembles that accept any base estimator, here with trees as base estimators."""

    def __init__(self, estimator: Any, n_threads: int = 1) -> None:
        members = [_without_sampler(member) for member in estimator.estimators_]
        for member in members:
            if not isinstance(member, BaseDecisionTree):
                raise TypeError(
                    f"forest is {describe(estimator)}, whose base estimator {describe(member)} is "
                    "not a decision tree. Use a tree such as DecisionTreeClassifier as its base "
                    "estimator. If the base estimator is a forest, pass that forest instead."
                )
        self._first = members[0]
        whole = [np.arange(estimator.n_features_in_)] * len(members)
        features = getattr(estimator, "estimators_features_", whole)
        trees = [_on_features(_tree_of(m), f) for m, f in zip(members, features, strict=True)]
        super().__init__(estimator, trees, n_threads)

    def validate(self, X: Any) -> Any:
        """Return X as a float32 array or CSR matrix, or raise an error if it is invalid."""
        # Private API that the trees' predict calls; checked in scikit-learn 1.4.0 to 1.9.1.
        missing = self._first._support_missing_values(X)
        return check_numbers(self._checker, X, missing=missing)


class BaggingOfTrees(_TreesOfOthers):
    """Bagging of trees and IsolationForest: each tree draws samples and features."""

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of the training samples."""
        if isinstance(self.estimator.estimators_[0], Pipeline):
            raise Unavailable(
                f"{self} resamples each bootstrap sample and does not store the result; use "
                "'kerf', or BalancedRandomForestClassifier"
            )
        return recover_bagging(self.estimator, sample_weight, leaf.shape[0])

    def check_in_bag(self, masses: Array, *, n_threads: int = 1) -> None:
        """Raise an error if the in-bag weights in each leaf do not match the fitted trees."""
        check_leaf_masses(self.estimator, masses, self.leaf_offsets, n_threads=n_threads)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Raise an error: all trees have the same weight."""
        raise Unavailable(_all_alike(self))


class AdaBoostOfTrees(_TreesOfOthers):
    """AdaBoost of trees: each tree has a weight in the vote."""

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Raise an error: AdaBoost does not store its sample weights or draws."""
        raise Unavailable(
            f"{self} has none: it reweights the samples for each tree and does not store the "
            "weights; use 'boosted', 'kerf' or 'uniform'"
        )

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the weights of the trees in the vote."""
        # The array has n_estimators entries, but training may stop with fewer trees.
        weights: Array = self.estimator.estimator_weights_[: len(self.estimator.estimators_)]
        return weights.astype(np.float64)


@dataclass(frozen=True)
class _TreeOnFeatures:
    """A tree trained on some of the features, with the feature indices of the full X."""

    node_count: int
    children_left: Array
    children_right: Array
    feature: Array
    threshold: Array
    missing_go_to_left: Array
    grown: Any
    features: Array

    def apply(self, X: Any) -> Array:
        leaves: Array = self.grown.apply(X[:, self.features])
        return leaves


def _without_sampler(member: Any) -> Any:
    """Return the tree behind a sampler of imbalanced-learn, which is used only in fitting."""
    if isinstance(member, Pipeline) and not any(
        hasattr(step, "transform") for _, step in member.steps[:-1]
    ):
        return member.steps[-1][1]
    return member


def _on_features(tree: Any, features: Any) -> _TreeOnFeatures:
    features = np.asarray(features)
    if features.dtype.kind not in "iu":
        raise ValueError(
            f"estimators_features_ must contain column indices; got dtype {features.dtype}. The "
            "model is damaged. Load or fit it again."
        )
    inner = tree.children_left >= 0
    split_on = tree.feature[inner]
    if split_on.size and not 0 <= split_on.min() <= split_on.max() < len(features):
        raise ValueError(
            "A tree splits on a feature that is not in estimators_features_. The model is "
            "damaged. Load or fit it again."
        )
    renamed = np.full_like(tree.feature, -1)
    renamed[inner] = features[split_on]
    return _TreeOnFeatures(
        tree.node_count,
        tree.children_left,
        tree.children_right,
        renamed,
        tree.threshold,
        tree.missing_go_to_left,
        tree,
        features,
    )


def _tree_of(member: Any) -> Tree:
    """Return the tree of a fitted estimator. It must be scikit-learn's own Tree."""
    tree = member.tree_
    if type(tree) is not SklearnTree:
        raise TypeError(
            f"tree_ of {describe(member)} must be a Tree of scikit-learn; got "
            f"{type(tree).__name__}. The model may be damaged. Load or fit it again."
        )
    return tree  # type: ignore[no-any-return]


def _without_nodes(member: Any) -> Any:
    """Return a copy of a tree with its seed and parameters, without its nodes."""
    seed = copy(member)
    vars(seed).pop("tree_", None)
    return seed


def _trees_of_rounds(boosting: Any) -> list[Any]:
    """Return the trees of GradientBoosting, in the order of the rounds."""
    return [_tree_of(tree) for tree in boosting.estimators_.ravel()]


def _without_trees(estimator: Any) -> Any:
    """Return a copy of an ensemble that can still validate X, but does not keep the trees."""
    checker = with_own_names(estimator)
    if hasattr(checker, "estimators_"):
        checker.estimators_ = estimator.estimators_[:1]  # needed to check missing values
    return checker


def _all_alike(forest: FittedForest) -> str:
    return (
        f"{forest} averages its trees, so all trees have the same weight; use 'uniform', or pass "
        "your own weights with Boosted(tree_weights=...)"
    )
