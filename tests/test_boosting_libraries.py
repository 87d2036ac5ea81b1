"""LightGBM, XGBoost, CatBoost and HistGradientBoosting: categories, early stopping, files."""

import warnings
from copy import deepcopy

import numpy as np
import oracles
import pandas as pd
import pytest
import zoo
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from leafkernel import ForestProximity
from leafkernel.forests import adapt

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*training samples are in bag in every tree"),
    pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`booster="),  # deprecated in XGBoost 3.4
]


def names(y):
    return np.where(y > np.median(y), "high", "low")


def booster_of(library, **settings):
    """A small classifier and regressor that takes categories of pandas."""
    if library == "lightgbm":
        lgb = pytest.importorskip("lightgbm")
        more = {"n_estimators": 6, "min_child_samples": 5, "verbose": -1}
        more |= {"min_data_per_group": 1, "cat_smooth": 1.0}  # or it looks at no category here
        return lgb.LGBMClassifier(**more | settings), lgb.LGBMRegressor(**more | settings)
    if library == "xgboost":
        xgb = pytest.importorskip("xgboost")
        more = {"n_estimators": 6, "enable_categorical": True, "tree_method": "hist"}
        return xgb.XGBClassifier(**more | settings), xgb.XGBRegressor(**more | settings)
    if library == "catboost":
        cb = pytest.importorskip("catboost")
        more = {"iterations": 6, "cat_features": ["kind"], "verbose": 0}
        more["allow_writing_files"] = False
        return cb.CatBoostClassifier(**more | settings), cb.CatBoostRegressor(**more | settings)
    more = {"max_iter": 6, "categorical_features": [1]}
    return (
        HistGradientBoostingClassifier(**more | settings),
        HistGradientBoostingRegressor(**more | settings),
    )


LIBRARIES = pytest.mark.parametrize("library", ["sklearn", "lightgbm", "xgboost", "catboost"])


def margin(library, model, X):
    """The library's own raw prediction."""
    if library == "lightgbm":
        return model.predict(X, raw_score=True)
    if library == "xgboost":
        return model.predict(X, output_margin=True)
    if library == "catboost":
        return model.predict(X, prediction_type="RawFormulaVal")
    return model.predict(X)


@LIBRARIES
def test_categories_and_missing_values_of_pandas(library, table):
    X, y = table
    _, model = booster_of(library)
    prox = ForestProximity(model, "uniform", dtype=np.float64).fit(X, y)
    forest = adapt(prox.forest_)
    total = forest.leaf_values().reshape(-1)[forest.leaves(X)].sum(axis=1)
    own = np.asarray(margin(library, prox.forest_, X), dtype=np.float64)
    assert_allclose(total - total.mean(), own - own.mean(), atol=1e-4)
    assert list(prox.feature_names_in_) == ["size", "kind", "age"]
    # Category and hole both matter: change them, and rows move to other leaves.
    swapped = X["kind"].astype(str).map(dict(zip("abcd", "badc", strict=True)))
    moved = X.assign(kind=pd.Categorical(swapped, categories=list("abcd")))
    assert (forest.leaves(moved) != forest.leaves(X)).any()
    assert (forest.leaves(X.assign(size=9.0)) != forest.leaves(X)).any()
    assert_allclose(prox.proximity(X).toarray(), prox.proximity().toarray(), atol=1e-12)


@LIBRARIES
@pytest.mark.filterwarnings("ignore:elementwise comparison failed")  # XGBoost 2
def test_labels_that_are_strings(library, table):
    X, y = table
    model, _ = booster_of(library)
    if library == "xgboost":  # which refuses them itself (2.0 stumbles over the comparison)
        with pytest.raises((ValueError, AttributeError), match=r"Invalid classes|'all'"):
            ForestProximity(model, "boosted").fit(X, names(y))
        return
    prox = ForestProximity(model, "boosted", dtype=np.float64).fit(X, names(y))
    P = prox.proximity().toarray()
    assert_allclose(np.diag(P), 1)
    assert np.linalg.eigvalsh(P).min() > -1e-10


@LIBRARIES
def test_sample_weights_reach_the_model(library, table):
    X, y = table
    _, model = booster_of(library)
    weight = np.where(np.arange(120) < 60, 5.0, 0.1)
    weighed = ForestProximity(model, "uniform").fit(X, y, sample_weight=weight)
    expected = ForestProximity(deepcopy(model).fit(X, y, sample_weight=weight), "uniform").fit(X, y)
    assert_array_equal(weighed.proximity().toarray(), expected.proximity().toarray())
    plain = ForestProximity(model, "uniform").fit(X, y).proximity().toarray()
    assert not np.array_equal(weighed.proximity().toarray(), plain)


@LIBRARIES
def test_early_stopping_keeps_only_the_trees_that_predict(library, table):
    X, _ = table
    rng = np.random.default_rng(1)
    noise = rng.normal(size=120)  # nothing to learn: the best round comes soon
    halves = X[:60], noise[:60], X[60:], noise[60:]
    if library == "lightgbm":
        lgb = pytest.importorskip("lightgbm")
        _, model = booster_of(library, n_estimators=60)
        model.fit(
            *halves[:2], eval_set=[halves[2:]], callbacks=[lgb.early_stopping(3, verbose=False)]
        )
        used = model.best_iteration_
    elif library == "xgboost":
        _, model = booster_of(library, n_estimators=60, early_stopping_rounds=3)
        model.fit(*halves[:2], eval_set=[halves[2:]], verbose=False)
        assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
        used = model.best_iteration + 1
    elif library == "catboost":
        _, model = booster_of(library, iterations=60, early_stopping_rounds=3)
        model.fit(*halves[:2], eval_set=halves[2:])
        used = model.get_best_iteration() + 1
        assert model.tree_count_ == used
    else:
        _, model = booster_of(library, max_iter=60, early_stopping=True, n_iter_no_change=2)
        model.fit(*halves[:2])
        used = model.n_iter_
    assert used < 60
    prox = ForestProximity(model, "uniform").fit(*halves[:2])
    assert prox.n_trees_ == used
    forest = adapt(model)
    total = forest.leaf_values().reshape(-1)[forest.leaves(X)].sum(axis=1)
    own = np.asarray(margin(library, model, X), dtype=np.float64)
    assert_allclose(total - total.mean(), own - own.mean(), atol=1e-5)


def test_lightgbm_model_from_a_file(tmp_path):
    lgb = pytest.importorskip("lightgbm")
    X, y = zoo.iris()
    model = lgb.LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1).fit(X, y)
    model.booster_.save_model(str(tmp_path / "model.txt"))
    loaded = lgb.Booster(model_file=str(tmp_path / "model.txt"))
    assert_array_equal(adapt(loaded).leaves(X), adapt(model).leaves(X))
    assert_allclose(adapt(loaded).leaf_values(), adapt(model).leaf_values())


@pytest.mark.parametrize("kind", ["json", "ubj"])
def test_xgboost_model_from_a_file(tmp_path, kind):
    xgb = pytest.importorskip("xgboost")
    X, y = zoo.iris()
    model = xgb.XGBClassifier(n_estimators=3).fit(X, y)
    path = str(tmp_path / f"model.{kind}")
    model.save_model(path)
    wrapper = xgb.XGBClassifier()
    wrapper.load_model(path)
    native = xgb.Booster(model_file=path)
    for loaded in (wrapper, native):
        assert_array_equal(adapt(loaded).leaves(X), adapt(model).leaves(X))
        assert_allclose(adapt(loaded).leaf_values(), adapt(model).leaf_values())


def test_catboost_model_from_a_file(tmp_path):
    cb = pytest.importorskip("catboost")
    X, y = zoo.iris()
    model = cb.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False).fit(X, y)
    model.save_model(str(tmp_path / "model.cbm"))
    for empty in (cb.CatBoostClassifier(), cb.CatBoost()):
        loaded = empty.load_model(str(tmp_path / "model.cbm"))
        assert_array_equal(adapt(loaded).leaves(X), adapt(model).leaves(X))
        assert_allclose(adapt(loaded).leaf_values(), adapt(model).leaf_values())


def test_a_booster_that_knows_names_takes_plain_arrays(table):
    xgb = pytest.importorskip("xgboost")
    X, y = table
    X = X[["size", "age"]]
    booster = xgb.train({}, xgb.DMatrix(X, y), num_boost_round=3)
    assert_array_equal(adapt(booster).leaves(X.to_numpy()), adapt(booster).leaves(X))


def test_what_has_no_trees_is_refused():
    xgb = pytest.importorskip("xgboost")
    X, y = zoo.diabetes()
    with pytest.raises(ValueError, match="'gblinear', which has no trees"):
        ForestProximity(xgb.XGBRegressor(booster="gblinear", n_estimators=2), "kerf").fit(X, y)


def test_linear_leaves_have_no_weights_of_their_own():
    lgb = pytest.importorskip("lightgbm")
    X, y = zoo.diabetes()
    model = lgb.LGBMRegressor(n_estimators=3, linear_tree=True, min_child_samples=5, verbose=-1)
    model.fit(X, y)
    assert ForestProximity(model, "kerf").fit(X, y).n_trees_ == 3
    with pytest.raises(ValueError, match="linear_tree=True"):
        ForestProximity(model, "boosted").fit(X, y)


def test_several_outputs():
    X, y = zoo.diabetes()
    Y = np.stack([y, -y], axis=1)
    forest = RandomForestRegressor(10, random_state=0).fit(X, Y)
    prox = ForestProximity(forest, "gap", dtype=np.float64).fit(X, Y)
    assert_allclose(prox.weighted_average(Y, X), forest.predict(X))
    xgb = pytest.importorskip("xgboost")
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        model = xgb.XGBRegressor(n_estimators=3, multi_strategy=strategy, tree_method="hist")
        prox = ForestProximity(model, "uniform").fit(X, Y)
        leaf = prox.forest_.apply(X).reshape(len(X), -1)
        assert_allclose(prox.proximity().toarray(), oracles.shares(leaf), atol=1e-6)


@LIBRARIES
def test_a_kernel_stays_what_it_is_when_its_model_is_fitted_again(library, table):
    X, y = table
    _, model = booster_of(library)
    model.fit(X, y)
    prox = ForestProximity(model, "uniform").fit(X, y)
    before = prox.proximity(X[:20]).toarray()
    other = X["kind"].cat.rename_categories(list("zbya"))
    model.fit(X.assign(kind=other), np.random.default_rng(0).normal(size=120))
    assert_array_equal(prox.proximity(X[:20]).toarray(), before)


@LIBRARIES
def test_columns_in_another_order_are_refused_or_put_right(library, table):
    X, y = table
    X = X[["size", "age"]]
    settings = {"cat_features": []} if library == "catboost" else {}
    settings |= {"categorical_features": None} if library == "sklearn" else {}
    _, model = booster_of(library, **settings)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"same|should match|mismatch"):
        ForestProximity(model, "uniform").fit(X[["age", "size"]], y)


def test_names_with_blanks_are_the_same_names():
    pytest.importorskip("lightgbm")
    X, y = zoo.diabetes()
    X = pd.DataFrame(X[:, :3], columns=["body mass", "blood pressure", "age"])
    _, model = booster_of("lightgbm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old versions warn that they rename them
        prox = ForestProximity(model, "uniform").fit(X, y)
    assert prox.proximity(X[:2]).shape == (2, 60)
    assert prox.proximity(X[:0]).shape == (0, 60)


def test_the_columns_that_differ_are_named():
    pytest.importorskip("lightgbm")
    X, y = zoo.diabetes()
    X = pd.DataFrame(X, columns=list("abcdefghij"))
    _, model = booster_of("lightgbm")
    prox = ForestProximity(model.fit(X, y), "kerf")
    for other, said in (
        (X.rename(columns={"i": "z"}), r"Missing: 'i'\. Unexpected: 'z'\."),
        (X.drop(columns=["h", "j"]), r"Missing: 'h', 'j'\."),
        (X[list("abcdefghji")], r"The order differs\."),
    ):
        with pytest.raises(ValueError, match=said):
            prox.fit(other, y)


def test_columns_that_a_model_never_saw_are_refused():
    cb = pytest.importorskip("catboost")
    X, y = zoo.diabetes()
    model = cb.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False).fit(X, y)
    with pytest.raises(
        ValueError, match="X has 11 columns, but CatBoostRegressor was trained on 10"
    ):
        ForestProximity(model, "kerf").fit(np.hstack([X, X[:, :1]]), y)


def test_paths_name_the_columns_of_x_where_categories_come_first_inside():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(100, 2)), rng.integers(0, 4, 100)])
    model = HistGradientBoostingRegressor(max_iter=2, max_leaf_nodes=2, categorical_features=[2])
    forest = adapt(model.fit(X, X[:, 2] % 2))
    assert set(forest.path_features()[1].tolist()) == {2}
