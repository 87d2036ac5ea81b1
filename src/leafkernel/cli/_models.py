"""Models from files: load one, check that it fits the table, encode the table, and predict."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.exceptions import InconsistentVersionWarning

from leafkernel._validation import shorten
from leafkernel.cli._output import Talk
from leafkernel.cli.errors import CommandError, FileError, OptionError, TableError
from leafkernel.forests import is_fitted
from leafkernel.tables._target import class_key, name_classes
from leafkernel.tables.preparation import Prepared, Rows

Encode = Callable[[Rows], Any]

_SUFFIXES = (".skops", ".joblib", ".pkl", ".pickle")
# How a pickle without compression records the version of scikit-learn that wrote it.
_VERSION = re.compile(rb"_sklearn_version.{1,14}?(\d+\.\d+(?:\.\d+)*)", re.DOTALL)


def load_model(path: Path, talk: Talk, *, trusted: bool) -> Any:
    """Load a fitted model from a file of skops, joblib or pickle, which can run code from it.

    ``talk`` is told when another version of scikit-learn saved the model.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise OptionError(
            f"--model {path}: the name must end in {', '.join(_SUFFIXES[:-1])} or "
            f"{_SUFFIXES[-1]}; got {suffix or 'no ending'}."
        )
    if not trusted:
        raise OptionError(
            f"--model {path}: loading a model can run code from the file. If you trust whoever "
            "made it, add --trust-model."
        )
    if not path.is_file():
        raise FileError(f"--model {path}: there is no such file.")
    library = "skops.io" if suffix == ".skops" else "joblib"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InconsistentVersionWarning)
            model = _load_skops(path) if library == "skops.io" else joblib.load(path)
    except CommandError:
        raise
    except Exception as error:  # a damaged file can raise anything
        version = _warned_version(caught) or _recorded_version(path)
        if version not in (None, sklearn.__version__):
            raise FileError(_explain_version(path, version, error)) from error
        raise FileError(
            f"--model {path} could not be loaded ({_describe(error)}). Save the model again with "
            f"{library}.dump, using the library versions that are installed here."
        ) from error
    if version := _warned_version(caught):
        talk.note(
            f"--model {path} was saved with scikit-learn {version}, but {sklearn.__version__} is "
            "installed, so its results may be wrong. To be sure, fit the model again."
        )
        talk.suspect = partial(_explain_version, path, version)
    if not hasattr(model, "fit") or not is_fitted(model):
        raise TableError(
            f"--model {path} holds an object of type {type(model).__name__}, which is not a fitted "
            "model. Fit the model before you save it."
        )
    return model


def _load_skops(path: Path) -> Any:
    try:
        skops: Any = import_module("skops.io")
    except ImportError:
        raise OptionError(
            f"--model {path}: skops is needed to read it. Install it with: pip install skops"
        ) from None
    return skops.load(path, trusted=skops.get_untrusted_types(file=path))


def _warned_version(caught: list[warnings.WarningMessage]) -> str | None:
    for warning in caught:
        if isinstance(warning.message, InconsistentVersionWarning):
            return str(warning.message.original_sklearn_version)
    return None


def _recorded_version(path: Path) -> str | None:
    """Return the version of scikit-learn that saved a model; None where it cannot be known."""
    found = _VERSION.search(path.read_bytes())
    return found[1].decode() if found else None


def _explain_version(path: Path, version: str | None, error: Exception) -> str:
    installed = sklearn.__version__
    return (
        f"--model {path} was saved with scikit-learn {version} and does not work with {installed}, "
        f"which is installed ({_describe(error)}). Fit the model again with scikit-learn "
        f"{installed}, or install scikit-learn {version}."
    )


def _describe(error: Exception) -> str:
    """Return the type of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0].rstrip(':. ')}"


# --- what a model takes


def task_of(model: Any) -> Literal["classification", "regression"] | None:
    """Return what a model predicts, where it says so."""
    if not isinstance(model, BaseEstimator):
        return None
    if is_classifier(model):
        return "classification"
    return "regression" if is_regressor(model) else None


def names_of(model: Any) -> list[str] | None:
    """Return the columns that a model was trained with; None where it does not say."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        # CatBoost has its own attribute, with numbers for names if it was trained with an array.
        names = getattr(model, "feature_names_", None)
        if names is None or all(str(name).isdigit() for name in names):
            return None
    return [str(name) for name in names]


