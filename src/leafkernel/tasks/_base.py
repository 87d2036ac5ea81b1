"""The base class of estimators, and checks of proximities and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, RandomTreesEmbedding
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from leafkernel._repr import FittedRepr
from leafkernel._targets import (
    Codes,
    Target,
    check_labels,
    indicators,
    refuse_missing,
    target_of,
)
from leafkernel._validation import (
    check_columns,
    check_same_lengths,
    check_values,
    count_threads,
    refuse_masked,
)
from leafkernel.forests import Unavailable, fit_if_needed
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.schemes import WeightScheme, find_scheme

Array = npt.NDArray[Any]
Task = TypeVar("Task", bound="ProximityTask")

_FORESTS = {
    "classes": RandomForestClassifier,
    "numbers": RandomForestRegressor,
    "none": RandomTreesEmbedding,
}

# Number of samples to compare when checking that a proximity was fitted on X.
_ROWS_COMPARED = 100


class ProximityTask(FittedRepr):
    """Mixin for estimators that use a proximity.

    Their first parameter is ``proximity``. It is a ``ForestProximity``, a forest (which gets the
    default scheme of the task), a scheme (which gets a default forest), or None for both defaults.
    A proximity or a forest that is already fitted is not fitted again. In this case, pass the
    samples that it was fitted on to ``fit``.
    """

    proximity: Any
    n_jobs: int | None
    random_state: Any
    proximity_: ForestProximity

    #: The default scheme with targets.
    _default_scheme = "gap"
    #: The default scheme without targets, or if the forest does not support the first.
    _default_unsupervised_scheme = "uniform"
    #: What the default forest predicts, if it does not depend on y.
    _target: Target | None = None

    def _make_proximity(self, y: Any = None) -> ForestProximity:
        """Return the proximity of the parameter ``proximity``, fitted or not."""
        given = self.proximity
        if isinstance(given, ForestProximity):
            return given
        if given is not None and not is_scheme(given):
            return ForestProximity(given, self._default_scheme, n_jobs=self.n_jobs)
        target = self._target or target_of(y)
        n_jobs = None if self.n_jobs is None else count_threads(self.n_jobs)
        forest = _FORESTS[target](n_jobs=n_jobs, random_state=self.random_state)
        unsupervised = target == "none"
        default = self._default_unsupervised_scheme if unsupervised else self._default_scheme
        return ForestProximity(forest, default if given is None else given, n_jobs=self.n_jobs)

    def fit(self: Task, X: Any, y: Any = None, sample_weight: Any = None) -> Task:
        """Fit the estimator to training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets for the forest. Classifiers and regressors require them. If ``proximity`` is
            already fitted, the default is the targets that it was fitted on.
        sample_weight : array-like of shape (n,), default=None
            Sample weights for fitting the forest. If the forest is already fitted, the weights
            that it was fitted with.

        Returns
        -------
        object
            The fitted estimator.
        """
        if y is None and isinstance(self.proximity, ForestProximity) and is_fitted(self.proximity):
            y = self.proximity.y_
        if y is not None:
            refuse_missing(y)
        y = self._check(y)
        proximity = self._fit_proximity(X, y, sample_weight)
        self._learn(proximity, y)
        self.proximity_ = proximity
        return self

    def _check(self, y: Any) -> Any:
        """Check parameters and targets before the work starts; return the targets."""
        return y

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        """Learn from the training samples of a fitted proximity."""

    def _fit_proximity(self, X: Any, y: Any, sample_weight: Any = None) -> ForestProximity:
        """Return a fitted proximity, and learn the columns of X."""
        proximity = self._make_proximity(y)
        refuse_signed(proximity, type(self).__name__)
        if is_fitted(proximity):
            proximity = Inside.of(proximity).prox  # a copy, because the user may fit it again
            check_same_samples(proximity, X)
        else:  # with results in main memory
            proximity = Inside.of(self._fitted(proximity, X, y, sample_weight)).prox
        check_columns(self, X, reset=True)
        return proximity

    def _fitted(
        self, proximity: ForestProximity, X: Any, y: Any, sample_weight: Any
    ) -> ForestProximity:
        # Do not use clone(), because it would discard the fit of a fitted forest.
        parameters = proximity.get_params(deep=False)
        if isinstance(self.proximity, ForestProximity) or is_scheme(self.proximity):
            return type(proximity)(**parameters).fit(X, y, sample_weight)
        check_same_lengths(X, y)
        parameters["forest"] = fit_if_needed(parameters["forest"], X, y, sample_weight)
        try:
            return type(proximity)(**parameters).fit(X, y, sample_weight)
        except ValueError as error:
            if not isinstance(error.__cause__, Unavailable):
                raise
        # The user did not choose the scheme, so use one that every forest supports.
        parameters["weight_scheme"] = self._default_unsupervised_scheme
        return type(proximity)(**parameters).fit(X, y, sample_weight)

    def _figures(self) -> dict[str, str]:
        if not hasattr(self, "proximity_"):
            return {}
        return {**self._own_figures(), **self.proximity_._figures()}

    def _own_figures(self) -> dict[str, str]:
        """Return a few results of a fitted task for its repr."""
        return {}

    def __sklearn_tags__(self) -> Any:  # scikit-learn >= 1.6
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inherited = self._make_proximity().__sklearn_tags__()
        tags.input_tags.sparse = inherited.input_tags.sparse
        tags.input_tags.allow_nan = inherited.input_tags.allow_nan
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        allow_nan = self._make_proximity()._get_tags()["allow_nan"]
        return {"allow_nan": allow_nan, "preserves_dtype": []}


def is_scheme(given: Any) -> bool:
    """Return whether an object is a weight scheme: a name, a ``WeightScheme`` or a function."""
    function = callable(given) and not hasattr(given, "fit") and not hasattr(given, "leaves")
    return isinstance(given, (str, WeightScheme)) or function


def is_fitted(proximity: ForestProximity) -> bool:
    """Return whether a proximity is fitted."""
    return hasattr(proximity, "kernel_")


def check_proximity(proximity: Any) -> ForestProximity:
    """Return a fitted proximity, or raise TypeError for other objects."""
    if not isinstance(proximity, ForestProximity):
        raise TypeError(
            "the first argument must be a fitted ForestProximity; got an object of type "
            f"{type(proximity).__name__}. For a forest, use ForestProximity(forest).fit(X, y)."
        )
    return Inside.of(proximity).prox


def check_similarity(proximity: Any, task: str, instead: str = "") -> ForestProximity:
    """Return a fitted proximity, or raise an error if its weights can be negative."""
    prox = check_proximity(proximity)
    refuse_signed(prox, task, instead)
    return prox


def refuse_signed(prox: ForestProximity, task: str, instead: str = "") -> None:
    """Raise an error for a scheme with negative weights."""
    scheme = prox.scheme_ if is_fitted(prox) else find_scheme(prox.weight_scheme)
    if scheme.signed:
        raise ValueError(
            f"weight_scheme={scheme.name!r} cannot be used with {task}: its proximities can be "
            "negative, because they are contributions to a score, not similarities. "
            + (instead or "Use 'boosted' or 'kerf', for example prox.reweigh('boosted').")
        )


def without_self(prox: ForestProximity) -> ForestProximity:
    """Return a proximity with a zero diagonal.

    Use it for predictions and explanations of training samples, which must not depend on their own
    target.
    """
    inside = Inside.of(prox)
    return prox.reweigh(diagonal="zero") if inside.has_own_diagonal else inside.prox


def with_constant_diagonal(prox: ForestProximity) -> ForestProximity:
    """Return a proximity with a constant diagonal, for scores that compare training samples.

    The diagonal is one for "uniform", "oob" and "boosted", as in R. For other schemes it is zero,
    because their own diagonal depends on the sample: a sample that is alone in its leaves would
    look like the most typical one.
    """
    return prox.reweigh(diagonal="one") if prox.scheme_.own_proximity == 1 else without_self(prox)


def check_same_samples(proximity: ForestProximity, X: Any) -> None:
    """Raise an error if the leaves of X show that the proximity was fitted on other samples."""
    inside = Inside.of(proximity)
    n_samples = inside.count(X)
    remedy = "Pass the X that the proximity was fitted on, or an unfitted proximity."
    if n_samples != inside.n_samples:
        raise ValueError(
            f"X has {n_samples} samples, but the proximity was fitted on {inside.n_samples}. "
            f"{remedy}"
        )
    rows = np.linspace(0, n_samples - 1, min(n_samples, _ROWS_COMPARED)).astype(int)
    if not np.array_equal(inside.leaves_of(X, rows), inside.training_leaves(rows)):
        raise ValueError(
            "X does not contain the samples that the proximity was fitted on, or has them in "
            f"another order. {remedy}"
        )


def check_classes(y: Any, task: object) -> Array:
    """Return the classes for a classifier, shape (n,), after checking them."""
    if y is None:
        name = type(task).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None. Pass classes.")
    labels: Array = column_or_1d(y, warn=True)
    check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(labels)
    return labels


def targets_of(prox: ForestProximity, y: Any) -> Any:
    """Return y, or the targets that the proximity was fitted on."""
    if y is not None:
        return y
    if prox.y_ is None:
        raise ValueError(
            "y is required, because the proximity was fitted without targets. Pass y here, one "
            "target for each training sample, or fit the proximity with y."
        )
    return prox.y_


def labels_of(prox: ForestProximity, y: Any) -> tuple[Array, Codes]:
    """Return the sorted classes, and the code of each training sample."""
    if targets_of(prox, y) is prox.y_:
        return Inside.of(prox).targets.labels
    return check_labels(y, prox.n_samples_fit_)


@dataclass(frozen=True)
class TargetColumn:
    """One target for each training sample: classes or numbers.

    Attributes
    ----------
    values : ndarray of shape (n,)
        The targets.
    classes : ndarray of shape (n_classes,) or None
        The classes, sorted; None for numbers.
    codes : ndarray of int of shape (n,) or None
        The class of each sample; None for numbers.
    """

    values: Array
    classes: Array | None
    codes: Codes | None

    def numbers(self, rows: Any = slice(None)) -> npt.NDArray[np.float64]:
        """Return the numbers to average for some samples: class indicators or targets."""
        if self.classes is None or self.codes is None:
            return np.asarray(self.values[rows], dtype=np.float64)[:, None]
        return indicators(self.codes[rows], len(self.classes))


def read_targets(prox: ForestProximity, y: Any) -> TargetColumn:
    """Return y, or the targets that the proximity was fitted on, as a ``TargetColumn``."""
    inside = Inside.of(prox)
    kept = inside.targets if targets_of(prox, y) is prox.y_ else None
    given = prox.y_ if y is None else y
    refuse_masked("y", given)
    targets = np.asarray(given)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets.ravel()
    if targets.ndim != 1:
        raise ValueError(
            f"y must have one target for each sample; got shape {targets.shape}. Pass one column "
            "at a time."
        )
    kind = kept.kind if kept else target_of(targets)
    if inside.forest.predicts_numbers() or kind == "numbers":
        return TargetColumn(check_values(targets, prox.n_samples_fit_), None, None)
    return TargetColumn(targets, *labels_of(prox, y))
