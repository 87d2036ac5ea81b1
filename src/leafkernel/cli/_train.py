"""From a table and options to a fitted proximity, and what the rows predict of each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel import ForestProximity
from leafkernel.cli._models import Encode, check_target, encoder_of, load_model, names_of, task_of
from leafkernel.cli._options import ForestOptions, StudyOptions
from leafkernel.cli._output import Talk
from leafkernel.cli.errors import OptionError, TableError
from leafkernel.explorer._judgement import Judgement
from leafkernel.forests._bootstrap import MISSING_VALUES_STRAY
from leafkernel.schemes import find_scheme
from leafkernel.tables._findings import free_name
from leafkernel.tables._values import as_shown
from leafkernel.tables.files import call, read_file
from leafkernel.tables.preparation import Prepared, Rows, prepare
from leafkernel.tasks._scores import explain_scores_of
from leafkernel.tasks._scores import is_boosted as is_boosted_model

# Trees for a table of that many rows, and for a larger one.
_TREES, _TREES_OF_MANY, _MANY = 500, 100, 20_000
_TREES_BOOSTED = 100
_CHUNKS = 20
# Unless --scheme says otherwise; the second one for models without bootstrap.
_SCHEME, _ANY_SCHEME = "gap", "kerf"


@dataclass(frozen=True)
class NewRows(Rows):
    """Rows that the forest was not trained with: their file, and as the forest takes them."""

    path: Path
    X: Any


@dataclass
class Plan:
    """Tables that were read, and what the forest takes of them, before any tree is grown."""

    path: Path  # the file of the table
    prepared: Prepared  # the table
    X: Any  # what the forest is given, of shape (n, n_features)
    new: NewRows | None  # the rows of --new
    model: Any  # that of --model; None: a forest is to be grown

    @property
    def rows(self) -> Rows:
        """The rows that the command is about: those of --new, or the training rows."""
        return self.new or self.prepared


@dataclass
class Study(Plan):
    """A table and the forest that was grown on it."""

    prox: ForestProximity  # fitted
    seconds: float | None  # that the forest took to grow; None if it was loaded

    @cached_property
    def judgement(self) -> Judgement:
        """What the rows predict of each other."""
        return Judgement.of(self.prox, self.y)

    def exact(self, talk: Talk) -> ForestProximity | None:
        """Return the contributions of rows to the scores of a boosted model.

        None if the model is not boosted, or if it is refused, and then a note says why.
        """
        if not is_boosted_model(self.prox):
            return None
        try:
            return explain_scores_of(self.prox)
        except ValueError as error:
            reason = str(error.__cause__ or error).rstrip(".")
            talk.note(
                "The explanation is a vote of similar rows. Which rows push the score of the model "
                f"up and down is not known. The reason: {reason}."
            )
            return None

    @property
    def y(self) -> npt.NDArray[Any]:
        """The target."""
        target: npt.NDArray[Any] = self.prepared.target
        return target

    @property
    def asked(self) -> Any:
        """The rows of --new as the forest takes them; None stands for the training rows."""
        return None if self.new is None else self.new.X

    def shown(self, targets: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return targets or predictions as the file has them: dates as dates."""
        return as_shown(targets, self.prepared.target_column.form)

    def shown_one(self, target: Any) -> Any:
        """Return one target or prediction as people see it: None if missing, or a date."""
        if target is None or pd.isna(target):
            return None
        if self.judgement.classes is not None:
            return target
        shown = self.shown(np.array([target], dtype=np.float64))[0]
        return pd.Timestamp(shown) if isinstance(shown, np.datetime64) else float(shown)

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """What the others predict for each row; None or NaN where they say nothing."""
        found = self.judgement.predicted
        if self.judgement.classes is None:
            return found
        return np.array([*self.judgement.classes, None], dtype=object)[found]

    def no_prediction(self, who: str, them: str) -> str:
        """Say why some training rows have no prediction, given the first words, like "Row 3 has".

        ``them`` is "it" for one row.
        """
        if self.judgement.out_of_bag:
            why = f"no out-of-bag prediction, because every tree was trained with {them}"
            return f"{who} {why}. Use more --trees."
        return f"{who} no prediction, because no other row shares a leaf that counts."

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
        if self.prox.scheme_.name == scheme and self.prox.diagonal == "scheme":
            return self.prox
        return self.prox.reweigh(scheme, diagonal="scheme", X=self.X)

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
            "score": self.judgement.score(),
        }

    def lines(self, scheme: str | None = None) -> dict[str, str]:
        """Return what a person is told of the study, with ``scheme`` as in ``about``."""
        n, d = self.prepared.features.shape
        classes = self.judgement.classes
        kind = "numbers" if classes is None else f"{len(classes):,} classes"
        grown = self.prox.forest_
        is_random = isinstance(grown, (RandomForestClassifier, RandomForestRegressor))
        forest = type(grown if self.model is None else self.model).__name__
        forest = "random forest" if self.model is None and is_random else forest
        return {
            "table": f"{call(self.path)}: {n:,} rows, {d:,} feature{'s' * (d != 1)}",
            "target": f"{self.prepared.target_name} ({kind})",
            "forest": f"{forest} of {self.prox.n_trees_:,} trees, proximities: "
            f"{scheme or self.prox.scheme_.name}",
            "score": self.judgement.line(),
        }


