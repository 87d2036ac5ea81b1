"""ProximityImputer: R's rfImpute, new samples, tables of mixed types, estimator checks."""

import pickle
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.tasks import _fillers, _known_values
from leafkernel.tasks._known_values import Known
from leafkernel.tasks.imputation import ProximityImputer

# Enough trees, and leaves large enough, that every missing value has proximity to some present one.
FOREST = RandomForestClassifier(30, min_samples_leaf=2, random_state=0)


def with_scheme(scheme, forest=FOREST, **options):
    return ProximityImputer(ForestProximity(forest, scheme, dtype=np.float64), **options)


@pytest.fixture
def holes(iris, rng):
    """Iris with a fifth of its values missing, and a fifth column of five categories."""
    X, y = iris
    X = np.column_stack([X, rng.integers(0, 3, len(X)) + y])
    return np.where(rng.random(X.shape) < 0.2, np.nan, X), y


@pytest.fixture
def frame(table):
    """The mixed table, with holes in every column and every type of them, and classes."""
    X, y = table
    X = X.assign(
        text=np.where(X["age"] > 1.5, "old", "new"),
        count=pd.array(np.arange(120) % 7, dtype="Int64"),
        flag=pd.array(X["age"] > 1, dtype="boolean"),
        ratio=pd.array(X["age"] / 2, dtype="Float32"),
        small=X["age"].astype(np.float32),
        whole=np.arange(120),
        thing=[("a", 1) if k % 3 else "b" for k in range(120)],
    )
    X["text"] = X["text"].astype("string")
    X["thing"] = X["thing"].astype(object)
    for k, name in enumerate(X.columns.drop("whole")):
        X.loc[X.index[k :: 9 + k], name] = None if name == "thing" else pd.NA
    X.index = [f"row {k}" for k in range(120)]
    return X, (y > np.median(y)).astype(int)


def present(X):
    return ~np.isnan(X)


def rf_impute(X, y, scheme, categorical, n_iter, rule="total"):
    """R's loop, over rows and columns, with the whole matrix."""
    filled = X.copy()
    start = []
    for j, column in enumerate(X.T):
        values = column[present(column)]
        if j in categorical:
            levels, counts = np.unique(values, return_counts=True)
            start.append(levels[counts.argmax()])
        else:
            start.append(np.median(values))
        filled[np.isnan(column), j] = start[j]
    for _ in range(n_iter):
        P = ForestProximity(clone(FOREST), scheme, dtype=np.float64).fit(filled, y).proximity()
        P = P.toarray()
        for i, j in np.argwhere(np.isnan(X)):
            rows = np.flatnonzero(present(X[:, j]))
            weights, values = P[i, rows], X[rows, j]
            if weights.sum() == 0:
                filled[i, j] = start[j]
            elif j in categorical:
                levels = np.unique(values)
                average = np.mean if rule == "mean" else np.sum
                totals = [average(weights[values == level]) for level in levels]
                filled[i, j] = levels[np.argmax(totals)]
            else:
                filled[i, j] = (weights * values).sum() / weights.sum()
    return filled


@pytest.mark.parametrize("rule", ["total", "mean"])
@pytest.mark.parametrize("scheme", ["gap", "oob", "uniform", "kerf"])
def test_equals_an_explicit_loop(holes, scheme, rule):
    X, y = holes
    expected = rf_impute(X, y, scheme, {4}, 3, rule)
    imputer = with_scheme(scheme, max_iter=3, tol=0, categorical_features=[4], category_rule=rule)
    assert_allclose(imputer.fit_transform(X, y), expected, rtol=1e-9)
    assert imputer.n_iter_ == len(imputer.changes_) == 3


def test_equals_an_explicit_loop_for_new_samples(holes, iris):
    X, y = holes
    new = np.column_stack([iris[0][:20] + 0.05, np.ones(20)])
    new[::2, 2] = np.nan
    new[::3, 4] = np.nan
    imputer = with_scheme("gap", categorical_features=[4], max_iter=2, tol=0).fit(X, y)
    filled = np.where(np.isnan(new), [*map(float, imputer.statistics_)], new)
    for _ in range(2):
        P = imputer.proximity_.proximity(filled).toarray()
        for i, j in np.argwhere(np.isnan(new)):
            rows = np.flatnonzero(present(X[:, j]))
            levels = np.unique(X[rows, j])
            if j == 4:
                totals = [P[i, rows][X[rows, j] == level].sum() for level in levels]
                filled[i, j] = levels[np.argmax(totals)]
            else:
                filled[i, j] = np.average(X[rows, j], weights=P[i, rows])
    assert_allclose(imputer.transform(new), filled, rtol=1e-9)


