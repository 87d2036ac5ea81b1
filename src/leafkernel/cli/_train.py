"""Read a table, train or load a forest, and fit the proximities."""

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

# The default number of trees: for tables of up to _MANY rows, and for larger ones.
_TREES, _TREES_OF_MANY, _MANY = 500, 100, 20_000
_TREES_BOOSTED = 100
_CHUNKS = 20
# The default schemes. The second one is for models without bootstrap.
_SCHEME, _ANY_SCHEME = "gap", "kerf"


@dataclass(frozen=True)
class NewRows(Rows):
    """Rows of --new: their file, and their features encoded for the forest."""

    path: Path
    X: Any


@dataclass
class Plan:
    """The tables and the model, before a forest is trained."""

    path: Path  # the file of the table
    prepared: Prepared  # the table
    X: Any  # the features encoded for the forest, of shape (n, n_features)
    new: NewRows | None  # the rows of --new
    model: Any  # the model of --model; None if a forest is to be trained

    @property
    def rows(self) -> Rows:
        """The rows of --new if given, otherwise the training rows."""
        return self.new or self.prepared


@dataclass
class Study(Plan):
    """A table, its forest and the fitted proximities."""

    prox: ForestProximity
    seconds: float | None  # the training time of the forest; None if it was loaded

    @cached_property
    def judgement(self) -> Judgement:
        """The predictions of the training rows from each other."""
        return Judgement.of(self.prox, self.y)

    def exact(self, talk: Talk) -> ForestProximity | None:
        """Return the contributions of training rows to the scores of a boosted model.

        Returns None if the model is not boosted. Returns None and adds a note if the contributions
        cannot be computed.
        """
        if not is_boosted_model(self.prox):
            return None
        try:
            return explain_scores_of(self.prox)
        except ValueError as error:
            reason = str(error.__cause__ or error).rstrip(".")
            talk.note(
                "The explanation lists similar rows. The contributions of training rows to the "
                f"score of this model cannot be computed: {reason}."
            )
            return None

    @property
    def y(self) -> npt.NDArray[Any]:
        """The target."""
        target: npt.NDArray[Any] = self.prepared.target
        return target

    @property
    def asked(self) -> Any:
        """The features of the rows of --new; None for the training rows."""
        return None if self.new is None else self.new.X

    def shown(self, targets: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return targets or predictions in the form of the file, such as dates."""
        return as_shown(targets, self.prepared.target_column.form)

    def shown_one(self, target: Any) -> Any:
        """Return one target or prediction in the form of the file; None if missing."""
        if target is None or pd.isna(target):
            return None
        if self.judgement.classes is not None:
            return target
        shown = self.shown(np.array([target], dtype=np.float64))[0]
        return pd.Timestamp(shown) if isinstance(shown, np.datetime64) else float(shown)

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """The prediction of each training row from the others; None or NaN if there is none."""
        found = self.judgement.predicted
        if self.judgement.classes is None:
            return found
        return np.array([*self.judgement.classes, None], dtype=object)[found]

    def no_prediction(self, who: str, them: str) -> str:
        """Return a sentence on why some training rows have no prediction.

        ``who`` is the start of the sentence, like "Row 3 has". ``them`` is "it" or "them".
        """
        if self.judgement.out_of_bag:
            why = f"no out-of-bag prediction, because every tree was trained with {them}"
            return f"{who} {why}. Use more --trees."
        return f"{who} no prediction, because the proximity to all other rows is zero."

    def beside(self, frame: pd.DataFrame, rows: npt.NDArray[Any]) -> pd.DataFrame:
        """Return a table of rows with their values appended, under unused column names."""
        values = self.prepared.shown.iloc[rows].reset_index(drop=True)
        taken, renamed = {*frame, *values}, {}
        for name in values:
            if name in frame:
                renamed[name] = free_name(f"{name} (value)", taken)
                taken.add(renamed[name])
        return pd.concat([frame, values.rename(columns=renamed)], axis=1)

    def similarity(self, scheme: str) -> ForestProximity:
        """Return proximities of the same forest that include the diagonal."""
        if self.prox.scheme_.name == scheme and self.prox.diagonal == "scheme":
            return self.prox
        return self.prox.reweigh(scheme, diagonal="scheme", X=self.X)

    def about(self, scheme: str | None = None) -> dict[str, Any]:
        """Return the content of the JSON document other than the result.

        ``scheme`` is the scheme of the result if it differs from that of the score.
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
        """Return the lines of the summary. ``scheme`` is the same as in ``about``."""
        n, d = self.prepared.features.shape
        classes = self.judgement.classes
        kind = "numeric" if classes is None else f"{len(classes):,} classes"
        grown = self.prox.forest_
        is_random = isinstance(grown, (RandomForestClassifier, RandomForestRegressor))
        forest = type(grown if self.model is None else self.model).__name__
        forest = "random forest" if self.model is None and is_random else forest
        return {
            "table": f"{call(self.path)}: {n:,} rows, {d:,} feature{'s' * (d != 1)}",
            "target": f"{self.prepared.target_name} ({kind})",
            "forest": f"{forest} with {self.prox.n_trees_:,} trees, scheme "
            f"{scheme or self.prox.scheme_.name}",
            "score": self.judgement.line(),
        }


def begin(talk: Talk, options: StudyOptions) -> Study:
    """Read the tables, train or load the forest, and fit the proximities."""
    return fit(talk, options, plan(talk, options))


def plan(talk: Talk, options: StudyOptions) -> Plan:
    """Read the tables, and load the model of --model."""
    _check_scheme(options)
    model = read_model(talk, options)
    prepared = read_table(talk, options, model)
    if model is not None:
        needed, encode = encoder_of(model, prepared, talk)
        check_target(model, prepared, talk)
    else:
        scheme = _SCHEME if options.scheme is None else options.scheme.value
        needed, encode = None, _filler(prepared.features, scheme, talk)
        if is_boosted(options):  # these accept missing values, but not all column names
            encode = _as_array
    # Check the new rows before the forest is trained, which may take long.
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
            "--trees cannot be combined with --model, because the model is already fitted. Leave "
            "out one of them."
        )
    if is_boosted(options):
        raise OptionError(
            "--forest cannot be combined with --model, because the model is already fitted. Leave "
            "out one of them."
        )
    talk.step(f"loading {options.model.name}")
    return load_model(options.model, talk, trusted=options.trust_model)


