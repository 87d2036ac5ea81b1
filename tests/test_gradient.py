"""The scheme "gradient" on scikit-learn models: exact sums and errors."""

import pickle

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import Batches, ForestProximity
from leafkernel.inside import Inside
from leafkernel.schemes import Gradient

xgboost = pytest.importorskip("xgboost")

SMALL = {"n_estimators": 8, "max_depth": 3}
HIST = {"max_iter": 8, "min_samples_leaf": 5}


def fit(model, X, y, weights=None, output=None, **params):
    params = {"dtype": np.float64, **params}
    return ForestProximity(model, Gradient(output), **params).fit(X, y, weights)


def raw_scores(model, X):
    """The raw scores of a model, shape (m,) or (m, K)."""
    if hasattr(model, "_raw_predict"):
        scores = model._raw_predict(np.asarray(X, dtype=np.float32))
    else:
        scores = model.decision_function(X)
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def check_sums(prox, X_new, expected, of_training, atol=1e-10):
    ones = np.ones(prox.n_samples_fit_)
    for X, scores in ((X_new, expected), (None, of_training)):
        assert_allclose(prox.weighted_sums(ones, X) + prox.base_score_, scores, atol=atol, rtol=0)
        sums = np.asarray(prox.proximity(X).sum(axis=1)).ravel()
        assert_allclose(sums + prox.base_score_, scores, atol=atol, rtol=0)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n = draw(st.integers(10, 60))
    # Few distinct values: ties, and leaves with indistinguishable samples.
    X = rng.integers(0, draw(st.sampled_from([2, 6, 50])), (n, 3)).astype(float)
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    n_classes = draw(st.sampled_from([0, 2, 3]))
    if n_classes:
        y = np.array(["no", "perhaps", "yes"])[np.argsort(np.argsort(y)) % n_classes]
    weights = draw(st.sampled_from([None, "counts", "numbers"]))
    if weights is not None:
        weights = rng.integers(1, 4, n) if weights == "counts" else rng.random(n) + 0.1
    return X, y, weights, X[:5] + 0.3


@given(problems(), st.data())
def test_sums_are_scores(problem, data):
    X, y, weights, X_new = problem
    draw = data.draw
    params = {
        "n_estimators": draw(st.sampled_from([1, 5, 12])),
        "max_depth": draw(st.sampled_from([1, 3])),
        "learning_rate": draw(st.sampled_from([0.1, 1.0])),
        "subsample": draw(st.sampled_from([1.0, 0.6])),
        "random_state": 7,
    }
    labels = np.unique(y)
    if len(labels) <= 3:
        loss = (
            draw(st.sampled_from(["log_loss", "exponential"])) if len(labels) == 2 else "log_loss"
        )
        model = GradientBoostingClassifier(loss=loss, **params).fit(X, y, weights)
    else:
        loss = draw(st.sampled_from(["squared_error", "huber"]))
        model = GradientBoostingRegressor(loss=loss, **params).fit(X, y, weights)
    for k, label in enumerate(labels if len(labels) == 3 else [None]):
        prox = fit(model, X, y, weights, label)
        scores = [raw_scores(model, rows) for rows in (X_new, X)]
        scores = [of[:, k] if of.ndim == 2 else of for of in scores]
        # Scores of a rate of 1 may explode, and large contributions cancel.
        size = max(np.abs(prox.proximity(rows)).sum(axis=1).max() for rows in (None, X_new))
        check_sums(prox, X_new, *scores, atol=1e-10 * max(1.0, 1e-3 * size))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("loss", "params"),
    [
        ("squared_error", {}),
        ("poisson", {"l2_regularization": 2.0}),
        ("gamma", {"early_stopping": True, "random_state": 0}),
        ("log_loss", {"class_weight": "balanced"}),
        ("log_loss", {"early_stopping": True}),
        ("multiclass", {"early_stopping": True, "learning_rate": 0.5}),
    ],
)
def test_hist_gradient_boosting(rng, loss, params, weighted):
    X = rng.normal(size=(150, 3))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=150))
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.random(150) + 0.1 if weighted else None
    if loss in ("log_loss", "multiclass"):
        y = np.digitize(y, [1.0] if loss == "log_loss" else [0.5, 1.0, 2.0])
        model = HistGradientBoostingClassifier(**HIST, **params).fit(X, y, weights)
    else:
        model = HistGradientBoostingRegressor(loss=loss, **HIST, **params).fit(X, y, weights)
    outputs = range(4) if loss == "multiclass" else [None]
    prox = fit(model, X, y, weights, outputs[0])
    X_new = rng.normal(size=(9, 3))
    for k in outputs:
        scores = [raw_scores(model, rows) for rows in (X_new, X)]
        scores = [of if k is None else of[:, k] for of in scores]
        check_sums(prox.reweigh(Gradient(k)), X_new, *scores)


