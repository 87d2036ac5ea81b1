"""RF-GAP times y is the forest's own prediction: out of bag in sample, else ``predict``."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import leafkernel._native as core
from leafkernel import ForestProximity
from leafkernel.forests._bootstrap import recover_in_bag

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
    """The compiled code counts up to 255. Above that, NumPy is used."""
    X, y = iris
    forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=0).fit(X, y)
    monkeypatch.setattr("leafkernel._native.count_draws", lambda *_: None)
    monkeypatch.setattr("leafkernel._native.count_seeded_draws", lambda *_: None)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    assert_allclose(
        prox.proximity() @ one_hot(y), forest.oob_decision_function_, rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("n_samples", [1, 2, 3, 150, 4096, 5000])
@pytest.mark.parametrize("n_draws", [1, 7, 624, 5000])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_draws_from_seeds_are_those_of_numpy(n_samples, n_draws, n_threads):
    seeds = np.array([0, 1, 42, 2**31 - 1, 2**32 - 1], dtype=np.uint32)
    counts = core.count_seeded_draws(seeds, n_samples, n_draws, n_threads)
    draws = [np.random.RandomState(seed).randint(0, n_samples, n_draws) for seed in seeds]
    expected = np.stack([np.bincount(drawn, minlength=n_samples) for drawn in draws], axis=1)
    if expected.max() > 255:
        assert counts is None
    else:
        assert_array_equal(counts, expected)


@pytest.mark.parametrize("max_samples", [None, 40, 0.5])
def test_draws_from_seeds_are_those_of_the_public_api(iris, max_samples, monkeypatch):
    X, y = iris
    forest = RandomForestClassifier(N_TREES, max_samples=max_samples, random_state=0).fit(X, y)
    fast = recover_in_bag(forest, y, None, len(y), n_threads=2)
    monkeypatch.setattr("leafkernel._native.count_seeded_draws", lambda *_: None)
    slow = recover_in_bag(forest, y, None, len(y))
    assert_array_equal(fast.weights, slow.weights)
    assert_array_equal(fast.is_oob, slow.weights == 0)
    assert fast.is_oob.dtype == bool


def test_forests_that_draw_in_another_way_are_asked(iris):
    """Seeds are used only if they reproduce the draws of the forest's first tree."""
    X, y = iris
    drawn = np.arange(150, dtype=np.int32)[::-1].repeat(2)[:150]

    class DrawsTheLast(RandomForestClassifier):
        @property
        def estimators_samples_(self):
            return [drawn] * len(self.estimators_)

    forest = DrawsTheLast(N_TREES, random_state=0).fit(X, y)
    found = recover_in_bag(forest, y, None, len(y))
    assert_array_equal(found.weights, np.bincount(drawn, minlength=150)[:, None].repeat(N_TREES, 1))


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 300])
def test_threads_draw_the_same_samples(iris, n_jobs):
    X, y = iris
    forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=0).fit(X, y)
    prox = ForestProximity(forest, dtype=np.float64, n_jobs=n_jobs).fit(X, y)
    assert_allclose(
        prox.proximity() @ one_hot(y), forest.oob_decision_function_, rtol=0, atol=1e-10
    )
