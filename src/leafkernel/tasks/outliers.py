"""Find outliers: samples that are unusual for their class or target."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from leafkernel._row_labels import frame_of, labels_at
from leafkernel._targets import target_of
from leafkernel._validation import check_choice, check_columns, check_length
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._as_new import AsNew
from leafkernel.tasks._base import (
    Array,
    ProximityTask,
    check_similarity,
    labels_of,
    with_constant_diagonal,
)
from leafkernel.tasks._outlier_judge import CONVENTIONS, DESERVES_A_LOOK, Judge, match
from leafkernel.tasks._outlying_numbers import FeatureScores, residual_scores

_CONVENTIONS = ("auto", *CONVENTIONS, "residual")


def outlier_scores(
    prox: ForestProximity, y: Any = None, *, X: Any = None, convention: str = "auto"
) -> npt.NDArray[np.float64]:
    r"""Return an outlier score for each training sample. Scores above 10 deserve a look.

    Use it to find unusual samples. To find wrong labels, use ``find_label_errors``.

    For classes, the score is high if a sample is similar to few samples of its class:

    .. math:: \mathrm{raw}_i = \frac{n}{\sum_{j: y_j = y_i} P_{ij}^2}, \qquad
              \mathrm{score}_i = \frac{\mathrm{raw}_i - \mathrm{median}}{1.4826 \cdot \mathrm{MAD}}

    The median and the MAD are over the samples of the class. For numbers, the score is high if a
    target is far from the targets of similar samples:

    .. math:: \mathrm{score}_i = \frac{10}{3.5} \cdot
              \frac{d_i}{1.4826 \cdot \mathrm{median}_j\, d_j}, \qquad
              d_i = \min(|y_i - \bar y_i|, |y_i - \tilde y_i|)

    Here :math:`\bar y_i` and :math:`\tilde y_i` are the mean and the median of the other targets,
    weighted by proximity. With "gap", the mean is the out-of-bag prediction of the forest. With the
    median, a wrong target does not affect the scores of its neighbors.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    y : array-like of shape (n,), default=None
        Targets of the training samples. By default, those that ``prox`` was fitted on. Without
        targets, or with a single class, each sample is compared with all others.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features), default=None
        The training samples. Pass them to also find unusual features if targets are numbers. The
        score is then the maximum of the second formula and of Breiman's score from totally random
        trees on the features. Ignored for classes.
    convention : {"auto", "breiman", "rfgap", "raw", "residual"}, default="auto"
        The definition of the score.

        - "auto": "residual" for numbers, otherwise "breiman".
        - "breiman": the first formula, as in R's ``outlier``.
        - "rfgap": as defined by the authors of RF-GAP. Each row of P is divided by its maximum, the
          score is the absolute value, and the factor 1.4826 is omitted.
        - "raw": the raw measure, which can be compared across classes.
        - "residual": the second formula.

    Returns
    -------
    ndarray of shape (n,)
        Scores, higher for outliers.

    Notes
    -----
    With "uniform", "oob" and "boosted", P_ii is one, and the scores equal those of R. With other
    schemes, P_ii would depend on the sample and is set to zero. The raw measure then has no upper
    bound, and scores above 10 continue on a logarithmic scale: 20 means 100, and 30 means 1000. The
    same holds for scores of numbers.

    A sum of zero counts as one, as in R, or as half of the smallest other sum if this is less.
    Otherwise a sample without similar samples in its class would look normal. The MAD is zero if
    more than half of a class have the same raw measure. The mean absolute deviation is then used.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes, load_iris
    >>> from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import outlier_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "oob").fit(X, y)
    >>> int(outlier_scores(prox).argmax()) in (70, 83, 106, 119, 133)
    True
    >>> X, y = load_diabetes(return_X_y=True)
    >>> y[7] = 900  # far more than any other
    >>> prox = ForestProximity(RandomForestRegressor(random_state=0)).fit(X, y)
    >>> int(outlier_scores(prox).argmax())
    7
    """
    prox = check_similarity(prox, "outlier_scores")
    check_choice("convention", convention, _CONVENTIONS)
    y = prox.y_ if y is None else y
    if _resolve(convention, prox, y) == "residual":
        if y is None:
            raise ValueError("convention='residual' requires targets. Pass y.")
        scores = residual_scores(prox, y)
        if X is None:
            return scores
        check_length("X", X, prox.n_samples_fit_)
        return _larger(scores, FeatureScores.of(prox, X))
    return _judge(prox, _codes_of(prox, y), _resolve(convention, prox, y)).of_training()


class ProximityOutlierDetector(ProximityTask, OutlierMixin, BaseEstimator):
    """Detect outliers: samples that are unusual for their class, or have unusual targets.

    Use it to screen training samples and to score new samples. For scores of training samples only,
    use ``outlier_scores``.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. A forest gets the scheme "oob", and a scheme gets a random forest. By
        default, "oob" with a random forest, or "uniform" with totally random trees without y.
    convention : {"auto", "breiman", "rfgap", "raw", "residual"}, default="auto"
        The definition of the score, see ``outlier_scores``.
    contamination : "auto" or float, default="auto"
        Share of outliers among the training samples. With "auto", samples with scores above 10 are
        outliers, which is Breiman's rule of thumb.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    outlier_scores_ : ndarray of shape (n,)
        Scores of the training samples, as returned by ``outlier_scores`` with X.
    offset_ : float
        Samples whose ``score_samples`` is below the offset are outliers.

    Notes
    -----
    A new sample is compared with its most similar class. In regression, its target is unknown, so
    only its features are used. Scores of new samples are on the scale of ``outlier_scores_``: for
    new samples from the same distribution, the share of scores above any value is about the same.
    A training sample that you pass to ``predict`` is treated as new data and is similar to itself.
    Use ``fit_predict`` to compare training samples only with the others.

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
        convention: str = "auto",
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
        check_choice("convention", self.convention, _CONVENTIONS)
        return y

    def _fit_proximity(self, X: Any, y: Any, sample_weight: Any = None) -> ForestProximity:
        proximity = super()._fit_proximity(X, y, sample_weight)
        self._features = self._as_new = None
        if _resolve(self.convention, proximity, y) == "residual":
            self._features = FeatureScores.of(proximity, X, self.random_state)
        if self._features is None:
            self._as_new = AsNew(proximity, X)
        return proximity

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        convention = _resolve(self.convention, proximity, y)
        if convention == "residual":
            self.outlier_scores_ = _larger(residual_scores(proximity, y), self._features)
            convention = "breiman"
        else:
            self.outlier_scores_ = outlier_scores(proximity, y, convention=convention)
        if self._as_new is not None:
            codes = _codes_of(proximity, y)
            self._judge = Judge(self._as_new.blocks, codes, convention, bounded=True, as_new=True)
        if self.contamination == "auto":
            self.offset_ = -DESERVES_A_LOOK
        else:
            self.offset_ = float(np.percentile(-self.outlier_scores_, 100 * self.contamination))

    def _own_figures(self) -> dict[str, str]:
        outliers = int((self.outlier_scores_ > -self.offset_).sum())
        return {"outliers": f"{outliers:,} (scores above {-self.offset_:.3g})"}

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> npt.NDArray[np.int64]:
        """Fit, and return -1 for outliers among the training samples and 1 for the others.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,), default=None
            Targets, see ``fit``.
        **params
            Further arguments of ``fit``.

        Returns
        -------
        ndarray of int of shape (n,)
            -1 for outliers, 1 for others.
        """
        self.fit(X, y, **params)
        return np.where(-self.outlier_scores_ < self.offset_, -1, 1)

    def to_frame(self) -> Any:
        """Return the training samples as a data frame, the highest score first.

        Returns
        -------
        pandas.DataFrame
            One row for each sample, with its label in the training data frame as the index, and
            columns for its position, its score and whether it is an outlier.
        """
        check_is_fitted(self, "proximity_")
        order = np.argsort(-self.outlier_scores_, kind="stable")
        score = self.outlier_scores_[order]
        columns = {"position": order, "score": score, "is_outlier": -score < self.offset_}
        return frame_of(columns, labels_at(self.proximity_.index_, order))

    def score_samples(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return the negative outlier scores of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, treated as new data. If None, the training samples, compared using their
            out-of-bag trees if the scheme uses them.

        Returns
        -------
        ndarray of shape (m,)
            Scores, lower for outliers.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from leafkernel.tasks import ProximityOutlierDetector
        >>> X, y = load_wine(return_X_y=True)
        >>> detector = ProximityOutlierDetector(random_state=0).fit(X[::2], y[::2])
        >>> detector.score_samples(X[1::2]).shape
        (89,)
        """
        check_is_fitted(self, "proximity_")
        if X is None:
            return -self.outlier_scores_
        known = np.sort(self.outlier_scores_)
        if self._features is not None:
            check_columns(self, X, reset=False)
            as_new = np.sort(self._features.of_training)
            return -match(self._features.of_unseen(X), as_new, known)
        as_new = np.sort(self._judge.of_training())
        return -match(self._judge.of_unseen(X), as_new, known)

    def decision_function(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Return ``score_samples(X) - offset_``, which is negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, see ``score_samples``.

        Returns
        -------
        ndarray of shape (m,)
            Scores.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any = None) -> npt.NDArray[np.int64]:
        """Return -1 for outliers and 1 for other samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, see ``score_samples``.

        Returns
        -------
        ndarray of int of shape (m,)
            -1 for outliers, 1 for others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)


