"""Models from files: what may be loaded, and whether it fits the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import joblib
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from leafkernel._validation import shorten
from leafkernel.cli._options import OptionError
from leafkernel.cli._output import Talk
from leafkernel.cli._skops import load_skops
from leafkernel.cli.columns import Prepared
from leafkernel.cli.errors import FileError, TableError
from leafkernel.forests import is_fitted

Encode = Callable[["pd.DataFrame | None"], Any]

_PICKLES = (".joblib", ".pkl", ".pickle")


def load_model(path: Path, *, trusted: bool) -> Any:
    """Load a fitted model.

    Parameters
    ----------
    path : Path
        A file of skops, or of joblib or pickle.
    trusted : bool
        Whether the user said that code from the file may run.

    Returns
    -------
    estimator
        The model.
    """
    suffix = path.suffix.lower()
    if suffix not in (".skops", *_PICKLES):
        raise OptionError(
            f"--model {path}: expected a file that ends in .skops, .joblib, .pkl or .pickle; got "
            f"{suffix or 'no ending'}."
        )
    if suffix in _PICKLES and not trusted:
        raise OptionError(
            f"--model {path}: loading this file runs code that is in it. If it comes from someone "
            "you trust, add --trust-model; or save the model with skops, whose files are checked."
        )
    if not path.is_file():
        raise FileError(f"--model {path}: there is no such file.")
    model = load_skops(path, trusted=trusted) if suffix == ".skops" else _load_pickle(path)
    if not hasattr(model, "fit") or not is_fitted(model):
        raise TableError(
            f"--model {path} holds {type(model).__name__}, which is no fitted model; save one "
            "after its fit."
        )
    return model


def _load_pickle(path: Path) -> Any:
    try:
        return joblib.load(path)
    except Exception as error:  # whatever code from the file may raise
        raise FileError(
            f"--model {path} could not be loaded ({type(error).__name__}: {error}); save it again "
            "with joblib.dump, with the versions of the libraries that are installed here."
        ) from error


def task_of(model: Any) -> Literal["classification", "regression"] | None:
    """Return what a model predicts, where it says so."""
    if not isinstance(model, BaseEstimator):
        return None
    if is_classifier(model):
        return "classification"
    return "regression" if is_regressor(model) else None


def encoder_of(model: Any, prepared: Prepared, talk: Talk) -> Encode:
    """Return what makes a table such as the model takes it, or say why it cannot be.

    The function takes a table as it was read, or None for the one that was prepared.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        _check_number(model, prepared)
        return lambda frame: _features(prepared, frame).to_numpy()
    # A pipeline encodes categories itself, and so wants them as they are in the file.
    raw = hasattr(model, "steps") or hasattr(model, "best_estimator_")
    names = [str(name) for name in names]
    _check_names(names, prepared.shown if raw else prepared.features)
    unused = [str(name) for name in prepared.features.columns if name not in names]
    if unused:
        talk.note(f"The model does not use {_listed(unused)}.")
    if raw:
        return lambda frame: (prepared.shown if frame is None else frame)[names]
    coded = [c.name for c in prepared.columns if c.kind == "category" and c.name in names]
    if coded:
        talk.note(
            f"The model is given {_listed(coded)} as numbers, by the order of the values: right "
            "only if it was trained so. A pipeline that encodes categories itself is safer."
        )
    return lambda frame: _features(prepared, frame)[names]


def _features(prepared: Prepared, frame: pd.DataFrame | None) -> pd.DataFrame:
    return prepared.features if frame is None else prepared.encode(frame)


def _check_names(names: list[str], table: pd.DataFrame) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise TableError(
            f"the model was trained with {_listed(missing)}, which the table has not, or not as a "
            f"feature; it has {_listed(list(table.columns))}."
        )


def _check_number(model: Any, prepared: Prepared) -> None:
    found = prepared.features.shape[1]
    expected = getattr(model, "n_features_in_", found)
    if expected != found:
        raise TableError(
            f"the model was trained with {expected} features, but the table has {found} "
            f"({_listed(list(prepared.features.columns))}); leave columns out with --drop."
        )


def _listed(names: list[Any]) -> str:
    return shorten([repr(str(name)) for name in names])
