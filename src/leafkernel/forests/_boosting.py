"""What the boosted ensembles of all libraries have in common."""

from __future__ import annotations

from typing import Any

from leafkernel._validation import describe
from leafkernel.forests._base import Array, FittedForest, InBag, LeafAverages, Unavailable
from leafkernel.forests._gradients import Training, averages, retrace
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._trees import weighted_variances


class BoostedTrees(FittedForest):
    """Trees that add up to a model: one behind the other, in the order of the library."""

    def leaf_values(self) -> Array:
        """Return what each leaf adds to the model, shape (L,) or (L, n_outputs)."""
        raise Unavailable(f"{self} does not tell the values of its leaves")

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the variance over the training samples of what each tree adds to the model."""
        return weighted_variances(self.leaf_values(), leaf_mass, self.leaf_offsets)

    def contributions(
        self, y: Any, sample_weight: Any, leaf: Array, *, objective: Any = None
    ) -> Array:
        """Return the part of each training sample in the value of its leaf in each tree."""
        training = self.training(y, sample_weight, leaf.shape[0], objective)
        found = retrace(training, leaf, self.leaf_offsets, str(self))
        self.outputs = training.outputs
        return found

    def leaf_averages(self, y: Any, sample_weight: Any, leaf: Array) -> LeafAverages:
        """Return how a model of squared loss averages residuals over its leaves."""
        training = self.training(y, sample_weight, leaf.shape[0], None)
        return averages(training, leaf, self.leaf_offsets, str(self))

    def training(
        self, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
    ) -> Training:
        """Return how the model was trained on these samples."""
        raise Unavailable(f"{self} is trained in a way that is not understood; use 'boosted'")

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Refuse: there is no bootstrap, or its draws are gone."""
        if self.draws_samples():
            raise Unavailable(
                f"{self} does not keep which samples its trees drew, and they cannot be drawn "
                "again from outside; use 'boosted', 'kerf' or 'uniform', or grow the forest with "
                "scikit-learn's RandomForest"
            )
        raise Unavailable(
            f"{self} has none: its trees are fitted to residuals, not to draws of the samples; use "
            "'boosted', 'kerf' or 'uniform'"
        )

    def is_boosted(self) -> bool:
        """Return whether the values of its leaves add up to its score."""
        return not self.draws_samples()

    def draws_samples(self) -> bool:
        """Return whether the trees were grown apart, each on a draw of the samples."""
        return False

    def __str__(self) -> str:
        return describe(self.estimator)