def _has_numbers(prox: ForestProximity, y: Any) -> bool:
    """Return whether targets are numbers, based on their values and on the forest."""
    if y is None:
        return False
    numeric = np.asarray(y).dtype.kind in "uif"
    return target_of(y) == "numbers" or (numeric and Inside.of(prox).forest.predicts_numbers())


def _resolve(convention: str, prox: ForestProximity, y: Any) -> str:
    if convention != "auto":
        return convention
    return "residual" if _has_numbers(prox, y) else "breiman"


def _codes_of(prox: ForestProximity, y: Any) -> npt.NDArray[np.intp]:
    """Return the class code of each training sample; zeros if y has no classes."""
    if y is None or _has_numbers(prox, y):
        return np.zeros(prox.n_samples_fit_, dtype=np.intp)
    return labels_of(prox, None if y is prox.y_ else y)[1]


def _judge(prox: ForestProximity, codes: Array, convention: str) -> Judge:
    own = with_constant_diagonal(prox)
    has_end = prox.scheme_.own_proximity == 1  # sums are at least one, so scores are bounded
    return Judge(
        lambda X: own.iter_proximity(X, sort=False), codes, convention, bounded=not has_end
    )


def _larger(scores: Array, features: FeatureScores | None) -> npt.NDArray[np.float64]:
    return scores if features is None else np.maximum(scores, features.of_training)
