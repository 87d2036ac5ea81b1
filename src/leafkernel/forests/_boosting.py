"""The common base class of boosted ensembles."""

from __future__ import annotations

from typing import Any

from leafkernel._validation import describe
from leafkernel.forests._base import Array, FittedForest, InBag, LeafAverages, Unavailable
from leafkernel.forests._gradients import Training, averages, retrace
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._trees import weighted_variances


class BoostedTrees(FittedForest):
    """Trees whose values are added up, in the order of the library."""

    def leaf_values(self) -> Array:
        """Return the value that each leaf adds to the score, shape (L,) or (L, n_outputs)."""
        raise Unavailable(f"{self} does not provide its leaf values")

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
                f"{self} does not store the samples that each tree was trained on; use 'boosted', "
                "'kerf' or 'uniform', or train a random forest with scikit-learn"
            )
        raise Unavailable(
            f"{self} has none: its trees are fitted to residuals, not to bootstrap samples; use "
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
