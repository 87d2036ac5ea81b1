"""The ``predict`` command."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel import LeafkernelWarning
from leafkernel._validation import shorten
from leafkernel.cli._models import own_numbers, own_probabilities
from leafkernel.cli._output import Talk
from leafkernel.cli._train import NewRows, Study, fit, plan, taking_rows
from leafkernel.cli.commands import Predict
from leafkernel.cli.errors import OptionError, TableError
from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._missing import quote
from leafkernel.tables.files import call
from leafkernel.tables.preparation import Prepared
from leafkernel.tasks import ProximityClassifier, ProximityRegressor, trust_scores

Array = npt.NDArray[Any]

_COVERAGE = 0.9
_ROUNDING = 1e-9  # tolerance for quotients like 0.9 / 0.1, which is slightly above 9


@dataclass
class Predictions:
    """Predictions, with further columns and texts for the output."""

    predicted: Array  # classes (None if unknown) or numbers (NaN if unknown)
    columns: dict[str, Any] = field(default_factory=dict)  # columns after the prediction
    interval: tuple[Array, Array] | None = None  # both ends, NaN if unknown; None for classes
    lines: dict[str, str] = field(default_factory=dict)  # further lines of the summary
    about: dict[str, Any] = field(default_factory=dict)  # further content of the JSON document


def predict(talk: Talk, options: Predict) -> None:
    """Predict the rows of --new, or the rows of the table out of bag."""
    planned = plan(talk, options)
    share = _check_coverage(planned.prepared, options.coverage)
    study = fit(talk, options, planned)
    target = study.rows.target
    talk.step("predictions")
    with taking_rows(study.new):
        is_classes = study.prepared.task == "classification"
        found = _classes(talk, study) if is_classes else _numbers(talk, study, share)
    if study.new is None:
        n = int((~study.judgement.known).sum())
        if n:
            who, them = ("1 row has", "it") if n == 1 else (f"{n:,} rows have", "them")
            talk.note(study.no_prediction(who, them))
    else:
        _score(talk, study, study.new, found)
    frame = pd.DataFrame(
        {
            **study.rows.names(),
            **({} if target is None else {"target": study.shown(target)}),
            "prediction": study.shown(found.predicted),
            **found.columns,
        }
    )
    lines, about = {**study.lines(), **found.lines}, {**study.about(), "new": None, **found.about}
    talk.result(frame, options, lines=lines, about=about)


def _check_coverage(prepared: Prepared, coverage: float | None) -> float:
    """Return the coverage of the intervals, or raise an error if it is not possible."""
    if prepared.task == "classification" and coverage is not None:
        raise OptionError(
            f"--coverage is only for numeric targets, but the target {prepared.target_name!r} has "
            "classes. Leave out --coverage, or use --task regression if the classes are numbers."
        )
    share = _COVERAGE if coverage is None else coverage
    n, least = len(prepared.target), ceil(share / (1 - share) - _ROUNDING)
    if prepared.task == "regression" and n < least:
        raise TableError(
            f"--coverage {share:g} needs at least {least:,} rows to calibrate the intervals, but "
            f"the table has {n:,}. Use a lower value, at most {floor(1000 * n / (n + 1)) / 1000}."
        )
    return share


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
            "There are no trust scores, because they require the scheme gap. The scheme here is "
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
        f"{type(study.prox.forest_).__name__} does not predict this target itself. Each prediction "
        f"is an average over similar rows, weighted by their proximities (scheme "
        f"{study.prox.scheme_.name})."
    )


def _numbers(talk: Talk, study: Study, share: float) -> Predictions:
    regressor = ProximityRegressor(study.prox).fit(study.X, study.y)
    X, is_training = study.asked, study.new is None
    is_calibrated = study.judgement.out_of_bag
    if not is_calibrated:
        talk.note(
            f"The intervals may contain more or less than {100 * share:.4g}% of the targets, "
            "because they are not calibrated. Calibration requires the scheme gap. The scheme here "
            f"is {study.prox.scheme_.name}."
        )
    with warnings.catch_warnings():
        if is_training or is_calibrated:  # rows without any proximity get no interval here
            warnings.filterwarnings("ignore", ".* have no proximity to any ", LeafkernelWarning)
        if is_calibrated:
            low, high = regressor.predict_interval(X, coverage=share).T
        else:
            low, high = regressor.predict_quantiles(X, ((1 - share) / 2, (1 + share) / 2)).T
    own = study.judgement.predicted if is_training else own_numbers(study.prox.forest_, X)
    if own is None:
        _note_vote(talk, study)
        own = regressor.predict(X)
    known = ~np.isnan(own)
    low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    said, covered = "calibrated out of bag" if is_calibrated else "not calibrated", None
    if is_training:
        covered = _covered(study.y[known], low[known], high[known])
        said += f"; they contain {covered:.1%} of the targets of the training rows"
    return Predictions(
        own,
        columns={"low": study.shown(low), "high": study.shown(high)},
        interval=(low, high),
        lines={"intervals": f"for {100 * share:.4g}% of the targets, {said}"},
        about={"coverage": share, "calibrated": is_calibrated, "covered": covered},
    )


def _covered(target: Array, low: Array, high: Array) -> float:
    return float(((low <= target) & (target <= high)).mean()) if len(target) else float("nan")


def _score(talk: Talk, study: Study, new: NewRows, found: Predictions) -> None:
    """Compare the predictions of new rows with their targets, and add the scores."""
    m, target = len(new.rows), new.target
    said = f"{call(new.path)}: {m:,} row{'s' * (m != 1)}"
    known = np.zeros(m, dtype=bool) if target is None else ~np.asarray(pd.isna(target), dtype=bool)
    n = int(known.sum())
    scores: dict[str, Any] = {"table": str(new.path), "rows": m, "with_target": n}
    if target is not None:
        said += f", {n:,} of them with a target" * (n < m)
        truth, predicted = target[known], found.predicted[known]
        if found.interval is None:
            _note_unseen(talk, study, new, truth)
            hits = int((truth == predicted).sum())
            scores["accuracy"] = hits / n
            said += f"; accuracy {hits / n:.1%}, {hits:,} of {n:,} right"
        else:
            error, spread = float(np.sqrt(np.mean((truth - predicted) ** 2))), float(truth.std())
            explained = 1 - error**2 / spread**2 if spread > 0 else None
            covered = _covered(truth, *(end[known] for end in found.interval))
            scores |= {"r2": explained, "typical_error": error, "covered": covered}
            said += "; " if explained is None else f"; R² {explained:.3f}, "
            days = " days" * (study.prepared.target_column.form in DATE_FORMS)
            said += f"typical error {error:.4g}{days}"
            said += f"; the intervals contain {covered:.1%} of the targets"
    found.lines["new rows"], found.about["new"] = said, scores


def _note_unseen(talk: Talk, study: Study, new: NewRows, truth: Array) -> None:
    strangers = sorted(set(truth) - set(study.y))
    if strangers:
        n = int(np.isin(truth, strangers).sum())
        talk.note(
            f"{call(new.path)}: {n:,} {'row has' if n == 1 else 'rows have'} a class that is "
            f"not in the training table: {shorten([quote(each) for each in strangers])}. "
            f"{'It counts as a wrong prediction' if n == 1 else 'They count as wrong predictions'}."
        )
