"""Loading fitted models from files."""

from __future__ import annotations

import re
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from leafkernel.cli._output import Talk
from leafkernel.cli.errors import CommandError, FileError, OptionError, TableError
from leafkernel.forests import is_fitted

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
