"""Impute missing values from similar training samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leafkernel._validation import (
    check_choice,
    check_columns,
    check_count,
    check_same_lengths,
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

    Use it for tables with numbers and categories whose columns depend on each other.

    Imputation starts from the median (numbers) or the mode (categories) of each column. Each
    iteration trains a forest for each column with missing values. The forest predicts the column
    from the other columns and the targets. A missing number gets the mean of the present values,
    weighted by proximity. A missing category gets the category with the largest total proximity.

    .. math:: \hat x_{ij} = \frac{\sum_{k:\, x_{kj} \text{ present}} P_{ik}\, x_{kj}}
                                 {\sum_{k:\, x_{kj} \text{ present}} P_{ik}}

    With the default scheme "gap", these are the predictions of the forest, as in R's missForest.
    The matrix P is not built, and present values are never changed.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The weight scheme, "gap" by default. If it is an unfitted forest or proximity instead, a
        single forest is trained on the targets in each iteration and fills all columns, as in R's
        ``rfImpute``. (The scheme of ``rfImpute`` is "oob".) This is faster than a forest for each
        column, but usually less accurate. See Notes.
    categorical_features : array-like of bool, int or str, default=None
        Categorical columns, as a mask, positions or names. In data frames, columns of text,
        objects, booleans and categories are always categorical.
    category_rule : {"total", "mean"}, default="total"
        How to choose a category. "total" takes the category with the largest total proximity
        (Breiman's weighted frequency). "mean" takes the largest mean proximity over the samples of
        the category, as in ``rfImpute``, which favors rare categories. Ties go to the first
        category.
    max_iter : int, default=5
        Largest number of iterations, in ``fit`` and in ``transform``.
    tol : float, default=1e-3
        Stop when the mean change of the filled values is at most this. The change of a number is
        the difference divided by the standard deviation of the column, and the change of a category
        is 0 or 1. Use 0 to always run ``max_iter`` iterations.
    n_estimators : int, default=100
        Number of trees of each default forest.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forests. All iterations use the same seed, so that they differ only in
        the filled values.

    Attributes
    ----------
    proximity_ : ForestProximity
        The proximity of the last iteration, if ``proximity`` is a forest or a proximity.
    proximities_ : dict of int to ForestProximity
        Otherwise, the proximity that ``transform`` uses for each column with missing values.
    statistics_ : ndarray of object of shape (n_features,)
        Median or mode of each column.
    is_categorical_ : ndarray of bool of shape (n_features,)
        Mask of the categorical columns.
    n_iter_ : int
        Number of iterations of ``fit``.
    changes_ : ndarray of shape (n_iter_,)
        Mean change of the filled values in each iteration, as defined for ``tol``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if X has string column names.

    Notes
    -----
    ``fit_transform(X, y)`` uses the targets of the training samples. ``transform(X)`` treats X as
    new data. It starts from the medians and modes, and uses forests that do not see the targets.
    So the two give different results for the same samples, as scikit-learn's ``TargetEncoder``
    does. The targets influence the filled values of the training samples. Therefore evaluate a
    model on samples that were not used to fit the imputer or the model. If a column of X has
    missing values but was complete in ``fit``, ``transform`` trains a forest for it.

    A single forest for the targets, as in ``rfImpute``, has two weaknesses. First, its trees split
    on filled values: samples that were filled with the mode are routed to samples with this
    category, and keep it. Second, it uses other columns only if they predict the targets.

    A value is missing if it is NaN, None, NA, NaT, or a text such as "NA", "None" or "?". ``fit``
    warns about such texts.

    The output has the type of the input: an array, or a pandas or polars data frame with its types,
    categories and index. Integer columns are filled with whole numbers. So are float columns of
    pandas with missing values and otherwise whole numbers, because pandas converts integers with
    missing values to floats.

    A category that did not occur in ``fit`` is kept, but trees see it as missing. If ``proximity``
    is a forest, a missing value may have no proximity to any sample in which the column is present.
    It gets the median or mode, with a warning. Larger leaves help. Columns with many categories are
    slow. The forest of a column is trained on at most 10,000 samples, drawn at random.

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
    >>> from leafkernel.tasks import ProximityImputer
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
        """Fit the imputer to training samples with missing values.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n, n_features)
            Training samples. Missing values are NaN, None or NA.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets, without missing values.

        Returns
        -------
        ProximityImputer
            The fitted imputer.
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the imputer, and return the training samples with missing values filled in.

        The result differs from ``fit(X, y).transform(X)``, see Notes of the class.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n, n_features)
            Training samples. Missing values are NaN, None or NA.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets, without missing values.

        Returns
        -------
        {ndarray, dataframe} of shape (n, n_features)
            X without missing values.
        """
        return self._completed(*self._fit(X, y))

    def transform(self, X: Any) -> Any:
        """Fill in the missing values of new samples.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (m, n_features)
            Samples, treated as new data. Missing values are NaN, None or NA.

        Returns
        -------
        {ndarray, dataframe} of shape (m, n_features)
            X without missing values.
        """
        check_is_fitted(self, "changes_")
        table = read_table(X, mixed=self.categorical_features is not None, estimator=self)
        check_columns(self, X, reset=False)
        values, missing = self._schema.encode(table)
        rows = np.isnan(values).any(axis=1)  # missing values and unknown categories
        if rows.any():
            values[rows] = self._fill_new(values[rows])
        return self._completed(table, values, missing)

    def _fill_new(self, values: Floats) -> Floats:
        """Return new samples without missing values, shape (m, d)."""
        filler, gaps = self._filler, np.isnan(values)
        filled = np.where(gaps, filler.known.start[: values.shape[1]], values)
        return self._settle(filler.known, filled, gaps, filler.for_new(gaps))[0]

    def _fit(self, X: Any, y: Any) -> tuple[Table, Floats, Mask]:
        """Fit; return the training samples, their values as floats, and the missing mask."""
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
        # Set attributes only now, so that a failed fit does not change an earlier one.
        check_columns(self, X, reset=True)
        for name in ("proximity_", "proximities_"):  # from an earlier fit
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
        """Return the columns (with targets if forests use them as features) and the filler."""
        n_categories = [c.n_categories for c in schema.columns]
        if not self._has_default_forests():
            return values, TargetForest(
                Known.of(values, n_categories, self.category_rule), proximity
            )
        if y is not None:
            check_same_lengths(values, y)
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
                "proximity must not be fitted, because ProximityImputer trains the forest in each "
                f"iteration; got a {type(forest).__name__} that is fitted or cannot be cloned. "
                "Pass sklearn.base.clone(forest), or only a weight scheme such as 'gap'."
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
        """Fill missing values with averages until they converge; return the changes too."""
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
                "any training sample in which the column is present. They get the median or mode "
                "of the column. Use more trees or larger leaves (min_samples_leaf) to avoid this."
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
            f"X has no values in {shorten([schema.columns[j].label for j in empty])}. Drop columns "
            "in which all values are missing."
        )
