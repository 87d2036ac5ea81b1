"""Whether a loaded model fits the table, how to encode the table for it, and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from leafkernel._validation import shorten
from leafkernel.cli._output import Talk
from leafkernel.cli.columns import Prepared
from leafkernel.cli.errors import TableError
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._kinds import as_numbers
from leafkernel.tables._values import as_shown, read_feature

Encode = Callable[["pd.DataFrame | None"], Any]


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


def encoder_of(model: Any, prepared: Prepared, talk: Talk) -> Encode:
    """Return what makes a table such as the model takes it, or say why it cannot be.

    The function takes a table as it was read, or None for the one that was prepared.
    """

    def features(frame: pd.DataFrame | None) -> pd.DataFrame:
        return prepared.features if frame is None else prepared.encode(frame)

    names = names_of(model)
    if names is None:
        _check_number(model, prepared)
        return lambda frame: features(frame).to_numpy()
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
        return lambda frame: show_columns(prepared, frame, names)
    coded = [c.name for c in prepared.columns if c.kind == "category" and c.name in names]
    if coded:
        talk.note(
            f"The model is given {_listed(coded)} as numbers, by the order of the values: right "
            "only if it was trained so. A pipeline that encodes categories itself is safer."
        )
    return lambda frame: features(frame)[names]


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
    keys = {_key(label) for label in known.tolist()}
    strangers = [label for label in found if _key(label) not in keys]
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


def name_classes(labels: Iterable[Any], classes: Iterable[str]) -> list[str | None]:
    """Return labels as the table writes them, where they are among its classes; None stays."""
    exact = {str(label): str(label) for label in classes}
    alike = {_key(label): label for label in exact}
    return [
        None if label is None else exact.get(str(label), alike.get(_key(label), str(label)))
        for label in labels
    ]


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


def _key(label: Any) -> str:
    """Return what is the same for a class however it was read: 01, 1 and 1.0, or TRUE and True."""
    text = str(label).strip()
    try:
        return str(float(text))
    except ValueError:
        return text.casefold()


def show_columns(prepared: Prepared, frame: pd.DataFrame | None, names: list[str]) -> pd.DataFrame:
    """Return columns as people see them: in another table read just as in the prepared one."""
    if frame is None:
        return prepared.shown[names]
    found = clean_names(frame.columns, Findings())
    absent = [name for name in names if name not in found]
    if absent:
        raise TableError(
            f"The other table has no column {_listed(absent)}, which the model needs. Its "
            f"columns: {_listed(found)}."
        )
    findings = Findings()
    numbers = {column.name: column for column in prepared.columns if column.kind == "number"}
    shown: dict[str, Any] = {}
    for name in names:
        values, column = read_feature(frame.iloc[:, found.index(name)]), numbers.get(name)
        if column is None:
            shown[name] = pd.Series(values.labels(), dtype=object)
            continue
        values = as_numbers(values, column.form, column.style)
        findings.add_losses(name, values)
        assert values.numbers is not None
        shown[name] = pd.Series(as_shown(values.numbers, column.form))
    table = pd.DataFrame(shown, columns=names)
    table.attrs["notes"] = [*frame.attrs.get("notes", []), *findings.sentences()]
    return table


def _listed(names: list[Any]) -> str:
    return shorten([repr(str(name)) for name in names])