def begin(talk: Talk, options: StudyOptions) -> Study:
    """Read the tables, grow or load the forest, and fit the proximity."""
    return fit(talk, options, plan(talk, options))


def plan(talk: Talk, options: StudyOptions) -> Plan:
    """Read the tables, and load the model if there is one."""
    model = read_model(talk, options)
    prepared = read_table(talk, options, model)
    if model is not None:
        needed, encode = encoder_of(model, prepared, talk)
        check_target(model, prepared, talk)
    else:
        scheme = _SCHEME if options.scheme is None else options.scheme.value
        needed, encode = None, _filler(prepared.features, scheme, talk)
        if is_boosted(options):  # takes missing values, and not every name of a column
            encode = _as_array
    # Before the forest is grown, which may take long.
    path: Path | None = getattr(options, "new", None)
    new = None
    if path is not None:
        rows = _read_new(talk, path, options, prepared, needed)
        new = NewRows(**vars(rows), path=path, X=encode(rows))
    return Plan(options.table, prepared, encode(prepared), new, model)


def read_model(talk: Talk, options: StudyOptions) -> Any:
    """Load the model of --model; None if there is none."""
    if options.model is None:
        return None
    if options.trees is not None:
        raise OptionError(
            "--trees cannot be combined with --model: the model is already fitted. Leave one of "
            "the two out."
        )
    if is_boosted(options):
        raise OptionError(
            "--forest cannot be combined with --model: the model is already fitted. Leave one of "
            "the two out."
        )
    talk.step(f"loading {options.model.name}")
    return load_model(options.model, talk, trusted=options.trust_model)


def fit(talk: Talk, options: StudyOptions, planned: Plan) -> Study:
    """Grow the forest if none was loaded, and fit the proximity."""
    model, X, seconds = planned.model, planned.X, None
    if model is None:
        began = perf_counter()
        if is_boosted(options):
            model = _boost(talk, planned.prepared, X, options)
        else:
            n_trees = options.trees or count_trees(talk, len(X))
            model = _grow(talk, planned.prepared, X, n_trees, options)
        seconds = perf_counter() - began
    talk.step("proximities")
    prox = _fit(talk, model, options, X, planned.prepared.target)
    return Study(**vars(planned), prox=prox, seconds=seconds)


def read_table(talk: Talk, options: StudyOptions, model: Any = None) -> Prepared:
    """Read the table and find out what its columns are."""
    talk.step(f"reading {call(options.table)}")
    frame = read_file(
        options.table,
        max_rows=options.max_rows,
        random_state=options.seed,
        stated=options.stated,
        exact=options.exact,
    )
    return prepare_frame(talk, options, frame, model)


def prepare_frame(
    talk: Talk, options: StudyOptions, frame: Any, model: Any, *, is_sample: bool = False
) -> Prepared:
    """Find out what the columns of a table are, and note it.

    Rows of a sample only grow the forest. Those without a target are compared like all others.
    """
    prepared = prepare(
        frame,
        options.target,
        task=task_of(model) if options.task is None else options.task.value,
        id_column=options.id_column,
        drop=tuple(options.drop or ()),
        keep=names_of(model) or (),
        kinds=options.kinds,
    )
    notes = prepared.notes
    if is_sample:
        notes = tuple(
            note.replace(" left out because ", " not used to grow the forest because ")
            for note in notes
        )
    talk.note(*notes)
    return prepared


def _read_new(
    talk: Talk, path: Path, options: StudyOptions, prepared: Prepared, needed: list[str] | None
) -> Rows:
    """Read the table of --new."""
    talk.step(f"reading {call(path)}")
    frame = read_file(
        path,
        remedy="Give fewer rows at a time with --new.",
        stated=options.stated,
        exact={*options.exact, prepared.id_name},
    )
    if len(frame) == 0:
        raise TableError(f"{call(path)} has names of columns but no rows below them.")
    if path.exists() and options.table.exists() and path.samefile(options.table):
        talk.note(
            f"--new is the training table itself, {call(path)}. Its rows are treated as new, "
            "though the forest was trained with them. Leave --new out to compare each row with the "
            "others."
        )
    try:
        rows = prepared.read(frame, needed)
    except TableError as error:
        raise TableError(f"{call(path)}: {error}") from error
    talk.note(*(f"{call(path)}: {note}" for note in rows.notes))
    return rows


@contextmanager
def taking_rows(new: NewRows | None) -> Iterator[None]:
    """Explain that a model refuses new rows, such as a category that its encoder has not seen."""
    try:
        yield
    except ValueError as error:
        if new is None:
            raise
        raise TableError(f"{call(new.path)}: the model does not take its rows. {error}") from error


