"""RF-GAP times y is the forest's own prediction: out of bag in sample, else ``predict``."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel import ForestProximity

N_TREES = 120


def weights_with_zeros(n_samples):
    rng = np.random.default_rng(1)
    return rng.choice([0.0, 0.5, 1.0, 1.5], size=n_samples)


CLASSIFIER_SETTINGS = {
    "default": {},
    "max_samples=0.3": {"max_samples": 0.3},
    "max_samples=40": {"max_samples": 40},
    "class_weight=dict": {"class_weight": {0: 1.0, 1: 1.5, 2: 0.5}},
    "class_weight=balanced": {"class_weight": "balanced"},
    "class_weight=balanced_subsample": {"class_weight": "balanced_subsample"},
    "balanced_subsample, max_samples=0.3": {
        "class_weight": "balanced_subsample",
        "max_samples": 0.3,
    },
    "large leaves": {"min_samples_leaf": 20},
    "one leaf": {"min_samples_leaf": 1000},
}


def one_hot(y):
    return (np.asarray(y)[:, None] == np.unique(y)).astype(float)


@pytest.fixture(scope="module")
def unbalanced(iris):
    X, y = iris
    keep = np.r_[0:50, 50:75, 100:140]
    return X[keep], y[keep]


@pytest.mark.parametrize("fitted_elsewhere", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("name", CLASSIFIER_SETTINGS)
def test_classification(unbalanced, name, kind, weighted, fitted_elsewhere):
    X, y = unbalanced
    sample_weight = weights_with_zeros(len(y)) if weighted else None
    forest = kind(
        N_TREES, bootstrap=True, oob_score=True, random_state=0, **CLASSIFIER_SETTINGS[name]
    )
    if fitted_elsewhere:
        forest.fit(X, y, sample_weight=sample_weight)
    prox = ForestProximity(forest, "gap", dtype=np.float64).fit(X, y, sample_weight=sample_weight)
    fitted = prox.forest_
    assert (fitted is forest) == fitted_elsewhere
    indicators = one_hot(y)
    assert_allclose(
        prox.proximity() @ indicators, fitted.oob_decision_function_, rtol=0, atol=1e-10
    )
    assert_allclose(
        prox.weighted_average(indicators), fitted.oob_decision_function_, rtol=0, atol=1e-10
    )
    X_new = X + 0.05
    assert_allclose(
        prox.proximity(X_new) @ indicators, fitted.predict_proba(X_new), rtol=0, atol=1e-10
    )
    assert_allclose(
        prox.weighted_average(indicators, X_new), fitted.predict_proba(X_new), rtol=0, atol=1e-10
    )


REGRESSOR_SETTINGS = {
    "default": {},
    "max_samples=0.3": {"max_samples": 0.3},
    "max_samples=40": {"max_samples": 40},
    "max_features=0.3": {"max_features": 0.3},
    "large leaves": {"min_samples_leaf": 20},
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("name", REGRESSOR_SETTINGS)
def test_regression(diabetes, name, kind, weighted):
    X, y = diabetes
    sample_weight = weights_with_zeros(len(y)) if weighted else None
    forest = kind(
        N_TREES, bootstrap=True, oob_score=True, random_state=0, **REGRESSOR_SETTINGS[name]
    )
    forest.fit(X, y, sample_weight=sample_weight)
    prox = ForestProximity(forest, "gap", dtype=np.float64).fit(X, y, sample_weight=sample_weight)
    assert_allclose(prox.proximity() @ y, forest.oob_prediction_, rtol=1e-10)
    assert_allclose(prox.proximity(X * 1.01) @ y, forest.predict(X * 1.01), rtol=1e-10)


def test_many_outputs(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, -(y**2), np.sin(y)])
    forest = RandomForestRegressor(N_TREES, oob_score=True, random_state=0).fit(X, Y)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, Y)
    assert_allclose(prox.proximity() @ Y, forest.oob_prediction_, rtol=1e-10)
    assert_allclose(prox.weighted_average(Y, X), forest.predict(X), rtol=1e-10)


@pytest.mark.parametrize("class_weight", [None, "balanced", "balanced_subsample"])
def test_many_class_outputs(iris, class_weight):
    X, y = iris
    Y = np.column_stack([y == 0, y == 2]).astype(int)
    forest = RandomForestClassifier(
        N_TREES, oob_score=True, random_state=0, class_weight=class_weight
    ).fit(X, Y)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, Y)
    P = prox.proximity()
    for output in range(2):
        expected = forest.oob_decision_function_[:, :, output]
        assert_allclose(P @ one_hot(Y[:, output]), expected, rtol=0, atol=1e-10)
        by_class = prox.weighted_average(one_hot(Y[:, output]), X)
        assert_allclose(by_class, forest.predict_proba(X)[output], rtol=0, atol=1e-10)


def test_string_labels_and_class_weight_by_name(iris):
    X, codes = iris
    y = np.array(["setosa", "versicolor", "virginica"])[codes]
    forest = RandomForestClassifier(
        N_TREES,
        oob_score=True,
        random_state=0,
        class_weight={"setosa": 1, "versicolor": 2, "virginica": 3},
    )
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    assert_allclose(
        prox.proximity() @ one_hot(y), prox.forest_.oob_decision_function_, rtol=0, atol=1e-10
    )


def test_float32_reproduces_the_forest_to_float_precision(iris):
    X, y = iris
    forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=0).fit(X, y)
    prox = ForestProximity(forest).fit(X, y)
    assert prox.proximity().dtype == np.float32
    assert_allclose(prox.proximity() @ one_hot(y), forest.oob_decision_function_, rtol=0, atol=1e-6)


def test_warm_started_forest(iris):
    X, y = iris
    forest = RandomForestClassifier(30, warm_start=True, oob_score=True, random_state=0).fit(X, y)
    forest.set_params(n_estimators=60).fit(X, y)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    assert prox.n_trees_ == 60
    assert_allclose(
        prox.proximity() @ one_hot(y), forest.oob_decision_function_, rtol=0, atol=1e-10
    )


def test_a_sample_drawn_more_often_than_a_byte_counts(iris, monkeypatch):
    """The compiled count gives up at 255, and plain NumPy takes over."""
    X, y = iris
    forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=0).fit(X, y)
    monkeypatch.setattr("leafkernel._native.count_draws", lambda *_: None)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    assert_allclose(
        prox.proximity() @ one_hot(y), forest.oob_decision_function_, rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 300])
def test_threads_draw_the_same_samples(iris, n_jobs):
    X, y = iris
    forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=0).fit(X, y)
    prox = ForestProximity(forest, dtype=np.float64, n_jobs=n_jobs).fit(X, y)
    assert_allclose(
        prox.proximity() @ one_hot(y), forest.oob_decision_function_, rtol=0, atol=1e-10
    )
