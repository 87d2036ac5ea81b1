"""Regression with proximities: means, quantiles and calibrated intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from leafkernel._validation import check_length, check_share, warn
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import Array
from leafkernel.tasks._quantiles import weighted_quantiles
from leafkernel.tasks._weighted import WeightedPrediction, warn_of_fallback

# Tolerance for products like 10 · 0.9, which is slightly above 9.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Calibration:
    """The calibration of prediction intervals, set by ``ProximityRegressor.calibrate``.

    Attributes
    ----------
    coverage : float
        Share of targets that the intervals should contain.
    offset : float
        Number that is added on both sides of an interval. It is negative if plain intervals are too
        wide.
    plain_coverage : float
        Share of the calibration targets that plain intervals contain.
    n_samples : int
        Number of calibration samples.
    out_of_bag : bool
        Whether the calibration samples are the training samples, predicted out of bag.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from leafkernel.tasks import ProximityRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ProximityRegressor(random_state=0).fit(X, y).calibrate(coverage=0.8)
    >>> model.calibration_.n_samples, model.calibration_.out_of_bag
    (442, True)
    """

    coverage: float
    offset: float
    plain_coverage: float
    n_samples: int
    out_of_bag: bool


class ProximityRegressor(RegressorMixin, WeightedPrediction):
    """Predict numbers, quantiles and intervals from the targets of similar training samples.

    Use it to get quantiles and calibrated prediction intervals from a forest. The normalized
    proximities of a sample are a distribution over the training targets. Its mean is the
    prediction, and its quantiles are those of a quantile regression forest [1]_. With "gap", the
    mean equals ``predict`` of the forest, and the out-of-bag prediction for training samples.

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
    mean_ : float or ndarray of shape (n_outputs,)
        Mean of the training targets. It is the prediction, with a warning, for samples without
        proximity to any training sample. Their quantiles are those of all training targets.
    calibration_ : Calibration
        The calibration of intervals, set by ``calibrate``.

    References
    ----------
    .. [1] Meinshausen, Quantile regression forests, JMLR 7, 2006.
    .. [2] Romano, Patterson and Candès, Conformalized quantile regression, NeurIPS 2019.
    .. [3] Johansson, Boström, Löfström and Linusson, Regression conformal prediction with random
       forests, Machine Learning 97, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from leafkernel.tasks import ProximityRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ProximityRegressor("gap", random_state=0).fit(X[:400], y[:400])
    >>> low, high = model.predict_interval(X[400:], coverage=0.8).T
    >>> bool(((low <= y[400:]) & (y[400:] <= high)).mean() > 0.7)
    True
    """

    _target = "numbers"

    def _check(self, y: Any) -> Array:
        super()._check(y)
        if y is None:
            raise ValueError("ProximityRegressor requires y to be passed, but the target y is None")
        try:
            targets: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"y must contain numbers for {type(self).__name__} ({error}). For classes, use "
                "ProximityClassifier."
            ) from error
        one = targets.ndim == 2 and targets.shape[1] == 1
        return column_or_1d(targets, warn=True) if one else targets

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        check_length("y", y, proximity.n_samples_fit_)
        self._y = np.array(y)  # a copy, because y may change
        self.mean_ = y.mean(axis=0)
        self.__dict__.pop("calibration_", None)  # from an earlier fit
        self._out_of_bag: dict[float, Calibration] = {}

    def predict(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return the weighted mean of the training targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, treated as new data. If None, the training samples, compared using their
            out-of-bag trees if the scheme uses them.

        Returns
        -------
        ndarray of shape (m,) or (m, n_outputs)
            Predictions.
        """
        check_is_fitted(self, "proximity_")
        columns = self._y.reshape(len(self._y), -1)
        means = self._average(columns, X, np.atleast_1d(self.mean_))
        return means.reshape(len(means), *self._y.shape[1:])

    def predict_quantiles(
        self, X: Any = None, quantiles: npt.ArrayLike = (0.1, 0.5, 0.9)
    ) -> npt.NDArray[np.float64]:
        """Return quantiles of the weighted distribution of training targets.

        The quantile q is the smallest target y for which training samples with targets up to y have
        at least the share q of the proximity of a sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, see ``predict``.
        quantiles : array-like of float of shape (k,), default=(0.1, 0.5, 0.9)
            Quantiles, from 0 to 1.

        Returns
        -------
        ndarray of shape (m, k)
            One column for each quantile.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from leafkernel.tasks import ProximityRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = ProximityRegressor(random_state=0).fit(X[:400], y[:400])
        >>> model.predict_quantiles(X[400:], quantiles=(0.25, 0.75)).shape
        (42, 2)
        """
        check_is_fitted(self, "proximity_")
        if self._y.ndim > 1:
            raise ValueError(
                f"y has {self._y.shape[1]} targets, but quantiles require a single target. Fit one "
                "regressor for each."
            )
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantiles must be numbers from 0 to 1; got {quantiles!r}.")
        k = None if self.n_neighbors is None else self._available(X)
        found, empty = weighted_quantiles(self.proximity_, self._y, X, levels, n_neighbors=k)
        warn_of_fallback(empty)
        return found

    def calibrate(self, X: Any = None, y: Any = None, *, coverage: float = 0.9) -> Any:
        """Calibrate prediction intervals (conformalized quantile regression [2]_).

        With "gap", ``predict_interval`` calibrates out of bag by itself. Call this method for other
        schemes, or if you have held-out samples.

        Both ends of each interval are moved by the same offset. It is a quantile of the distances
        by which the calibration targets are outside of their plain intervals. For new samples from
        the distribution of the held-out samples, calibrated intervals contain at least the share
        ``coverage`` of the targets on average, for any forest. For out-of-bag calibration there is
        no such guarantee, but it works well in practice. Check it with ``coverage_score``.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Held-out samples. By default, the training samples with their out-of-bag trees [3]_,
            which requires "gap".
        y : array-like of shape (m,), default=None
            Targets of the held-out samples.
        coverage : float, default=0.9
            Share of targets that intervals should contain.

        Returns
        -------
        ProximityRegressor
            The estimator, with the attribute ``calibration_``.
        """
        check_is_fitted(self, "proximity_")
        self.calibration_ = self._calibrate(X, y, coverage)
        return self

    def _calibrate(self, X: Any, y: Any, coverage: float) -> Calibration:
        if (X is None) != (y is None):
            raise ValueError("X and y must be passed together; got only one of them.")
        if X is None and not Inside.of(self.proximity_).is_out_of_bag:
            raise ValueError(
                f"weight_scheme={self.proximity_.scheme_.name!r} cannot be calibrated on the "
                "training samples, because their predictions are not out of bag. Pass X and y of "
                "held-out samples, or use 'gap' with diagonal='scheme' and symmetrize=False."
            )
        targets = self._y if y is None else check_array(y, ensure_2d=False, dtype=np.float64)
        targets = targets.ravel() if targets.ndim == 2 and targets.shape[1] == 1 else targets
        low, high = self._plain_interval(X, check_share("coverage", coverage, example=0.9))
        if X is not None:
            _check_lengths_match(targets, low)
        outside = np.sort(np.maximum(low - targets, targets - high))
        n = len(outside)
        rank = _rank(n, coverage)
        if rank > n:
            raise ValueError(
                f"coverage={coverage} requires at least "
                f"{int(np.ceil(coverage / (1 - coverage) - _ROUNDING))} calibration samples; got "
                f"{n}. Use a lower coverage or more samples."
            )
        return Calibration(
            coverage=float(coverage),
            offset=float(outside[rank - 1]),
            plain_coverage=float((outside <= 0).mean()),
            n_samples=n,
            out_of_bag=X is None,
        )

    def predict_interval(
        self, X: Any = None, coverage: float | None = None
    ) -> npt.NDArray[np.float64]:
        """Return an interval that contains the target of each sample with a given probability.

        Intervals are calibrated on the samples that were passed to ``calibrate``, or on the
        training samples out of bag with "gap". Otherwise they are plain quantiles, with a warning,
        because plain quantiles of small leaves are too narrow. For plain quantiles without a
        warning, use ``predict_quantiles``.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, see ``predict``.
        coverage : float, default=None
            Share of targets that intervals should contain. By default, the coverage of
            ``calibrate``, or 0.9 if it was not called.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper ends of the intervals.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from leafkernel.tasks import ProximityRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = ProximityRegressor(random_state=0).fit(X[:400], y[:400])
        >>> low, high = model.predict_interval(X[400:], coverage=0.9).T
        >>> bool((low <= high).all())
        True
        """
        check_is_fitted(self, "proximity_")
        calibration = self._calibration(coverage)
        if isinstance(calibration, float):
            return np.stack(self._plain_interval(X, calibration), axis=1)
        low, high = self._plain_interval(X, calibration.coverage)
        low, high = low - calibration.offset, high + calibration.offset
        middle = (low + high) / 2  # a negative offset could otherwise swap the ends
        return np.stack([np.minimum(low, middle), np.maximum(high, middle)], axis=1)

    def coverage_score(self, X: Any, y: Any) -> float:
        """Return the share of targets that are inside of their prediction intervals.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Held-out samples.
        y : array-like of shape (m,)
            Their targets.

        Returns
        -------
        float
            The share.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from leafkernel.tasks import ProximityRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = ProximityRegressor(random_state=0).fit(X[:300], y[:300])
        >>> model.coverage_score(X[300:], y[300:]) > 0.8
        True
        """
        low, high = self.predict_interval(X).T
        targets = column_or_1d(y)
        _check_lengths_match(targets, low)
        return float(((low <= targets) & (targets <= high)).mean())

    def _calibration(self, coverage: float | None) -> Calibration | float:
        """Return the calibration to use, or the coverage of plain intervals."""
        known: Calibration | None = getattr(self, "calibration_", None)
        if known is not None and (coverage is None or coverage == known.coverage):
            return known
        asked = 0.9 if coverage is None else check_share("coverage", coverage, example=0.9)
        if known is not None and not known.out_of_bag:
            raise ValueError(
                f"coverage={coverage} is not calibrated, only coverage={known.coverage}. Call "
                f"calibrate(X, y, coverage={coverage}) first."
            )
        if Inside.of(self.proximity_).is_out_of_bag:
            if _rank(len(self._y), asked) <= len(self._y):
                if asked not in self._out_of_bag:
                    self._out_of_bag[asked] = self._calibrate(None, None, asked)
                return self._out_of_bag[asked]
            reason, also = f"{len(self._y)} training samples are too few", ""
        else:
            reason = (
                "only weight_scheme='gap' can be calibrated on the training samples; got "
                f"{self.proximity_.scheme_.name!r}"
            )
            also = ", or use weight_scheme='gap' if the forest draws bootstrap samples"
        warn(
            f"These intervals are not calibrated: {reason}. They may contain fewer than "
            f"{asked:.0%} of the targets. Call calibrate(X, y) with held-out samples{also}."
        )
        return asked

    def _plain_interval(self, X: Any, coverage: float) -> tuple[Array, Array]:
        tail = (1 - coverage) / 2
        low, high = self.predict_quantiles(X, (tail, 1 - tail)).T
        return low, high


def _rank(n: int, coverage: float) -> int:
    """Return the rank of the calibration score that bounds a new one with this probability."""
    return int(np.ceil((n + 1) * coverage - _ROUNDING))


def _check_lengths_match(targets: Array, rows: Array) -> None:
    if targets.shape != rows.shape:
        raise ValueError(
            f"y has shape {targets.shape}, but X has {len(rows)} samples. Pass one target for each."
        )
