"""The scheme "gradient" on LightGBM, XGBoost and CatBoost: losses, options, draws, refusals."""

import numpy as np
import oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from leafkernel import ForestProximity
from leafkernel.inside import Inside
from leafkernel.schemes import Gradient

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

N = 200


@pytest.fixture(scope="module")
def data():
    """Rows with gaps, a query row, weights, and targets of all types."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    signal = X[:, 0] + X[:, 1] ** 2
    y = signal + rng.normal(size=N)
    X[rng.random(X.shape) < 0.05] = np.nan
    targets = {
        "numbers": y,
        "positive": np.exp(signal / 4) * rng.gamma(2, size=N) + 0.1,
        "counts": rng.poisson(np.exp(signal / 4)).astype(float),
        "shares": 1 / (1 + np.exp(-y)),
        "binary": (y > 1).astype(int),
        "classes": np.digitize(y, [0, 1, 2]),
        "several": np.stack([y, y**2], axis=1),
    }
    return X, targets, rng.integers(1, 4, N) + 0.3, rng.normal(size=(20, 4))


def check(model, raw, X, y, weights, X_new, *, output=None, objective=None):
    """Sums of rows against the model's own raw scores, in sample and out of sample."""
    scheme = Gradient(output, objective)
    prox = ForestProximity(model, scheme, dtype=np.float64).fit(X, y, weights)
    column = 0 if output is None else output
    for rows in (None, X_new):
        scores = np.asarray(raw(X if rows is None else rows)).reshape(
            len(X if rows is None else rows), -1
        )
        sums = prox.weighted_sums(np.ones(len(X)), rows) + prox.base_score_
        scale = max(1.0, np.abs(scores).max())
        assert_allclose(sums, scores[:, column], atol=1e-5 * scale, rtol=0)
    return prox


def refused(model, X, y, reason, weights=None, scheme="gradient"):
    with pytest.raises(ValueError, match=reason):
        ForestProximity(model, scheme).fit(X, y, weights)


def lgbm(kind="Regressor", **params):
    made = {"n_estimators": 8, "num_leaves": 7, "verbose": -1, "n_jobs": 1, "random_state": 0}
    return getattr(lightgbm, f"LGBM{kind}")(**{**made, **params})


def of_lightgbm(model):
    return lambda X: model.predict(X, raw_score=True)


GOSS = {"data_sample_strategy": "goss", "learning_rate": 0.5}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("target", "params"),
    [
        ("numbers", {}),
        ("numbers", {"reg_sqrt": True}),
        ("numbers", {"objective": "huber"}),
        ("numbers", {"objective": "fair"}),
        ("positive", {"objective": "gamma"}),
        ("positive", {"objective": "tweedie"}),
        ("counts", {"objective": "poisson"}),
        ("shares", {"objective": "cross_entropy"}),
        ("numbers", {"reg_lambda": 3.0, "reg_alpha": 4.0}),
        ("numbers", {"max_delta_step": 0.2, "boost_from_average": False}),
        ("numbers", {"subsample": 0.5, "subsample_freq": 2, "learning_rate": 0.123456789}),
        ("numbers", GOSS),
        ("numbers", {"boosting_type": "dart", "n_estimators": 30, "drop_rate": 0.3}),
        ("numbers", {"boosting_type": "dart", "n_estimators": 20, "uniform_drop": True}),
        ("binary", {"boosting_type": "dart", "n_estimators": 30, "xgboost_dart_mode": True}),
        ("classes", {"boosting_type": "dart", "skip_drop": 0.1, "max_drop": 2}),
        ("binary", {}),
        ("binary", {"is_unbalance": True, "sigmoid": 2.0}),
        ("binary", {"scale_pos_weight": 3.0, "class_weight": "balanced"}),
        ("binary", {"subsample_freq": 1, "pos_bagging_fraction": 0.5}),
        ("binary", {"n_estimators": 80, "learning_rate": 0.3, "min_child_samples": 3}),
        ("classes", {}),
        ("classes", {"objective": "multiclassova", "is_unbalance": True}),
        ("classes", GOSS),
    ],
)
def test_lightgbm(data, target, params, weighted):
    X, targets, weights, X_new = data
    y, weights = targets[target], weights if weighted else None
    model = lgbm("Classifier" if target in ("binary", "classes") else "Regressor", **params)
    model.fit(X, y, weights)
    output = 2 if target == "classes" else None
    prox = check(model, of_lightgbm(model), X, y, weights, X_new, output=output)
    # Scores are float64 here, so the tolerance could be much smaller.
    scores = model.predict(X_new, raw_score=True).reshape(20, -1)[:, output or 0]
    sums = prox.weighted_sums(np.ones(N), X_new) + prox.base_score_
    assert_allclose(sums, scores, atol=1e-10)