def test_equals_r(tmp_path, rng):
    """From R's own leaves and draws, one iteration of R's rfImpute."""
    has_r = (
        shutil.which("Rscript")
        and not subprocess.run(
            ["Rscript", "-e", "library(randomForest)"], capture_output=True, check=False
        ).returncode
    )
    if not has_r:
        pytest.skip("R's randomForest is not installed")
    script = f"""
    suppressMessages(library(randomForest)); setwd("{tmp_path.as_posix()}"); set.seed(1)
    x <- iris[, 1:4]; x$size <- factor(ifelse(x$Sepal.Length + rnorm(150) > 6, "a", "b"))
    for (j in 1:5) x[sample(150, 30), j] <- NA
    invisible(capture.output({{
      set.seed(2); imputed <- rfImpute(x, iris$Species, iter=1, ntree=60)
      set.seed(2); filled <- na.roughfix(x)
      forest <- randomForest(filled, iris$Species, ntree=60, proximity=TRUE, keep.inbag=TRUE)
    }}))
    coded <- function(t) {{ t$size <- as.integer(t$size) - 1; t }}
    save <- function(t, name) write.table(t, name, row.names=FALSE, col.names=FALSE, na="nan")
    save(coded(x), "x"); save(coded(imputed[, -1]), "imputed"); save(forest$inbag, "in_bag")
    save(attr(predict(forest, filled, nodes=TRUE), "nodes"), "leaves")
    """
    subprocess.run(["Rscript", "-e", script], check=True, capture_output=True)
    x, imputed, in_bag, leaves = (
        np.loadtxt(tmp_path / name) for name in ("x", "imputed", "in_bag", "leaves")
    )
    prox = ForestProximity.from_leaves(
        leaves.astype(int), in_bag=in_bag, weight_scheme="oob", dtype=np.float64
    )
    found = Known.of(x, [0, 0, 0, 0, 2], "mean").averages(prox, np.arange(5))
    assert np.isnan(x).sum() == 150
    assert_allclose(np.where(np.isnan(x), found, x), imputed, rtol=1e-5)


masks = st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=25, max_size=25)


@settings(max_examples=12)
@given(masks, st.sampled_from(["gap", "oob", "uniform", "columns", None]))
@pytest.mark.filterwarnings("ignore:.*missing values have no proximity")
def test_any_mask(mask, scheme):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (25, 3)).astype(float)
    X[:, 1] += 1e6
    missing = np.array(mask)
    missing[0] = False  # something is present in each column
    holes = np.where(missing, np.nan, X)
    forest = RandomForestClassifier(5, random_state=0)
    embedding = RandomTreesEmbedding(5, random_state=0)
    proximity = ForestProximity(forest, scheme or "uniform") if scheme != "columns" else None
    if scheme is None:
        proximity.set_params(forest=embedding)
    imputer = ProximityImputer(
        proximity, categorical_features=[2], max_iter=2, n_estimators=5, random_state=0
    )
    y = np.arange(25) % 3 if scheme else None
    for filled in (imputer.fit_transform(holes, y), imputer.transform(holes)):
        assert_array_equal(filled[~missing], X[~missing])
        low, high = np.nanmin(holes, axis=0), np.nanmax(holes, axis=0)
        assert ((filled >= low - 1e-6) & (filled <= high + 1e-6)).all()
        assert set(filled[:, 2]) <= set(holes[~missing[:, 2], 2])


def test_better_than_the_median(iris, rng):
    X, y = iris
    missing = rng.random(X.shape) < 0.2
    holes = np.where(missing, np.nan, X)
    imputer = with_scheme("gap")
    error = np.abs(imputer.fit_transform(holes, y) - X)[missing].mean()
    start = np.abs(np.nanmedian(holes, axis=0) - X)[missing].mean()
    assert error < 0.6 * start
    assert np.abs(imputer.transform(holes) - X)[missing].mean() < 0.7 * start


