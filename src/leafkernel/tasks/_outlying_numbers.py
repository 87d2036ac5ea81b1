"""Outlier scores for regression, based on residuals and on unusual features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.utils import _safe_indexing, check_random_state

from leafkernel._validation import check_values, count_threads
from leafkernel.forests import RawLeaves, Unavailable
from leafkernel.inside import Inside, weighted_means
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import Array, without_self
from leafkernel.tasks._outlier_judge import DESERVES_A_LOOK, Judge, slow_down
from leafkernel.tasks._quantiles import weighted_quantiles

Doubles = npt.NDArray[np.float64]

# For normal data, the standard deviation is the median absolute deviation times this factor.
_NORMAL_MAD = 1.4826
# The usual limit for robust standard scores (Iglewicz and Hoaglin, 1993).
_ROBUST_LIMIT = 3.5
# Largest number of samples to compare features with.
_MOST_COMPARED = 4096


def residual_scores(prox: ForestProximity, y: Any) -> Doubles:
    r"""Return the scaled distance of each target from the targets of similar samples.

    .. math:: \mathrm{score}_i = \frac{10}{3.5} \cdot
              \frac{d_i}{1.4826 \cdot \mathrm{median}_j\, d_j}, \qquad
              d_i = \min(|y_i - \bar y_i|, |y_i - \tilde y_i|)

    Here :math:`\bar y_i` and :math:`\tilde y_i` are the mean and the median of the other targets,
    weighted by proximity. With the median, a wrong target does not affect the scores of its
    neighbors. Scores above 10 continue on a logarithmic scale.
    """
    targets = check_values(y, prox.n_samples_fit_)
    columns = targets.reshape(len(targets), -1)
    others = without_self(prox)
    inside = Inside.of(others)
    sums, mass = inside.sums_and_mass(inside.product(), columns)
    means = weighted_means(sums, mass, columns.mean(axis=0))
    half = np.array([0.5])
    medians = [weighted_quantiles(others, column, None, half)[0][:, 0] for column in columns.T]
    off = np.minimum(np.abs(columns - means), np.abs(columns - np.column_stack(medians)))
    spread = _NORMAL_MAD * np.median(off, axis=0)
    spread = np.where(spread > 0, spread, off.mean(axis=0))
    scores = off / np.where(spread > 0, spread, 1.0)
    return slow_down(scores.max(axis=1) * DESERVES_A_LOOK / _ROBUST_LIMIT)


class FeatureScores:
    """Breiman's outlier scores based on the features only, from totally random trees.

    A regression forest splits mostly on a few features and hardly detects unusual samples. Trees
    with random splits use all features.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity. If its forest is a pipeline, the transformed features are used.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
        The training samples of that proximity.
    random_state : int or RandomState, default=0
        Seed of the trees, and of the samples to compare with.
    """

    def __init__(self, prox: ForestProximity, X: Any, random_state: Any = 0) -> None:
        self._prox = prox
        table = self._features(X)
        self._fill = None if issparse(table) else np.array([_median(column) for column in table.T])
        table = self._without_gaps(table)
        n_threads = count_threads(prox.n_jobs)
        n_samples = table.shape[0]
        rng = check_random_state(random_state)
        rows = np.sort(rng.permutation(n_samples)[:_MOST_COMPARED])
        trees = RandomTreesEmbedding(n_jobs=n_threads, random_state=rng)
        compared = _safe_indexing(table, rows)
        random = ForestProximity(trees, "uniform", diagonal="zero", n_jobs=n_threads).fit(compared)
        everyone = np.zeros(len(rows), dtype=np.intp)
        # The diagonal is zero, so that training samples and new samples can be compared.
        self._judge = Judge(
            lambda new: random.iter_proximity(new, sort=False), everyone, "breiman", bounded=True
        )
        self.of_training: Doubles = np.empty(n_samples)
        self.of_training[rows] = self._judge.of_training()
        others = np.setdiff1d(np.arange(n_samples), rows)
        if len(others):
            self.of_training[others] = self._judge.of_unseen(_safe_indexing(table, others))

    @classmethod
    def of(cls, prox: ForestProximity, X: Any, random_state: Any = 0) -> FeatureScores | None:
        """Return the scores, or None if the features are not available as numbers."""
        try:
            return cls(prox, X, random_state)
        except Unavailable:
            return None

    def of_unseen(self, X: Any) -> Doubles:
        """Return the scores of new samples."""
        return self._judge.of_unseen(self._without_gaps(self._features(X)))

    def _features(self, X: Any) -> Any:
        """Return the numeric features that reach the forest."""
        if isinstance(self._prox.forest_, RawLeaves):
            raise Unavailable("leaf ids are not features")
        return X if issparse(X) else Inside.of(self._prox).forest.features(X)

    def _without_gaps(self, table: Any) -> Any:
        """Replace missing and infinite values by the median of their column."""
        return table if issparse(table) else np.where(np.isfinite(table), table, self._fill)


def _median(column: Array) -> float:
    known = column[np.isfinite(column)]
    return float(np.median(known)) if len(known) else 0.0
