"""Forests: what each library's tree ensembles tell about leaves, draws, weights and paths.

The only part of leafkernel that knows those libraries.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

try:
    from sklearn.frozen import FrozenEstimator
except ImportError:  # scikit-learn < 1.6
    FrozenEstimator = None

from leafkernel.forests import scikit_learn
from leafkernel.forests._base import FittedForest, InBag, Unavailable
from leafkernel.forests.leaves import RawLeaves, RawLeavesForest, check_leaves

__all__ = [
    "FittedForest",
    "InBag",
    "RawLeaves",
    "Unavailable",
    "adapt",
    "check_leaves",
    "fit_if_needed",
]


def fit_if_needed(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return a fitted ensemble as it is, or a fitted clone of an unfitted one."""
    if FrozenEstimator is not None and isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    _refuse_unsupported(estimator)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        known = {} if sample_weight is None else {"sample_weight": sample_weight}
        return clone(estimator).fit(X, y, **known)
    return estimator


def adapt(estimator: Any, *, n_threads: int = 1) -> FittedForest:
    """Return a fitted ensemble as a forest."""
    if isinstance(estimator, RawLeaves):
        return RawLeavesForest(estimator)
    forest = scikit_learn.adapt(estimator, n_threads=n_threads)
    assert forest is not None  # fit_if_needed refused everything else
    return forest


def _refuse_unsupported(estimator: Any) -> None:
    supported = (*scikit_learn.BAGGED, *scikit_learn.BOOSTED, RawLeaves)
    if isinstance(estimator, type):
        raise TypeError(
            f"forest is the class {estimator.__name__}; give an instance of it: "
            f"{estimator.__name__}()."
        )
    if not isinstance(estimator, supported):
        listed = ", ".join(kind.__name__ for kind in supported[:-1])
        raise TypeError(
            f"forest must be one of {listed}; got {estimator!r}. For any other ensemble, get its "
            "leaf ids and use ForestProximity.from_leaves(leaves)."
        )