def test_stops_when_little_changes(holes):
    X, y = holes
    first = with_scheme("gap", tol=1e9).fit(X, y)
    assert first.n_iter_ == 1
    full = with_scheme("gap", tol=0, max_iter=6).fit(X, y)
    assert_allclose(full.changes_[0], first.changes_[0])
    assert full.changes_[-1] < 0.2 * full.changes_[0]
    until = with_scheme("gap", tol=full.changes_[2], max_iter=6).fit(X, y)
    assert until.n_iter_ == 3


def test_changes_are_in_standard_deviations_and_shares():
    values = np.array([[1.0, 0], [3, 1], [np.nan, np.nan], [np.nan, 1]])
    known = Known.of(values, [0, 2], "total")
    assert_array_equal(known.start, [2, 1])
    old = np.array([[1.0, 0], [3, 1], [2, 1], [2, 1]])
    new = np.array([[9.0, 0], [9, 1], [2.5, 0], [2, 1]])
    change = known.change(old, new, np.isnan(values), np.array([0, 1]))
    assert_allclose(change, (0.5 + 0 + 1) / 3)  # the standard deviation is 1


def test_batches_of_columns_give_the_same(holes, monkeypatch):
    X, y = holes
    whole = with_scheme("oob", categorical_features=[4], max_iter=2).fit_transform(X, y)
    monkeypatch.setattr(_known_values, "_BLOCK_BYTES", 1)
    parts = with_scheme("oob", categorical_features=[4], max_iter=2).fit_transform(X, y)
    assert_allclose(parts, whole, rtol=1e-12)


def test_large_numbers_of_little_spread_keep_their_digits(iris):
    X, y = iris
    X = X + 1e9
    X[::5, 2] = np.nan
    imputer = ProximityImputer(ForestProximity(FOREST, "oob"), max_iter=1).fit(X, y)
    near = ProximityImputer(ForestProximity(FOREST, "oob", dtype=np.float64), max_iter=1)
    assert_allclose(
        imputer.fit_transform(X, y)[::5, 2] - 1e9, near.fit_transform(X, y)[::5, 2] - 1e9, rtol=1e-5
    )


def test_without_targets(iris, rng):
    X, _ = iris
    missing = rng.random(X.shape) < 0.1
    holes = np.where(missing, np.nan, X)
    imputer = ProximityImputer(n_estimators=20, random_state=0)
    error = np.abs(imputer.fit_transform(holes) - X)[missing].mean()
    assert error < 0.4 * np.abs(np.nanmedian(holes, axis=0) - X)[missing].mean()
    assert np.abs(imputer.transform(holes) - X)[missing].mean() < 1.5 * error


def test_each_column_has_a_forest_of_its_own(holes):
    X, y = holes
    X = np.where(np.arange(5) == 1, 1.0, X)  # complete
    imputer = ProximityImputer(
        "oob", n_estimators=5, categorical_features=[4], max_iter=1, random_state=0
    ).fit(X, y)
    kinds = {j: type(p.forest_) for j, p in imputer.proximities_.items()}
    classifier, regressor = RandomForestClassifier, RandomForestRegressor
    assert kinds == {0: regressor, 2: regressor, 3: regressor, 4: classifier}
    assert {p.scheme_.name for p in imputer.proximities_.values()} == {"oob"}
    assert {p.forest_.n_features_in_ for p in imputer.proximities_.values()} == {4}
    new = np.where(np.arange(5) == 1, np.nan, X[:3])
    assert_array_equal(imputer.transform(new)[:, 1], 1)


@pytest.mark.parametrize("scheme", ["gap", "uniform"])
def test_a_column_that_follows_the_targets_is_filled_by_them(rng, scheme):
    y = np.repeat([0, 1, 2], 50)
    X = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd"))
    X = X.assign(kind=np.array(["x", "y", "z"])[y], level=10.0 * y)
    holes = X.copy()
    for name in ("kind", "level"):
        holes.loc[rng.choice(150, 30, replace=False), name] = None
    # Neither column may give the other away.
    for name, other in (("kind", "level"), ("level", "kind")):
        imputer = ProximityImputer(scheme, n_estimators=20, random_state=0)
        filled = imputer.fit_transform(holes.drop(columns=other), y)
        gaps = holes[name].isna()
        if name == "kind":
            assert (filled[name] == X[name])[gaps].all()
        else:
            assert np.abs(filled[name] - X[name])[gaps].mean() < 1


