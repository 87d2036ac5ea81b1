"""Forests: what each library's tree ensembles tell about leaves, draws, weights and paths.

The only part of leafkernel that knows those libraries. A library is found by the modules that an
estimator's classes come from, and its file here is imported only then.
"""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from leafkernel.forests import wrapped
from leafkernel.forests._base import FittedForest, InBag, Unavailable
from leafkernel.forests._links import Link
from leafkernel.forests.custom import CustomForest, Forest
from leafkernel.forests.leaves import RawLeaves, RawLeavesForest, check_leaves

__all__ = [
    "FittedForest",
    "Forest",
    "InBag",
    "Link",
    "RawLeaves",
    "Unavailable",
    "adapt",
    "check_leaves",
    "fit_if_needed",
    "is_fitted",
]

# The file that knows a library. Packages that subclass its ensembles are found through it.
_FILES = {
    "sklearn": "scikit_learn",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
}


def fit_if_needed(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return a fitted ensemble as it is, or a fitted clone of an unfitted one."""
    if isinstance(estimator, type):
        raise TypeError(
            f"forest is the class {estimator.__name__}; give an instance of it: "
            f"{estimator.__name__}()."
        )
    estimator = wrapped.unfreeze(estimator)
    if is_fitted(estimator):
        return estimator
    _refuse_unsupported(wrapped.innermost(estimator))
    known = wrapped.weights_for(estimator, sample_weight)
    return _copy(estimator).fit(X, y, **known)


def adapt(estimator: Any, *, n_threads: int = 1) -> FittedForest:
    """Return a fitted ensemble as a forest."""
    estimator = wrapped.unfreeze(estimator)
    if isinstance(estimator, RawLeaves):
        return RawLeavesForest(estimator)
    inside = wrapped.adapt(estimator, lambda inner: adapt(inner, n_threads=n_threads))
    if inside is not None:
        return inside
    file = _file_for(estimator)
    if file is not None:
        forest: FittedForest = file.adapt(estimator, n_threads=n_threads)
        return forest
    _refuse_unsupported(estimator)
    return CustomForest(estimator)


def _file_for(estimator: Any) -> ModuleType | None:
    """Return the file that knows an estimator, the nearest of its classes first."""
    libraries = [cls.__module__.partition(".")[0] for cls in type(estimator).__mro__]
    for library in dict.fromkeys(libraries):
        if library in _FILES:
            file = import_module(f"leafkernel.forests.{_FILES[library]}")
            if isinstance(estimator, file.kinds()):
                return file
    return None


def _copy(unfitted: Any) -> Any:
    try:
        return clone(unfitted)
    except RuntimeError:  # CatBoost does not keep lists of parameters as scikit-learn wants it
        return deepcopy(unfitted)


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted, whatever its library."""
    kind = type(estimator)  # objects may answer to any name
    if not (hasattr(kind, "fit") and hasattr(kind, "get_params")):
        return True  # native boosters come trained, and what cannot be cloned is taken as it is
    if hasattr(kind, "is_fitted"):  # CatBoost
        return bool(estimator.is_fitted())
    if not isinstance(estimator, BaseEstimator):  # what fit learns ends in an underscore
        names = getattr(estimator, "__dict__", {})
        return any(name.endswith("_") and not name.startswith("__") for name in names)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _refuse_unsupported(estimator: Any) -> None:
    known = isinstance(estimator, RawLeaves) or _file_for(estimator) is not None
    if known or hasattr(type(estimator), "leaves"):
        return
    names = [import_module(f"leafkernel.forests.{file}").NAMES for file in _FILES.values()]
    raise TypeError(
        f"forest must be one of {'; '.join(names)}; a Pipeline or search with one of them; or any "
        f"object with a method leaves(X); got {estimator!r}. For any other ensemble, get its leaf "
        "ids and use ForestProximity.from_leaves(leaves)."
    )
