"""Tree ensembles of scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)

from leafkernel._validation import check_finite, describe
from leafkernel.forests._base import Array, FittedForest, InBag, Unavailable
from leafkernel.forests._bootstrap import check_leaf_masses, recover_in_bag
from leafkernel.forests._routing import RouteTable
from leafkernel.weighting import leaf_id_type

BAGGED = (
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomTreesEmbedding,
)
BOOSTED = (GradientBoostingClassifier, GradientBoostingRegressor)


def adapt(estimator: Any, *, n_threads: int = 1) -> FittedForest | None:
    """Return a fitted ensemble of scikit-learn as a forest, or None if it is not one."""
    if isinstance(estimator, BAGGED):
        return BaggedForest(estimator, n_threads)
    if isinstance(estimator, BOOSTED):
        return BoostedForest(estimator, n_threads)
    return None


class _TreesOfSklearn(FittedForest):
    """Trees in the array form that scikit-learn keeps.

    They are held here, so that fitting the estimator again elsewhere changes nothing.
    """

    def __init__(self, estimator: Any, trees: Sequence[Any], n_threads: int) -> None:
        self.estimator = estimator
        self._trees = trees
        self._table = RouteTable.pack(trees, estimator.n_features_in_, n_threads=n_threads)
        # Leaves are numbered in the order of their nodes: global ids that grow with the tree.
        if self._table is not None:
            self.leaf_offsets = self._table.leaf_offsets
        else:
            sizes = [int((tree.children_left < 0).sum()) for tree in trees]
            self.leaf_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        X = self.validate(X)
        if self._table is not None:
            return self._table.leaves(X, n_threads=n_threads)
        leaf = np.empty((X.shape[0], len(self._trees)), leaf_id_type(int(self.leaf_offsets[-1])))
        for t, tree in enumerate(self._trees):
            number = np.cumsum(tree.children_left < 0) - 1
            leaf[:, t] = number[tree.apply(X)] + self.leaf_offsets[t]
        return leaf

    @abstractmethod
    def validate(self, X: Any) -> Any:
        """Return X as the float32 array or CSR matrix that the trees take, or refuse it."""

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features): the distinct features on the path to each leaf, ascending."""
        leaves: list[Array] = []
        features: list[Array] = []
        for t, tree in enumerate(self._trees):
            parent = _parents(tree)
            nodes = np.flatnonzero(tree.children_left < 0)
            of_leaf = self.leaf_offsets[t] + np.arange(len(nodes))
            while True:  # all leaves climb together, one level at a time
                nodes = parent[nodes]
                climbing = nodes >= 0
                if not climbing.any():
                    break
                nodes, of_leaf = nodes[climbing], of_leaf[climbing]
                leaves.append(of_leaf)
                features.append(tree.feature[nodes])
        n_leaves = int(self.leaf_offsets[-1])
        if not leaves:
            return np.zeros(n_leaves + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        pairs = np.unique(np.stack([np.concatenate(leaves), np.concatenate(features)], 1), axis=0)
        offsets = np.zeros(n_leaves + 1, dtype=np.int64)
        np.cumsum(np.bincount(pairs[:, 0], minlength=n_leaves), out=offsets[1:])
        return offsets, pairs[:, 1].astype(np.int64)

    def __str__(self) -> str:
        return describe(self.estimator)


class BaggedForest(_TreesOfSklearn):
    """RandomForest, ExtraTrees and RandomTreesEmbedding: trees grown apart, perhaps on draws."""

    def __init__(self, estimator: Any, n_threads: int = 1) -> None:
        super().__init__(estimator, [tree.tree_ for tree in estimator.estimators_], n_threads)

    def validate(self, X: Any) -> Any:
        """Return X as the float32 array or CSR matrix that the trees take, or refuse it."""
        # Private, and what predict and apply begin with: read on scikit-learn 1.4.0 to 1.9.1.
        return self.estimator._validate_X_predict(X)

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return how the trees were trained on these samples, their own training set."""
        forest = self.estimator
        if not forest.bootstrap:
            advice = (
                "use 'kerf' or 'uniform'"
                if isinstance(forest, RandomTreesEmbedding)
                else "refit with bootstrap=True or use 'kerf'"
            )
            raise Unavailable(
                f"{describe(forest, bootstrap=False)} has none: every tree saw every sample; "
                f"{advice}"
            )
        return recover_in_bag(forest, y, sample_weight, leaf.shape[0], n_threads=n_threads)

    def check_in_bag(self, masses: Array) -> None:
        """Refuse in-bag weights that do not add up to what the trees recorded in their leaves."""
        check_leaf_masses(self.estimator, masses, self.leaf_offsets)

    def tree_weights(self, leaf: Array) -> Array:
        """Refuse: the trees of a bagged forest all count alike."""
        raise Unavailable(
            f"{self} averages its trees, so they have none; use 'uniform', or give weights of your "
            "own with Boosted(tree_weights=...)"
        )


class BoostedForest(_TreesOfSklearn):
    """GradientBoosting: trees grown one after the other; one for each class and round."""

    def __init__(self, estimator: Any, n_threads: int = 1) -> None:
        trees = [tree.tree_ for tree in estimator.estimators_.ravel()]
        super().__init__(estimator, trees, n_threads)

    def validate(self, X: Any) -> Any:
        """Return X as the float32 array or CSR matrix that the trees take, or refuse it."""
        return check_finite(self.estimator, X)  # apply() looks at neither names nor NaN

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Refuse: boosting has no bootstrap to recover."""
        raise Unavailable(
            f"{self} has none: its trees are fitted to residuals, not to draws of the samples; use "
            "'boosted', 'kerf' or 'uniform'"
        )

    def tree_weights(self, leaf: Array) -> Array:
        """Return the variance over the training samples of what each tree adds to the model."""
        weights = np.empty(len(self._trees))
        for t, tree in enumerate(self._trees):
            is_leaf = tree.children_left < 0
            values = tree.value[is_leaf, 0, 0] * self.estimator.learning_rate
            if self.estimator.subsample == 1.0:
                counts = tree.n_node_samples[is_leaf]  # the training samples, whatever X holds
            else:  # the tree counted only its draw, so the samples given must do
                counts = np.bincount(leaf[:, t] - self.leaf_offsets[t], minlength=len(values))
            mean = np.average(values, weights=counts)
            weights[t] = np.average((values - mean) ** 2, weights=counts)
        return weights


def _parents(tree: Any) -> Array:
    """Return the parent of each node, -1 for the root."""
    parent = np.full(tree.node_count, -1, dtype=np.int64)
    inner = np.flatnonzero(tree.children_left >= 0)
    parent[tree.children_left[inner]] = inner
    parent[tree.children_right[inner]] = inner
    return parent