def test_predictions_of_a_forest_fill_the_gaps(holes):
    X, y = holes
    X = np.where((np.arange(5) == 2) | ~np.isnan(X), X, 0.0)
    imputer = ProximityImputer(n_estimators=10, random_state=0, max_iter=1)
    filled = imputer.fit_transform(X, y)
    gaps = np.isnan(X[:, 2])
    others = np.column_stack([np.delete(X, 2, axis=1), y])
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
    forest.fit(others[~gaps], X[~gaps, 2])
    assert_allclose(filled[gaps, 2], forest.predict(others[gaps]), rtol=1e-5)


def test_forests_of_large_tables_learn_from_some_rows(holes, monkeypatch):
    monkeypatch.setattr(_fillers, "_MOST_SAMPLES", 60)
    X, y = holes
    imputer = ProximityImputer(n_estimators=10, random_state=0)
    filled = imputer.fit_transform(X, y)
    assert present(filled).all()
    assert {p.n_samples_fit_ for p in imputer.proximities_.values()} == {60}
    assert_array_equal(filled, imputer.fit_transform(X, y))


def test_several_targets_and_wrong_ones(holes):
    X, y = holes
    imputer = ProximityImputer(n_estimators=5, max_iter=1, random_state=0)
    filled = imputer.fit_transform(X, np.column_stack([y, np.linspace(0, 1, len(y))]))
    assert present(filled).all()
    assert "iterations: 1" in repr(imputer)
    with pytest.raises(ValueError, match=r"one or two dimensions; got shape"):
        imputer.fit(X, np.zeros((len(y), 1, 1)))
    with pytest.raises(ValueError, match=r"X has \d+ rows, but (y|sample_weight) has \d+\."):
        imputer.fit(X, y[:-1])
    with pytest.raises(ValueError, match="Input y contains"):
        imputer.fit(X, np.where(y == 0, np.nan, y))
    imputer.set_params(proximity=FOREST).fit(X, y)
    assert not hasattr(imputer, "proximities_")


