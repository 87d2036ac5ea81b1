"""Explanations of predictions, and local importance of features."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor
from walks import SCHEMES, small, walk

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.inside import Inside
from leafkernel.tasks import explain_prediction, local_importance
from leafkernel.tasks.pair_explanation import explain_pair

pytestmark = pytest.mark.filterwarnings("ignore:.*training samples are in bag in every tree")


# The rows behind a prediction.


def test_with_gap_it_is_the_prediction_of_a_classifier(iris):
    X, y = iris
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, labels)
    prox = ForestProximity(forest).fit(X, labels)
    for row in (0, 70, 106, 133):
        new = explain_prediction(prox, X[row], y=labels, n=200)
        assert_allclose(new.prediction, forest.predict_proba(X[[row]])[0], atol=1e-12)
        assert new.predicted == forest.predict(X[[row]])[0]
        known = explain_prediction(prox, y=labels, row=row, n=200)
        assert_allclose(known.prediction, forest.oob_decision_function_[row], atol=1e-12)
        assert row not in known.rows
        for found in (new, known):
            assert_allclose(found.shares.sum(), 1)
            assert_allclose(found.contributions.sum(axis=0), found.prediction)
            assert_array_equal(found.targets, labels[found.rows])
            assert_array_equal(found.classes, forest.classes_)
            assert (np.diff(found.shares) <= 0).all()


def test_with_gap_it_is_the_prediction_of_a_regressor(diabetes):
    X, y = diabetes  # whole numbers, and yet not classes
    forest = RandomForestRegressor(50, oob_score=True, random_state=0).fit(X, y)
    prox = ForestProximity(forest).fit(X, y)
    for row in (0, 17, 150):
        new = explain_prediction(prox, X[[row]], y=y, n=4)
        assert_allclose(new.prediction, forest.predict(X[[row]])[0], rtol=1e-12)
        assert_allclose(new.contributions, new.shares * y[new.rows])
        assert_allclose(new.shown, new.shares.sum())
        assert len(new.rows) == 4 < new.n_rows
        known = explain_prediction(prox, y=y, row=row, n=1)
        assert_allclose(known.prediction, forest.oob_prediction_[row], rtol=1e-12)


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_shares_are_a_row_of_the_matrix(scheme, symmetrize):
    prox = small(scheme=scheme, symmetrize=symmetrize)
    X = load_diabetes().data[:90]
    y = np.arange(90) / 7
    for P, asked in [(prox.proximity(), {"row": 5}), (prox.proximity(X[5:6]), {"x": X[5]})]:
        row = P.toarray()[5 if "row" in asked else 0]
        if "row" in asked:  # a row is no reason for itself
            row[5] = 0
        found = explain_prediction(prox, y=y, n=1000, **asked)
        assert_allclose(found.proximities, row[found.rows], rtol=1e-12)
        assert_array_equal(found.rows, np.argsort(-row, kind="stable")[: (row > 0).sum()])
        assert_allclose(found.shares, row[found.rows] / row.sum())
        assert_allclose(found.prediction, row @ y / row.sum())


def test_one_sample_in_any_form(table):
    X, y = table
    X = X[["size", "age"]].fillna(0.0)
    prox = ForestProximity(RandomForestRegressor(5, random_state=0)).fit(X, y)
    expected = explain_prediction(prox, X.iloc[[3]], y=y)
    for one in (X.iloc[3], X[3:4]):
        assert_array_equal(explain_prediction(prox, one, y=pd.Series(y)).rows, expected.rows)
    prox = ForestProximity(RandomForestRegressor(5, random_state=0)).fit(X.to_numpy(), y)
    row = X.iloc[3].tolist()
    for one in (np.array(row), np.array([row]), row, [row]):
        assert_array_equal(explain_prediction(prox, one, y=y[:, None]).rows, expected.rows)


def test_leaves_alone_explain_a_prediction():
    prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
    found = explain_prediction(prox, [1, 5], y=["a", "b", "b"])
    assert_array_equal(found.rows, [1, 0, 2])
    assert_allclose(found.shares, [0.5, 0.25, 0.25])
    assert_allclose(found.prediction, [0.25, 0.75])
    with pytest.raises(ValueError, match="x has no proximity to any training row"):
        explain_prediction(prox, [7, 7], y=["a", "b", "b"])


def test_a_row_that_nothing_predicts_is_refused(diabetes):
    X, y = diabetes
    prox = ForestProximity(RandomForestRegressor(1, random_state=0)).fit(X, y)
    in_bag = int(np.flatnonzero(prox.proximity().sum(axis=1) == 0)[0])
    with pytest.raises(ValueError, match=f"training row {in_bag} has no proximity.*every tree"):
        explain_prediction(prox, y=y, row=in_bag)


def test_what_cannot_be_explained_is_refused(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(5, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="got neither"):
        explain_prediction(prox, y=y)
    with pytest.raises(ValueError, match="got both"):
        explain_prediction(prox, X[0], y=y, row=0)
    with pytest.raises(ValueError, match=r"one sample.*got shape \(2, 4\)"):
        explain_prediction(prox, X[:2], y=y)
    with pytest.raises(ValueError, match="between 0 and 149"):
        explain_prediction(prox, y=y, row=150)
    with pytest.raises(TypeError, match="must be the position of a training sample"):
        explain_prediction(prox, y=y, row=1.5)
    with pytest.raises(ValueError, match="y has 9 rows, but there are 150"):
        explain_prediction(prox, y=y[:9], row=0)
    with pytest.raises(ValueError, match="one column at a time"):
        explain_prediction(prox, y=np.stack([y, y], 1), row=0)
    with pytest.raises(ValueError, match="n must be at least 1"):
        explain_prediction(prox, y=y, row=0, n=0)
    with pytest.raises(TypeError, match="ForestProximity"):
        explain_prediction(prox.forest_, y=y, row=0)


def test_a_prediction_in_words_and_as_a_table(iris, diabetes):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y)
    found = explain_prediction(prox, y=y, row=106, n=3)
    lines = repr(found).splitlines()
    assert lines[0].startswith("Prediction for training row 106: 1 ")
    assert f"These 3 have a share of {found.shown:.1%}" in lines[1]
    assert lines[2].split() == ["row", "share", "class"]
    assert lines[3].split() == [str(found.rows[0]), f"{found.shares[0]:.1%}", "1"]
    frame = found.to_frame()
    assert list(frame) == [
        "position",
        "proximity",
        "share",
        "target",
        *(f"adds_to_{k}" for k in range(3)),
    ]
    assert_array_equal(frame.index, found.rows)
    assert_array_equal(frame["adds_to_1"], found.contributions[:, 1])

    X, y = diabetes
    prox = ForestProximity(RandomForestRegressor(5, random_state=0)).fit(X, y)
    found = explain_prediction(prox, X[0], y=y, n=500)
    assert str(found).splitlines()[0] == f"Prediction for a new sample: {found.prediction:.4g}"
    assert str(found).splitlines()[1] == f"Based on {len(found.rows)} training rows:"
    assert list(found.to_frame()) == ["position", "proximity", "share", "target", "adds"]


# The features of a row.


def explained_share(y, inside, n_features):
    """Return the share of y's variance that a split explains beyond chance."""
    node = np.concatenate(inside)
    left = sum(len(part) * part.var() for part in inside if len(part)) / len(node)
    by_chance = node.var() * np.log(max(len(node), 2) * n_features) / max(len(node), 2)
    return max(node.var() - left - by_chance, 0) / y.var()


