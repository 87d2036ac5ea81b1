"""From a table and options to a fitted proximity, and what the rows predict of each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leafkernel import ForestProximity
from leafkernel.cli._loading import load_model
from leafkernel.cli._models import (
    Encode,
    check_target,
    encoder_of,
    names_of,
    task_of,
)
from leafkernel.cli._options import ForestOptions, Scheme, TableOptions
from leafkernel.cli._output import Talk
from leafkernel.cli.columns import Prepared, prepare
from leafkernel.cli.errors import OptionError
from leafkernel.explorer._judgement import Judgement
from leafkernel.forests._bootstrap import MISSING_VALUES_STRAY
from leafkernel.tables._findings import free_name
from leafkernel.tables._values import as_shown
from leafkernel.tables.files import call, read_file

# Trees for a table of that many rows, and for a larger one.
_TREES, _TREES_OF_MANY, _MANY = 500, 100, 20_000
_CHUNKS = 20
# Schemes that look at out-of-bag trees, and so at the weights with which trees were trained.
_IN_BAG = ("gap", "oob", "oob_separable")


@dataclass(frozen=True)
class Study:
    """A table and the forest that was grown on it.

    Attributes
    ----------
    path : Path
        The file.
    prepared : Prepared
        The table.
    X : {dataframe, ndarray} of shape (n, n_features)
        What the forest was given.
    prox : ForestProximity
        The proximity, fitted.
    judgement : Judgement
        What the rows predict of each other.
    seconds : float or None
        Time that the forest took to grow; None if it was loaded.
    """

    path: Path
    prepared: Prepared
    X: Any
    prox: ForestProximity
    judgement: Judgement
    seconds: float | None

    @property
    def y(self) -> npt.NDArray[Any]:
        """The target."""
        target: npt.NDArray[Any] = self.prepared.target
        return target

    def shown(self, targets: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return targets or predictions as the file has them: dates as dates."""
        return as_shown(targets, self.prepared.target_form)

    @property
    def score(self) -> dict[str, Any]:
        """How well the rows predict each other."""
        return self.judgement.score()

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """What the others predict for each row; None or NaN where they say nothing."""
        found = self.judgement.predicted
        if self.judgement.classes is None:
            return found
        classes = np.array([*self.judgement.classes, None], dtype=object)
        return classes[found]

    def names(self, rows: npt.NDArray[Any] | None = None, prefix: str = "") -> dict[str, Any]:
        """Return the columns that say which rows these are: numbers in the file, and names."""
        rows = np.arange(len(self.y)) if rows is None else rows
        columns: dict[str, Any] = {prefix or "row": self.prepared.rows[rows]}
        if self.prepared.ids is not None:
            columns[f"{prefix}_id" if prefix else "id"] = self.prepared.ids[rows]
        return columns

    def beside(self, frame: pd.DataFrame, rows: npt.NDArray[Any]) -> pd.DataFrame:
        """Return a table of rows with their values beside it, under names that are free."""
        values = self.prepared.shown.iloc[rows].reset_index(drop=True)
        taken, renamed = {*frame, *values}, {}
        for name in values:
            if name in frame:
                renamed[name] = free_name(f"{name} (value)", taken)
                taken.add(renamed[name])
        return pd.concat([frame, values.rename(columns=renamed)], axis=1)

    def similarity(self, scheme: str) -> ForestProximity:
        """Return proximities of the same forest in which each row is also similar to itself."""
        prox = self.prox
        if prox.scheme_.name == scheme and prox.diagonal == "scheme":
            return prox
        return prox.reweigh(scheme, diagonal="scheme", X=self.X)

    def about(self, scheme: str | None = None) -> dict[str, Any]:
        """Return what a JSON document says beside the result.

        ``scheme`` is that of the result, if it is not the one of the score.
        """
        return {
            "table": str(self.path),
            "target": self.prepared.target_name,
            "task": self.prepared.task,
            "rows": len(self.y),
            "features": [str(name) for name in self.prepared.features.columns],
            "trees": self.prox.n_trees_,
            "scheme": scheme or self.prox.scheme_.name,
            "score": self.score,
        }

    def _forest(self) -> str:
        return "random forest" if self.seconds is not None else type(self.prox.forest_).__name__

    def lines(self, scheme: str | None = None) -> dict[str, str]:
        """Return what a person is told of the study, with ``scheme`` as in ``about``."""
        prepared, score = self.prepared, self.score
        n, d = prepared.features.shape
        kind = "numbers" if prepared.task == "regression" else "classes"
        if self.judgement.classes is not None:
            kind = f"{len(self.judgement.classes):,} classes"
        baseline = score.get("baseline")
        beside = f"  ({baseline['label']}: {baseline['text']})" if baseline else ""
        return {
            "table": f"{call(self.path)}: {n:,} rows, {d:,} feature{'s' * (d != 1)}",
            "target": f"{prepared.target_name} ({kind})",
            "forest": f"{self._forest()} of {self.prox.n_trees_:,} trees, proximities: "
            f"{scheme or self.prox.scheme_.name}",
            "score": f"{score['label']} {score['text']}{beside}",
        }


@dataclass(frozen=True)
class Plan:
    """A table that was read, and what the forest takes of it, before any tree is grown.

    Attributes
    ----------
    prepared : Prepared
        The table.
    X : {dataframe, ndarray} of shape (n, n_features)
        What the forest is given.
    encode : callable
        From another table, as it was read, to what the forest takes.
    model : estimator or None
        The model of --model; None: a forest is to be grown.
    """

    prepared: Prepared
    X: Any
    encode: Encode
    model: Any


