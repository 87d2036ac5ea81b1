"""Models from files: load a model, check that it matches the table, encode the table, predict."""

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
# An uncompressed pickle records the version of scikit-learn in this form.
_VERSION = re.compile(rb"_sklearn_version.{1,14}?(\d+\.\d+(?:\.\d+)*)", re.DOTALL)


def load_model(path: Path, talk: Talk, *, trusted: bool) -> Any:
    """Load a fitted model from a skops, joblib or pickle file. This can run code from the file.

    Adds a note to ``talk`` if another version of scikit-learn saved the model.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise OptionError(
            f"--model {path} has an unknown file type. The name must end in "
            f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}."
        )
    if not trusted:
        raise OptionError(
            f"--model {path} was not loaded, because loading a model can run code from its file. "
            "If you trust the author of the file, add --trust-model to the command."
        )
    if not path.is_file():
        raise FileError(f"--model {path} was not found. Check the name of the file.")
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
            f"--model {path} contains an object of type {type(model).__name__}, which is not a "
            "fitted model. Fit a model, and save it again."
        )
    return model


def _load_skops(path: Path) -> Any:
    try:
        skops: Any = import_module("skops.io")
    except ImportError:
        raise OptionError(
            f"--model {path} requires skops. Install it with: pip install skops"
        ) from None
    return skops.load(path, trusted=skops.get_untrusted_types(file=path))


def _warned_version(caught: list[warnings.WarningMessage]) -> str | None:
    for warning in caught:
        if isinstance(warning.message, InconsistentVersionWarning):
            return str(warning.message.original_sklearn_version)
    return None


def _recorded_version(path: Path) -> str | None:
    """Return the version of scikit-learn that saved a model; None if unknown."""
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


# --- the input of a model


def task_of(model: Any) -> Literal["classification", "regression"] | None:
    """Return the task of a model; None if unknown."""
    if not isinstance(model, BaseEstimator):
        return None
    if is_classifier(model):
        return "classification"
    return "regression" if is_regressor(model) else None


def names_of(model: Any) -> list[str] | None:
    """Return the columns that a model was trained with; None if unknown."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        # CatBoost has its own attribute. After training on an array, the names are numbers.
        names = getattr(model, "feature_names_", None)
        if names is None or all(str(name).isdigit() for name in names):
            return None
    return [str(name) for name in names]


def encoder_of(model: Any, prepared: Prepared, talk: Talk) -> tuple[list[str] | None, Encode]:
    """Return the columns that rows must have, and the function that encodes rows for the model.

    The columns are None if the model takes the prepared features. See ``Prepared.read``.
    """
    names = names_of(model)
    if names is None:
        _check_number(model, prepared)
        return None, lambda rows: rows.features.to_numpy()
    # A pipeline encodes categories itself, so it gets them as they are in the file.
    raw = hasattr(model, "steps") or hasattr(model, "best_estimator_")
    present = list((prepared.shown if raw else prepared.features).columns)
    missing = [name for name in names if name not in present]
    if missing:
        raise TableError(
            f"--model needs the columns {_listed(missing)}, which are not features of this table. "
            f"The features are {_listed(present)}. Use a table with all columns that the model was "
            "trained on, or another model."
        )
    unused = [name for name in prepared.features.columns if name not in names]
    if unused:
        talk.note(f"The model does not use {_listed(unused)}.")
    if raw:
        return names, lambda rows: rows.shown[names]
    coded = [c.name for c in prepared.columns if c.kind == "category" and c.name in names]
    if coded:
        talk.note(
            f"The categories of {_listed(coded)} are passed to the model as numbers: 0, 1, 2, … in "
            "sorted order. Results are wrong if the model was trained with other numbers. A "
            "pipeline that encodes categories itself is safer."
        )
    return None, lambda rows: rows.features[names]


def _check_number(model: Any, prepared: Prepared) -> None:
    found = prepared.features.shape[1]
    # A CatBoost model that was saved has lost the number, but still has the names.
    expected = getattr(model, "n_features_in_", 0) or len(getattr(model, "feature_names_", ()))
    if expected not in (0, found):
        remedy = (
            "Use --drop to leave out the columns that the model was not trained on."
            if found > expected
            else "Use a table with all columns that the model was trained on, or another model."
        )
        raise TableError(
            f"--model was trained on {expected} features, but this table has {found}: "
            f"{_listed(list(prepared.features.columns))}. {remedy}"
        )


def check_target(model: Any, prepared: Prepared, talk: Talk) -> None:
    """Reject a model that does not predict the target."""
    task = task_of(model)
    target = repr(prepared.target_name)
    if task is not None and task != prepared.task:
        raise TableError(
            f"--task {prepared.task} does not match --model, which was trained for {task}. Leave "
            "out --task, or use another model."
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
    if codes and strangers == found:  # some libraries accept only numbers as classes
        talk.note(
            f"The classes of the model, {_listed(known.tolist())}, are matched with the classes of "
            f"{target} in sorted order. Results are wrong if the model was trained with another "
            "order."
        )
        return
    raise TableError(
        f"--model was not trained on the classes {_listed(strangers)} of the column {target}. Its "
        f"classes are {_listed(known.tolist())}. Use --target to choose the column that the model "
        "predicts, or use another model."
    )


# --- predictions


def own_probabilities(
    model: Any, X: Any, classes: list[str]
) -> tuple[list[str], npt.NDArray[np.float64]] | None:
    """Return the classes of a model, as written in the table, and the predicted probabilities.

    Returns None if the model does not predict probabilities.
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
    """Return the predictions of a model; None if it does not predict numbers."""
    return _ask(model.predict, X).ravel() if _predicts(model, "predict") else None


def _predicts(model: Any, method: str) -> bool:
    """Return whether a model predicts the target of a table itself.

    Boosters of other libraries do not accept tables, and outlier detectors have no target.
    """
    is_other = isinstance(model, BaseEstimator) and task_of(model) is None
    return hasattr(model, "fit") and hasattr(model, method) and not is_other


def _ask(predict: Callable[[Any], Any], X: Any) -> npt.NDArray[np.float64]:
    """Return the predictions of a model, identical in each run."""
    # With several threads, scikit-learn adds up the trees in the order in which they finish,
    # and the rounding differs.
    with joblib.parallel_backend("sequential"):
        return np.asarray(predict(X), dtype=np.float64)


def _listed(names: list[Any]) -> str:
    return shorten([repr(str(name)) for name in names])
