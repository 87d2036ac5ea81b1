"""The common base class of boosted ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._optional import is_on_gpu
from leafkernel._validation import describe
from leafkernel.forests._base import Array, FittedForest, InBag, LeafAverages, Unavailable
from leafkernel.forests._gradients import Training, averages, retrace
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._routing import RouteTable
from leafkernel.forests._trees import Tree, TreeArrays, weighted_variances


class BoostedTrees(FittedForest):
    """Trees whose values are added up, in the order of the library."""

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,) or (L, n_outputs)."""
        raise Unavailable(f"{self} does not provide its leaf values")

    def pack_numbers(self, X: Any, n_features: int) -> tuple[RouteTable, Array] | None:
        """Return packed trees and X as float32, if X is a plain array without infinite numbers.

        X may be an array on a GPU. The result is None if a tree cannot be packed, for example
        because it has categories.
        """
        is_array = isinstance(X, np.ndarray) or is_on_gpu(X)
        if not is_array or X.dtype.kind not in "fiub" or X.ndim != 2:
            return None
        if X.shape[1] != n_features or np.isinf(X).any():
            return None
        known = vars(self)
        if "_table" not in known:
            trees = self.trees()
            has_numbers = not any(np.isnan(tree.threshold).any() for tree in trees)
            try:
                packable = [_with_types_of_core(tree) for tree in trees]
                known["_table"] = RouteTable.pack(packable, n_features) if has_numbers else None
            except ValueError:  # such as nodes that were removed after the training
                known["_table"] = None
        with np.errstate(over="ignore"):
            numbers = X.astype(np.float32, copy=False)
        if known["_table"] is None or np.isinf(numbers).any():
            return None
        return known["_table"], numbers

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the variance of each tree's values over the training samples, shape (T,)."""
        return weighted_variances(self.leaf_values(), leaf_mass, self.leaf_offsets)

    def contributions(
        self, y: Any, sample_weight: Any, leaf: Array, *, objective: Any = None
    ) -> Array:
        """Return the contribution of each training sample to the value of its leaf in each tree."""
        training = self.training(y, sample_weight, leaf.shape[0], objective)
        found = retrace(training, leaf, self.leaf_offsets, str(self))
        self.outputs = training.outputs
        return found

    def leaf_averages(self, y: Any, sample_weight: Any, leaf: Array) -> LeafAverages:
        """Return a model with squared loss as averages of residuals over its leaves."""
        training = self.training(y, sample_weight, leaf.shape[0], None)
        return averages(training, leaf, self.leaf_offsets, str(self))

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return the information needed to retrace the training."""
        raise Unavailable(f"the training of {self} is not supported; use 'boosted'")

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Raise an error: boosted trees have no bootstrap, or their draws are not stored."""
        if self.draws_samples():
            raise Unavailable(
                f"{self} does not store the samples that each tree was trained on. Use 'boosted', "
                "'kerf' or 'uniform', or train a random forest with scikit-learn"
            )
        raise Unavailable(
            f"{self} has none: its trees are fitted to residuals, not to bootstrap samples. Use "
            "'boosted', 'kerf' or 'uniform'"
        )

    def is_boosted(self) -> bool:
        """Return whether the score of the model is the sum of its leaf values."""
        return not self.draws_samples()

    def draws_samples(self) -> bool:
        """Return whether the trees were trained independently, each on a random subset."""
        return False

    def __str__(self) -> str:
        return describe(self.estimator)


def _with_types_of_core(tree: Tree) -> TreeArrays:
    """Return a tree with the types that the compiled core reads."""
    return TreeArrays(
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        np.asarray(tree.feature, dtype=np.int64),
        np.asarray(tree.threshold, dtype=np.float64),
        (np.asarray(tree.missing_go_to_left) == 1).astype(np.uint8),
    )