def test_one_column_alone_is_filled_by_its_mean():
    X = np.array([[1.0], [2], [6], [np.nan]])
    imputer = ProximityImputer(n_estimators=50, random_state=0)
    assert_allclose(imputer.fit_transform(X)[3], 3, atol=0.5)


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "int64[pyarrow]"])
def test_integers_stay_integers(rng, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    numbers = rng.integers(0, 250, 60)
    X = pd.DataFrame({"n": pd.array(numbers, dtype=dtype), "x": numbers + rng.normal(size=60)})
    X.loc[::7, "n"] = pd.NA
    imputer = ProximityImputer(n_estimators=10, random_state=0)
    for filled in (imputer.fit_transform(X), imputer.transform(X)):
        assert filled["n"].dtype == dtype
        assert np.abs(filled["n"].astype(float) - numbers).max() < 60
    # In a table with another type, the values are whole as well.
    floats = imputer.transform(X.astype({"n": "Float64"}))["n"]
    assert floats.dtype == "Float64"
    assert (floats % 1 == 0).all()
    # The type decides: floats get fractions, even if the present ones are whole.
    imputer.fit(X.astype({"n": "Float64"}))
    assert (imputer.transform(X.astype({"n": "Float64"}))["n"] % 1 != 0).any()
    assert imputer.transform(X)["n"].dtype in ("Float64", "double[pyarrow]")


def test_integers_that_pandas_made_floats_of_are_filled_with_integers(rng):
    numbers = rng.integers(0, 250, 60)
    X = pd.DataFrame({"n": numbers.astype(float), "x": numbers + rng.normal(size=60)})
    X.loc[::7, ["n", "x"]] = np.nan
    filled = ProximityImputer(n_estimators=10, random_state=0).fit_transform(X)
    assert filled["n"].dtype == float
    assert (filled["n"] % 1 == 0).all()
    assert (filled["x"] % 1 != 0).all()


def test_integers_at_the_end_of_their_range():
    most = np.iinfo(np.int64).max
    X = pd.DataFrame({"n": pd.array([most, None] * 10, dtype="Int64"), "x": np.arange(20.0)})
    filled = ProximityImputer(n_estimators=5, random_state=0).fit_transform(X)
    assert filled["n"].tolist() == [most] * 20


@pytest.mark.parametrize(
    ("forest", "scheme"),
    [
        (ExtraTreesClassifier(20, min_samples_leaf=4, random_state=0), "kerf"),
        (GradientBoostingClassifier(n_estimators=5, random_state=0), "boosted"),
        (make_pipeline(RandomForestClassifier(20, random_state=0)), "oob_separable"),
    ],
)
def test_any_forest_and_scheme(holes, forest, scheme):
    X, y = holes
    filled = with_scheme(scheme, forest, max_iter=2).fit_transform(X, y)
    assert_array_equal(filled[present(X)], X[present(X)])
    assert present(filled).all()


def test_nothing_missing(iris):
    X, y = iris
    imputer = with_scheme("gap")
    assert_array_equal(imputer.fit_transform(X, y), X)
    assert_array_equal(imputer.changes_, [0])
    assert_array_equal(imputer.transform(X[:3]), X[:3])
    assert present(imputer.transform([[np.nan] * 4, X[0]])).all()


def test_without_proximity_the_median_stays():
    X = np.array([[np.nan, 1.0], [5, 2], [7, 3], [100, 4]])
    always_in_bag = RandomForestClassifier(2, bootstrap=True, random_state=3)
    imputer = with_scheme("gap", always_in_bag)
    with pytest.warns(LeafkernelWarning, match="1 of 1 missing values have no proximity"):
        filled = imputer.fit_transform(X, [0, 0, 1, 1])
    assert filled[0, 0] == 7


def test_seeds(holes):
    X, y = holes
    first, again, other = (
        ProximityImputer("gap", max_iter=1, n_estimators=20, **options).fit_transform(X, y)
        for options in ({"random_state": 3}, {"random_state": 3, "n_jobs": 2}, {"random_state": 4})
    )
    assert_array_equal(first, again)
    assert (first != other).any()
    seed = np.random.RandomState(0)
    drawn = ProximityImputer(n_estimators=10, random_state=seed, max_iter=5, tol=0).fit(X, y)
    assert drawn.changes_[-1] < 0.2 * drawn.changes_[0]  # one seed for all iterations


def test_pickle_and_clone(frame):
    X, y = frame
    imputer = with_scheme("oob", max_iter=2).fit(X, y)
    expected = imputer.transform(X)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(imputer)).transform(X), expected)
    again = clone(imputer)
    assert not hasattr(again, "proximity_")
    pd.testing.assert_frame_equal(again.fit(X, y).transform(X), expected)


def test_pipeline(holes):
    X, y = holes
    pipeline = make_pipeline(with_scheme("gap", max_iter=2), LogisticRegression(max_iter=2000))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85


def test_a_failed_refit_leaves_the_fitted_state_usable(holes):
    X, y = holes
    imputer = with_scheme("gap", max_iter=1).fit(X, y)
    before = imputer.transform(X)
    with pytest.raises(ValueError, match="infinity"):
        imputer.fit(np.where(np.isnan(X[:, :2]), np.inf, X[:, :2]), y)
    assert_array_equal(imputer.transform(X), before)


def test_frames_come_out_as_they_came_in(frame):
    X, y = frame
    before = X.copy(deep=True)
    imputer = with_scheme("gap", max_iter=2)
    results = {"fit_transform": imputer.fit_transform(X, y), "transform": imputer.transform(X)}
    pd.testing.assert_frame_equal(X, before)
    for filled in results.values():
        assert list(filled.columns) == list(X.columns)
        assert list(filled.index) == list(X.index)
        assert not filled.isna().any(axis=None)
        for name in X.columns:
            assert filled[name].dtype == X[name].dtype, name
            seen = X[name].notna()
            assert (filled[name][seen] == X[name][seen]).all(), name
    assert_array_equal(imputer.is_categorical_, X.columns.isin(["kind", "text", "flag", "thing"]))
    assert imputer.statistics_[X.columns.get_loc("thing")] == ("a", 1)
    assert_array_equal(imputer.get_feature_names_out(), X.columns)
    # Types do not depend on which values are missing in the given samples.
    full = X.dropna()
    assert (imputer.transform(full).dtypes == results["transform"].dtypes).all()


