"""Checks and predictions that clusterings share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._targets import indicators
from leafkernel._validation import check_count
from leafkernel.proximity import ForestProximity

Labels = npt.NDArray[np.int64]


def check_clusters(n_clusters: Any, prox: ForestProximity) -> int:
    """Return the number of clusters as an int; raise an error if it exceeds the samples."""
    k = check_count("n_clusters", n_clusters)
    if k > prox.n_samples_fit_:
        raise ValueError(
            f"n_clusters={k} is too large: there are only n_samples={prox.n_samples_fit_} training "
            "samples. Use a smaller value."
        )
    check_enough(prox)
    return k


def check_enough(prox: ForestProximity) -> None:
    """Raise an error for a single sample."""
    if prox.n_samples_fit_ < 2:
        raise ValueError("X must have at least 2 training samples for clustering; got n_samples=1.")


def vote(prox: ForestProximity, labels: Labels, X: Any, *, among_noise: bool = True) -> Labels:
    """Return the label with the largest total proximity; -1 for noise or no proximity."""
    n_clusters = int(labels.max()) + 1
    codes = np.where(labels < 0, n_clusters, labels).astype(np.intp)
    sums = prox.weighted_sums(indicators(codes, n_clusters + 1), X)
    if not among_noise:
        sums[:, n_clusters] = 0
    found = sums.argmax(axis=1)
    return np.where((found == n_clusters) | (sums.max(axis=1) <= 0), -1, found).astype(np.int64)