def test_lightgbm_boosters_schedules_and_early_stopping(data):
    X, targets, weights, X_new = data
    y = targets["binary"]
    train = lightgbm.Dataset(X, y, weight=weights)
    held_out = lightgbm.Dataset(X_new, np.arange(20) % 2, reference=train)
    rates = lightgbm.reset_parameter(learning_rate=lambda i: 0.3 * 0.9**i)
    stop = lightgbm.early_stopping(3, verbose=False)
    params = {"objective": "binary", "num_leaves": 7, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(params, train, 40, valid_sets=[held_out], callbacks=[rates, stop])
    assert booster.best_iteration < 40
    prox = check(booster, of_lightgbm(booster), X, y, weights, X_new)
    assert prox.n_trees_ == booster.best_iteration
    check(
        lightgbm.Booster(model_str=booster.model_to_string()),
        of_lightgbm(booster),
        X,
        y,
        weights,
        X_new,
    )


def test_draws_of_lightgbm_among_many_rows(rng):
    """More rows than share a generator, and two threads that draw from a slice each."""
    X = rng.normal(size=(2500, 2))
    y = X[:, 0] + rng.normal(size=2500)
    for params in ({"subsample": 0.3, "subsample_freq": 1}, {**GOSS, "n_jobs": 2}):
        model = lgbm(n_estimators=5, **params).fit(X, y)
        check(model, of_lightgbm(model), X, y, None, X[:9])


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_categories(library, rng):
    n = 400
    X = pd.DataFrame(
        {"a": rng.normal(size=n), "many": rng.integers(0, 25, n), "few": rng.integers(0, 3, n)}
    )
    y = X["a"] + np.sin(X["many"]) * 2 + X["few"]
    X = X.astype({"many": "category", "few": "category"})
    if library == "lightgbm":
        model = lgbm(min_data_per_group=5).fit(X, y)
        raw = of_lightgbm(model)
        # Leaves below such splits have a different penalty.
        assert any(
            "cat_threshold" in part for part in model.booster_.model_to_string().split("Tree=")
        )
    else:
        model = xgb(enable_categorical=True).fit(X, y)
        raw = of_xgboost(model)
    check(model, raw, X, y, None, X[:20])


def test_own_objectives(data):
    X, targets, _, X_new = data
    y = targets["numbers"]

    def tanh(y, s):
        return np.tanh(s - y), np.ones_like(s)

    for model, raw in (
        (lgbm(objective=tanh).fit(X, y), of_lightgbm),
        (xgb(objective=tanh).fit(X, y), of_xgboost),
    ):
        check(model, raw(model), X, y, None, X_new, objective=tanh)
        refused(model, X, y, r"Gradient\(objective=")


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"objective": "regression_l1"}, "are medians of residuals"),
        ({"objective": "quantile"}, "are quantiles of residuals"),
        ({"objective": "mape"}, "are weighted medians"),
        ({"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}, "averages its trees"),
        ({"path_smooth": 1.0}, "path_smooth=1"),
        ({"use_quantized_grad": True}, "use_quantized_grad=1"),
        ({"linear_tree": True}, "linear_tree=True"),
        ({"monotone_constraints": [1, 0, 0, 0]}, "monotonic constraints"),
    ],
)
def test_lightgbm_refusals(data, params, reason):
    X, targets, _, _ = data
    y = targets["positive"]
    refused(lgbm(**params).fit(X, y), X, y, reason)


