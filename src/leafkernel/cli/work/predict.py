"""Classes with probabilities and trust, or numbers with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel import LeafkernelWarning
from leafkernel._validation import shorten
from leafkernel.cli._dates import DATE_FORMS
from leafkernel.cli._kinds import quote
from leafkernel.cli._models import own_numbers, own_probabilities
from leafkernel.cli._new import NewRows, taking_rows
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import Study, fit, plan
from leafkernel.cli.columns import Prepared
from leafkernel.cli.commands import Predict
from leafkernel.cli.errors import OptionError, TableError
from leafkernel.cli.files import call
from leafkernel.tasks import ProximityClassifier, ProximityRegressor, trust_scores

Array = npt.NDArray[Any]

_COVERAGE = 0.9
_ROUNDING = 1e-9  # of a quotient like 0.9 / 0.1, which is 9 and a little


@dataclass
class Predictions:
    """What is said of the rows.

    Attributes
    ----------
    predicted : ndarray of shape (m,)
        Classes (None where unknown), or numbers (NaN where unknown).
    columns : dict
        The columns of the result that follow the prediction.
    interval : tuple of ndarray of shape (m,) or None
        The ends of the intervals, NaN where unknown; None for classes.
    lines : dict
        More for the summary.
    about : dict
        More for the JSON document.
    """

    predicted: Array
    columns: dict[str, Any] = field(default_factory=dict)
    interval: tuple[Array, Array] | None = None
    lines: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def predict(talk: Talk, options: Predict) -> None:
    """Predict the rows of another table, or those of the table itself out of bag."""
    check_output(options)
    planned = plan(talk, options)
    share = _check_coverage(planned.prepared, options.coverage)
    study = fit(talk, options, planned)
    target = study.y if study.new is None else study.new.target(study.prepared)
    talk.step("predictions")
    with taking_rows(study.new):
        if study.prepared.task == "classification":
            found = _classes(talk, study)
        else:
            found = _numbers(talk, study, share)
    lines, about = {**study.lines(), **found.lines}, {**study.about(), **found.about}
    about["new"] = None
    if study.new is None:
        _note_unknown(talk, study)
    else:
        said, scores = _score(talk, study, study.new, target, found)
        lines["new rows"] = f"{call(study.new.path)}: {said}"
        about["new"] = {"table": str(study.new.path), "rows": len(study.new.frame), **scores}
    frame = pd.DataFrame(
        {
            **study.names_asked(),
            **({} if target is None else {"target": study.shown(target)}),
            "prediction": study.shown(found.predicted),
            **found.columns,
        }
    )
    talk.result(frame, options, lines=lines, about=about)


def _check_coverage(prepared: Prepared, coverage: float | None) -> float:
    """Return the share that intervals are to cover, or say why there can be no such intervals."""
    if prepared.task == "classification" and coverage is not None:
        raise OptionError(
            f"--coverage is for intervals of numbers, but the target {prepared.target_name!r} "
            "holds classes. Leave --coverage out, or use --task regression if they are numbers."
        )
    share = _COVERAGE if coverage is None else coverage
    n, least = len(prepared.target), ceil(share / (1 - share) - _ROUNDING)
    if prepared.task == "regression" and n < least:
        raise TableError(
            f"--coverage {share:g} needs at least {least:,} rows to calibrate the intervals, but "
            f"the table has {n:,}. Use a lower value, at most {floor(1000 * n / (n + 1)) / 1000}."
        )
    return share


# --- classes


def _classes(talk: Talk, study: Study) -> Predictions:
    classes, shares = _probabilities(talk, study)
    known = ~np.isnan(shares[:, 0])
    best = np.nan_to_num(shares, nan=-1.0).argmax(axis=1)
    predicted = np.array(classes, dtype=object)[best]
    predicted[~known] = None
    found = Predictions(predicted)
    if study.judgement.out_of_bag:
        trust = trust_scores(study.prox, study.asked)
        found.columns["trust"] = np.where(known, trust, np.nan)
    else:
        talk.note(
            "There are no trust scores: they need the scheme gap, and this is "
            f"{study.prox.scheme_.name}."
        )
    found.columns.update({f"probability_{name}": shares[:, j] for j, name in enumerate(classes)})
    return found


def _probabilities(talk: Talk, study: Study) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Return the classes and the probability of each, of shape (m, n_classes)."""
    assert study.judgement.classes is not None
    classes = [str(label) for label in study.judgement.classes]
    if study.new is None:
        return classes, study.judgement.averages
    own = own_probabilities(study.prox.forest_, study.asked, classes)
    if own is not None:
        return own
    _note_vote(talk, study)
    voting = ProximityClassifier(study.prox).fit(study.X, study.y)
    return classes, voting.predict_proba(study.asked)