def oracle_importance(prox, X, queries, *, by_target):
    """Each pair of rows and tree with its share of the proximity, times the bits of the path."""
    inside = Inside.of(prox)
    n_trees, asks, lends = (
        inside.stats.n_trees,
        inside.product(queries).query,
        inside.kernel.reference,
    )
    leaf, query = asks.incidence.columns, asks.dense()
    known, reference = lends.incidence.columns, lends.dense()
    X = X.astype(np.float32)
    rows = X if queries is None else queries.astype(np.float32)
    total, mass = np.zeros((len(rows), X.shape[1])), np.zeros(len(rows))
    for t, tree in enumerate(inside.forest.trees()):
        paths = [walk(tree, x) for x in X]
        count = np.bincount(np.concatenate(paths), minlength=len(tree.children_left))
        for i, x in enumerate(rows):
            bits = np.zeros(X.shape[1])
            path = walk(tree, x)
            for above, node in pairwise(path):
                gained = np.log2(count[above] / count[node])
                if by_target:
                    children = tree.children_left[above], tree.children_right[above]
                    through = [[child in p for p in paths] for child in children]
                    parts = [prox.y_[rows] for rows in through]
                    gained *= explained_share(prox.y_, parts, X.shape[1])
                bits[tree.feature[above]] += gained
            for column in range(t, leaf.shape[1], n_trees):
                met = known[:, column] == leaf[i, column]
                if queries is None:  # no row is its own neighbor
                    met[i] = False
                weight = query[i, column] * reference[met, column].sum()
                total[i] += weight * bits
                mass[i] += weight
    return total / mass[:, None]


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_importances_against_a_plain_loop(scheme, symmetrize):
    prox = small(scheme=scheme, symmetrize=symmetrize)
    X = load_diabetes().data[:90]
    for queries in (None, X[:7]):
        expected = oracle_importance(prox, X, queries, by_target=False)
        found = local_importance(prox, queries, splits="all", normalize=False)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    expected = oracle_importance(prox, X, X[:7], by_target=True)
    found = local_importance(prox, X[:7], normalize=False)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    shares, total = local_importance(prox, X[:7]), expected.sum(axis=1, keepdims=True)
    assert (total > 0).any()
    assert_allclose(shares, expected / np.where(total > 0, total, 1), atol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "numbers", "boosted", "several"])
