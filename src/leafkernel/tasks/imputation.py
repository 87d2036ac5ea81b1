"""Missing values from the values of similar training samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import (
    LeafkernelWarning,
    check_choice,
    check_columns,
    check_count,
    column_names,
    shorten,
    warn,
)
from leafkernel.forests import is_fitted as is_fitted_forest
from leafkernel.forests.wrapped import unfreeze
from leafkernel.proximity import ForestProximity
from leafkernel.schemes import WeightScheme
from leafkernel.tasks._base import ProximityTask, is_fitted
from leafkernel.tasks._known_values import CategoryRule, Floats, Known, Mask
from leafkernel.tasks._tables import Schema, Table, list_columns, read_table

Columns = npt.NDArray[np.intp]


class ProximityImputer(ProximityTask, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Fill in missing values from similar training samples, as R's ``rfImpute`` does.

    Start from each column's median (numbers) or mode (categories). Then, again and again, train the
    forest on the filled table and the targets, and give every missing value the mean of the present
    ones, weighted by proximity, or the category that has most proximity in total:

    .. math:: \hat x_{ij} = \frac{\sum_{k:\, x_{kj} \text{ present}} P_{ik}\, x_{kj}}
                                 {\sum_{k:\, x_{kj} \text{ present}} P_{ik}}

    All columns are filled at once from sums P @ values, so P is never formed. What is present is
    never changed.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from: "gap" on a random forest by default, and without targets
        "uniform" on a :class:`~sklearn.ensemble.RandomTreesEmbedding`, whose trees draw no
        bootstrap and so have no "gap". It is trained anew in every iteration, on an array of
        floats with a number for each category: one that is fitted already is refused. "oob" is what
        ``rfImpute`` takes, at the cost of every pair of samples that share a leaf; for very many
        samples use "gap" or "oob_separable".
    categorical_features : array-like of bool, int or str, default=None
        Columns to take as categories, as a mask, as positions or as names. In data frames, those
        that hold text, objects, booleans or categories always are.
    category_rule : {"total", "mean"}, default="total"
        Which category a missing value gets: that of most proximity in total, Breiman's weighted
        frequency, or that of most on average over its samples, as in ``rfImpute``, which prefers
        rare categories. Ties go to the first category.
    max_iter : int, default=5
        Most iterations, in :meth:`fit` and in :meth:`transform`.
    tol : float, default=1e-3
        Stop when the values that are filled in change by no more than this on average: numbers by
        the difference over the standard deviation of the column's present values, categories by
        0 or 1. Use 0 to always do ``max_iter`` iterations.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest. It is drawn once, so that all iterations grow their trees from
        the same seed and differ only as far as the filled values do.

    Attributes
    ----------
    proximity_ : ForestProximity
        The proximity of the last iteration, trained on the values filled in before it.
    statistics_ : ndarray of object of shape (n_features,)
        Median or mode of each column.
    is_categorical_ : ndarray of bool of shape (n_features,)
        Which columns are categories.
    n_iter_ : int
        Iterations done by fit.
    changes_ : ndarray of shape (n_iter_,)
        How much each iteration changed the values filled in, in the units of ``tol``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where X has string column names.

    Notes
    -----
    ``fit_transform(X, y)`` is what R gives: training samples in their training role, their targets
    used. ``fit(X, y).transform(X)`` takes X as unseen: it starts from the medians and modes, routes
    each sample through the last forest, without any target, and so fills in other values (as
    :class:`~sklearn.preprocessing.TargetEncoder` encodes differently). Its iterations settle near
    where they start if trees split on what is missing. Since y helps to fill in the training
    samples, judge a model by samples that were held out of the fit of both.

    What comes in comes out: arrays, or pandas or polars data frames with their types, categories
    and index. Only integer columns that hold missing values, in fit or in X, become floats, for
    means are no integers. A category that fit has not seen counts as missing on the way through the
    trees, and stays. A missing value without proximity to any sample where the column is present
    gets the median or mode, with a warning: trees can tell by the median itself where values were
    missing, and keep those samples for themselves; larger leaves help. Categories that are many are
    slow: each takes a column of sums.

    References
    ----------
    L. Breiman, *Manual on setting up, using, and understanding random forests v4.0* (2003);
    A. Liaw and M. Wiener, *Classification and regression by randomForest*, R News 2 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from leafkernel.tasks.imputation import ProximityImputer
    >>> X, y = load_iris(return_X_y=True)
    >>> holes = X.copy()
    >>> holes[::10, 2] = np.nan
    >>> filled = ProximityImputer("gap", random_state=0).fit_transform(holes, y)
    >>> bool(np.abs(filled - X)[::10, 2].mean() < 0.4)  # petals are 1.0 to 6.9 cm long
    True
    >>> imputer = ProximityImputer(random_state=0).fit(holes, y)
    >>> imputer.transform([[6.1, 2.8, np.nan, 1.4]]).round(1)
    array([[6.1, 2.8, 4.3, 1.4]])
    """

    proximity_: ForestProximity
    statistics_: npt.NDArray[np.object_]
    is_categorical_: Mask
    n_iter_: int
    changes_: Floats

    def __init__(
        self,
        proximity: Any = None,
        *,
        categorical_features: Any = None,
        category_rule: CategoryRule = "total",
        max_iter: int = 5,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.categorical_features = categorical_features
        self.category_rule = category_rule
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> ProximityImputer:  # type: ignore[override]
        """Learn from training samples with missing values.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n, n_features)
            Training samples, with NaN, None or NA where a value is missing.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets, classes or numbers, none of them missing.

        Returns
        -------
        ProximityImputer
            Itself, fitted.
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from training samples, and return them with their missing values filled in.

        Not what ``fit(X, y).transform(X)`` gives: see Notes in the class.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n, n_features)
            Training samples, with NaN, None or NA where a value is missing.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets, classes or numbers, none of them missing.

        Returns
        -------
        {ndarray, dataframe} of shape (n, n_features)
            X, completed.
        """
        return self._completed(*self._fit(X, y))

    def transform(self, X: Any) -> Any:
        """Fill in the missing values of samples, all taken as unseen.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (m, n_features)
            Samples, with NaN, None or NA where a value is missing.

        Returns
        -------
        {ndarray, dataframe} of shape (m, n_features)
            X, completed.
        """
        check_is_fitted(self, "proximity_")
        table = read_table(X, mixed=self.categorical_features is not None, estimator=self)
        check_columns(self, X, reset=False)
        values, missing = self._schema.encode(table)
        gaps = np.isnan(values)  # what is missing, and categories that fit has not seen
        rows = gaps.any(axis=1)
        filled = np.where(gaps, self._known.start, values)
        if rows.any():
            filled[rows], _ = self._settle(
                self._known,
                filled[rows],
                gaps[rows],
                lambda now, columns: self._known.averages(self.proximity_, columns, now),
            )
        return self._completed(table, filled, missing)

    def _fit(self, X: Any, y: Any) -> tuple[Table, Floats, Mask]:
        """Fit, and return the training samples, their values as floats, and what was missing."""
        check_choice("category_rule", self.category_rule, ("total", "mean"))
        check_count("max_iter", self.max_iter)
        if not self.tol >= 0:
            raise ValueError(f"tol must be at least 0; got {self.tol!r}.")
        proximity = self._unfitted_proximity(y)
        listed = self.categorical_features
        table = read_table(X, mixed=listed is not None, estimator=self)
        schema = Schema.of(table, list_columns(listed, column_names(X), table.shape[1]))
        values, missing = schema.encode(table)
        _refuse_empty_columns(schema, missing)
        known = Known.of(values, [c.n_categories for c in schema.columns], self.category_rule)
        fitted = proximity

        def train_and_average(filled: Floats, columns: Columns) -> Floats:
            nonlocal fitted
            parameters = proximity.get_params(deep=False)
            with warnings.catch_warnings():
                # Of rows without proximity we tell in the end, if values are missing in them.
                warnings.filterwarnings("ignore", ".*in bag in every tree", LeafkernelWarning)
                fitted = type(proximity)(**parameters).fit(filled, y)
            return known.averages(fitted, columns)

        filled = np.where(missing, known.start, values)
        filled, changes = self._settle(known, filled, missing, train_and_average)
        # Only now does anything change here: a fit that fails leaves an earlier one as it was.
        check_columns(self, X, reset=True)
        self.proximity_ = fitted
        self.changes_ = np.array(changes)
        self.n_iter_ = len(changes)
        self.is_categorical_ = np.array([c.categories is not None for c in schema.columns])
        self.statistics_ = np.empty(len(schema.columns), dtype=object)
        for j, column in enumerate(schema.columns):
            self.statistics_[j] = column.decode(known.start[[j]])[0]
        self._schema = schema
        self._known = known
        return table, filled, missing

    def _unfitted_proximity(self, y: Any) -> ForestProximity:
        """Return the proximity to train in every iteration."""
        proximity = self._make_proximity(y)
        forest = unfreeze(proximity.forest)
        if not isinstance(forest, type) and (is_fitted(proximity) or is_fitted_forest(forest)):
            raise ValueError(
                "ProximityImputer trains its forest anew in every iteration, so it needs one that "
                f"is not fitted and has fit and get_params; got {type(forest).__name__}, which is "
                "fitted or lacks them; give sklearn.base.clone(forest), or only a weight scheme."
            )
        if isinstance(self.proximity, (str, WeightScheme)) or self.proximity is None:
            seed = self.random_state
            if not isinstance(seed, (int, np.integer)):
                seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
            forest.set_params(random_state=seed)
        return proximity

    def _settle(
        self,
        known: Known,
        filled: Floats,
        gaps: Mask,
        averages: Callable[[Floats, Columns], Floats],
    ) -> tuple[Floats, list[float]]:
        """Fill the gaps by averages until they change no more; return all changes on the way."""
        columns = np.flatnonzero(gaps.any(axis=0))
        inside = gaps[:, columns]
        changes: list[float] = []
        while len(changes) < self.max_iter and (not changes or changes[-1] > self.tol):
            found = averages(filled, columns)
            without = inside & np.isnan(found)
            found = np.where(without, known.start[columns], found)
            changes.append(known.change(filled[:, columns], found, inside, columns))
            filled = filled.copy()
            filled[:, columns] = np.where(inside, found, filled[:, columns])
        if without.any():
            warn(
                f"{int(without.sum())} of {int(gaps.sum())} missing values have no proximity to "
                "any training sample where the column is present; they get the column's median or "
                "mode. More trees, or larger leaves (min_samples_leaf), make this rare."
            )
        return filled, changes

    def _completed(self, table: Table, filled: Floats, missing: Mask) -> Any:
        written = {}
        for j, column in enumerate(self._schema.columns):
            where = missing[:, j]
            # Integers with gaps in fit become floats in every table, so that types stay the same.
            if where.any() or (column.categories is None and self._known.has_gaps[j]):
                written[j] = (where, column.decode(filled[where, j]))
        return table.completed(written)

    def __sklearn_tags__(self) -> Any:  # scikit-learn >= 1.6
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {"allow_nan": True, "preserves_dtype": [np.float64, np.float32]}


def _refuse_empty_columns(schema: Schema, missing: Mask) -> None:
    empty = np.flatnonzero(missing.all(axis=0))
    if len(empty):
        raise ValueError(
            f"no value is present in {shorten([schema.columns[j].label for j in empty])}, so there "
            "is nothing to learn from; drop what is all missing."
        )
