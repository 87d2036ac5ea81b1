"""Adapters for tree ensembles of scikit-learn, LightGBM, XGBoost, CatBoost and others.

An adapter gives leafkernel the leaves, in-bag weights, tree weights and paths of an ensemble. No
other part of leafkernel depends on these libraries. The library of an estimator is recognized by
the modules of its classes, and its adapter is imported only when needed.
"""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from leafkernel._optional import in_main_memory
from leafkernel.forests import wrapped
from leafkernel.forests._base import FittedForest, InBag, Unavailable
from leafkernel.forests._links import Link
from leafkernel.forests._routing import RouteTable
from leafkernel.forests.custom import CustomForest, Forest
from leafkernel.forests.leaves import RawLeaves, RawLeavesForest, check_leaves

__all__ = [
    "FittedForest",
    "Forest",
    "InBag",
    "Link",
    "RawLeaves",
    "RouteTable",
    "Unavailable",
    "adapt",
    "check_leaves",
    "fit_if_needed",
    "is_fitted",
]

# The adapter module of each library. It also handles packages that subclass its ensembles.
_FILES = {
    "sklearn": "scikit_learn",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
}


def fit_if_needed(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return a fitted ensemble unchanged, or a fitted clone of an unfitted one.

    Parameters
    ----------
    estimator : estimator
        The ensemble.
    X, y, sample_weight : array-like
        Training data for an unfitted ensemble.

    Returns
    -------
    estimator
        The fitted ensemble.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel.forests import fit_if_needed
    >>> fit_if_needed(RandomForestClassifier(5), [[0.0], [1.0]], [0, 1], None).n_classes_
    2
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"forest is the class {estimator.__name__}. Pass an instance: {estimator.__name__}()."
        )
    estimator = wrapped.unfreeze(estimator)
    if is_fitted(estimator):
        return estimator
    _refuse_unsupported(wrapped.innermost(estimator))
    known = wrapped.weights_for(estimator, sample_weight)
    return _copy(estimator).fit(in_main_memory(X), y, **known)


def adapt(estimator: Any, *, n_threads: int = 1) -> FittedForest:
    """Return the adapter of a fitted ensemble.

    Parameters
    ----------
    estimator : estimator
        The fitted ensemble.
    n_threads : int, default=1
        Number of threads.

    Returns
    -------
    FittedForest
        The adapter.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel.forests import adapt
    >>> X, y = load_iris(return_X_y=True)
    >>> adapt(RandomForestClassifier(10, random_state=0).fit(X, y)).leaves(X).shape
    (150, 10)
    """
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
    """Return the adapter module for an estimator. The classes nearest to it are tried first."""
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
    except RuntimeError:  # clone rejects CatBoost models that have lists as parameters
        return deepcopy(unfitted)


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted.

    Parameters
    ----------
    estimator : estimator
        An estimator of any library. Native boosters and objects that cannot be fitted count as
        fitted.

    Returns
    -------
    bool
        Whether it is fitted.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel.forests import is_fitted
    >>> is_fitted(RandomForestClassifier())
    False
    """
    kind = type(estimator)  # the class, because instances may define __getattr__
    if not (hasattr(kind, "fit") and hasattr(kind, "get_params")):
        return True  # native boosters are always trained; other objects cannot be cloned
    if hasattr(kind, "is_fitted"):  # CatBoost
        return bool(estimator.is_fitted())
    if not isinstance(estimator, BaseEstimator):  # look for fitted attributes like `classes_`
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
    kind = type(estimator).__name__ if isinstance(estimator, BaseEstimator) else repr(estimator)
    names = [import_module(f"leafkernel.forests.{file}").NAMES for file in _FILES.values()]
    raise TypeError(
        f"forest must be a tree ensemble; got {kind}. Use one of the supported models, or compute "
        "the leaf ids yourself and use ForestProximity.from_leaves(leaves). The supported models "
        f"are {'; '.join(names)}; the forests of imbalanced-learn, scikit-survival and "
        "quantile-forest; a Pipeline or a search (such as GridSearchCV) with one of them; and "
        "objects with a method leaves(X)."
    )