def begin(talk: Talk, source: TableOptions, forest: ForestOptions) -> Study:
    """Read the table, grow or load the forest, and fit the proximity."""
    return fit(talk, source, forest, plan(talk, source, forest))


def plan(talk: Talk, source: TableOptions, forest: ForestOptions) -> Plan:
    """Read the table, and load the model if there is one."""
    model = None
    if forest.model is not None:
        if forest.trees is not None:
            raise OptionError(
                "--trees cannot be combined with --model: the model is already fitted. Leave one "
                "of the two out."
            )
        talk.step(f"loading {forest.model.name}")
        model = load_model(forest.model, talk, trusted=forest.trust_model)
    prepared = read_table(talk, source, model, seed=forest.seed)
    if model is not None:
        encode = encoder_of(model, prepared, talk)
        check_target(model, prepared, talk)
        return Plan(prepared, encode(None), encode, model)
    fill = _filler(prepared.features, _scheme_of(forest), talk)
    X = fill(prepared.features)
    return Plan(prepared, X, lambda frame: fill(prepared.encode(frame)), None)


def fit(talk: Talk, source: TableOptions, forest: ForestOptions, planned: Plan) -> Study:
    """Grow the forest if none was loaded, and fit the proximity."""
    prepared, X, model, seconds = planned.prepared, planned.X, planned.model, None
    if model is None:
        n_trees = forest.trees or _count_trees(talk, len(prepared.target))
        began = perf_counter()
        model = _grow(talk, prepared, X, n_trees, forest)
        seconds = perf_counter() - began
        talk.step("proximities")
        prox = _fit(model, _scheme_of(forest), X, prepared.target, forest.threads)
    else:
        talk.step("proximities")
        prox = _fit_loaded(talk, model, forest, X, prepared.target)
    talk.step("out-of-bag predictions")
    judgement = Judgement.of(prox, prepared.target)
    return Study(source.table, prepared, X, prox, judgement, seconds)


def _scheme_of(forest: ForestOptions) -> str:
    return "gap" if forest.scheme is None else forest.scheme.value


def _count_trees(talk: Talk, n_rows: int) -> int:
    if n_rows <= _MANY:
        return _TREES
    talk.note(f"{_TREES_OF_MANY} trees are grown because the table is large. Use --trees for more.")
    return _TREES_OF_MANY


def read_table(talk: Talk, source: TableOptions, model: Any = None, *, seed: int = 0) -> Prepared:
    """Read the table and find out what its columns are."""
    talk.step(f"reading {call(source.table)}")
    frame = read_file(
        source.table,
        max_rows=source.max_rows,
        random_state=seed,
        stated=source.stated,
        exact=source.exact,
    )
    task = source.task.value if source.task is not None else task_of(model)
    prepared = prepare(
        frame,
        source.target,
        task=task,
        id_column=source.id_column,
        drop=tuple(source.drop or ()),
        keep=names_of(model) or (),
        kinds=source.kinds,
    )
    for note in prepared.notes:
        talk.note(note)
    return prepared


def _grow(talk: Talk, prepared: Prepared, X: Any, n_trees: int, options: ForestOptions) -> Any:
    """Grow a forest, some trees at a time where somebody watches; the trees are the same."""
    kind = RandomForestClassifier if prepared.task == "classification" else RandomForestRegressor
    forest = kind(n_trees, random_state=options.seed, n_jobs=options.threads)
    talk.step(f"growing {n_trees:,} trees", total=n_trees)
    if not talk.lively:
        return forest.fit(X, prepared.target)
    forest.set_params(warm_start=True)
    for done in np.unique(np.linspace(0, n_trees, _CHUNKS + 1).astype(int)[1:]):
        if done > 0:
            forest.set_params(n_estimators=int(done)).fit(X, prepared.target)
            talk.advance(int(done))
    return forest.set_params(warm_start=False)


def _fit(model: Any, scheme: str, X: Any, y: Any, jobs: int) -> ForestProximity:
    # No row is to count as its own neighbour or witness; with "gap" none does anyway.
    diagonal: Any = "scheme" if scheme == "gap" else "zero"
    return ForestProximity(model, scheme, diagonal=diagonal, n_jobs=jobs).fit(X, y)


def _fit_loaded(talk: Talk, model: Any, options: ForestOptions, X: Any, y: Any) -> ForestProximity:
    if options.scheme is not None:
        return _fit(model, options.scheme.value, X, y, options.threads)
    try:
        return _fit(model, Scheme.gap.value, X, y, options.threads)
    except ValueError as error:
        talk.note(
            "The score uses the scheme kerf, not gap, and is not out of bag. It is too good if the "
            f"model was trained with these rows. The reason: {str(error).rstrip('.')}."
        )
    return _fit(model, Scheme.kerf.value, X, y, options.threads)


def _filler(X: pd.DataFrame, scheme: str, talk: Talk) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what makes the features such that the forest takes them for this scheme."""
    if scheme not in _IN_BAG or not MISSING_VALUES_STRAY or not X.isna().to_numpy().any():
        return lambda features: features
    median = X.median()
    talk.note(
        "Missing values are given to the forest as the column's median: scikit-learn "
        f"{sklearn.__version__} does not send them where they were in training; 1.8 does."
    )
    return lambda features: features.fillna(median)
