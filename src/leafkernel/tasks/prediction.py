"""Classification with proximities, and trust scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from leafkernel._targets import check_labels, indicators
from leafkernel._validation import check_length
from leafkernel.forests.wrapped import innermost
from leafkernel.inside import Inside, weighted_means
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import (
    Array,
    check_classes,
    check_similarity,
    labels_of,
    without_self,
)
from leafkernel.tasks._old_calls import took_y_first
from leafkernel.tasks._weighted import WeightedPrediction, warn_of_fallback


class ProximityClassifier(ClassifierMixin, WeightedPrediction):
    """Classify samples by the classes of similar training samples.

    The probability of a class is its share of the proximity of a sample to the training samples.
    With "gap", this equals ``predict_proba`` of the forest, and the out-of-bag prediction for
    training samples. With other schemes or ``n_neighbors``, it is a weighted nearest-neighbor
    classifier.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "gap", and a scheme gets a random forest. By
        default, "gap" with a random forest.
    n_neighbors : int, default=None
        Use only this number of most similar training samples. By default, all.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class in the training samples. It is the prediction, with a warning, for
        samples without proximity to any training sample.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leafkernel.tasks import ProximityClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProximityClassifier("gap", random_state=0).fit(X, y)
    >>> model.predict(X[[0, 60, 120]])
    array([0, 1, 2])
    >>> round(model.score(None, y), 2)  # out of bag
    0.95
    """

    _target = "classes"

    def _check(self, y: Any) -> Array:
        return check_classes(super()._check(y), self)

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        self.classes_, self._codes = check_labels(y, proximity.n_samples_fit_)
        self.class_prior_ = np.bincount(self._codes) / len(self._codes)

    def predict_proba(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, treated as new data. If None, the training samples, compared using their
            out-of-bag trees if the scheme uses them.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Probabilities. Each row sums to one.
        """
        check_is_fitted(self, "proximity_")
        if self.n_neighbors is not None:
            table = indicators(self._codes, len(self.classes_))
            return self._average(table, X, self.class_prior_)
        inside = Inside.of(without_self(self.proximity_) if X is None else self.proximity_)
        sums = inside.class_sums(inside.product(X), self._codes, len(self.classes_))
        mass = sums.sum(axis=1)
        warn_of_fallback(mass <= 0)
        return weighted_means(sums, mass, self.class_prior_)

    def predict(self, X: Any = None) -> Array:
        """Return the class with the largest probability. Ties go to the first class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, see ``predict_proba``.

        Returns
        -------
        ndarray of shape (m,)
            Classes.
        """
        shares = self.predict_proba(X)
        found: Array = self.classes_[shares.argmax(axis=1)]
        return found


@took_y_first("X")
def trust_scores(
    prox: ForestProximity,
    X: Any = None,
    *,
    y: Any = None,
    correct: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """Return how much the prediction of the forest can be trusted for each sample.

    Use it to find predictions that are likely to be wrong. The trust score of a sample is the share
    of its proximity to training samples that the forest predicts correctly out of bag. It is near
    one if the forest is usually correct on similar samples.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity of a classifier.
    X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
        Samples, treated as new data. If None, the training samples, compared using their
        out-of-bag trees if the scheme uses them.
    y : array-like of shape (n,), default=None
        Classes of the training samples. By default, those that ``prox`` was fitted on.
    correct : array-like of bool of shape (n,), default=None
        Whether the forest predicts each training sample correctly. By default, this is computed out
        of bag. It requires "gap" (with its own diagonal, not symmetrized) or a forest that was
        fitted with ``oob_score=True``.

    Returns
    -------
    ndarray of shape (m,)
        Trust scores from 0 to 1. They are 0 for samples without proximity to any training sample.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import trust_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> trust_scores(prox, X[[0, 70]]).round(1)
    array([1. , 0.4])
    """
    prox = check_similarity(prox, "trust_scores")
    classes, codes = labels_of(prox, y)
    if correct is None:
        right = _right_out_of_bag(prox, classes, codes)
    else:
        right = np.asarray(correct)
        check_length("correct", right, prox.n_samples_fit_)
        if right.dtype != bool and not np.isin(right, (0, 1)).all():
            raise ValueError(
                "correct must be an array of True or False, one for each training sample."
            )
    neighbors = without_self(prox) if X is None else prox
    sums = neighbors.weighted_sums(np.column_stack([right, np.ones(len(right))]), X)
    return weighted_means(sums[:, :1], sums[:, 1], 0.0)[:, 0]


def _right_out_of_bag(prox: ForestProximity, classes: Array, codes: Array) -> Array:
    if Inside.of(prox).is_out_of_bag:
        shares = prox.weighted_sums(indicators(codes, len(classes)))
    elif hasattr(forest := innermost(prox.forest_), "oob_decision_function_"):
        shares = np.nan_to_num(forest.oob_decision_function_)
        if not np.array_equal(forest.classes_, classes):
            raise ValueError("y must have the same classes that the forest was fitted on.")
    else:
        raise ValueError(
            f"weight_scheme={prox.scheme_.name!r} has no out-of-bag predictions of the training "
            "samples. Use 'gap', fit the forest with oob_score=True, or pass correct=, "
            "one True or False for each training sample."
        )
    right: Array = (shares.argmax(axis=1) == codes) & (shares.sum(axis=1) > 0)
    return right
