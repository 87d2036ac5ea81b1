"""Classes from the training samples' classes, weighted by proximity, and trust in them."""

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
    """Classify by the classes of similar training samples.

    The share of a class is the share of a sample's proximity that falls on training samples of that
    class. With "gap" these are the forest's own ``predict_proba``, and for the training samples its
    out-of-bag votes.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from; by default "gap" on a random forest.
    n_neighbors : int, default=None
        Let only this many most similar samples vote, each with its proximity. By default all.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class in the training samples: what a sample is given that is similar to none
        of them (with a warning).

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
        """Return the share of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, all taken as unseen; by default the training samples in their training role.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Shares; rows sum to one.
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
        """Return the class with the largest share, the first of equals.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`predict_proba`.

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
    """Tell how far the forest can be trusted on each sample.

    The trust in a sample is the share of its proximity that falls on training samples which the
    forest gets right out of bag: near one where it has been right before, low where it was wrong on
    samples like this one.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity of a classifier.
    X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
        New samples. By default the training samples, compared using their out-of-bag trees.
    y : array-like of shape (n,), default=None
        Classes of the training samples. By default those that ``prox`` was fitted on.
    correct : array-like of bool of shape (n,), default=None
        Which training samples the forest gets right. By default those that it gets right out of
        bag, known with "gap" (as it comes: not symmetrized, no other diagonal) and for forests
        fitted with ``oob_score=True``.

    Returns
    -------
    ndarray of shape (m,)
        Trust, from 0 to 1; 0 for a sample that is similar to no training sample.

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
            raise ValueError("correct must say True or False for each training sample.")
    neighbors = without_self(prox) if X is None else prox
    sums = neighbors.weighted_sums(np.column_stack([right, np.ones(len(right))]), X)
    return weighted_means(sums[:, :1], sums[:, 1], 0.0)[:, 0]


def _right_out_of_bag(prox: ForestProximity, classes: Array, codes: Array) -> Array:
    if Inside.of(prox).is_out_of_bag:
        shares = prox.weighted_sums(indicators(codes, len(classes)))
    elif hasattr(forest := innermost(prox.forest_), "oob_decision_function_"):
        shares = np.nan_to_num(forest.oob_decision_function_)
        if not np.array_equal(forest.classes_, classes):
            raise ValueError("y holds other classes than those that the forest was fitted on.")
    else:
        raise ValueError(
            f"weight_scheme={prox.scheme_.name!r} does not tell which training samples the forest "
            "gets right out of bag; use 'gap', fit the forest with oob_score=True, or give correct."
        )
    right: Array = (shares.argmax(axis=1) == codes) & (shares.sum(axis=1) > 0)
    return right
