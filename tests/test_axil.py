"""AXIL: predictions of boosted regression as weighted sums of the training targets."""

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from leafkernel import ForestProximity
from leafkernel.inside import Inside
from leafkernel.tasks import AxilAttribution

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}

# Each with its learning rate and its L2 term.
MODELS = {
    "gradient": (GradientBoostingRegressor(n_estimators=12, learning_rate=0.25), 0.25, 0.0),
    "hist": (HistGradientBoostingRegressor(max_iter=12, l2_regularization=2.0), 0.1, 2.0),
    "lightgbm": (
        lightgbm.LGBMRegressor(n_estimators=12, reg_lambda=3.0, verbose=-1, n_jobs=1),
        0.1,
        3.0,
    ),
    "xgboost": (xgboost.XGBRegressor(n_estimators=12, max_depth=3, n_jobs=1), 0.3, 1.0),
    "catboost": (
        catboost.CatBoostRegressor(iterations=12, depth=3, learning_rate=0.25, **QUIET),
        0.25,
        3.0,
    ),
}


def problem(rng, n=90):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) + 3, rng.normal(size=(7, 3))


@given(st.integers(0, 999), st.sampled_from([0.1, 1.0]), st.integers(1, 4), st.booleans())
def test_equals_the_published_recursion(seed, rate, depth, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (30, 2)).astype(float)
    y, X_new = rng.normal(size=30), X[:5] + 0.4
    weights = rng.random(30) + 0.1 if weighted else None
    model = GradientBoostingRegressor(n_estimators=6, learning_rate=rate, max_depth=depth)
    prox = ForestProximity(model.fit(X, y, weights), "uniform").fit(X, y, weights)
    axil = AxilAttribution(prox)
    leaf, new = Inside.of(prox).samples.leaf, Inside.of(prox).route(X_new).leaf
    counts = np.ones(30) if weights is None else weights
    G, of_new = oracles.axil_recursion(leaf, new, counts, rate, 0.0)
    assert_allclose(axil.weights(), G, atol=1e-10)
    assert_allclose(axil.weights(X_new), of_new, atol=1e-10)
    v = rng.normal(size=(30, 2))
    assert_allclose(axil.operator(X_new) @ v, of_new @ v, atol=1e-10)
    assert_allclose(axil.operator() @ y, model.predict(X), atol=1e-10)
    assert_allclose(axil.operator(X_new).T @ v[:5], of_new.T @ v[:5], atol=1e-10)
    assert_allclose(axil.weights(X_new).sum(axis=1), 1, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_library(rng, name, weighted):
    X, y, X_new = problem(rng)
    model, rate, l2 = MODELS[name]
    weights = rng.integers(1, 5, len(y)) / 2 if weighted else None
    model.fit(X, y, sample_weight=weights)
    prox = ForestProximity(model, "gradient").fit(X, y, weights)
    axil = AxilAttribution(prox)
    assert_allclose(axil.operator(X_new) @ y, model.predict(X_new), atol=2e-6)
    assert_allclose(axil.weights(X_new).sum(axis=1), 1, atol=1e-12)
    counts = np.ones(len(y)) if weights is None else weights
    l2 = l2 * counts.mean() if name == "catboost" else l2
    inside = Inside.of(prox)
    leaf, new = inside.samples.leaf, inside.route(X_new).leaf
    G, of_new = oracles.axil_recursion(leaf, new, counts, rate, l2)
    # Libraries round the learning rate to float32.
    atol = 1e-10 if name == "gradient" else 1e-7
    assert_allclose(axil.weights(X_new), of_new, atol=atol)
    assert_allclose(axil.weights(), G, atol=atol)


def test_what_the_model_would_say_for_other_targets(rng):
    """G keeps the trees fixed. Compare with leaf values computed from other targets."""
    X, y, _ = problem(rng)
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, y)
    axil = AxilAttribution(fit_uniform(model, X, y))
    other = rng.normal(size=len(y))
    scores = np.full(len(y), other.mean())
    for leaf in model.apply(X).T:
        residual = other - scores
        for node in np.unique(leaf):
            scores[leaf == node] += 0.1 * residual[leaf == node].mean()
    assert_allclose(axil.operator() @ other, scores, atol=1e-12)


def fit_uniform(model, X, y):
    return ForestProximity(model, "uniform").fit(X, y)


def test_largest_weights_of_both_signs(rng, monkeypatch):
    X, y, X_new = problem(rng)
    rows = pd.DataFrame(X, columns=list("abc"), index=[f"row{i}" for i in range(len(y))])
    model = GradientBoostingRegressor(n_estimators=10).fit(rows, y)
    axil = AxilAttribution(fit_uniform(model, rows, y))
    new = pd.DataFrame(X_new, columns=list("abc"))
    W = axil.weights(new)
    monkeypatch.setattr("leafkernel.tasks.attribution._NUMBERS_AT_ONCE", 3 * len(y))
    assert_array_equal(axil.weights(new), W)
    found = axil.largest(new, 4)
    up, down = np.argsort(-W, axis=1, kind="stable")[:, :4], np.argsort(W, axis=1, kind="stable")
    labels = rows.index.to_numpy()
    assert_array_equal(found.up_rows, labels[up])
    assert_array_equal(found.down_rows, labels[down[:, :4]])
    assert_array_equal(found.up_weights, np.take_along_axis(W, up, 1))
    assert_array_equal(found.down_weights, np.take_along_axis(W, down[:, :4], 1))
    assert (found.down_weights < 0).any()
    with pytest.raises(ValueError, match="n_rows=91 is too large: there are only 90"):
        axil.largest(new, 91)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (GradientBoostingRegressor(subsample=0.5, random_state=0), "was trained with subsampling"),
        (GradientBoostingRegressor(loss="huber"), "not trained with squared loss"),
        (GradientBoostingRegressor(loss="absolute_error"), "medians"),
        (GradientBoostingRegressor(init="zero"), "not from the mean of the targets"),
        (GradientBoostingClassifier(n_estimators=3), "not trained with squared loss"),
        (lightgbm.LGBMRegressor(verbose=-1, reg_alpha=5.0), "not proportional"),
        (lightgbm.LGBMRegressor(verbose=-1, max_delta_step=0.1), "not proportional"),
        (xgboost.XGBRegressor(base_score=0.0), "the base score 0, not from the mean"),
        (xgboost.XGBRegressor(subsample=0.5), "was trained with subsampling"),
        (
            catboost.CatBoostRegressor(iterations=3, leaf_estimation_iterations=3, **QUIET),
            "several iterations",
        ),
        (RandomForestRegressor(3), "not a gradient-boosted model"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_other_models_are_refused(rng, model, reason):
    X, y, _ = problem(rng)
    y = np.round(y)
    with pytest.raises(ValueError, match=reason):
        AxilAttribution(fit_uniform(model.fit(X, y), X, y))


def test_other_samples_are_refused(rng):
    X, y, _ = problem(rng)
    model = GradientBoostingRegressor(n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="do not reproduce the leaf values"):
        AxilAttribution(fit_uniform(model, X, y[::-1]))
    with pytest.raises(ValueError, match="y is required"):
        AxilAttribution(fit_uniform(model, X, None))
    with pytest.raises(TypeError, match="must be a fitted ForestProximity"):
        AxilAttribution(model)