def fit(talk: Talk, options: StudyOptions, planned: Plan) -> Study:
    """Train the forest if none was loaded, and fit the proximities."""
    model, X, seconds = planned.model, planned.X, None
    if model is None:
        began = perf_counter()
        if is_boosted(options):
            model = _boost(talk, planned.prepared, X, options)
        else:
            n_trees = options.trees or count_trees(talk, len(X))
            model = _grow(talk, planned.prepared, X, n_trees, options)
        seconds = perf_counter() - began
    talk.step("computing proximities")
    prox = _fit(talk, model, options, X, planned.prepared.target)
    return Study(**vars(planned), prox=prox, seconds=seconds)


def read_table(talk: Talk, options: StudyOptions, model: Any = None) -> Prepared:
    """Read the table and detect the kinds of its columns."""
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
    """Detect the kinds of the columns of a table, and add the notes.

    ``is_sample`` says that the rows are a sample which is only used to train the forest. Rows
    without a target are still compared in this case.
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
            note.replace(" left out because ", " not used to train the forest because ")
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
        remedy="Use fewer rows at a time with --new.",
        stated=options.stated,
        exact={*options.exact, prepared.id_name},
    )
    if len(frame) == 0:
        raise TableError(f"{call(path)} has column names but no rows.")
    if path.exists() and options.table.exists() and path.samefile(options.table):
        talk.note(
            f"--new is the training table {call(path)}. Its rows are treated as new data, although "
            "the forest was trained with them. Leave out --new to compare each row with the "
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
    """Turn an error of a model on new rows, such as an unknown category, into a TableError."""
    try:
        yield
    except ValueError as error:
        if new is None:
            raise
        raise TableError(f"{call(new.path)}: the model rejects these rows. {error}") from error


def count_trees(talk: Talk, n_rows: int) -> int:
    """Return the default number of trees for a table."""
    if n_rows <= _MANY:
        return _TREES
    talk.note(
        f"The forest has only {_TREES_OF_MANY} trees because the table is large. Use --trees for "
        "more."
    )
    return _TREES_OF_MANY


def _grow(talk: Talk, prepared: Prepared, X: Any, n_trees: int, options: ForestOptions) -> Any:
    """Train a forest, in steps if progress is shown. The trees are the same."""
    forest = new_forest(prepared, options)
    if not talk.lively:
        return forest.set_params(n_estimators=n_trees).fit(X, prepared.target)
    for _ in grow_on(talk, forest, X, prepared.target, n_trees):
        pass
    return forest


def is_boosted(options: ForestOptions) -> bool:
    """Return whether --forest names a boosted model."""
    return bool(options.forest.value != "random")


def _check_scheme(options: ForestOptions) -> None:
    """Reject schemes with bootstrap samples for boosted models."""
    if options.model is not None or options.scheme is None or not is_boosted(options):
        return
    scheme = options.scheme.value
    if "in_bag" in find_scheme(scheme).needs:
        raise OptionError(
            f"--scheme {scheme} cannot be combined with --forest {options.forest.value}, because "
            "boosted trees have no bootstrap samples. Use --scheme kerf or --scheme uniform, or "
            "--forest random."
        )


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
        # XGBoost accepts only numbers as classes.
        coded = np.unique(y, return_inverse=True)[1] if is_classes else y
        return kind(n_estimators=n_trees, random_state=seed, n_jobs=threads).fit(X, coded)
    kind = library.CatBoostClassifier if is_classes else library.CatBoostRegressor
    more = {"silent": True, "allow_writing_files": False, "boosting_type": "Plain"}
    return kind(iterations=n_trees, random_seed=seed, thread_count=threads, **more).fit(X, y)


def new_forest(prepared: Prepared, options: ForestOptions) -> Any:
    """Return an unfitted random forest."""
    kind = RandomForestClassifier if prepared.task == "classification" else RandomForestRegressor
    return kind(random_state=options.seed, n_jobs=options.threads)


def grow_on(talk: Talk, forest: Any, X: Any, y: Any, n_trees: int) -> Iterator[int]:
    """Add trees to a forest in steps, and yield the number of trees after each step."""
    talk.step(f"training {n_trees:,} trees", total=n_trees)
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
            f"The score uses the scheme {_ANY_SCHEME} and is not out of bag. It is too optimistic "
            f"{trained} the model was trained with these rows. The scheme {_SCHEME} cannot be "
            f"used: {str(error).rstrip('.')}."
        )
    return proximity(_ANY_SCHEME)


def diagonal_of(scheme: str) -> Any:
    """Return the diagonal for a scheme such that no row is its own neighbor."""
    # Schemes that predict already have a diagonal of zeros.
    return "scheme" if find_scheme(scheme).predicts else "zero"


def _filler(X: pd.DataFrame, scheme: str, talk: Talk) -> Encode:
    """Return the function that fills missing values if this scheme requires it."""
    found = find_scheme(scheme)
    asks_in_bag = "in_bag" in found.needs | found.optional_needs
    if not (asks_in_bag and MISSING_VALUES_STRAY and X.isna().to_numpy().any()):
        return lambda rows: rows.features
    median = X.median()
    talk.note(
        "Missing values are replaced by the median of their column, because scikit-learn "
        f"{sklearn.__version__} can send them to other leaves than in training. Version 1.8 or "
        "later does not."
    )
    return lambda rows: rows.features.fillna(median)