def test_frames_and_arrays_agree(table):
    X, y = table
    X.loc[::5, "kind"] = None
    codes = X["kind"].cat.codes.astype(float)
    array = X.assign(kind=codes.where(codes >= 0)).to_numpy()
    forest = RandomForestRegressor(20, random_state=0)
    from_frame = with_scheme("gap", forest).fit_transform(X, y)
    from_array = with_scheme("gap", forest, categorical_features=[1]).fit_transform(array, y)
    assert_array_equal(from_frame["kind"].cat.codes, from_array[:, 1])
    assert_array_equal(from_frame[["size", "age"]], from_array[:, [0, 2]])


def test_polars(frame):
    pl = pytest.importorskip("polars")
    X, y = frame
    names = ["size", "kind", "age", "count", "flag", "small", "whole"]
    columns = {
        name: [None if pd.isna(value) else value for value in X[name].tolist()] for name in names
    }
    kinds = {"kind": pl.Enum(list("abcd")), "small": pl.Float32}
    polars = pl.DataFrame([pl.Series(k, v, dtype=kinds.get(k)) for k, v in columns.items()])
    filled = with_scheme("gap", max_iter=2).fit_transform(polars, y)
    expected = with_scheme("gap", max_iter=2).fit_transform(X[names], y)
    assert filled.schema == polars.schema
    for name in names:
        assert filled[name].to_list() == expected[name].tolist()


def test_set_output(holes):
    X, y = holes
    imputer = with_scheme("gap", max_iter=1).set_output(transform="pandas")
    assert list(imputer.fit_transform(X, y).columns) == [f"x{k}" for k in range(5)]
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X)) * 2)
    imputer.fit(frame, y)
    assert list(imputer.transform(frame[:3]).index) == [0, 2, 4]
    assert list(imputer.get_feature_names_out()) == list("abcde")


@pytest.mark.parametrize("listed", [[1, 2], np.array([False, True, True]), ["b", "c"]])
def test_categorical_features_are_listed_in_three_ways(rng, listed):
    X = pd.DataFrame(rng.integers(0, 3, (60, 3)).astype(float), columns=list("abc"))
    X.iloc[::4] = np.nan
    X = X.astype({"c": "Int64"})
    imputer = with_scheme("uniform", categorical_features=listed, max_iter=1)
    filled = imputer.fit_transform(X, np.arange(60) % 2)
    assert_array_equal(imputer.is_categorical_, [False, True, True])
    assert set(filled["b"]) == set(filled["c"]) == {0, 1, 2}
    assert filled["c"].dtype == "Int64"  # categories do not change


def test_arrays_of_objects(frame):
    X, y = frame
    array = X[["size", "text", "thing"]].to_numpy(dtype=object)
    forest = RandomForestClassifier(20, min_samples_leaf=6, random_state=0)
    imputer = with_scheme("gap", forest, categorical_features=[1, 2], max_iter=2)
    filled = imputer.fit_transform(array, y)
    expected = with_scheme("gap", forest, max_iter=2).fit_transform(X[["size", "text", "thing"]], y)
    assert filled.dtype == object
    assert filled.tolist() == expected.to_numpy(dtype=object).tolist()
    with pytest.raises(ValueError, match="column 1 has values that are not numbers"):
        with_scheme("gap", categorical_features=[2]).fit(array, y)


def test_new_categories_stay(table):
    X, y = table
    X["kind"] = X["kind"].astype(object)
    imputer = with_scheme("gap", RandomForestRegressor(30, random_state=0)).fit(X, y)
    new = X[:4].assign(kind=["a", "never seen", None, np.nan])
    new.iloc[1, 0] = np.nan
    filled = imputer.transform(new)
    assert list(filled["kind"][:2]) == ["a", "never seen"]
    assert set(filled["kind"][2:]) <= set("abcd")
    as_missing = imputer.transform(new.assign(kind=["a", None, None, None]))
    assert_array_equal(filled["size"], as_missing["size"])
    # A type that lacks the category which is filled in gets it.
    narrow = new.assign(kind=pd.Categorical(["never seen"] * 2 + [None] * 2))
    assert list(imputer.transform(narrow)["kind"]) == list(filled["kind"][[1, 1, 2, 3]])


