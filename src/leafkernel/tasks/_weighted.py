"""Averages over the training samples, weighted by proximity: what predictors share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from leafkernel._validation import check_count, warn
from leafkernel.inside import Inside, weighted_means
from leafkernel.tasks._base import Array, ProximityTask, without_self


class WeightedPrediction(ProximityTask, BaseEstimator):
    """What both predictors share: weights over the training samples, and what to do without any."""

    def __init__(
        self,
        proximity: Any = None,
        *,
        n_neighbors: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
        return y

    def _available(self, X: Any) -> int:
        """Return the neighbors to ask for: a training sample is none of its own."""
        return min(int(self.n_neighbors or 1), self.proximity_.n_samples_fit_ - (X is None))

    def _average(self, values: Array, X: Any, fallback: Array) -> Array:
        """Average (n, c) values by proximity; rows without any proximity get the fallback."""
        if self.n_neighbors is None:
            inside = Inside.of(without_self(self.proximity_) if X is None else self.proximity_)
            sums, mass = inside.sums_and_mass(inside.product(X), values)
        else:
            weights, rows = self.proximity_.kneighbors(X, self._available(X))
            weights = weights.astype(np.float64)
            mass = weights.sum(axis=1)
            sums = np.stack([(weights * column[rows]).sum(axis=1) for column in values.T], axis=1)
        warn_of_fallback(mass <= 0)
        return weighted_means(sums, mass, fallback)


def warn_of_fallback(empty: npt.NDArray[np.bool_]) -> None:
    """Say how many samples are similar to no training sample."""
    if empty.any():
        warn(
            f"{int(empty.sum())} of {len(empty)} samples have no proximity to any training sample; "
            "they are given what all training samples together would predict."
        )