def count_trees(talk: Talk, n_rows: int) -> int:
    """Return the number of trees for a table."""
    if n_rows <= _MANY:
        return _TREES
    talk.note(f"{_TREES_OF_MANY} trees are grown because the table is large. Use --trees for more.")
    return _TREES_OF_MANY


def _grow(talk: Talk, prepared: Prepared, X: Any, n_trees: int, options: ForestOptions) -> Any:
    """Grow a forest, some trees at a time where somebody watches; the trees are the same."""
    forest = new_forest(prepared, options)
    if not talk.lively:
        return forest.set_params(n_estimators=n_trees).fit(X, prepared.target)
    for _ in grow_on(talk, forest, X, prepared.target, n_trees):
        pass
    return forest


def is_boosted(options: ForestOptions) -> bool:
    """Return whether --forest asks for a boosted model."""
    return bool(options.forest.value != "random")


def _as_array(rows: Rows) -> Any:
    return rows.features.to_numpy()


def _boost(talk: Talk, prepared: Prepared, X: Any, options: ForestOptions) -> Any:
    """Train a boosted model."""
    n_trees, y = options.trees or _TREES_BOOSTED, prepared.target
    name, is_classes = options.forest.value, prepared.task == "classification"
    seed, threads = options.seed, options.threads
    more: dict[str, Any]
    talk.step(f"training {n_trees:,} trees")
    if name == "hist":
        hist = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
        return hist(max_iter=n_trees, random_state=seed, early_stopping=False).fit(X, y)
    try:
        library: Any = import_module(name)
    except ImportError as error:
        raise OptionError(
            f"--forest {name}: {name} is not installed. Install it with: pip install {name}"
        ) from error
    if name == "lightgbm":
        kind = library.LGBMClassifier if is_classes else library.LGBMRegressor
        more = {"verbose": -1, "deterministic": True, "force_row_wise": True}
        return kind(n_estimators=n_trees, random_state=seed, n_jobs=threads, **more).fit(X, y)
    if name == "xgboost":
        kind = library.XGBClassifier if is_classes else library.XGBRegressor
        coded = np.unique(y, return_inverse=True)[1] if is_classes else y  # it takes no names
        return kind(n_estimators=n_trees, random_state=seed, n_jobs=threads).fit(X, coded)
    kind = library.CatBoostClassifier if is_classes else library.CatBoostRegressor
    more = {"silent": True, "allow_writing_files": False, "boosting_type": "Plain"}
    return kind(iterations=n_trees, random_seed=seed, thread_count=threads, **more).fit(X, y)


def new_forest(prepared: Prepared, options: ForestOptions) -> Any:
    """Return a forest that is to be grown."""
    kind = RandomForestClassifier if prepared.task == "classification" else RandomForestRegressor
    return kind(random_state=options.seed, n_jobs=options.threads)


def grow_on(talk: Talk, forest: Any, X: Any, y: Any, n_trees: int) -> Iterator[int]:
    """Grow the trees that a forest does not have yet, and yield the number of trees in between."""
    talk.step(f"growing {n_trees:,} trees", total=n_trees)
    grown = len(getattr(forest, "estimators_", ()))
    forest.set_params(warm_start=True)
    for done in np.unique(np.linspace(0, n_trees, _CHUNKS + 1).astype(int)).tolist():
        if done > grown:
            forest.set_params(n_estimators=done).fit(X, y)
            talk.advance(done)
            yield done
    forest.set_params(n_estimators=n_trees, warm_start=False)


def _fit(talk: Talk, model: Any, options: ForestOptions, X: Any, y: Any) -> ForestProximity:
    def proximity(scheme: str) -> ForestProximity:
        diagonal = diagonal_of(scheme)
        prox = ForestProximity(model, scheme, diagonal=diagonal, n_jobs=options.threads)
        return prox.fit(X, y)

    if options.scheme is not None:
        return proximity(options.scheme.value)
    try:
        return proximity(_SCHEME)
    except ValueError as error:
        if options.model is None and not is_boosted(options):
            raise
        trained = "because" if options.model is None else "if"
        talk.note(
            f"The score uses the scheme {_ANY_SCHEME}, not {_SCHEME}, and is not out of bag. It is "
            f"too good {trained} the model was trained with these rows. The reason: "
            f"{str(error).rstrip('.')}."
        )
    return proximity(_ANY_SCHEME)


def diagonal_of(scheme: str) -> Any:
    """Return the diagonal for a scheme: no row is to count as its own neighbor or witness."""
    return "scheme" if find_scheme(scheme).predicts else "zero"  # those that predict have zeros


def _filler(X: pd.DataFrame, scheme: str, talk: Talk) -> Encode:
    """Return what makes the features such that the forest takes them for this scheme."""
    asks_out_of_bag = "in_bag" in find_scheme(scheme).needs
    if not (asks_out_of_bag and MISSING_VALUES_STRAY and X.isna().to_numpy().any()):
        return lambda rows: rows.features
    median = X.median()
    talk.note(
        "Missing values are given to the forest as the column's median: scikit-learn "
        f"{sklearn.__version__} does not send them where they were in training; 1.8 does."
    )
    return lambda rows: rows.features.fillna(median)
