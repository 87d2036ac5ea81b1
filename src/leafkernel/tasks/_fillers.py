"""Forests for imputation: one for all columns, or one for each column."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leafkernel._targets import refuse_missing, target_of
from leafkernel._validation import LeafkernelWarning
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._known_values import Floats, Known, Mask

Columns = npt.NDArray[np.intp]
Average = Callable[[Floats, Columns], Floats]

# Smaller leaves would fit the noise of a column.
_SAMPLES_IN_A_LEAF = 5

# Largest number of samples to train the forest of a column on. More are slow and help little.
_MOST_SAMPLES = 10_000


class TargetForest:
    """A forest that predicts the targets and fills all columns, as in R's ``rfImpute``.

    Parameters
    ----------
    known : Known
        The present values.
    proximity : ForestProximity
        An unfitted proximity.
    """

    def __init__(self, known: Known, proximity: ForestProximity) -> None:
        self.known = known
        self.proximity = proximity

    def for_training(self, gaps: Mask, y: Any) -> Average:
        """Return a function that trains the forest and averages columns of training samples."""
        parameters = self.proximity.get_params(deep=False)

        def average(filled: Floats, columns: Columns) -> Floats:
            self.proximity = _fit(type(self.proximity)(**parameters), filled, y)
            return self.known.averages(self.proximity, columns)

        return average

    def finish(self, filled: Floats) -> None:
        """Do nothing, because new samples use the last forest."""

    def for_new(self, gaps: Mask) -> Average:
        """Return a function that averages columns of new samples."""
        return lambda filled, columns: self.known.averages(self.proximity, columns, filled)


class ColumnForests:
    """A forest for each column with missing values. It predicts the column from all others.

    A forest does not see the column that it fills. Otherwise its trees would split on previously
    filled values and confirm them.

    Parameters
    ----------
    known : Known
        The present values of the columns.
    n_targets : int
        Number of targets, which are the last columns.
    scheme : str, WeightScheme or callable
        The weight scheme of the proximities.
    forest : dict
        Parameters of the forests.
    """

    def __init__(self, known: Known, n_targets: int, scheme: Any, forest: dict[str, Any]) -> None:
        self.known = known
        self.n_targets = n_targets
        self.scheme = scheme
        self.forest = forest
        self.trained: dict[int, ForestProximity] = {}

    def for_training(self, gaps: Mask, y: Any) -> Average:
        """Return a function that trains the forests and averages columns of training samples."""

        def average(filled: Floats, columns: Columns) -> Floats:
            for j in columns.tolist():
                self.trained[j] = self._train(filled, j)
            return self._averages(self.trained, filled, gaps, columns)

        return average

    def finish(self, filled: Floats) -> None:
        """Train again without the targets, because new samples do not have them."""
        self.filled = filled[:, : filled.shape[1] - self.n_targets]
        if self.n_targets:
            self.trained = {j: self._train(self.filled, j) for j in self.trained}

    def for_new(self, gaps: Mask) -> Average:
        """Return a function that averages columns of new samples."""
        needed = np.flatnonzero(gaps.any(axis=0)).tolist()
        trained = {j: self.trained.get(j) or self._train(self.filled, j) for j in needed}
        return lambda filled, columns: self._averages(trained, filled, gaps, columns)

    def _train(self, filled: Floats, j: int) -> ForestProximity:
        """Return the proximity of a forest that is trained on the present values of column j."""
        rows = self._rows(j)
        kind = RandomForestClassifier if self.known.n_categories[j] else RandomForestRegressor
        forest = kind(min_samples_leaf=_SAMPLES_IN_A_LEAF, **self.forest)
        proximity = ForestProximity(forest, self.scheme, n_jobs=forest.n_jobs)
        return _fit(proximity, _others(filled[rows], j), self.known.values[rows, j])

    def _averages(
        self, trained: dict[int, ForestProximity], filled: Floats, gaps: Mask, columns: Columns
    ) -> Floats:
        """Return averages for the missing values of columns, shape (m, c); NaN elsewhere."""
        found = np.full((len(filled), len(columns)), np.nan)
        for c, j in enumerate(columns.tolist()):
            where = gaps[:, j]
            known = replace(self.known, values=self.known.values[self._rows(j)])
            new = known.averages(trained[j], np.array([j]), _others(filled[where], j))
            found[where, c] = new[:, 0]
        return found

    def _rows(self, j: int) -> Columns:
        """Return the samples that the forest of column j is trained on."""
        rows = np.flatnonzero(~np.isnan(self.known.values[:, j]))
        if len(rows) > _MOST_SAMPLES:
            rng = np.random.default_rng(self.forest["random_state"])
            rows = np.sort(rng.choice(rows, _MOST_SAMPLES, replace=False))
        return rows


def read_target_columns(y: Any) -> tuple[Floats, list[int]]:
    """Return targets as columns of floats, shape (n, c), and the number of classes of each."""
    refuse_missing(y)
    targets = np.asarray(y)
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.ndim != 2:
        raise ValueError(f"y must have one or two dimensions; got shape {targets.shape}.")
    columns, n_classes = [], []
    for column in targets.T:
        if target_of(column) == "classes":
            classes, codes = np.unique(column, return_inverse=True)
            columns.append(codes.astype(np.float64))
            n_classes.append(len(classes))
        else:
            columns.append(column.astype(np.float64))
            n_classes.append(0)
    return np.column_stack(columns), n_classes


def _fit(proximity: ForestProximity, X: Floats, y: Any) -> ForestProximity:
    with warnings.catch_warnings():
        # The imputer itself warns about missing values without proximity.
        warnings.filterwarnings("ignore", ".*in bag in every tree", LeafkernelWarning)
        return proximity.fit(X, y)


def _others(table: Floats, j: int) -> Floats:
    """Return a table without column j, or a constant column if no column is left."""
    others = np.delete(table, j, axis=1)
    return others if others.shape[1] else np.zeros((len(table), 1))
