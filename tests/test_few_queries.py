"""The cost of a few queries depends on their collisions, and results equal the full method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import leafkernel.inside as module
from leafkernel import ForestProximity, WeightScheme
from leafkernel.inside import Inside
from leafkernel.schemes import Weighting
from leafkernel.tasks import ProximityClassifier, ProximityRegressor

SCHEMES = ["gap", "uniform", "kerf", "oob", "oob_separable", "ih", "purity", "learned"]


@pytest.fixture(scope="module")
def forest(iris):
    X, y = iris
    return RandomForestClassifier(60, random_state=0).fit(X, y)


@pytest.fixture
def always_sweep(monkeypatch):
    monkeypatch.setattr(module, "_MOST_COLLISIONS", -1)


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_and_sweep_agree(iris, forest, scheme, symmetrize, monkeypatch):
    X, y = iris
    prox = ForestProximity(forest, scheme, dtype=np.float64, symmetrize=symmetrize).fit(X, y)
    few = X[70:71] + 0.03
    values = np.stack([np.arange(150.0), y == 1], axis=1)
    assert Inside.of(prox)._is_few(Inside.of(prox).product(few), 2)
    found = prox.weighted_sums(values, few)
    shares = Inside.of(prox).class_sums(Inside.of(prox).product(few), y, 3)
    monkeypatch.setattr(module, "_MOST_COLLISIONS", -1)
    assert not Inside.of(prox)._is_few(Inside.of(prox).product(few), 2)
    assert_allclose(
        shares,
        Inside.of(prox).class_sums(Inside.of(prox).product(few), y, 3),
        rtol=1e-13,
        atol=1e-15,
    )
    assert_allclose(found, prox.proximity(few) @ values, rtol=1e-12)


@given(st.integers(1, 18), st.sampled_from(SCHEMES[:3]))
def test_any_number_of_rows(iris, forest, m, scheme):
    X, y = iris
    prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
    together = prox.weighted_average(y, X)
    assert_array_equal(prox.weighted_average(y, X[:m]), together[:m])


def test_predictors_agree_with_the_long_way(iris, forest, always_sweep, monkeypatch):
    X, y = iris
    classifier = ProximityClassifier(ForestProximity(forest)).fit(X, y)
    regressor = ProximityRegressor(ForestProximity(forest)).fit(X, y)
    new = X[::40] + 0.02
    expected = classifier.predict_proba(new), regressor.predict(new)
    monkeypatch.undo()
    assert_allclose(classifier.predict_proba(new), expected[0], atol=1e-7)
    assert_allclose(regressor.predict(new), expected[1], atol=1e-6)


def test_rows_without_proximity(forest):
    prox = ForestProximity.from_leaves(np.arange(80).reshape(40, 2) // 8, y=np.arange(40) % 2)
    far = [[99, 99]]
    assert_array_equal(prox.weighted_sums(np.ones(40), far), [0])
    with pytest.warns(UserWarning, match="1 of 1 samples have proximity 0"):
        assert np.isnan(prox.weighted_average(np.ones(40), far)).all()


def test_sums_that_are_too_large_are_refused(iris, forest):
    X, y = iris
    prox = ForestProximity(forest, "uniform").fit(X, y)
    with pytest.raises(OverflowError, match="too large for float64"):
        prox.weighted_sums(np.full(150, 1.7e308), X[:1])


def test_the_factor_of_leaves_is_made_once(iris, forest):
    X, y = iris
    for prox in (
        ForestProximity(forest, "kerf").fit(X, y),
        ForestProximity(GradientBoostingRegressor(n_estimators=5), "boosted").fit(X, y),
    ):
        kernel = prox.kernel_
        first, second = (Inside.of(prox).product(X[k : k + 1]) for k in (0, 70))
        assert first.by_leaf is second.by_leaf is kernel.training_product().by_leaf
        assert first.query.weighting.by_leaf is kernel.query.weighting.by_leaf
        assert prox.reweigh(diagonal="zero").kernel_.training_product().by_leaf is not None


def test_a_factor_that_a_scheme_changes_is_read_again(iris, forest):
    """Only an array that cannot be written to is taken for the one of the fit."""
    X, y = iris

    class Growing(WeightScheme):
        symmetric = False
        scale = 1.0

        def query(self, samples, forest):
            return Weighting(by_leaf=np.full(forest.n_leaves, self.scale))

        def reference(self, samples, forest):
            return Weighting(by_entry=np.ones(samples.leaf.shape))

    prox = ForestProximity(forest, Growing()).fit(X, y)
    before = prox.weighted_sums(np.ones(150), X[:1])
    prox.scheme_.scale = 3.0
    assert_allclose(prox.weighted_sums(np.ones(150), X[:1]), 3 * before)