def test_models_of_other_samples_are_refused(data):
    X, targets, weights, _ = data
    y = targets["numbers"]
    several = {
        "lightgbm": (lgbm(), {"init_score": y / 2}),
        "xgboost": (xgb(), {"base_margin": y / 2}),
        "catboost": (cat(), {}),
    }
    for model, start in several.values():
        model.fit(X, y)
        wrong = r"do not reproduce the leaf values of .*: leaf \d+ of tree \d"
        refused(model, X, y[::-1], wrong)
        refused(model, X[::-1], y, wrong)
        refused(model, X, y, wrong, weights)
        refused(model, X[:150], y[:150], wrong)
        if start:
            refused(model.fit(X, y, **start), X, y, "an initial score or margin for each row")
    refused(
        lightgbm.LGBMRanker(n_estimators=2, verbose=-1).fit(X, targets["classes"], group=[N]),
        X,
        targets["classes"],
        "pairs of samples, not to single samples",
    )


def xgb(kind="Regressor", **params):
    made = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}
    return getattr(xgboost, f"XGB{kind}")(**{**made, **params})


def of_xgboost(model):
    return lambda X: model.predict(X, output_margin=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("target", "params"),
    [
        ("numbers", {}),
        ("numbers", {"objective": "reg:pseudohubererror", "eval_metric": "rmse"}),
        ("positive", {"objective": "reg:squaredlogerror"}),
        ("positive", {"objective": "reg:gamma"}),
        ("positive", {"objective": "reg:tweedie"}),
        ("counts", {"objective": "count:poisson"}),
        ("shares", {"objective": "reg:logistic"}),
        ("numbers", {"reg_lambda": 0.0, "reg_alpha": 4.0, "base_score": 2.0}),
        ("numbers", {"max_delta_step": 0.5, "tree_method": "exact"}),
        ("numbers", {"subsample": 0.5, "colsample_bynode": 0.5, "random_state": 3}),
        ("numbers", {"num_parallel_tree": 2, "subsample": 0.8}),
        ("binary", {"scale_pos_weight": 3.0}),
        ("binary", {"objective": "binary:hinge"}),
        ("binary", {"objective": "binary:logitraw"}),
        ("binary", {"n_estimators": 150, "min_child_weight": 0, "reg_lambda": 0}),
        ("classes", {}),
        ("classes", {"subsample": 0.5}),
        ("classes", {"multi_strategy": "multi_output_tree", "tree_method": "hist"}),
        ("several", {}),
        ("several", {"multi_strategy": "multi_output_tree", "tree_method": "hist"}),
    ],
)
def test_xgboost(data, target, params, weighted):
    X, targets, weights, X_new = data
    y, weights = targets[target], weights if weighted else None
    model = xgb("Classifier" if target in ("binary", "classes") else "Regressor", **params)
    model.fit(X, y, sample_weight=weights)
    output = 1 if target in ("classes", "several") else None
    check(model, of_xgboost(model), X, y, weights, X_new, output=output)


def test_xgboost_boosters_schedules_and_early_stopping(data):
    X, targets, _, X_new = data
    y = targets["classes"]
    rates = xgboost.callback.LearningRateScheduler(lambda i: 0.3 * 0.9**i)
    params = {"objective": "multi:softprob", "num_class": 4, "max_depth": 3, "nthread": 1}
    booster = xgboost.train(params, xgboost.DMatrix(X, y), 6, callbacks=[rates])

    def raw(rows):
        return booster.predict(xgboost.DMatrix(rows), output_margin=True)

    check(booster, raw, X, y, None, X_new, output=3)
    held_out = [(X_new, targets["numbers"][:20])]
    model = xgb(n_estimators=50, early_stopping_rounds=3)
    model.fit(X, targets["numbers"], eval_set=held_out, verbose=False)
    prox = check(model, of_xgboost(model), X, targets["numbers"], None, X_new)
    assert prox.n_trees_ == model.best_iteration + 1 < 50


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"objective": "reg:absoluteerror"}, "are medians of residuals"),
        ({"objective": "reg:quantileerror", "quantile_alpha": 0.5}, "are quantiles"),
        ({"booster": "dart", "rate_drop": 0.3}, "does not store which trees were dropped"),
        ({"monotone_constraints": (1, 0, 0, 0)}, "monotonic constraints"),
    ],
)
def test_xgboost_refusals(data, params, reason):
    X, targets, _, _ = data
    y = targets["numbers"]
    refused(xgb(**params).fit(X, y), X, y, reason)


