"""Forests that come wrapped, bagged, or from packages that build on scikit-learn."""

import numpy as np
import oracles
import pytest
import strategies
import zoo
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from zoo.scikit_learn import apply_members

from leafkernel import ForestProximity
from leafkernel.forests import adapt

pytestmark = pytest.mark.filterwarnings("ignore:.*training samples are in bag in every tree")


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
    with pytest.raises(ValueError, match="has no best_estimator_"):
        ForestProximity(unkept, "kerf").fit(X, y)


def test_bagging_of_something_else_is_refused():
    X, y = zoo.iris()
    for ensemble in (
        BaggingClassifier(GaussianNB(), n_estimators=2),
        AdaBoostClassifier(GaussianNB(), n_estimators=2, **zoo.SAMME),
    ):
        with pytest.raises(TypeError, match="base estimator GaussianNB is not a decision tree"):
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
    with pytest.raises(ValueError, match="does not match the rows"):
        ForestProximity(model, "gap").fit(X[::-1], y[::-1])
    with pytest.raises(ValueError, match=r"X has 59 samples, but .* was fitted on 60"):
        ForestProximity(model, "gap").fit(X[1:], y[1:])
    tree = DecisionTreeClassifier(class_weight={0: 3, 1: 1, 2: 1})
    with pytest.raises(ValueError, match="use class_weight, so their in-bag weights"):
        ForestProximity(BaggingClassifier(tree, n_estimators=5), "gap").fit(X, y)


def test_isolation_forest_without_y():
    X, _ = zoo.diabetes()
    prox = ForestProximity(IsolationForest(n_estimators=20, random_state=0), "uniform").fit(X)
    leaf = np.stack([tree.apply(X.astype(np.float32)) for tree in prox.forest_.estimators_], 1)
    assert_allclose(prox.proximity().toarray(), oracles.shares(leaf), atol=1e-6)


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
        with pytest.raises(ValueError, match="cannot be computed"):
            ForestProximity(model, "gap").fit(X, y, sample_weight=np.ones(len(y)))


def test_extra_trees_of_a_search_refuse_draws_by_their_own_name():
    X, y = zoo.diabetes()
    search = GridSearchCV(ExtraTreesRegressor(5), {"max_depth": [2]}, cv=2)
    with pytest.raises(ValueError, match="ExtraTreesRegressor"):
        ForestProximity(search, "gap").fit(X, y)


def test_every_tree_saw_every_sample():
    X, y = zoo.iris()
    whole = BaggingClassifier(n_estimators=5, bootstrap=False)
    for forest in (IsolationForest(n_estimators=5), whole):
        with pytest.raises(ValueError, match=r"every tree was trained on every sample. Refit with"):
            ForestProximity(forest, "gap").fit(X, y)


def test_bagging_with_a_warm_start_forgets_its_draws():
    X, y = zoo.iris()
    model = BaggingClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    model.set_params(n_estimators=7).fit(X, y)
    with pytest.raises(ValueError, match="stores only the bootstrap samples of the last step"):
        ForestProximity(model, "gap").fit(X, y)


def test_weights_that_bagging_was_not_fitted_with_are_refused():
    X, y = zoo.iris()
    model = BaggingClassifier(n_estimators=5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight differs|not match the rows"):
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
    assert_allclose(single.proximity().toarray(), oracles.shares(leaf))


def test_balanced_bagging_is_made_of_trees():
    imblearn = pytest.importorskip("imblearn.ensemble")
    X, y = zoo.iris()
    X, y = X[5:50], y[5:50]
    prox = ForestProximity(
        imblearn.BalancedBaggingClassifier(n_estimators=4, random_state=0), "uniform"
    ).fit(X, y)
    trees = [member[-1] for member in prox.forest_.estimators_]
    leaf = np.stack([tree.apply(X.astype(np.float32)) for tree in trees], axis=1)
    assert_allclose(prox.proximity().toarray(), oracles.shares(leaf), atol=1e-6)
    with pytest.raises(ValueError, match="resamples each bootstrap sample"):
        ForestProximity(prox.forest_, "gap").fit(X, y)


@given(case=strategies.on_some_features(), scheme=st.sampled_from(["uniform", "kerf"]))
def test_trees_on_some_features_equal_the_formula(case, scheme):
    prox = ForestProximity(case.forest, scheme, dtype=np.float64).fit(case.X, case.y)
    training = oracles.Side.unseen(apply_members(case.forest, case.X))
    unseen = oracles.Side.unseen(apply_members(case.forest, case.X_new))
    for side, X in ((training, None), (unseen, case.X_new)):
        expected = oracles.proximity(scheme, side, training, training)
        assert_allclose(prox.proximity(X).toarray(), expected, rtol=0, atol=1e-12)
