"""Classification by the nearest prototype."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from leafkernel._targets import check_labels
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import (
    Array,
    ProximityTask,
    check_classes,
)
from leafkernel.tasks.prototypes.selection import select_prototypes


class PrototypeClassifier(ProximityTask, ClassifierMixin, BaseEstimator):
    """Classify samples by the most similar of a few prototypes.

    Use it if a prediction should be explained by a single training sample.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "uniform", and a scheme gets a random forest. By
        default, "uniform" with a random forest.
    n_prototypes : int or "auto", default="auto"
        Number of prototypes of each class, see ``select_prototypes``.
    min_gain : float, default=0.02
        Smallest gain of a prototype with "auto", see ``select_prototypes``.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    prototypes_ : Prototypes
        The chosen training samples.
    classes_ : ndarray of shape (n_classes,)
        The classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from leafkernel.tasks import PrototypeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PrototypeClassifier(n_prototypes=2, random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _default_scheme = "uniform"
    _target = "classes"

    def __init__(
        self,
        proximity: Any = None,
        *,
        n_prototypes: int | Literal["auto"] = "auto",
        min_gain: float = 0.02,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.n_prototypes = n_prototypes
        self.min_gain = min_gain
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Array:
        return check_classes(y, self)

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        self.classes_, codes = check_labels(y, proximity.n_samples_fit_)
        self.prototypes_ = select_prototypes(
            proximity, y, n_prototypes=self.n_prototypes, min_gain=self.min_gain
        )
        self._commonest = int(np.bincount(codes).argmax())

    def _own_figures(self) -> dict[str, str]:
        return {"prototypes": f"{len(self.prototypes_.rows):,}"}

    def predict(self, X: Any = None) -> Array:
        """Return the class of the most similar prototype. Ties go to the first prototype.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, treated as new data. If None, the training samples, compared using their
            out-of-bag trees if the scheme uses them.
            Samples without proximity to any prototype get the most frequent class.

        Returns
        -------
        ndarray of shape (m,)
            Classes.
        """
        check_is_fitted(self, "proximity_")
        nearness = Inside.of(self.proximity_).proximity_to(self.prototypes_.rows, X)
        nearest = np.asarray(nearness.argmax(axis=1)).ravel()
        found: Array = self.prototypes_.labels[nearest]
        found[np.diff(nearness.indptr) == 0] = self.classes_[self._commonest]
        return found