def test_draws_of_xgboost_that_are_lost_are_refused(data, tmp_path):
    X, targets, _, _ = data
    y = targets["numbers"]
    model = xgb(subsample=0.5, random_state=9).fit(X, y)
    refused(model, X, y[::-1], "the draw of tree 0 cannot be reproduced with the seed 9")
    model.save_model(tmp_path / "model.json")
    loaded = xgboost.XGBRegressor()
    loaded.load_model(tmp_path / "model.json")
    refused(loaded, X, y, "do not reproduce|loaded from a file")
    ranker = xgboost.XGBRanker(n_estimators=2).fit(X, targets["classes"], qid=np.arange(N) // 10)
    refused(ranker, X, targets["classes"], "pairs of samples, not to single samples")


def cat(kind="Regressor", **params):
    made = {"iterations": 8, "depth": 3, "verbose": 0, "allow_writing_files": False}
    return getattr(catboost, f"CatBoost{kind}")(**{**made, "thread_count": 1, **params})


def of_catboost(model):
    return lambda X: model.predict(X, prediction_type="RawFormulaVal")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("target", "params"),
    [
        ("numbers", {}),
        ("numbers", {"loss_function": "Huber:delta=0.5"}),
        ("counts", {"loss_function": "Poisson"}),
        ("counts", {"loss_function": "Poisson", "leaf_estimation_iterations": 5}),
        ("positive", {"loss_function": "Tweedie:variance_power=1.4"}),
        ("numbers", {"l2_leaf_reg": 0, "boosting_type": "Ordered"}),
        ("numbers", {"leaf_estimation_method": "Gradient", "grow_policy": "Lossguide"}),
        ("numbers", {"bootstrap_type": "Bernoulli", "subsample": 0.5}),
        ("binary", {"leaf_estimation_iterations": 10, "iterations": 40, "learning_rate": 0.5}),
        ("binary", {"auto_class_weights": "Balanced", "boost_from_average": True}),
        ("binary", {"scale_pos_weight": 3.0}),
        ("classes", {}),
        ("classes", {"leaf_estimation_iterations": 3, "class_weights": [1, 2, 3, 4]}),
        ("classes", {"loss_function": "MultiClassOneVsAll"}),
        ("several", {"loss_function": "MultiRMSE"}),
    ],
)
def test_catboost(data, target, params, weighted):
    X, targets, weights, X_new = data
    y, weights = targets[target], weights if weighted else None
    model = cat("Classifier" if target in ("binary", "classes") else "Regressor", **params)
    model.fit(X, y, sample_weight=weights)
    output = 1 if target in ("classes", "several") else None
    check(model, of_catboost(model), X, y, weights, X_new, output=output)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"loss_function": "MAE"}, "are quantiles of residuals"),
        ({"loss_function": "LogCosh"}, "the derivatives of .* are unknown"),
        ({"langevin": True}, "do not reproduce"),
        ({"monotone_constraints": [1, 0, 0, 0]}, "monotonic constraints"),
    ],
)
def test_catboost_refusals(data, params, reason):
    X, targets, _, _ = data
    y = targets["numbers"]
    refused(cat(**params).fit(X, y), X, y, reason)


