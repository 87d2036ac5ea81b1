"""Outliers: samples that are similar to few of their own class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import check_choice
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._as_new import AsNew
from leafkernel.tasks._base import (
    Array,
    ProximityTask,
    check_labels,
    check_proximity,
    indicators,
    target_of,
    with_constant_diagonal,
)

Blocks = Iterator[tuple[slice, Any]]

# Breiman's rule of thumb: "generally, if the measure is greater than 10, the case should be
# carefully inspected".
_BREIMANS_THRESHOLD = 10.0

# The median absolute deviation of normal data times this is its standard deviation.
_NORMAL_MAD = 1.4826
# The same for the mean absolute deviation, which stands in where the median is zero.
_NORMAL_MEAN_AD = 1.2533
# Raw measures that differ by less, relatively, are the same in single precision.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Convention:
    """How proximities become outlier scores.

    Attributes
    ----------
    scale_rows : bool
        Whether each row of proximities is divided by its largest.
    spread_factor : float
        What the median absolute deviation is multiplied with.
    absolute : bool
        Whether scores are distances from the median, on either side.
    standardize : bool
        Whether scores are standardised within each class at all.
    """

    scale_rows: bool = False
    spread_factor: float = _NORMAL_MAD
    absolute: bool = False
    standardize: bool = True


CONVENTIONS = {
    "breiman": Convention(),
    "rfgap": Convention(scale_rows=True, spread_factor=1.0, absolute=True),
    "raw": Convention(standardize=False),
}


def outlier_scores(
    prox: ForestProximity, y: Any = None, *, convention: str = "breiman"
) -> npt.NDArray[np.float64]:
    r"""Return how much of an outlier each training sample is within its class.

    .. math:: \mathrm{raw}_i = \frac{n}{\sum_{j: y_j = y_i} P_{ij}^2}, \qquad
              \mathrm{score}_i = \frac{\mathrm{raw}_i - \mathrm{median}}{1.4826 \cdot \mathrm{MAD}}

    with the median and the MAD over the samples of the class. P_ii is one under "uniform", "oob"
    and "boosted", as in R. Under other schemes it would depend on the sample, and is zero. A sum of
    zero counts as one, as in R, or as half of the smallest other sum where that is less: a sample
    that is similar to none of its class must not look like a normal one.

    To find wrong labels, use :func:`find_label_errors`, which is made for it.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    y : array-like of shape (n,), default=None
        Classes of the training samples. With none, or with the numbers that a regressor predicts,
        all samples are compared with all.
    convention : {"breiman", "rfgap", "raw"}, default="breiman"
        "breiman" is the formula above, as in R's ``outlier``: scores above 10 deserve a look.
        "rfgap" divides each row of P by its maximum, takes the absolute value, and leaves the
        1.4826 out, as the authors of RF-GAP do. "raw" is the raw measure, which compares samples
        across classes: often the better one to look for wrong labels with.

    Returns
    -------
    ndarray of shape (n,)
        Scores, larger for outliers. Where more than half of a class have the same raw measure, the
        mean absolute deviation takes the place of the MAD, which is zero.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import outlier_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "oob").fit(X, y)
    >>> int(outlier_scores(prox, y).argmax()) in (70, 83, 106, 119, 133)  # the usual suspects
    True
    """
    prox = with_constant_diagonal(check_proximity(prox))
    check_choice("convention", convention, CONVENTIONS)
    return _Judge(_blocks_of(prox), _codes_of(prox, y), convention).of_training()


class ProximityOutlierDetector(ProximityTask, OutlierMixin, BaseEstimator):
    """Find samples that are similar to few of their class, or of all samples where there is none.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from. By default "oob" on a random forest, or, where ``fit`` is
        given no y, "uniform" on totally random trees.
    convention : {"breiman", "rfgap", "raw"}, default="breiman"
        As in :func:`outlier_scores`.
    contamination : "auto" or float, default="auto"
        Share of the training samples to call outliers. "auto" calls outliers what scores above 10,
        Breiman's rule of thumb.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    outlier_scores_ : ndarray of shape (n,)
        Scores of the training samples: :func:`outlier_scores`.
    offset_ : float
        What ``score_samples`` is compared with.

    Notes
    -----
    A new sample is compared with the class that its proximities favor. Its score is on the scale of
    ``outlier_scores_``: of new samples like the training samples, about as many score above any
    value as of the training samples. A training sample that is passed to :meth:`predict` counts as
    new, and finds itself among the training samples; :meth:`fit_predict` judges it without itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from leafkernel.tasks import ProximityOutlierDetector
    >>> X, y = load_wine(return_X_y=True)
    >>> detector = ProximityOutlierDetector(contamination=0.05, random_state=0).fit(X, y)
    >>> int((detector.outlier_scores_ > -detector.offset_).sum())
    9
    """

    _default_scheme = "oob"

    def __init__(
        self,
        proximity: Any = None,
        *,
        convention: str = "breiman",
        contamination: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.convention = convention
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        share = self.contamination
        known = float(share) if isinstance(share, Real) else 0.0
        if share != "auto" and not 0 < known <= 0.5:
            raise ValueError(
                f"contamination must be 'auto' or a share between 0 and 0.5; got {share!r}."
            )
        check_choice("convention", self.convention, CONVENTIONS)
        return y

    def _fit_proximity(self, X: Any, y: Any, sample_weight: Any = None) -> ForestProximity:
        proximity = super()._fit_proximity(X, y, sample_weight)
        self._as_new = AsNew(proximity, X, y, sample_weight)
        return proximity

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        self.outlier_scores_ = outlier_scores(proximity, y, convention=self.convention)
        codes = _codes_of(proximity, y)
        self._judge = _Judge(self._as_new.blocks, codes, self.convention, as_new=True)
        if self.contamination == "auto":
            self.offset_ = -_BREIMANS_THRESHOLD
        else:
            self.offset_ = float(np.percentile(-self.outlier_scores_, 100 * self.contamination))

    def _own_figures(self) -> dict[str, str]:
        outliers = int((self.outlier_scores_ > -self.offset_).sum())
        return {"outliers": f"{outliers:,} (scores above {-self.offset_:.3g})"}

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> npt.NDArray[np.int64]:
        """Fit, and return -1 for the training samples that are outliers and 1 for the others.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,), default=None
            As in :meth:`fit`.
        **params
            More arguments of :meth:`fit`.

        Returns
        -------
        ndarray of int of shape (n,)
            -1 and 1.
        """
        self.fit(X, y, **params)
        return np.where(-self.outlier_scores_ < self.offset_, -1, 1)

    def score_samples(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return how normal samples are: the opposite of their outlier scores.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, all taken as unseen; by default the training samples in their training role.

        Returns
        -------
        ndarray of shape (m,)
            Scores, lower for outliers.
        """
        check_is_fitted(self, "proximity_")
        if X is None:
            return -self.outlier_scores_
        as_new = np.sort(self._judge.of_training())
        return -_match(self._judge.of_unseen(X), as_new, np.sort(self.outlier_scores_))

    def decision_function(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return ``score_samples(X) - offset_``: negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (m,)
            Scores.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any = None) -> npt.NDArray[np.int64]:
        """Return -1 for outliers and 1 for others.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`score_samples`.

        Returns
        -------
        ndarray of int of shape (m,)
            -1 and 1.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)


class _Judge:
    """Scores samples against the training samples of a class.

    Parameters
    ----------
    blocks : callable
        Returns the proximities of samples, or without an argument of the training samples.
    codes : ndarray of int of shape (n,)
        Classes of the training samples.
    convention : str
        How proximities become scores.
    as_new : bool
        Whether to compare each training sample with the class that its proximities favor, as a new
        sample, and not with its own.
    """

    def __init__(
        self, blocks: Callable[..., Blocks], codes: Array, convention: str, *, as_new: bool = False
    ) -> None:
        self.blocks = blocks
        self.codes = codes
        self.n_classes = int(codes.max()) + 1
        self.rule = CONVENTIONS[convention]
        sums, self.own = self._sums(None, None if as_new else codes)
        positive = sums[sums > 0]
        self.least = min(1.0, float(positive.min()) / 2) if len(positive) else 1.0
        self.raw = self._raw(sums)
        self.scales = [_scale_of(self.raw[self.own == c]) for c in range(self.n_classes)]

    def of_training(self) -> npt.NDArray[np.float64]:
        return self._standardize(self.raw, self.own)

    def of_unseen(self, X: Any) -> npt.NDArray[np.float64]:
        sums, codes = self._sums(X, None)
        return self._standardize(self._raw(sums), codes)

    def _sums(
        self, X: Any, row_codes: Array | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
        """Return the sums of squares for the class of each row, or that which it favors."""
        sums, codes = [np.zeros(0)], [np.zeros(0, dtype=np.intp)]
        table = indicators(self.codes, self.n_classes)
        for rows, block in self.blocks(X):
            own = (block @ table).argmax(axis=1) if row_codes is None else row_codes[rows]
            codes.append(own)
            sums.append(self._square_sums(block, own))
        return np.concatenate(sums), np.concatenate(codes)

    def _raw(self, sums: Array) -> npt.NDArray[np.float64]:
        return np.asarray(len(self.codes) / np.where(sums > 0, sums, self.least))

    def _square_sums(self, block: Any, row_codes: Array) -> npt.NDArray[np.float64]:
        """Return the sum of the squares of each row's proximities to its own class."""
        squares = np.square(block.data, dtype=np.float64)
        if self.n_classes > 1:
            sizes = np.diff(block.indptr)
            squares *= self.codes[block.indices] == np.repeat(row_codes, sizes)
        sums = _by_row(np.add, squares, block.indptr)
        if self.rule.scale_rows:
            largest = _by_row(np.maximum, block.data, block.indptr).astype(np.float64)
            sums /= np.where(largest > 0, largest, 1.0) ** 2
        return sums

    def _standardize(self, raw: Array, codes: Array) -> npt.NDArray[np.float64]:
        if not self.rule.standardize:
            return raw
        centers = np.array([center for center, _ in self.scales])[codes]
        spreads = np.array([spread for _, spread in self.scales])[codes]
        spreads = spreads * self.rule.spread_factor
        score: Array = (raw - centers) / np.where(spreads > 0, spreads, 1.0)
        return np.abs(score) if self.rule.absolute else score