def test_noise_is_of_little_importance(rng, kind):
    """In fully grown trees, noise was a third of the features and had a sixth of the importance."""
    X = rng.normal(size=(500, 6))  # the last two are noise
    score = X[:, :4] @ [1, -1, 1, 1]
    y, forest = {
        "classes": (np.where(score > 0, "high", "low"), RandomForestClassifier(50, random_state=0)),
        "numbers": (score, RandomForestRegressor(50, random_state=0)),
        "boosted": (score, GradientBoostingRegressor(random_state=0)),
        "several": (np.stack([score, 9 - score], 1), RandomForestRegressor(50, random_state=0)),
    }[kind]
    prox = ForestProximity(forest, "uniform").fit(X, y)
    noise = local_importance(prox)[:, 4:].sum(axis=1).mean()
    assert noise < 0.03
    assert noise < local_importance(prox, splits="all")[:, 4:].sum(axis=1).mean() / 5


def test_importances_as_a_frame(iris):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.set_axis([f"flower {k}" for k in range(150)])
    prox = ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y)
    for rows in (None, X[20:30]):
        frame = local_importance(prox, rows, as_frame=True)
        assert list(frame) == list(X)
        assert list(frame.index) == list(X.index if rows is None else rows.index)
        assert_array_equal(frame, local_importance(prox, rows))
    without_y = ForestProximity(prox.forest_, "uniform").fit(X)
    assert_array_equal(local_importance(without_y), local_importance(without_y, splits="all"))
    assert_array_equal(
        local_importance(without_y, y=y), local_importance(without_y, splits="target", y=y)
    )
    with pytest.raises(ValueError, match=r"fitted without targets. Pass y"):
        local_importance(without_y, splits="target")


def test_importance_finds_what_matters_where(rng):
    """The first feature decides on one side, the second on the other."""
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0, 10 + 3 * np.sign(X[:, 1]), 3 * np.sign(X[:, 2]))
    forest = RandomForestRegressor(20, max_leaf_nodes=4, random_state=0)
    found = local_importance(ForestProximity(forest).fit(X, y))
    right = X[:, 0] > 0
    assert (found[right, 1] > found[right, 2]).mean() > 0.95
    assert (found[~right, 2] > found[~right, 1]).mean() > 0.95


def test_rows_without_proximity_have_no_importances(diabetes):
    X, y = diabetes
    prox = ForestProximity(RandomForestRegressor(1, random_state=0)).fit(X, y)
    n_in_bag = int((prox.proximity().sum(axis=1) == 0).sum())
    with pytest.warns(LeafkernelWarning, match=f"{n_in_bag} of 200 samples have no proximity"):
        found = local_importance(prox)
    assert np.isnan(found).all(axis=1).sum() == n_in_bag
    stump = ForestProximity(DecisionTreeRegressor(max_depth=1), "uniform").fit(X, np.ones(200))
    assert_array_equal(local_importance(stump), np.zeros(X.shape))
    assert not explain_pair(stump, 0, 1).shares.any()


def test_a_vote_is_not_called_the_prediction_of_a_boosted_model():
    """Regression test: it gave 55.6% to one class although the model gives 99% to the other."""
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=60, random_state=0).fit(X, y)
    prox = ForestProximity(model, "uniform").fit(X, y)
    found = explain_prediction(prox, X[70] + 0.01, y=y)
    assert not found.is_of_model
    assert_allclose(found.model_prediction, model.predict_proba([X[70] + 0.01])[0])
    first, second, *_ = str(found).splitlines()
    assert first.startswith("Prediction for a new sample from similar rows: ")
    assert second.startswith("The model itself predicts: ")
    of_row = explain_prediction(prox, y=y, row=70)
    assert "prediction of the model may differ" in str(of_row)
    assert 70 not in of_row.rows
    exact = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(X, y)
    assert explain_prediction(exact, X[70], y=y).is_of_model
    assert str(explain_prediction(exact, X[70], y=y)).startswith("Prediction for a new sample: ")


def test_a_vote_for_numbers_stands_beside_the_prediction(diabetes):
    X, y = diabetes
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    found = explain_prediction(ForestProximity(model, "uniform").fit(X, y), X[0], y=y)
    assert found.model_prediction == pytest.approx(model.predict(X[:1])[0])
    assert f"The model itself predicts: {found.model_prediction:.4g}" in str(found)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_new_sample_and_a_row_are_not_both_taken(by_name):
    X, y = load_iris(return_X_y=True)
    prox = ForestProximity(RandomForestClassifier(20, random_state=0)).fit(X, y)
    for x in (X[0], X[:1], X[:1].tolist()):
        arguments, named = ((), {"x": x}) if by_name else ((x,), {})
        with pytest.raises(ValueError, match="either x"):
            explain_prediction(prox, *arguments, row=3, **named)