def test_catboost_categories(rng):
    """One-hot splits are fine; statistics of targets send training rows to other leaves."""
    X = pd.DataFrame({"a": rng.normal(size=N), "kind": rng.integers(0, 9, N).astype(str)})
    y = X["a"] + np.sin(X["kind"].astype(int)) * 3
    model = cat(cat_features=["kind"], one_hot_max_size=20).fit(X, y)
    check(model, of_catboost(model), X, y, None, X[:20])
    refused(cat(cat_features=["kind"], one_hot_max_size=2).fit(X, y), X, y, "do not reproduce")


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_equals_a_double_loop(data, library):
    """From the libraries' own scores after each round, and the formula alone."""
    X, targets, weights, X_new = data
    X, X_new, weights, y = X[:80], X_new[:6], weights[:80], targets["binary"][:80]
    rounds = range(1, 6)
    model = {"lightgbm": lgbm, "xgboost": xgb, "catboost": cat}[library]("Classifier")
    params = {
        "lightgbm": {"learning_rate": 0.2, "reg_lambda": 1.5},
        "xgboost": {"learning_rate": 0.2, "reg_lambda": 1.5},
        "catboost": {
            "learning_rate": 0.2,
            "l2_leaf_reg": 1.5,
            "leaf_estimation_iterations": 1,
            "boost_from_average": True,
        },
    }[library]
    model.set_params(**params)
    model.fit(X, y, sample_weight=weights)
    if library == "lightgbm":
        after = [model.predict(X, raw_score=True, num_iteration=i) for i in rounds]
    elif library == "xgboost":
        after = [model.predict(X, output_margin=True, iteration_range=(0, i)) for i in rounds]
    else:
        after = [model.predict(X, prediction_type="RawFormulaVal", ntree_end=i) for i in rounds]
    prior = np.average(y, weights=weights)
    start = np.full(80, np.log(prior / (1 - prior)))
    prox = ForestProximity(model, "gradient", dtype=np.float64).fit(X, y, weights)
    if library == "xgboost":  # old versions estimate it, and others from the mean
        start = np.full(80, prox.base_score_)
    assert_allclose(start, prox.base_score_)
    c = np.asarray(weights, dtype=np.float32).astype(float)
    l2 = 1.5 * (c.mean() if library == "catboost" else 1)

    def derivatives(scores):
        p = 1 / (1 + np.exp(-scores.astype(float)))
        return c * (p - y), c * p * (1 - p)

    inside = Inside.of(prox)
    leaf = inside.samples.leaf
    slow = oracles.gradient_proximity(
        inside.route(X_new).leaf[:, :6],
        leaf[:, :6],
        [start, *after],
        derivatives,
        lambda H: -0.2 / (H + l2),
    )
    later = Inside.of(prox).samples.contributions[:, 6:]
    there = inside.route(X_new).leaf[:, None, 6:] == leaf[None, :, 6:]
    rest = (there * later).sum(axis=2)
    found = prox.proximity(X_new).toarray() - rest
    assert_allclose(found, slow, atol=1e-6 * np.abs(slow).max())
    # Derivatives are float32 in these libraries, but their sum over shared leaves is exact.
    there = inside.route(X_new).leaf[:, None, :] == leaf[None, :, :]
    summed = (there * inside.samples.contributions).sum(axis=2)
    assert_allclose(prox.proximity(X_new).toarray(), summed, atol=1e-12 * np.abs(summed).max())


def test_saved_kernels_need_no_second_training(data, tmp_path):
    X, targets, weights, X_new = data
    for make, suffix in ((lgbm, "l"), (xgb, "x"), (cat, "c")):
        y = targets["classes"]
        model = make("Classifier").fit(X, y, sample_weight=weights)
        prox = ForestProximity(model, Gradient(1)).fit(X, y, weights)
        loaded = ForestProximity.load(prox.save(tmp_path / suffix))
        for output in (1, 3):
            own, other = prox.reweigh(Gradient(output)), loaded.reweigh(Gradient(output))
            assert own.base_score_ == other.base_score_
            assert_allclose(own.proximity(X_new).toarray(), other.proximity(X_new).toarray())
