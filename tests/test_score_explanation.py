"""Explanations of the scores of boosted models: sums, predictions and printed text."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from leafkernel import ForestProximity
from leafkernel.forests import Link
from leafkernel.schemes import Gradient
from leafkernel.tasks import ScoreExplanation, explain_prediction

SMALL = {"n_estimators": 10, "random_state": 0}


def lightgbm(kind, **params):
    module = pytest.importorskip("lightgbm")
    kind = module.LGBMClassifier if kind == "classes" else module.LGBMRegressor
    return kind(n_estimators=10, num_leaves=7, verbose=-1, n_jobs=1, **params)


def xgboost(kind, **params):
    module = pytest.importorskip("xgboost")
    kind = module.XGBClassifier if kind == "classes" else module.XGBRegressor
    return kind(n_estimators=10, max_depth=3, n_jobs=1, **params)


def catboost(kind, **params):
    module = pytest.importorskip("catboost")
    kind = module.CatBoostClassifier if kind == "classes" else module.CatBoostRegressor
    return kind(
        iterations=10,
        depth=3,
        silent=True,
        allow_writing_files=False,
        boosting_type="Plain",
        bootstrap_type="No",
        random_strength=0,
        **params,
    )


def hist(kind, **params):
    known = {"classes": HistGradientBoostingClassifier, "numbers": HistGradientBoostingRegressor}
    return known[kind](max_iter=10, min_samples_leaf=5, **params)


def gradient_boosting(kind, **params):
    known = {"classes": GradientBoostingClassifier, "numbers": GradientBoostingRegressor}
    return known[kind](**SMALL, **params)


LINKS = [
    (gradient_boosting, "two", "logistic", {}),
    (gradient_boosting, "two", "logistic", {"loss": "exponential"}),
    (gradient_boosting, "three", "softmax", {}),
    (gradient_boosting, "numbers", "identity", {"loss": "huber"}),
    (hist, "two", "logistic", {}),
    (hist, "three", "softmax", {}),
    (hist, "numbers", "exp", {"loss": "poisson"}),
    (hist, "numbers", "exp", {"loss": "gamma"}),
    (lightgbm, "two", "logistic", {"sigmoid": 2.0}),
    (lightgbm, "three", "softmax", {}),
    (lightgbm, "three", "logistic", {"objective": "multiclassova"}),
    (lightgbm, "numbers", "identity", {}),
    (lightgbm, "numbers", "square", {"reg_sqrt": True}),
    (lightgbm, "numbers", "exp", {"objective": "tweedie"}),
    (xgboost, "two", "logistic", {}),
    (xgboost, "three", "softmax", {}),
    (xgboost, "numbers", "exp", {"objective": "reg:gamma"}),
    (xgboost, "numbers", "identity", {"objective": "reg:pseudohubererror", "eval_metric": "rmse"}),
    (catboost, "two", "logistic", {}),
    (catboost, "three", "softmax", {}),
    (catboost, "three", "logistic", {"loss_function": "MultiClassOneVsAll"}),
    (catboost, "numbers", "identity", {}),
    (catboost, "numbers", "exp", {"loss_function": "Poisson"}),
]


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(120, 3))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=120))
    return X, y, rng.normal(size=(4, 3))


def targets(kind, y):
    if kind == "numbers":
        return y
    return np.array(["no", "yes", "perhaps"])[np.digitize(y, [1.0] if kind == "two" else [0.6, 2])]


@pytest.mark.parametrize(("make", "kind", "link", "params"), LINKS)
def test_predictions_are_the_models(problem, make, kind, link, params):
    X, y, X_new = problem
    y = targets(kind, y)
    if make is xgboost and kind != "numbers":
        y = np.unique(y, return_inverse=True)[1]
    model = make("numbers" if kind == "numbers" else "classes", **params).fit(X, y)
    numbers = kind == "numbers"
    own = model.predict(X_new)[:, None] if numbers else model.predict_proba(X_new)
    for k, label in enumerate([None] if kind != "three" else np.unique(y)):
        prox = ForestProximity(model, Gradient(label)).fit(X, y)
        for i, x in enumerate(X_new):
            found = explain_prediction(prox, x, n=3)
            assert found.link == link
            assert_allclose(found.prediction, own[i, 1 if kind == "two" else k], rtol=1e-4)
            sums = prox.weighted_sums(np.ones(len(X)), x[None])[0]
            assert_allclose(found.total, sums, rtol=1e-6, atol=1e-9)
            assert_allclose(found.score, found.base_score + found.total)
            assert found.output == (
                None if numbers else np.unique(y)[1] if label is None else label
            )
            assert ("probability of" in found.meaning()) == (not numbers)


def test_rows_and_sums(problem):
    X, y, X_new = problem
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(len(X))])
    prox = ForestProximity(GradientBoostingRegressor(**SMALL), "gradient").fit(frame, y)
    x = pd.DataFrame(X_new[:1], columns=list("abc"))
    row = prox.proximity(x).toarray()[0]
    found = explain_prediction(prox, x, n=5)
    assert isinstance(found, ScoreExplanation)
    order = np.argsort(-row)
    assert_array_equal(found.rows, np.r_[order[:5], order[-5:]])
    assert_allclose(found.contributions, row[found.rows])
    assert found.row_labels.tolist() == [f"r{i}" for i in found.rows]
    assert_array_equal(found.targets, y[found.rows])
    assert (found.n_up, found.n_down) == ((row > 0).sum(), (row < 0).sum())
    assert_allclose(found.up_total + found.down_total, found.total)
    assert_allclose(found.effects, found.contributions, atol=1e-12)
    table = found.to_frame()
    assert table.columns.tolist() == ["position", "contribution", "effect", "target"]
    assert table.index.tolist() == found.row_labels.tolist()
    everything = explain_prediction(prox, x, n=1000)
    assert len(everything.rows) == everything.n_rows == np.count_nonzero(row)
    assert (np.diff(everything.contributions) <= 0).all()


def test_effects_take_one_row_away(problem):
    X, y, X_new = problem
    labels = targets("three", y)
    model = GradientBoostingClassifier(**SMALL).fit(X, labels)
    prox = ForestProximity(model, Gradient("yes")).fit(X, labels)
    found = explain_prediction(prox, X_new[0], n=1)
    scores = model.decision_function(X_new[:1])[0]
    for adds, effect in zip(found.contributions, found.effects, strict=True):
        without = scores - adds * (model.classes_ == "yes")
        shares = np.exp(without) / np.exp(without).sum()
        assert_allclose(effect, found.prediction - shares[2])
    assert_allclose(found.base_prediction, (labels == "yes").mean())


def test_training_rows_keep_their_own_part(problem):
    X, y, _ = problem
    model = GradientBoostingRegressor(**SMALL).fit(X, y)
    for params in ({}, {"diagonal": "zero"}, {"symmetrize": True}):
        prox = ForestProximity(model, "gradient", **params).fit(X, y)
        found = explain_prediction(prox, row=7, n=len(X))
        assert found.sample == "training row 7"
        assert 7 in found.rows
        assert_allclose(found.prediction, model.predict(X[7:8])[0])


def test_sentence(problem):
    X, y, X_new = problem
    labels = targets("two", y)
    prox = ForestProximity(GradientBoostingClassifier(**SMALL), "gradient").fit(X, labels)
    found = explain_prediction(prox, X_new[0], n=2)
    lines = str(found).splitlines()
    assert repr(found) == str(found)
    assert lines[0].startswith("A new sample, class yes: score ")
    score, base, sign, total = (
        found.sentence().split()[1],
        *found.sentence().split()[4:7],
    )
    assert_allclose(float(score), float(base) + float(sign + total), atol=1e-9)
    assert lines[0].endswith(f" from {found.n_rows} rows")
    assert lines[1].startswith("Probability of yes ")
    assert lines[2].startswith(f"{found.n_up} rows push it up, by ")
    assert lines[3].split() == ["row", "adds", "probability", "class"]
    assert lines[6].startswith(f"{found.n_down} rows push it down, by ")
    # The largest of either direction comes first.
    assert lines[8].split()[0] == str(found.rows[-1])


def test_one_direction():
    X = np.arange(8.0)[:, None]
    model = GradientBoostingRegressor(n_estimators=1, max_depth=1, random_state=0)
    prox = ForestProximity(model, "gradient").fit(X, [0.0] * 4 + [1.0] * 4)
    found = explain_prediction(prox, [7.0])
    assert (found.n_up, found.n_down, found.down_total) == (4, 0, 0)
    assert "No row pushes it down." in str(found)
    assert "prediction 0.550 = base 0.500 + 0.050 from 4 rows" in str(found)


def test_unknown_link(problem):
    X, y, X_new = problem
    model = lightgbm("numbers", objective=lambda y, s: (s - y, np.ones_like(y)))
    scheme = Gradient(objective=lambda y, s: (s - y, np.ones_like(y)))
    found = explain_prediction(ForestProximity(model.fit(X, y), scheme).fit(X, y), X_new[0])
    assert found.link is found.prediction is found.effects is None
    assert found.meaning() == ""
    assert "effect" not in found.to_frame()
    assert "score" in str(found)


def test_saved_kernels_know_their_link(problem, tmp_path):
    X, y, X_new = problem
    labels = targets("two", y).astype(object)
    prox = ForestProximity(GradientBoostingClassifier(**SMALL), "gradient").fit(X, labels)
    prox.save(tmp_path / "kept")
    loaded = ForestProximity.load(tmp_path / "kept")
    assert str(explain_prediction(loaded, X_new[0])) == str(explain_prediction(prox, X_new[0]))


def test_several_targets(problem):
    X, y, X_new = problem
    both = np.column_stack([y, -y])
    model = xgboost("numbers").fit(X, both)
    found = explain_prediction(ForestProximity(model, Gradient(1)).fit(X, both), X_new[0])
    assert found.output == 1
    assert_array_equal(found.targets, -y[found.rows])
    assert_allclose(found.prediction, model.predict(X_new[:1])[0, 1], rtol=1e-5)
    assert "A new sample, output 1: prediction" in str(found)


def test_classes_that_xgboost_knows_as_numbers(problem):
    X, y, X_new = problem
    labels = targets("three", y)
    codes = np.unique(labels, return_inverse=True)[1]
    model = xgboost("classes").fit(X, codes)
    found = explain_prediction(ForestProximity(model, Gradient("yes")).fit(X, labels), X_new[0])
    assert_allclose(found.prediction, model.predict_proba(X_new[:1])[0, 2], rtol=1e-5)
    # In another order they are not those that it was trained on.
    turned = np.array(["c", "b", "a"])[codes]
    with pytest.raises(ValueError, match="do not reproduce the leaf values"):
        ForestProximity(model, Gradient("a")).fit(X, turned)


def test_links():
    assert str(Link.read("logistic 2")) == "logistic 2.0"
    assert Link.read(str(Link("exp"))) == Link("exp")
    assert_allclose(Link("square").predictions([[-2.0]]), [[-4.0]])
    with pytest.raises(ValueError, match="link='probit' is unknown"):
        Link.read("probit")