def test_mixed_categories_are_in_an_order_that_does_not_depend_on_rows():
    X = pd.DataFrame({"a": [1, "x", None, 2, "b", 1] * 5, "b": np.arange(30.0)})
    first = with_scheme("gap", max_iter=1).fit(X, np.arange(30) % 2)
    again = with_scheme("gap", max_iter=1).fit(X[::-1], np.arange(30) % 2)
    assert first._schema == again._schema
    assert first._schema.columns[0].categories == (1, 2, "b", "x")


def test_refuses_what_is_fitted(iris):
    X, y = iris
    fitted = clone(FOREST).fit(X, y)
    for proximity in (
        fitted,
        ForestProximity(fitted),
        ForestProximity(FOREST, "gap").fit(X, y),
        ForestProximity.from_leaves(np.zeros((150, 2), dtype=int)),
    ):
        with pytest.raises(ValueError, match="must not be fitted, because ProximityImputer trains"):
            ProximityImputer(proximity).fit(X, y)
    with pytest.raises(TypeError, match="Pass an instance"):
        ProximityImputer(RandomForestClassifier).fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"tol": -1}, ValueError, "tol must be at least 0"),
        ({"tol": np.nan}, ValueError, "tol must be at least 0"),
        ({"category_rule": "totl"}, ValueError, "Did you mean 'total'"),
        ({"categorical_features": [9]}, ValueError, "between 0 and 4; got"),
        ({"categorical_features": [-1]}, ValueError, "between 0 and 4; got"),
        ({"categorical_features": [True]}, ValueError, "a mask of length 1, but X has 5"),
        ({"categorical_features": ["a"]}, ValueError, "no column names. Use positions"),
        ({"categorical_features": [[1]]}, ValueError, "must be a list"),
        ({"categorical_features": [0.5]}, TypeError, "must be a mask, positions or names"),
    ],
)
def test_wrong_parameters(holes, options, error, message):
    with pytest.raises(error, match=message):
        with_scheme("gap", **options).fit(*holes)


def test_wrong_tables(frame):
    X, y = frame
    imputer = with_scheme("gap", max_iter=1)
    with pytest.raises(ValueError, match="X has no values in column 'size', column 'kind'"):
        imputer.fit(X.assign(size=np.nan, kind=None), y)
    with pytest.raises(ValueError, match="infinity in column 'age'"):
        imputer.fit(X.assign(age=np.inf), y)
    with pytest.raises(TypeError, match=r"column 'day' .* neither numbers nor categories"):
        imputer.fit(X.assign(day=pd.Timestamp("2020-01-01")), y)
    with pytest.raises(TypeError, match="column 'lists' has values that cannot be categories"):
        imputer.fit(X.assign(lists=[[1]] * len(X)), y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        imputer.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"\['nope'\] are not columns of X. Its columns are"):
        with_scheme("gap", categorical_features=["nope"]).fit(X, y)
    imputer.fit(X, y)
    with pytest.raises(ValueError, match="'size' had numbers in fit"):
        imputer.transform(X.assign(size="text"))
    with pytest.raises(ValueError, match="feature names should match"):
        imputer.transform(X[X.columns[::-1]])


@pytest.mark.estimator_checks
@parametrize_with_checks(
    [
        ProximityImputer(RandomForestClassifier(5, random_state=0), max_iter=1),
        ProximityImputer(n_estimators=5, max_iter=1, random_state=0),
        ProximityImputer(
            ForestProximity(RandomTreesEmbedding(5, random_state=0), "uniform"), max_iter=2
        ),
    ]
)
@pytest.mark.filterwarnings("ignore::leafkernel.LeafkernelWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_text_in_an_array_wants_to_be_named():
    X = np.array([[1.0, "a"], [None, "b"]] * 10, dtype=object)
    with pytest.raises(ValueError, match=r"X has text .*categorical_features"):
        ProximityImputer(random_state=0).fit(X, [0, 1] * 10)
