"""The base class of predictors: averages over training samples, weighted by proximity."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from leafkernel._validation import check_count, warn
from leafkernel.inside import Inside, weighted_means
from leafkernel.tasks._base import Array, ProximityTask, without_self


class WeightedPrediction(ProximityTask, BaseEstimator):
    """Base class of predictors that average over training samples."""

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
        """Return the number of neighbors. A training sample is not its own neighbor."""
        return min(int(self.n_neighbors or 1), self.proximity_.n_samples_fit_ - (X is None))

    def _average(self, values: Array, X: Any, fallback: Array) -> Array:
        """Average (n, c) values weighted by proximity. Rows without proximity get the fallback."""
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
    """Warn if samples have no proximity to any training sample."""
    if empty.any():
        warn(
            f"{int(empty.sum())} of {len(empty)} samples have no proximity to any training sample. "
            "Their predictions are averages over all training samples."
        )