def _codes_of(prox: ForestProximity, y: Any) -> npt.NDArray[np.intp]:
    """Return the class of each training sample; one for all where y holds no classes."""
    numeric = y is not None and np.asarray(y).dtype.kind in "uif"
    if target_of(y) == "classes" and not (numeric and prox._router.predicts_numbers()):
        return check_labels(y, prox.n_samples_fit_)[1]
    return np.zeros(prox.n_samples_fit_, dtype=np.intp)


def _blocks_of(prox: ForestProximity) -> Callable[..., Blocks]:
    return lambda X: prox.iter_proximity(X, sort=False)


def _match(scores: Array, measured: Array, known: Array) -> npt.NDArray[np.float64]:
    """Map scores to the scale of others: each quantile of the measured ones to that of the known.

    Both are sorted and of one length. Beyond their ends, differences stay as they are.
    """
    inside = np.clip(scores, measured[0], measured[-1])
    return np.asarray(np.interp(inside, measured, known) + (scores - inside))


def _scale_of(raw: Array) -> tuple[float, float]:
    """Return the median of a class and its median absolute deviation, or what stands in for it."""
    if not len(raw):
        return 0.0, 0.0
    center = float(np.median(raw))
    off = np.abs(raw - center)
    spread = float(np.median(off))
    if spread <= _ROUNDING * center:
        spread = float(off.mean()) * _NORMAL_MEAN_AD / _NORMAL_MAD
    return center, spread if spread > _ROUNDING * center else 0.0


def _by_row(reduce: np.ufunc, values: Array, indptr: Array) -> npt.NDArray[Any]:
    """Reduce the entries of each row; 0 for rows without any."""
    out: Array = np.zeros(len(indptr) - 1, dtype=values.dtype)
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        out[filled] = reduce.reduceat(values, indptr[filled])
    return out
