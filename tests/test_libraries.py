"""What people do with models: categories, missing values, early stopping, files, wrappers."""

import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import zoo
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leafkernel import ForestProximity
from leafkernel.forests import adapt

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*training samples are in bag in every tree"),
    pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`booster="),  # deprecated in XGBoost 3.4
]


def shares(leaf):
    return (leaf[:, None] == leaf[None]).mean(axis=2)


@pytest.fixture
def table():
    """120 rows: two numbers with holes, a category of four, and a target that needs them all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=120),
            "kind": pd.Categorical(rng.choice(list("abcd"), size=120)),
            "age": rng.gamma(2.0, size=120),
        }
    )
    y = X["size"] + X["kind"].isin(["a", "c"]) * 2 + 0.3 * X["age"]
    X.loc[::7, "size"] = np.nan
    return X, y.to_numpy()


def names(y):
    return np.where(y > np.median(y), "high", "low")


def booster_of(library, **settings):
    """A small classifier and regressor that takes categories of pandas."""
    if library == "lightgbm":
        lgb = pytest.importorskip("lightgbm")
        more = {"n_estimators": 6, "min_child_samples": 5, "verbose": -1}
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
    assert (forest.leaves(X.assign(kind=X["kind"].cat.rename_categories(list("badc")))) != 0).any()
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
        assert_allclose(prox.proximity().toarray(), shares(leaf), atol=1e-6)


def test_a_pipeline_applies_its_steps_first(table):
    X, y = table
    X = X.assign(size=X["size"].fillna(0), kind=X["kind"].astype(str))
    from sklearn.compose import make_column_transformer

    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    pipe = make_pipeline(encode, "passthrough", RandomForestRegressor(20, random_state=0))
    prox = ForestProximity(pipe, "gap", dtype=np.float64).fit(X, y)
    assert_allclose(prox.weighted_average(y, X), prox.forest_.predict(X))
    weight = np.arange(120) % 3 + 1.0
    weighed = ForestProximity(pipe, "gap", dtype=np.float64).fit(X, y, sample_weight=weight)
    assert_allclose(weighed.weighted_average(y, X), weighed.forest_.predict(X))


def test_a_search_is_its_best_estimator():
    X, y = zoo.iris()
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(8, random_state=0))
    search = GridSearchCV(pipe, {"randomforestclassifier__max_depth": [2, 5]}, cv=2)
    prox = ForestProximity(search, "gap", dtype=np.float64).fit(X, y, sample_weight=np.ones(60))
    indicators = (y[:, None] == np.unique(y)).astype(float)
    assert_allclose(prox.weighted_average(indicators, X), prox.forest_.predict_proba(X))
    unkept = GridSearchCV(pipe, {"randomforestclassifier__max_depth": [2]}, cv=2, refit=False)
    with pytest.raises(ValueError, match="keeps no best estimator"):
        ForestProximity(unkept, "kerf").fit(X, y)


def test_bagging_of_something_else_is_refused():
    X, y = zoo.iris()
    for ensemble in (
        BaggingClassifier(GaussianNB(), n_estimators=2),
        AdaBoostClassifier(GaussianNB(), n_estimators=2, **zoo.SAMME),
    ):
        with pytest.raises(TypeError, match="GaussianNB, which is no tree"):
            ForestProximity(ensemble, "kerf").fit(X, y)


def test_gap_of_bagging_is_its_prediction():
    X, y = zoo.iris()
    indicators = (y[:, None] == np.unique(y)).astype(float)
    weight = np.arange(60) % 2 + 1.0
    for known in ({}, {"sample_weight": weight}):
        model = BaggingClassifier(n_estimators=20, max_features=0.5, random_state=0)
        model.fit(X, y, **known)
        prox = ForestProximity(model, "gap", dtype=np.float64).fit(X, y, **known)
        assert_allclose(prox.weighted_average(indicators, X), model.predict_proba(X))


def test_bagging_on_other_samples_or_weighed_classes_is_refused():
    X, y = zoo.iris()
    model = BaggingClassifier(n_estimators=5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="not the samples"):
        ForestProximity(model, "gap").fit(X[::-1], y[::-1])
    with pytest.raises(ValueError, match="fitted on 60 samples, but X has 59"):
        ForestProximity(model, "gap").fit(X[1:], y[1:])
    tree = DecisionTreeClassifier(class_weight={0: 3, 1: 1, 2: 1})
    with pytest.raises(ValueError, match="weigh samples by class"):
        ForestProximity(BaggingClassifier(tree, n_estimators=5), "gap").fit(X, y)


def test_isolation_forest_without_y():
    X, _ = zoo.diabetes()
    prox = ForestProximity(IsolationForest(n_estimators=20, random_state=0), "uniform").fit(X)
    leaf = np.stack([tree.apply(X.astype(np.float32)) for tree in prox.forest_.estimators_], 1)
    assert_allclose(prox.proximity().toarray(), shares(leaf), atol=1e-6)


def test_quantile_forest_predicts_as_gap_does():
    quantile_forest = pytest.importorskip("quantile_forest")
    X, y = zoo.diabetes()
    model = quantile_forest.RandomForestQuantileRegressor(20, random_state=0).fit(X, y)
    prox = ForestProximity(model, "gap", dtype=np.float64).fit(X, y)
    expected = model.predict(X, quantiles="mean", aggregate_leaves_first=False)
    assert_allclose(prox.weighted_average(y, X), expected, rtol=1e-10)


def test_survival_curves_from_gap():
    """The forest's cumulative hazard is a GAP-weighted mean of the hazards of its leaves."""
    ensemble = pytest.importorskip("sksurv.ensemble")
    X, y = zoo.survival()
    model = ensemble.RandomSurvivalForest(20, random_state=0).fit(X, y)
    forest = adapt(model)
    hazard = np.concatenate(
        [t.tree_.value[t.tree_.children_left < 0, :, 0] for t in model.estimators_]
    )
    own = model.predict_cumulative_hazard_function(X, return_array=True)
    assert_allclose(hazard[forest.leaves(X)].mean(axis=1), own, rtol=1e-10)
    weights = ForestProximity(model, "gap", dtype=np.float64).fit(X, y).proximity(X)
    assert_allclose(weights.sum(axis=1), 1)


def test_balanced_forest_predicts_as_gap_does():
    imblearn = pytest.importorskip("imblearn.ensemble")
    X, y = zoo.iris()
    X, y = X[5:50], y[5:50]
    indicators = (y[:, None] == np.unique(y)).astype(float)
    for bootstrap in (False, True):
        model = imblearn.BalancedRandomForestClassifier(
            20, sampling_strategy="all", replacement=True, bootstrap=bootstrap, random_state=0
        ).fit(X, y)
        prox = ForestProximity(model, "gap", dtype=np.float64).fit(X, y)
        assert_allclose(prox.weighted_average(indicators, X), model.predict_proba(X))
        with pytest.raises(ValueError, match="not recovered"):
            ForestProximity(model, "gap").fit(X, y, sample_weight=np.ones(len(y)))


class Centers:
    """A forest in a few lines: a tree is a draw of centers, a leaf all that is nearest to one."""

    def __init__(self, n_trees=15, n_leaves=6):
        self.n_trees, self.n_leaves = n_trees, n_leaves

    def get_params(self, *, deep=True):
        return {"n_trees": self.n_trees, "n_leaves": self.n_leaves}

    def fit(self, X, y=None):
        rng = np.random.default_rng(0)
        self.drawn_ = [
            rng.choice(len(X), self.n_leaves, replace=False) for _ in range(self.n_trees)
        ]
        self.centers_ = [np.asarray(X)[rows] for rows in self.drawn_]
        return self

    def leaves(self, X):
        gaps = [np.linalg.norm(np.asarray(X)[:, None] - c, axis=2) for c in self.centers_]
        return np.stack([gap.argmin(axis=1) * 10 for gap in gaps], axis=1)


class TellingCenters(Centers):
    def in_bag(self, X, y):
        return np.stack([np.isin(np.arange(len(X)), rows) for rows in self.drawn_], axis=1)

    def tree_weights(self):
        return np.arange(self.n_trees)

    def path_features(self, tree, leaf):
        return [tree % 3, leaf // 10 % 2, 0]


def test_a_forest_of_ones_own():
    X, y = zoo.iris()
    prox = ForestProximity(Centers(), "uniform", dtype=np.float64).fit(X, y)
    leaf = prox.forest_.leaves(X)
    assert_allclose(prox.proximity().toarray(), shares(leaf))
    assert_allclose(prox.proximity(X[:7]).toarray(), shares(leaf)[:7])
    again = ForestProximity(prox.forest_, "kerf").fit(X)  # fitted: used as it is
    assert again.forest_ is prox.forest_
    for scheme, lacks in (("gap", "in_bag"), ("boosted", "tree_weights"), ("ih", "path_features")):
        with pytest.raises(ValueError, match=f"Centers has no method '{lacks}'"):
            ForestProximity(Centers(), scheme).fit(X, y)


@pytest.mark.parametrize("scheme", zoo.SCHEMES)
def test_a_forest_of_ones_own_in_every_scheme(scheme):
    import oracles

    X, y = zoo.iris()
    prox = ForestProximity(TellingCenters(), scheme, dtype=np.float64).fit(X, y)
    model = prox.forest_
    leaf, in_bag = model.leaves(X), model.in_bag(X, y).astype(float)
    training = oracles.Side(leaf, in_bag, in_bag == 0)

    def path(t, i):
        return sorted(set(model.path_features(t, leaf[i, t])))

    if scheme == "ih":
        training.easiness = 1 - oracles.disagreeing_neighbors(X, y, leaf, path, 5, "all")
    expected = oracles.proximity(scheme, training, training, training, model.tree_weights())
    assert_allclose(prox.proximity().toarray(), expected, rtol=1e-9, atol=1e-12)


def test_leaves_that_training_never_saw_are_like_nothing():
    X, y = zoo.iris()
    prox = ForestProximity(Centers(), "uniform").fit(X, y)
    model = prox.forest_
    model.leaves = lambda X: np.full((len(X), 15), 999)
    assert prox.proximity(X[:3]).nnz == 0


def test_extra_trees_of_a_search_refuse_draws_by_their_own_name():
    X, y = zoo.diabetes()
    search = GridSearchCV(ExtraTreesRegressor(5), {"max_depth": [2]}, cv=2)
    with pytest.raises(ValueError, match="ExtraTreesRegressor"):
        ForestProximity(search, "gap").fit(X, y)


@LIBRARIES
def test_a_kernel_stays_what_it_is_when_its_model_is_fitted_again(library, table):
    X, y = table
    _, model = booster_of(library)
    model.fit(X, y)
    prox = ForestProximity(model, "uniform").fit(X, y)
    before = prox.proximity(X[:20]).toarray()
    model.fit(X[::-1].reset_index(drop=True), np.random.default_rng(0).normal(size=120))
    assert_array_equal(prox.proximity(X[:20]).toarray(), before)


def test_a_pipeline_fitted_again_changes_nothing():
    X, y = zoo.iris()
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, y)
    prox = ForestProximity(pipe, "uniform").fit(X, y)
    before = prox.proximity(X).toarray()
    pipe.fit(100 * X[::-1], y)
    assert_array_equal(prox.proximity(X).toarray(), before)


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
        warnings.simplefilter("ignore")  # old versions say that they rename them
        prox = ForestProximity(model, "uniform").fit(X, y)
    assert prox.proximity(X[:2]).shape == (2, 60)
    assert prox.proximity(X[:0]).shape == (0, 60)


def test_columns_that_a_model_never_saw_are_refused():
    cb = pytest.importorskip("catboost")
    X, y = zoo.diabetes()
    model = cb.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False).fit(X, y)
    with pytest.raises(
        ValueError, match="X has 11 columns, but CatBoostRegressor was trained on 10"
    ):
        ForestProximity(model, "kerf").fit(np.hstack([X, X[:, :1]]), y)


def test_every_tree_saw_every_sample():
    X, y = zoo.iris()
    whole = BaggingClassifier(n_estimators=5, bootstrap=False)
    for forest in (IsolationForest(n_estimators=5), whole):
        with pytest.raises(ValueError, match="every tree saw every sample; refit with"):
            ForestProximity(forest, "gap").fit(X, y)


def test_bagging_with_a_warm_start_forgets_its_draws():
    X, y = zoo.iris()
    model = BaggingClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    model.set_params(n_estimators=7).fit(X, y)
    with pytest.raises(ValueError, match="forgot its earlier draws"):
        ForestProximity(model, "gap").fit(X, y)


def test_weights_that_bagging_was_not_fitted_with_are_refused():
    X, y = zoo.iris()
    model = BaggingClassifier(n_estimators=5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight differs|do not add up"):
        ForestProximity(model, "gap").fit(X, y, sample_weight=np.arange(60) + 1.0)


def test_sample_weights_reach_a_forest_far_inside():
    X, y = zoo.diabetes()
    forest = RandomForestRegressor(10, random_state=0)
    inner = GridSearchCV(
        make_pipeline(StandardScaler(), forest), {"randomforestregressor__max_depth": [3]}, cv=2
    )
    pipe = make_pipeline(StandardScaler(), inner)
    weight = np.arange(60) % 3 + 1.0
    prox = ForestProximity(pipe, "gap", dtype=np.float64).fit(X, y, sample_weight=weight)
    assert_allclose(prox.weighted_average(y, X), prox.forest_.predict(X))


def test_boosted_and_single_survival_trees():
    ensemble = pytest.importorskip("sksurv.ensemble")
    from sksurv.tree import SurvivalTree

    X, y = zoo.survival()
    boosted = ensemble.GradientBoostingSurvivalAnalysis(n_estimators=5, random_state=0).fit(X, y)
    prox = ForestProximity(boosted, "boosted", dtype=np.float64).fit(X, y)
    adds = np.stack([0.1 * tree.predict(X) for tree in boosted.estimators_.ravel()], axis=1)
    assert_allclose(prox.kernel_.forest.tree_weights, adds.var(axis=0), rtol=1e-10)
    drop = ensemble.GradientBoostingSurvivalAnalysis(
        n_estimators=5, dropout_rate=0.5, random_state=0
    )
    with pytest.raises(ValueError, match="dropout_rate"):
        ForestProximity(drop, "boosted").fit(X, y)
    single = ForestProximity(SurvivalTree(max_depth=3), "uniform", dtype=np.float64).fit(X, y)
    leaf = single.forest_.apply(X.astype(np.float32)).reshape(-1, 1)
    assert_allclose(single.proximity().toarray(), shares(leaf))


def test_balanced_bagging_is_made_of_trees():
    imblearn = pytest.importorskip("imblearn.ensemble")
    X, y = zoo.iris()
    X, y = X[5:50], y[5:50]
    prox = ForestProximity(
        imblearn.BalancedBaggingClassifier(n_estimators=4, random_state=0), "uniform"
    ).fit(X, y)
    trees = [member[-1] for member in prox.forest_.estimators_]
    leaf = np.stack([tree.apply(X.astype(np.float32)) for tree in trees], axis=1)
    assert_allclose(prox.proximity().toarray(), shares(leaf), atol=1e-6)
    with pytest.raises(ValueError, match="resamples inside"):
        ForestProximity(prox.forest_, "gap").fit(X, y)


def test_a_forest_of_ones_own_is_checked():
    X, y = zoo.iris()

    class ThreeRows:
        def leaves(self, X):
            return np.zeros((3, 2), dtype=int)

    with pytest.raises(ValueError, match="leaves of 3 samples for an X of 60"):
        ForestProximity(ThreeRows(), "uniform").fit(X)

    class Lost(Centers):
        def path_features(self, tree, leaf):
            return [-1]

    with pytest.raises(ValueError, match="from 0 to 3"):
        ForestProximity(Lost(), "ih").fit(X, y)


def test_an_object_that_answers_to_any_name_is_no_forest():
    class Anything:
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    with pytest.raises(TypeError, match="forest must be one of"):
        ForestProximity(Anything(), "uniform").fit([[1.0], [2.0]])
