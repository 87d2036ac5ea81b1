"""Averages over the training samples, weighted by proximity: what predictors share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from leafkernel._validation import check_count, warn
from leafkernel.tasks._base import Array, ProximityTask

# Schemes whose training samples look at out-of-bag trees alone, and never at themselves.
OUT_OF_BAG = ("gap",)


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

    def _average(self, values: Array, X: Any, fallback: Array) -> Array:
        """Average (n, c) values by proximity; rows without any proximity get the fallback."""
        if self.n_neighbors is None:
            ones = np.ones(len(values))
            sums = self.proximity_.weighted_sums(np.column_stack([values, ones]), X)
            sums, mass = sums[:, :-1], sums[:, -1]
        else:
            k = check_count("n_neighbors", self.n_neighbors)
            weights, rows = self.proximity_.kneighbors(X, k)
            weights = weights.astype(np.float64)
            mass = weights.sum(axis=1)
            sums = np.stack([(weights * column[rows]).sum(axis=1) for column in values.T], axis=1)
        empty = mass <= 0
        warn_of_fallback(empty)
        average: Array = sums / np.where(empty, 1.0, mass)[:, None]
        average[empty] = fallback
        return average


def warn_of_fallback(empty: npt.NDArray[np.bool_]) -> None:
    """Say how many samples are similar to no training sample."""
    if empty.any():
        warn(
            f"{int(empty.sum())} of {len(empty)} samples have no proximity to any training sample; "
            "they are given what all training samples together would predict."
        )
