"""Numbers from the training targets, weighted by proximity: means, quantiles, intervals."""

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

# Of a product like 10 · 0.9, which is 9 and a little.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Calibration:
    """How intervals were widened, or narrowed, to cover what they claim.

    Attributes
    ----------
    coverage : float
        Share of targets that intervals are to cover.
    offset : float
        What is added on both sides; negative where plain intervals cover more than asked.
    plain_coverage : float
        Share of the calibration samples that plain intervals cover.
    n_samples : int
        Calibration samples.
    out_of_bag : bool
        Whether these are the training samples, out of bag.
    """

    coverage: float
    offset: float
    plain_coverage: float
    n_samples: int
    out_of_bag: bool


class ProximityRegressor(RegressorMixin, WeightedPrediction):
    """Predict numbers, quantiles and intervals from the targets of similar training samples.

    A sample's proximities, divided by their sum, are a distribution over the training targets: its
    mean is the prediction, its quantiles are those of a quantile regression forest [1]_. With "gap"
    the mean equals the forest's own ``predict``, and for the training samples its out-of-bag
    prediction.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from; by default "gap" on a random forest.
    n_neighbors : int, default=None
        Let only this many most similar samples count, each with its proximity. By default all.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    mean_ : float or ndarray of shape (n_outputs,)
        Mean of the training targets: what a sample is given that is similar to none of them (with a
        warning). Its quantiles are those of all training targets.
    calibration_ : Calibration
        Set by :meth:`calibrate`.

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
        targets: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        one = targets.ndim == 2 and targets.shape[1] == 1
        return column_or_1d(targets, warn=True) if one else targets

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        check_length("y", y, proximity.n_samples_fit_)
        self._y = np.array(y)  # a copy: y may change
        self.mean_ = y.mean(axis=0)
        self.__dict__.pop("calibration_", None)  # it was of another fit
        self._out_of_bag: dict[float, Calibration] = {}

    def predict(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return the weighted mean of the training targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, all taken as unseen; by default the training samples in their training role.

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

        The quantile q is the smallest target y at which training samples with targets up to y have
        a share of at least q in the sample's proximity.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`predict`.
        quantiles : array-like of float of shape (k,), default=(0.1, 0.5, 0.9)
            Numbers from 0 to 1.

        Returns
        -------
        ndarray of shape (m, k)
            One column for each quantile.
        """
        check_is_fitted(self, "proximity_")
        if self._y.ndim > 1:
            raise ValueError(
                f"quantiles are for a single target; y has {self._y.shape[1]}. Fit one regressor "
                "for each."
            )
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantiles must be numbers from 0 to 1; got {quantiles!r}.")
        k = None if self.n_neighbors is None else self._available(X)
        found, empty = weighted_quantiles(self.proximity_, self._y, X, levels, n_neighbors=k)
        warn_of_fallback(empty)
        return found

    def calibrate(self, X: Any = None, y: Any = None, *, coverage: float = 0.9) -> Any:
        """Make intervals cover what they claim (conformalized quantile regression [2]_).

        Intervals are widened on both sides by one number: the quantile of how far the calibration
        targets lie outside of their plain intervals. For new samples from the same distribution as
        those given, the calibrated ones then cover at least ``coverage`` on average, whatever the
        forest. For out-of-bag samples this is not a theorem, but holds on the data that we tried:
        :meth:`coverage_score` measures it.

        With "gap", :meth:`predict_interval` calibrates by itself out of bag. Call this method for
        other schemes, or if you have samples to spare.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples that the forest has not seen. By default the training samples by their
            out-of-bag trees [3]_, which wastes none; this needs "gap".
        y : array-like of shape (m,), default=None
            Their targets.
        coverage : float, default=0.9
            Share of targets to cover.

        Returns
        -------
        ProximityRegressor
            Itself, with ``calibration_``.
        """
        check_is_fitted(self, "proximity_")
        self.calibration_ = self._calibrate(X, y, coverage)
        return self

    def _calibrate(self, X: Any, y: Any, coverage: float) -> Calibration:
        if (X is None) != (y is None):
            raise ValueError("give both X and y of calibration samples, or neither.")
        if X is None and not Inside.of(self.proximity_).is_out_of_bag:
            raise ValueError(
                f"weight_scheme={self.proximity_.scheme_.name!r} as it is here lets training "
                "samples see themselves, so they cannot calibrate; give X and y that the forest "
                "has not seen, or use 'gap' with its own diagonal, not symmetrized."
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
                f"{n} calibration samples are too few for coverage={coverage}; give at least "
                f"{int(np.ceil(coverage / (1 - coverage) - _ROUNDING))}."
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
        """Return an interval for each sample's target that covers it with a given probability.

        Intervals are calibrated: with "gap" on the out-of-bag training samples, otherwise on the
        samples that were given to :meth:`calibrate`. Without either they are plain quantiles, and a
        warning says so: with small leaves, those cover less than they should. For plain quantiles
        without a warning use :meth:`predict_quantiles`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`predict`.
        coverage : float, default=None
            Share of targets to cover: by default that of :meth:`calibrate`, or 0.9 if that was not
            called.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper ends.
        """
        check_is_fitted(self, "proximity_")
        calibration = self._calibration(coverage)
        if isinstance(calibration, float):
            return np.stack(self._plain_interval(X, calibration), axis=1)
        low, high = self._plain_interval(X, calibration.coverage)
        low, high = low - calibration.offset, high + calibration.offset
        middle = (low + high) / 2  # where a negative offset would turn an interval around
        return np.stack([np.minimum(low, middle), np.maximum(high, middle)], axis=1)

    def coverage_score(self, X: Any, y: Any) -> float:
        """Measure the share of targets that :meth:`predict_interval` covers.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples that the forest has not seen.
        y : array-like of shape (m,)
            Their targets.

        Returns
        -------
        float
            The share.
        """
        low, high = self.predict_interval(X).T
        targets = column_or_1d(y)
        _check_lengths_match(targets, low)
        return float(((low <= targets) & (targets <= high)).mean())

    def _calibration(self, coverage: float | None) -> Calibration | float:
        """Return the calibration to use, or the share that plain intervals are to cover."""
        known: Calibration | None = getattr(self, "calibration_", None)
        if known is not None and (coverage is None or coverage == known.coverage):
            return known
        asked = 0.9 if coverage is None else check_share("coverage", coverage, example=0.9)
        if known is not None and not known.out_of_bag:
            raise ValueError(
                f"intervals were calibrated for coverage={known.coverage}; call "
                f"calibrate(X, y, coverage={coverage}) first."
            )
        if Inside.of(self.proximity_).is_out_of_bag:
            if _rank(len(self._y), asked) <= len(self._y):
                if asked not in self._out_of_bag:
                    self._out_of_bag[asked] = self._calibrate(None, None, asked)
                return self._out_of_bag[asked]
            reason, also = f"{len(self._y)} training samples are too few for it", ""
        else:
            reason = f"{self.proximity_.scheme_.name!r} has no out-of-bag predictions"
            also = ", or use weight_scheme='gap' if the forest draws bootstrap samples"
        warn(
            f"these intervals are not calibrated, because {reason}; they may cover less than "
            f"{asked:.0%}. Call calibrate(X, y) with samples that the forest has not seen{also}."
        )
        return asked

    def _plain_interval(self, X: Any, coverage: float) -> tuple[Array, Array]:
        tail = (1 - coverage) / 2
        low, high = self.predict_quantiles(X, (tail, 1 - tail)).T
        return low, high


def _rank(n: int, coverage: float) -> int:
    """Return which of n sorted calibration scores bounds a new one with this probability."""
    return int(np.ceil((n + 1) * coverage - _ROUNDING))


def _check_lengths_match(targets: Array, rows: Array) -> None:
    if targets.shape != rows.shape:
        raise ValueError(f"X has {len(rows)} samples, but y has shape {targets.shape}.")