def test_categories_and_missing_values(table):
    X, y = table
    X = X.assign(kind=X["kind"].cat.codes)
    model = HistGradientBoostingRegressor(
        categorical_features=[1], max_iter=10, min_samples_leaf=5
    ).fit(X, y)
    check_sums(fit(model, X, y), X[:9], model.predict(X[:9]), model.predict(X))


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_equals_a_double_loop(rng, engine):
    """From the staged scores of the model and the formula alone."""
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    weights = rng.random(60) + 0.5
    model = GradientBoostingClassifier(**SMALL, learning_rate=0.4).fit(X, y, weights)
    X_new = rng.normal(size=(7, 3))
    prior = np.average(y, weights=weights)
    staged = [s[:, 0] for s in model.staged_decision_function(X)]
    before = [np.full(60, np.log(prior / (1 - prior))), *staged[:-1]]

    def derivatives(scores):
        p = 1 / (1 + np.exp(-scores))
        return weights * (p - y), weights * p * (1 - p)

    prox = fit(model, X, y, weights, engine=engine)
    leaf = model.apply(X)[:, :, 0]
    for rows in (None, X_new):
        at = leaf if rows is None else model.apply(rows)[:, :, 0]
        slow = oracles.gradient_proximity(at, leaf, before, derivatives, lambda H: -0.4 / H)
        assert_allclose(prox.proximity(rows).toarray(), slow, atol=1e-12)
        assert_allclose(prox.weighted_sums(y, rows), slow @ y, atol=1e-12)


def test_leaves_whose_gradients_cancel():
    """Where G = 0, a share of the leaf's value is 0/0, but -eta g / H is not."""
    X = np.repeat([[0.0], [1.0]], 4, axis=0)
    y = np.array([-3.0, 3, -1, 1, 9, 11, 8, 12])
    model = GradientBoostingRegressor(n_estimators=3, learning_rate=1.0, max_depth=1).fit(X, y)
    P = fit(model, X, y).proximity().toarray()
    # After the first tree all leaves have G = 0 up to rounding, and their samples go on to push.
    residual = y - np.repeat([0.0, 10.0], 4)
    expected = np.where(X == X.T, (y - 5) / 4 + 2 * residual / 4, 0)
    assert_allclose(P, expected, atol=1e-12)
    assert_allclose(P.sum(axis=1), model.predict(X) - 5, atol=1e-12)


