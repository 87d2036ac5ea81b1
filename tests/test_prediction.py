"""Prediction by proximity: the forest's own numbers, quantiles, intervals, trust."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from quantile_forest import RandomForestQuantileRegressor
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.tasks import ProximityClassifier, ProximityRegressor, trust_scores

SCHEMES = ["gap", "uniform", "kerf", "oob", "oob_separable"]


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(700, noise=1.0, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


def doubles(forest, scheme):
    return ForestProximity(forest, scheme, dtype=np.float64)


def test_gap_is_the_forest(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X, y)
    model = ProximityRegressor(doubles(forest, "gap")).fit(X, y)
    assert_allclose(model.predict(X), forest.predict(X), rtol=1e-10)
    assert_allclose(model.predict(), forest.oob_prediction_, rtol=1e-10)


def test_gap_is_the_forest_for_classes(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, names)
    model = ProximityClassifier(doubles(forest, "gap")).fit(X, names)
    assert_allclose(model.predict_proba(X), forest.predict_proba(X), atol=1e-12)
    assert_allclose(model.predict_proba(), forest.oob_decision_function_, atol=1e-12)
    assert_array_equal(model.classes_, forest.classes_)
    assert_array_equal(model.predict(X), forest.predict(X))


def without_self(P, X):
    """No training sample votes for itself."""
    if X is None:
        np.fill_diagonal(P, 0)
    return P


@pytest.mark.parametrize("scheme", SCHEMES)
def test_any_scheme_is_rows_of_p_times_targets(iris, scheme):
    X, y = iris
    prox = doubles(RandomForestClassifier(40, random_state=0), scheme).fit(X, y)
    model = ProximityClassifier(prox).fit(X, y)
    for new in (None, X[::7] + 0.1):
        P = without_self(prox.proximity(new).toarray(), new)
        assert_allclose(model.predict_proba(new), P @ np.eye(3)[y] / P.sum(1, keepdims=True))


def test_only_the_nearest_vote(iris):
    X, y = iris
    prox = doubles(RandomForestClassifier(40, random_state=0), "uniform").fit(X, y)
    model = ProximityClassifier(prox, n_neighbors=5).fit(X, y)
    P = prox.proximity(X[:20] + 0.2).toarray()
    for row, shares in zip(P, model.predict_proba(X[:20] + 0.2), strict=True):
        nearest = np.argsort(-row, kind="stable")[:5]
        votes = np.bincount(y[nearest], weights=row[nearest], minlength=3)
        assert_allclose(shares, votes / votes.sum())


def test_samples_like_no_other_get_what_all_would_predict():
    leaves = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [1, 1]])
    prox = ForestProximity.from_leaves(leaves)
    y = np.array([0, 0, 1, 1, 1])
    far = [[7, 7], [0, 0]]
    with pytest.warns(LeafkernelWarning, match="1 of 2 samples have no proximity"):
        shares = ProximityClassifier(prox).fit(leaves, y).predict_proba(far)
    assert_allclose(shares, [[0.4, 0.6], [1, 0]])
    numbers = ProximityRegressor(prox).fit(leaves, y * 10.0)
    with pytest.warns(LeafkernelWarning, match="no proximity"):
        assert_allclose(numbers.predict(far), [6, 0])
    with pytest.warns(LeafkernelWarning, match="no proximity"):
        assert_allclose(numbers.predict_quantiles(far, [0.3, 0.5]), [[0, 10], [0, 0]])
    with pytest.warns(LeafkernelWarning, match="no proximity"):
        assert_allclose(numbers.predict_quantiles(far[:1], [0.3, 0.5]), [[0, 10]])


def weighted_quantile(values, weights, level):
    """The smallest value whose cumulated share reaches the level: the definition."""
    values, weights = values[weights > 0], weights[weights > 0]
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.flatnonzero(shares >= level - 1e-9)[0]]


@pytest.mark.parametrize("scheme", ["gap", "uniform", "oob"])
def test_quantiles_are_those_of_the_weighted_targets(diabetes, scheme):
    X, y = diabetes
    prox = doubles(RandomForestRegressor(30, random_state=0), scheme).fit(X, y)
    model = ProximityRegressor(prox).fit(X, y)
    levels = [0, 0.05, 0.5, 0.77, 1]
    for new in (None, X[:30] + 0.01):
        found = model.predict_quantiles(new, levels)
        P = without_self(prox.proximity(new).toarray(), new)
        expected = [[weighted_quantile(y, row, level) for level in levels] for row in P]
        assert_allclose(found, expected)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.integers(0, 5),
)
def test_quantiles_of_any_targets_and_levels(leaves, levels, seed):
    leaves = np.array(leaves)
    y = np.random.default_rng(seed).integers(0, 6, len(leaves)).astype(float)  # many ties
    prox = ForestProximity.from_leaves(leaves, dtype=np.float64)
    found = ProximityRegressor(prox).fit(leaves, y).predict_quantiles(leaves, levels)
    P = prox.proximity(leaves).toarray()
    expected = [[weighted_quantile(y, row, level) for level in levels] for row in P]
    # If a share equals a level up to rounding, both neighboring values are correct.
    shares = np.cumsum(P[:, np.argsort(y, kind="stable")], axis=1) / P.sum(1, keepdims=True)
    near = np.abs(shares[:, :, None] - np.array(levels)).min(axis=1)
    clear = (near > 1e-6) | (near < 1e-12)
    assert_array_equal(found[clear], np.array(expected)[clear])


def test_quantiles_of_the_nearest_alone(diabetes):
    X, y = diabetes
    prox = doubles(RandomForestRegressor(30, random_state=0), "gap").fit(X, y)
    model = ProximityRegressor(prox, n_neighbors=7).fit(X, y)
    for new in (None, X[:20] + 0.01):
        weights, rows = prox.kneighbors(new, 7)
        expected = [
            [weighted_quantile(y[row], weight, level) for level in (0.2, 0.8)]
            for row, weight in zip(rows, weights, strict=True)
        ]
        assert_allclose(model.predict_quantiles(new, (0.2, 0.8)), expected)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
        ProximityRegressor(prox, n_neighbors=0).fit(X, y)


def test_quantiles_agree_with_quantile_forest(friedman):
    X, y, X_new, _ = friedman
    levels = [0.1, 0.5, 0.9]
    theirs = RandomForestQuantileRegressor(
        100, min_samples_leaf=5, max_samples_leaf=None, random_state=0
    ).fit(X, y)
    model = ProximityRegressor(doubles(theirs, "gap")).fit(X, y)
    ours = model.predict_quantiles(X_new, levels)
    expected = theirs.predict(X_new, quantiles=levels, interpolation="nearest")
    spread = y.std()
    # They interpolate between targets and we do not: as far apart as neighboring targets are.
    assert np.abs(ours - expected).mean() < 0.03 * spread
    assert np.corrcoef(ours.ravel(), expected.ravel())[0, 1] > 0.995


def coverage_of(intervals, y):
    return ((intervals[:, 0] <= y) & (y <= intervals[:, 1])).mean()


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_calibrated_intervals_cover_what_they_claim(friedman, coverage):
    X, y, X_new, y_new = friedman
    model = ProximityRegressor(RandomForestRegressor(100, random_state=0)).fit(X, y)
    model.calibrate(coverage=coverage)
    measured = coverage_of(model.predict_interval(X_new), y_new)
    assert model.coverage_score(X_new, y_new) == measured
    assert abs(measured - coverage) < 0.06  # 400 samples: two standard deviations are 0.05 at most
    assert model.calibration_.n_samples == 300
    tail = (1 - coverage) / 2
    plain = coverage_of(model.fit(X, y).predict_quantiles(None, (tail, 1 - tail)), y)
    assert_allclose(model.calibrate(coverage=coverage).calibration_.plain_coverage, plain)


def test_intervals_are_calibrated_unless_asked_otherwise(friedman):
    """Plain intervals cover too little if leaves have one row, so intervals are calibrated."""
    X, y, X_new, _ = friedman
    model = ProximityRegressor(RandomForestRegressor(60, random_state=0)).fit(X, y)
    for coverage in (0.5, 0.9):
        found = model.predict_interval(X_new, coverage=coverage)
        by_hand = ProximityRegressor(model.proximity_).fit(X).calibrate(coverage=coverage)
        assert_array_equal(found, by_hand.predict_interval(X_new))
    assert_array_equal(model.predict_interval(X_new), found)  # 0.9 is the default
    assert not hasattr(model, "calibration_")
    model.calibrate(coverage=0.5)
    assert_array_equal(model.predict_interval(X_new, coverage=0.9), found)

    plain = ProximityRegressor(ForestProximity(model.proximity_.forest_, "uniform")).fit(X, y)
    with pytest.warns(LeafkernelWarning, match="not calibrated: only .* got 'uniform'"):
        found = plain.predict_interval(X_new)
    assert_array_equal(found, plain.predict_quantiles(X_new, (0.05, 0.95)))
    few = ProximityRegressor(RandomForestRegressor(200, random_state=0)).fit(X[:8], y[:8])
    with pytest.warns(LeafkernelWarning, match="8 training samples are too few"):
        few.predict_interval(X_new)


def test_calibration_on_samples_kept_aside(friedman):
    X, y, X_new, y_new = friedman
    forest = RandomForestRegressor(60, random_state=0)
    model = ProximityRegressor(ForestProximity(forest, "uniform")).fit(X, y)
    model.calibrate(X_new[:200], y_new[:200], coverage=0.8)
    assert abs(coverage_of(model.predict_interval(X_new[200:]), y_new[200:]) - 0.8) < 0.08


def test_intervals_of_one_calibration_are_not_taken_for_another(friedman):
    X, y, X_new, y_new = friedman
    model = ProximityRegressor(RandomForestRegressor(30, random_state=0)).fit(X, y)
    assert model.predict_interval(X_new[:3]).shape == (3, 2)
    model.calibrate(X_new, y_new, coverage=0.8)
    with pytest.raises(ValueError, match=r"only coverage=0.8. Call calibrate\(X, y, cov"):
        model.predict_interval(X_new, coverage=0.9)
    with pytest.raises(
        ValueError, match=r"coverage=0.9 requires at least 9 calibration samples; got 3"
    ):
        model.calibrate(X_new[:3], y_new[:3])
    with pytest.raises(ValueError, match="X and y must be passed together"):
        model.calibrate(X_new)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        model.calibrate(coverage=90)
    for seeing in ({"weight_scheme": "uniform"}, {"diagonal": "one"}, {"symmetrize": True}):
        seen = ProximityRegressor(ForestProximity(model.proximity, **seeing)).fit(X, y)
        with pytest.raises(ValueError, match="predictions are not out of bag"):
            seen.calibrate()
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        ProximityRegressor(model.proximity).fit(X, y).predict_interval(X_new, coverage=0)
    nine = ProximityRegressor(model.proximity).fit(X, y).calibrate(X_new[:9], y_new[:9])
    assert nine.calibration_.n_samples == 9


def test_several_targets(diabetes):
    X, y = diabetes
    both = np.column_stack([y, -y])
    forest = RandomForestRegressor(40, random_state=0).fit(X, both)
    model = ProximityRegressor(doubles(forest, "gap")).fit(X, both)
    assert_allclose(model.predict(X), forest.predict(X), rtol=1e-10)
    with pytest.raises(ValueError, match="y has 2 targets, but quantiles require a single target"):
        model.predict_quantiles(X)


def test_quantiles_must_be_shares(diabetes):
    X, y = diabetes
    model = ProximityRegressor(RandomForestRegressor(40, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        model.predict_quantiles(X, [5, 95])


def test_trust_is_the_mass_on_samples_that_were_right(iris):
    X, y = iris
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, y)
    right = forest.oob_decision_function_.argmax(axis=1) == y
    assert 0 < (~right).sum() < 20
    for scheme in ("gap", "uniform"):
        prox = doubles(forest, scheme).fit(X, y)
        for new in (None, X[60:80] + 0.1):
            P = without_self(prox.proximity(new).toarray(), new)
            assert_allclose(trust_scores(prox, new, y=y), P @ right / P.sum(axis=1))
    known = trust_scores(prox, y=y, correct=np.ones(len(y), dtype=bool))
    assert_allclose(known, 1)


def test_trust_is_low_where_the_forest_errs():
    X, y = make_classification(800, class_sep=0.7, flip_y=0.0, random_state=0)
    prox = ForestProximity(RandomForestClassifier(100, random_state=0)).fit(X[:400], y[:400])
    trust = trust_scores(prox, X[400:], y=y[:400])
    wrong = prox.forest_.predict(X[400:]) != y[400:]
    assert wrong.sum() > 20
    assert trust[wrong].mean() < trust[~wrong].mean() - 0.05


def test_trust_looks_into_pipelines(iris):
    X, y = iris
    forest = RandomForestClassifier(60, oob_score=True, random_state=0)
    prox = ForestProximity(make_pipeline(StandardScaler(), forest), "uniform").fit(X, y)
    assert 0 < trust_scores(prox, y=y).min() < 0.9


def test_trust_does_not_take_itself_for_a_witness(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(60, random_state=0), diagonal="one").fit(X, y)
    with pytest.raises(ValueError, match="has no out-of-bag predictions of the training"):
        trust_scores(prox, y=y)


def test_trust_needs_to_know_what_was_right(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(40, random_state=0), "uniform").fit(X, y)
    with pytest.raises(ValueError, match="Use 'gap', fit the forest with oob_score=True, or pass"):
        trust_scores(prox, y=y)
    with pytest.raises(ValueError, match="correct has 3 rows, but there are 150"):
        trust_scores(prox, y=y, correct=[True] * 3)
    with pytest.raises(TypeError, match="For a forest, use"):
        trust_scores(prox.forest_, y=y)
