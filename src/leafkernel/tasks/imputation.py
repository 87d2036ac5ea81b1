"""Missing values from the values of similar training samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import (
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
from leafkernel.tables._frames import Table, read_table
from leafkernel.tables._schema import Schema, list_columns
from leafkernel.tasks._base import ProximityTask, is_fitted, is_scheme, refuse_signed
from leafkernel.tasks._fillers import (
    Average,
    ColumnForests,
    TargetForest,
    read_target_columns,
)
from leafkernel.tasks._known_values import CategoryRule, Floats, Known, Mask


class ProximityImputer(ProximityTask, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Fill in missing values from similar training samples.

    Start from each column's median (numbers) or mode (categories). In each iteration, train a
    forest for each column with missing values: it predicts the column from the other columns and
    the targets, where the column is present. Then give every missing value the mean of the present
    values, weighted by proximity, or the category with the largest total proximity:

    .. math:: \hat x_{ij} = \frac{\sum_{k:\, x_{kj} \text{ present}} P_{ik}\, x_{kj}}
                                 {\sum_{k:\, x_{kj} \text{ present}} P_{ik}}

    With the default scheme "gap" these are the predictions of that forest, as in R's missForest. P
    is never formed, and values that are present are never changed.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The weight scheme of the similarity, "gap" by default. If a forest or a proximity is given
        instead, it is trained on the targets in every iteration, and fills all columns, as R's
        ``rfImpute`` does. It must not be fitted. "oob" is the scheme of ``rfImpute``. One forest is
        faster than one for each column, but usually less accurate: see Notes.
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
        Stop when the filled values change by no more than this on average: numbers by
        the difference over the standard deviation of the column's present values, categories by
        0 or 1. Use 0 to always do ``max_iter`` iterations.
    n_estimators : int, default=100
        Trees of each default forest.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forests. It is drawn once, so that all iterations grow their trees from
        the same seed and differ only as far as the filled values do.

    Attributes
    ----------
    proximity_ : ForestProximity
        The proximity of the last iteration, if a forest or a proximity was given.
    proximities_ : dict of int to ForestProximity
        Otherwise, for each column with missing values, the proximity that ``transform`` uses.
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
    ``fit_transform(X, y)`` uses the targets of the training samples. ``transform(X)`` treats X as
    new data: it starts from the medians and modes, and uses forests that do not see the targets. So
    it fills in other values (as :class:`~sklearn.preprocessing.TargetEncoder` encodes differently).
    Since y helps to fill in the training samples, judge a model by samples that were held out of
    the fit of both. If a column was complete in fit but is missing in X, ``transform`` trains its
    forest.

    A single forest for the targets, as in ``rfImpute``, has two weaknesses. Its trees split on the
    filled values, so samples whose category was filled with the mode are sent to the samples that
    have it, and keep it. And it looks at other columns only as far as they predict the targets.

    A value is missing if it is NaN, None, NA or NaT, or text that stands for it, such as "NA",
    "None" or "?". :meth:`fit` warns about such text.

    The output has the type of the input: arrays, or pandas or polars data frames with their types,
    categories and index. Columns of integers are filled with whole numbers. So are columns of
    floats in pandas that have gaps and otherwise whole numbers, because pandas makes floats of
    integers with gaps. A category that fit has not seen is
    treated as missing when it is passed through the trees, and stays. With a given forest, a
    missing value may have no proximity to any sample where the column is present. It gets the
    median or mode, with a warning; larger leaves help. Columns with many categories are slow: each
    category takes a column of sums. A forest for a column learns from at most 10,000 samples, drawn
    at random.

    References
    ----------
    L. Breiman, *Manual on setting up, using, and understanding random forests v4.0* (2003);
    A. Liaw and M. Wiener, *Classification and regression by randomForest*, R News 2 (2002);
    D. J. Stekhoven and P. Bühlmann, *MissForest: non-parametric missing value imputation for
    mixed-type data*, Bioinformatics 28 (2012).

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
    array([[6.1, 2.8, 4.7, 1.4]])
    """

    _default_unsupervised_scheme = "gap"  # of the forests for columns, which have a target

    proximity_: ForestProximity
    proximities_: dict[int, ForestProximity]
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
        n_estimators: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.categorical_features = categorical_features
        self.category_rule = category_rule
        self.max_iter = max_iter
        self.tol = tol
        self.n_estimators = n_estimators
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
        check_is_fitted(self, "changes_")
        table = read_table(X, mixed=self.categorical_features is not None, estimator=self)
        check_columns(self, X, reset=False)
        values, missing = self._schema.encode(table)
        rows = np.isnan(values).any(axis=1)  # missing values, and categories unknown to fit
        if rows.any():
            values[rows] = self._fill_new(values[rows])
        return self._completed(table, values, missing)

    def _fill_new(self, values: Floats) -> Floats:
        """Return new samples, shape (m, d), without gaps."""
        filler, gaps = self._filler, np.isnan(values)
        filled = np.where(gaps, filler.known.start[: values.shape[1]], values)
        return self._settle(filler.known, filled, gaps, filler.for_new(gaps))[0]

    def _fit(self, X: Any, y: Any) -> tuple[Table, Floats, Mask]:
        """Fit, and return the training samples, their values as floats, and what was missing."""
        check_choice("category_rule", self.category_rule, ("total", "mean"))
        check_count("max_iter", self.max_iter)
        if not self.tol >= 0:
            raise ValueError(f"tol must be at least 0; got {self.tol!r}.")
        check_count("n_estimators", self.n_estimators)
        proximity = self._unfitted_proximity(y)
        listed = self.categorical_features
        table = read_table(X, mixed=listed is not None, estimator=self)
        schema = Schema.of(table, list_columns(listed, column_names(X), table.shape[1]))
        values, missing = schema.encode(table)
        _refuse_empty_columns(schema, missing)
        values, filler = self._make_filler(proximity, values, schema, y)
        known, gaps = filler.known, np.isnan(values)
        average = filler.for_training(gaps, y)
        filled, changes = self._settle(known, np.where(gaps, known.start, values), gaps, average)
        filler.finish(filled)
        # Only now does anything change here: a fit that fails leaves an earlier one as it was.
        check_columns(self, X, reset=True)
        for name in ("proximity_", "proximities_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if isinstance(filler, TargetForest):
            self.proximity_ = filler.proximity
        else:
            self.proximities_ = filler.trained
        self._filler = filler
        self.changes_ = np.array(changes)
        self.n_iter_ = len(changes)
        self.is_categorical_ = np.array([c.categories is not None for c in schema.columns])
        self.statistics_ = np.empty(len(schema.columns), dtype=object)
        for j, column in enumerate(schema.columns):
            self.statistics_[j] = column.decode(known.start[[j]])[0]
        self._schema = schema
        return table, filled[:, : len(schema.columns)], missing

    def _make_filler(
        self, proximity: ForestProximity, values: Floats, schema: Schema, y: Any
    ) -> tuple[Floats, TargetForest | ColumnForests]:
        """Return the columns, with targets if forests take them as such, and what fills them."""
        n_categories = [c.n_categories for c in schema.columns]
        if not self._has_default_forests():
            return values, TargetForest(
                Known.of(values, n_categories, self.category_rule), proximity
            )
        if y is not None:
            check_consistent_length(values, y)
            targets, n_classes = read_target_columns(y)
            values, n_categories = np.hstack([values, targets]), [*n_categories, *n_classes]
        n_targets = len(n_categories) - len(schema.columns)
        chosen = proximity.forest.get_params(deep=False)
        forest = {name: chosen[name] for name in ("n_jobs", "random_state")}
        forest["n_estimators"] = self.n_estimators
        known = Known.of(values, n_categories, self.category_rule)
        return values, ColumnForests(known, n_targets, proximity.weight_scheme, forest)

    def _figures(self) -> dict[str, str]:
        if not hasattr(self, "changes_"):
            return {}
        return {"iterations": f"{self.n_iter_}", **super()._figures()}

    def _has_default_forests(self) -> bool:
        return self.proximity is None or is_scheme(self.proximity)

    def _unfitted_proximity(self, y: Any) -> ForestProximity:
        """Return the proximity to train in every iteration."""
        proximity = self._make_proximity(y)
        refuse_signed(proximity, type(self).__name__)
        forest = unfreeze(proximity.forest)
        if not isinstance(forest, type) and (is_fitted(proximity) or is_fitted_forest(forest)):
            raise ValueError(
                "ProximityImputer trains its forest anew in every iteration, so it needs one that "
                f"is not fitted and has fit and get_params; got {type(forest).__name__}, which is "
                "fitted or lacks them; give sklearn.base.clone(forest), or only a weight scheme."
            )
        if self._has_default_forests():
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
        average: Average,
    ) -> tuple[Floats, list[float]]:
        """Fill the gaps by averages until they change no more; return all changes on the way."""
        columns = np.flatnonzero(gaps.any(axis=0))
        inside = gaps[:, columns]
        changes: list[float] = []
        while len(changes) < self.max_iter and (not changes or changes[-1] > self.tol):
            found = average(filled, columns)
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
            if where.any():
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