def test_classes_are_chosen_by_label(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    model = GradientBoostingClassifier(**SMALL, random_state=0).fit(X, names)
    first = fit(model, X, names, output="a")
    ones = np.ones(len(X))
    scores = np.stack(
        [(p := first.reweigh(Gradient(k))).weighted_sums(ones, X) + p.base_score_ for k in "abc"], 1
    )
    powers = np.exp(scores)
    assert_allclose(powers / powers.sum(axis=1, keepdims=True), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"several outputs: \['a', 'b', 'c'\].*output='a'"):
        fit(model, X, names)
    with pytest.raises(ValueError, match=r"output='d' is not an output.*\['a', 'b', 'c'\]"):
        fit(model, X, names, output="d")
    two = GradientBoostingClassifier(**SMALL).fit(X, names == "b")
    assert fit(two, X, names == "b", output=True).base_score_ == pytest.approx(np.log(0.5))
    with pytest.raises(ValueError, match="one output: its second class"):
        fit(two, X, names == "b", output=False)


def test_one_fit_serves_all_that_is_asked(rng, tmp_path):
    X = rng.normal(size=(80, 3))
    y = X[:, 0] ** 2 + rng.normal(size=80)
    weights = rng.random(80) + 0.5
    model = GradientBoostingRegressor(**SMALL, subsample=0.8, random_state=3).fit(X, y, weights)
    prox = fit(model, X, y, weights)
    P = prox.proximity().toarray()
    assert not prox.scheme_.symmetric
    assert prox.scheme_.signed
    for by, size in (("value", P), ("magnitude", np.abs(P))):
        similarity, rows = prox.kneighbors(n_neighbors=5, by=by)
        for i in range(80):
            order = np.argsort(-size[i], kind="stable")
            order = order[order != i][:5]
            assert_array_equal(rows[i], order)
            assert_array_equal(similarity[i], P[i, order])
    assert_allclose(prox.operator().T @ np.ones(80), P.sum(axis=0))
    assert_allclose(fit(model, X, y, weights, dtype=np.float32).proximity().toarray(), P, atol=1e-6)

    back = prox.reweigh("kerf").reweigh("gradient")
    assert_array_equal(back.proximity().toarray(), P)
    assert back.base_score_ == prox.base_score_
    late = ForestProximity(model, "uniform", dtype=np.float64).fit(X, y, weights)
    assert_array_equal(late.reweigh("gradient").proximity().toarray(), P)
    loaded = ForestProximity.load(prox.save(tmp_path / "saved"))
    for other in (pickle.loads(pickle.dumps(prox)), loaded, loaded.reweigh("gradient")):
        assert_array_equal(
            other.proximity(X[:9] + 0.1).toarray(), prox.proximity(X[:9] + 0.1).toarray()
        )
        assert other.base_score_ == prox.base_score_
    both = prox.reweigh(symmetrize=True)
    assert_allclose(both.proximity().toarray(), (P + P.T) / 2, atol=1e-12)
    # An unseen sample has no gradient, so it contributes nothing to others.
    assert_allclose(
        both.proximity(X[:3]).toarray(), prox.proximity(X[:3]).toarray() / 2, atol=1e-12
    )
    scaled = make_pipeline(StandardScaler(), GradientBoostingRegressor(**SMALL)).fit(X, y)
    check_sums(fit(scaled, X, y), X[:5], scaled.predict(X[:5]), scaled.predict(X))


def test_saved_kernels_of_classes(iris, tmp_path):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    model = GradientBoostingClassifier(**SMALL).fit(X, names)
    prox = fit(model, X, names, output=np.unique(names)[1])
    loaded = ForestProximity.load(prox.save(tmp_path / "saved"))
    assert loaded.scheme_ == prox.scheme_
    other = loaded.reweigh(Gradient("c"))
    scores = other.weighted_sums(np.ones(len(X)), X) + other.base_score_
    assert_allclose(scores, model.decision_function(X)[:, 2], atol=1e-10)


def test_what_does_not_work_is_said(rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    model = GradientBoostingRegressor(**SMALL).fit(X, y)
    prox = fit(model, X, y)
    with pytest.raises(ValueError, match="negative weights, so averages are not defined"):
        prox.weighted_average(y)
    with pytest.raises(ValueError, match=r"new samples have none\. Use 'kerf'"):
        prox.extend(X, y)
    with pytest.raises(ValueError, match="does not work with Batches"):
        ForestProximity(model, "gradient").fit(Batches.from_arrays(X, y, batch_rows=30))
    with pytest.raises(AttributeError, match="weight_scheme='gradient'"):
        _ = ForestProximity(model, "kerf").fit(X, y).base_score_
    dask = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="all samples in one process"):
        ForestProximity(model, "gradient").fit(dask.from_array(X), dask.from_array(y))


def test_models_of_other_samples_are_refused(rng):
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + rng.normal(size=100)
    model = GradientBoostingRegressor(**SMALL).fit(X, y)
    one = y.copy()
    one[17] += 0.01
    cases = [
        (X, y[::-1], None),
        (X[::-1], y, None),
        (X[:90], y[:90], None),
        (np.vstack([X, X[:1]]), np.append(y, y[0]), None),
        (X, y, rng.random(100)),
        (X, one, None),
    ]
    for rows, targets, weights in cases:
        with pytest.raises(
            ValueError, match=r"do not reproduce the leaf values of .*: leaf \d+ of tree"
        ):
            fit(model, rows, targets, weights)
    classifier = GradientBoostingClassifier(**SMALL).fit(X, y > 0)
    with pytest.raises(ValueError, match="'perhaps', which is not a class of the model"):
        fit(classifier, X, np.full(100, "perhaps"))
    with pytest.raises(ValueError, match="depend on the targets; pass y"):
        fit(model, X, None)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (GradientBoostingRegressor(loss="absolute_error", **SMALL), "medians of residuals"),
        (GradientBoostingRegressor(loss="quantile", **SMALL), "quantiles of residuals"),
        (HistGradientBoostingRegressor(loss="absolute_error", **HIST), "medians of residuals"),
        (
            GradientBoostingRegressor(init=LinearRegression(), **SMALL),
            "different initial score",
        ),
        (GradientBoostingRegressor(subsample=0.5, **SMALL), "train it with an integer"),
        (GradientBoostingRegressor(n_iter_no_change=2, **SMALL), "train it with an integer"),
        (HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0], **HIST), "monotonic constraints"),
        (RandomForestClassifier(3), "Use 'gap' for a random forest"),
    ],
)
def test_models_that_are_not_sums_are_refused(rng, model, reason):
    X = rng.normal(size=(80, 3))
    y = np.round(X[:, 0] + rng.normal(size=80))
    with pytest.raises(ValueError, match=reason):
        fit(model.fit(X, y), X, y)