def _note_vote(talk: Talk, study: Study) -> None:
    talk.note(
        f"{type(study.prox.forest_).__name__} makes no predictions of its own here. Each "
        "prediction is a vote of similar rows, with the proximities of the scheme "
        f"{study.prox.scheme_.name}."
    )


# --- numbers


def _numbers(talk: Talk, study: Study, share: float) -> Predictions:
    regressor = ProximityRegressor(study.prox).fit(study.X, study.y)
    X, is_training = study.asked, study.new is None
    is_calibrated = study.judgement.out_of_bag
    if not is_calibrated:
        talk.note(
            f"The intervals may hold more or less than {100 * share:.4g}% of the targets, because "
            "they are not calibrated. Calibration needs the scheme gap, and this is "
            f"{study.prox.scheme_.name}."
        )
    with _unwarned() if is_training or is_calibrated else nullcontext():
        if is_calibrated:
            low, high = regressor.predict_interval(X, coverage=share).T
        else:
            low, high = regressor.predict_quantiles(X, ((1 - share) / 2, (1 + share) / 2)).T
    own = None if is_training else own_numbers(study.prox.forest_, X)
    if is_training:
        predicted = study.judgement.predicted
    elif own is not None:
        predicted = own
    else:
        _note_vote(talk, study)
        predicted = regressor.predict(X)
    known = ~np.isnan(predicted)
    low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    found = Predictions(
        predicted,
        columns={"low": study.shown(low), "high": study.shown(high)},
        interval=(low, high),
        about={"coverage": share, "calibrated": is_calibrated},
    )
    said = "calibrated out of bag" if is_calibrated else "not calibrated"
    if is_training:
        covered = _covered(study.y[known], low[known], high[known])
        found.about["covered"] = covered
        said += f"; they hold {covered:.1%} of the targets of the training rows"
    else:
        found.about["covered"] = None
    found.lines["intervals"] = f"for {100 * share:.4g}% of the targets, {said}"
    return found


@contextmanager
def _unwarned() -> Iterator[None]:
    """Ignore the warning that rows without any proximity get the mean: here they stay empty."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* have no proximity to any ", LeafkernelWarning)
        yield


def _covered(target: Array, low: Array, high: Array) -> float:
    return float(((low <= target) & (target <= high)).mean()) if len(target) else float("nan")


# --- how good they are


def _note_unknown(talk: Talk, study: Study) -> None:
    n = int((~study.judgement.known).sum())
    if n == 0:
        return
    rows = "1 row has" if n == 1 else f"{n:,} rows have"
    if study.judgement.out_of_bag:
        talk.note(
            f"{rows} no out-of-bag prediction, because every tree was trained with "
            f"{'it' if n == 1 else 'them'}. Use more --trees."
        )
    else:
        talk.note(f"{rows} no prediction, because no other row shares a leaf that counts.")


def _score(
    talk: Talk, study: Study, others: NewRows, target: Array | None, found: Predictions
) -> tuple[str, dict[str, Any]]:
    """Compare predictions of new rows with their targets: in words, and in numbers."""
    m = len(others.frame)
    rows = "1 row" if m == 1 else f"{m:,} rows"
    if target is None:
        return rows, {"with_target": 0}
    known = ~np.asarray(pd.isna(target), dtype=bool)
    n = int(known.sum())
    of = rows if n == m else f"{rows}, {n:,} of them with a target"
    truth, predicted = target[known], found.predicted[known]
    if study.prepared.task == "classification":
        _note_unseen(talk, study, others, truth)
        hits = int((truth == predicted).sum())
        return (
            f"{of}; accuracy {hits / n:.1%}, {hits:,} of {n:,} right",
            {"with_target": n, "accuracy": hits / n},
        )
    error = float(np.sqrt(np.mean((truth - predicted) ** 2)))
    spread = float(truth.std())
    explained = 1 - error**2 / spread**2 if spread > 0 else None
    assert found.interval is not None
    covered = _covered(truth, *(end[known] for end in found.interval))
    score = "" if explained is None else f"R² {explained:.3f}, "
    unit = " days" * (study.prepared.target_form in DATE_FORMS)
    return (
        f"{of}; {score}typical error {error:.4g}{unit}; the intervals hold {covered:.1%} of the "
        "targets",
        {"with_target": n, "r2": explained, "typical_error": error, "covered": covered},
    )


def _note_unseen(talk: Talk, study: Study, others: NewRows, truth: Array) -> None:
    strangers = sorted(set(truth) - set(study.y))
    if strangers:
        n = int(np.isin(truth, strangers).sum())
        talk.note(
            f"{call(others.path)}: {n:,} {'row has' if n == 1 else 'rows have'} a class that is "
            f"not in the training table: {shorten([quote(each) for each in strangers])}. "
            f"{'It counts' if n == 1 else 'They count'} as wrong predictions."
        )