def encoder_of(model: Any, prepared: Prepared, talk: Talk) -> tuple[list[str] | None, Encode]:
    """Return the columns that rows must have, and what makes of them what the model takes.

    The columns are None if the model takes the features; see :meth:`Prepared.read`.
    """
    names = names_of(model)
    if names is None:
        _check_number(model, prepared)
        return None, lambda rows: rows.features.to_numpy()
    # A pipeline encodes categories itself, and so wants them as they are in the file.
    raw = hasattr(model, "steps") or hasattr(model, "best_estimator_")
    present = list((prepared.shown if raw else prepared.features).columns)
    missing = [name for name in names if name not in present]
    if missing:
        raise TableError(
            f"the model was trained with {_listed(missing)}, which the table has not, or not as a "
            f"feature; it has {_listed(present)}."
        )
    unused = [name for name in prepared.features.columns if name not in names]
    if unused:
        talk.note(f"The model does not use {_listed(unused)}.")
    if raw:
        return names, lambda rows: rows.shown[names]
    coded = [c.name for c in prepared.columns if c.kind == "category" and c.name in names]
    if coded:
        talk.note(
            f"The model is given {_listed(coded)} as numbers, by the order of the values: right "
            "only if it was trained so. A pipeline that encodes categories itself is safer."
        )
    return None, lambda rows: rows.features[names]


def _check_number(model: Any, prepared: Prepared) -> None:
    found = prepared.features.shape[1]
    # CatBoost forgets the number when it is saved, but knows the names.
    expected = getattr(model, "n_features_in_", 0) or len(getattr(model, "feature_names_", ()))
    if expected not in (0, found):
        raise TableError(
            f"the model was trained with {expected} features, but the table has {found} "
            f"({_listed(list(prepared.features.columns))}); leave columns out with --drop."
        )


def check_target(model: Any, prepared: Prepared, talk: Talk) -> None:
    """Refuse a model that predicts something else than the target."""
    task = task_of(model)
    target = repr(prepared.target_name)
    if task is not None and task != prepared.task:
        raise TableError(
            f"the model is for {task}, but the target {target} was asked to be {prepared.task}; "
            "leave --task out, or give another model."
        )
    known = getattr(model, "classes_", None)
    if prepared.task != "classification" or not isinstance(known, np.ndarray) or known.ndim != 1:
        return
    found = np.unique(prepared.target).tolist()
    keys = {class_key(label) for label in known.tolist()}
    strangers = [label for label in found if class_key(label) not in keys]
    if not strangers:
        return
    codes = known.dtype.kind in "biu" and np.array_equal(known, np.arange(len(found)))
    if codes and strangers == found:  # some libraries take no other classes
        talk.note(
            f"The classes of the model are {_listed(known.tolist())}, which were taken as codes "
            f"of the classes of {target}: right only if it was trained so."
        )
        return
    raise TableError(
        f"the model does not know {_listed(strangers)} of the target {target}; its classes are "
        f"{_listed(known.tolist())}. It was trained for another target; choose that with "
        "--target, or give another model."
    )


# --- predictions


def own_probabilities(
    model: Any, X: Any, classes: list[str]
) -> tuple[list[str], npt.NDArray[np.float64]] | None:
    """Return the classes of a model as the table writes them, and their probabilities for rows.

    None if the model does not tell them.
    """
    if not _predicts(model, "predict_proba"):
        return None
    shares, known = _ask(model.predict_proba, X), getattr(model, "classes_", None)
    names = classes
    if known is not None:
        found = [str(name) for name in name_classes(np.asarray(known).tolist(), classes)]
        is_coded = len(found) == len(classes) and not set(found) & set(classes)
        names = classes if is_coded else found
    return (names, shares) if shares.shape[1:] == (len(names),) else None


def own_numbers(model: Any, X: Any) -> npt.NDArray[np.float64] | None:
    """Return what a model predicts for rows; None if it does not predict numbers."""
    return _ask(model.predict, X).ravel() if _predicts(model, "predict") else None


def _predicts(model: Any, method: str) -> bool:
    """Return whether a model has its own prediction of the target.

    The boosters of other libraries take no tables, and detectors of outliers predict other things.
    """
    is_other = isinstance(model, BaseEstimator) and task_of(model) is None
    return hasattr(model, "fit") and hasattr(model, method) and not is_other


def _ask(predict: Callable[[Any], Any], X: Any) -> npt.NDArray[np.float64]:
    """Return what a model predicts, the same in each run."""
    # With several threads, scikit-learn adds up the trees in the order in which they finish.
    with joblib.parallel_backend("sequential"):
        return np.asarray(predict(X), dtype=np.float64)


def _listed(names: list[Any]) -> str:
    return shorten([repr(str(name)) for name in names])
