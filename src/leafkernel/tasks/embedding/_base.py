"""The base class of embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from leafkernel.tasks._base import ProximityTask


class Embedding(ProximityTask, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of embeddings. ``_learn`` sets ``embedding_`` and ``_map`` for new samples."""

    embedding_: npt.NDArray[np.float64]
    _map: Any

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> npt.NDArray[np.float64]:
        """Fit, and return the coordinates of the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,), default=None
            Targets of the forest.
        sample_weight : array-like of shape (n,), default=None
            Sample weights for fitting the forest.

        Returns
        -------
        ndarray of shape (n, n_components)
            Coordinates.
        """
        return self.fit(X, y, sample_weight).embedding_

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the coordinates of new samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples, treated as new data.

        Returns
        -------
        ndarray of shape (m, n_components)
            Coordinates.
        """
        check_is_fitted(self, "proximity_")
        return np.asarray(self._map.transform(X), dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