def test_leaf_ids_alone_have_no_gradients():
    with pytest.raises(ValueError, match="needs gradients"):
        ForestProximity.from_leaves([[0], [1]], y=[0, 1], weight_scheme="gradient")


def test_derivatives_of_your_own(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    model = xgboost.XGBRegressor(n_estimators=5, objective="count:poisson").fit(X, y)
    own = Gradient(objective=lambda y, s: (np.exp(s) - y, np.exp(s + np.float32(0.7))))
    prox = ForestProximity(model, own, dtype=np.float64).fit(X, y)
    assert_allclose(prox.proximity().toarray(), fit(model, X, y).proximity().toarray(), atol=1e-7)
    loaded = ForestProximity.load(prox.save(tmp_path / "saved"))
    assert_array_equal(loaded.reweigh("gradient").proximity().toarray(), prox.proximity().toarray())
    for wrong, reason in (
        (lambda y, s: (s - y, np.ones_like(s)), "do not reproduce"),
        (lambda y, s: (s * np.nan, s), "not finite before round 0"),
    ):
        with pytest.raises(ValueError, match=reason):
            ForestProximity(model, Gradient(objective=wrong)).fit(X, y)


def test_held_out_and_undrawn_samples_weigh_nothing(rng):
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + rng.normal(size=100)
    model = GradientBoostingRegressor(
        n_estimators=30, n_iter_no_change=3, subsample=0.7, random_state=5
    ).fit(X, y)
    parts = Inside.of(fit(model, X, y)).samples.contributions
    trees = model.estimators_.ravel()
    drawn = (parts != 0).sum(axis=0)
    assert_array_equal(drawn, [tree.tree_.n_node_samples[0] for tree in trees])
    assert (~parts.any(axis=1)).sum() >= 10  # validation_fraction=0.1
