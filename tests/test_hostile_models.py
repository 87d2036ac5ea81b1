"""Damaged or malicious models raise an error and never crash."""

import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from zoo import SAMME

from leafkernel import ForestProximity
from leafkernel.forests import adapt


def damaged(tree, **columns):
    """Return a real tree with other nodes; a column is (node, value) or an array."""
    state = copy.deepcopy(tree.__getstate__())
    for name, change in columns.items():
        if isinstance(change, tuple):
            state["nodes"][name][change[0]] = change[1]
        else:
            state["nodes"][name] = change
    _, arguments, _ = tree.__reduce__()
    other = type(tree)(*arguments)
    other.__setstate__(state)
    return other


def cycle(tree):
    """Return a change that makes the root a child of another node."""
    return {"left_child": (np.flatnonzero(tree.children_left > 0)[1], 0)}


def chain(tree):
    """Return children such that both children of each node are the next node."""
    following = np.append(np.arange(1, tree.node_count), -1)
    return {"left_child": following, "right_child": following}


WAYS = {
    "both children are the next node": (chain, "has two parents"),
    "a child is its parent": (lambda t: {"left_child": (0, 0)}, "has two parents"),
    "a cycle": (cycle, "has two parents"),
    "a child far away": (lambda t: {"right_child": (0, 10**9)}, "not one of its nodes"),
    "a child before the first": (lambda t: {"right_child": (0, -5)}, "not one of its nodes"),
    "only one child": (lambda t: {"left_child": (0, -1)}, "only one child"),
    "nodes that cannot be reached": (
        lambda t: {"left_child": (0, -1), "right_child": (0, -1)},
        "cannot be reached",
    ),
    "an unknown feature": (lambda t: {"feature": (0, 4)}, "a feature that X does not have"),
    "a feature far away": (lambda t: {"feature": (0, 2**40)}, "a feature that X does not have"),
    "a negative feature": (lambda t: {"feature": (0, -3)}, "a feature that X does not have"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("too_wide", [False, True])
def test_damaged_trees_are_refused_where_they_are_packed(iris, way, too_wide):
    X, y = iris
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    damage, message = WAYS[way]
    forest.estimators_[1].tree_ = damaged(
        forest.estimators_[1].tree_, **damage(forest.estimators_[1].tree_)
    )
    if too_wide:  # not packed in the end, and walked by scikit-learn
        if "feature that X" in message and way != "a negative feature":
            return
        forest.n_features_in_ = 2**30
    with pytest.raises(ValueError, match=message):
        adapt(forest)


@pytest.mark.parametrize("kind", [RandomForestClassifier, GradientBoostingClassifier])
def test_what_is_no_tree_is_refused(iris, kind):
    X, y = iris
    forest = kind(n_estimators=3, random_state=0).fit(X, y)
    stranger = StandardScaler()
    vars(stranger).update(
        node_count=3,
        children_left=np.array([0, -1, -1]),
        children_right=np.array([0, -1, -1]),
        feature=np.zeros(3, dtype=np.int64),
        threshold=np.zeros(3),
        missing_go_to_left=np.zeros(3, dtype=np.uint8),
    )
    np.ravel(forest.estimators_)[1].tree_ = stranger
    with pytest.raises(TypeError, match="must be a Tree of scikit-learn; got StandardScaler"):
        ForestProximity(forest, "uniform").fit(X, y)


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor, IsolationForest])
@pytest.mark.parametrize("feature", [4, 10**6, -1, -(10**6)])
def test_features_are_checked_after_they_are_renamed(iris, kind, feature):
    X, y = iris
    model = kind(n_estimators=5, max_features=2, random_state=0).fit(X, y)
    broken = [np.full_like(features, feature) for features in model.estimators_features_]
    model.estimators_features_ = broken
    with pytest.raises(ValueError, match="a feature that X does not have"):
        ForestProximity(model, "uniform").fit(X, y)
    model.estimators_features_ = [features + 0.5 for features in broken]
    with pytest.raises(ValueError, match="must contain column indices; got dtype float64"):
        ForestProximity(model, "uniform").fit(X, y)
    model.estimators_features_ = [features[:0] for features in broken]
    with pytest.raises(ValueError, match="a feature that is not in estimators_features_"):
        ForestProximity(model, "uniform").fit(X, y)


def test_trees_damaged_at_random_never_crash(iris):
    """2,000 forests with a few numbers of their nodes overwritten."""
    X, y = iris
    forest = RandomForestClassifier(2, max_depth=4, random_state=0).fit(X, y)
    originals = [member.tree_ for member in forest.estimators_]
    expected = ForestProximity(forest, "uniform").fit(X, y).proximity(X)
    rng = np.random.default_rng(0)
    outcomes = {"refused": 0, "taken": 0}
    for _ in range(2000):
        member = rng.integers(2)
        tree = originals[member]
        n_nodes = tree.node_count
        changes = {}
        for _ in range(rng.integers(1, 4)):
            name = rng.choice(["left_child", "right_child", "feature", "threshold"])
            values = [-(2**62), -2, -1, 0, 1, n_nodes - 1, n_nodes, 2**62, rng.integers(n_nodes)]
            changes[name] = (rng.integers(n_nodes), rng.choice(values))
        forest.estimators_[member].tree_ = damaged(tree, **changes)
        try:
            found = ForestProximity(forest, "uniform").fit(X, y).proximity(X)
        except ValueError:
            outcomes["refused"] += 1
        else:
            outcomes["taken"] += 1
            assert found.shape == (150, 150)
        forest.estimators_[member].tree_ = tree
    assert min(outcomes.values()) > 100, outcomes
    assert_array_equal(
        ForestProximity(forest, "uniform").fit(X, y).proximity(X).toarray(), expected.toarray()
    )


def one_column():
    stump = {"n_estimators": 5, "random_state": 0}
    return [
        IsolationForest(**stump),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2), **stump),
        BaggingRegressor(DecisionTreeRegressor(max_depth=2), **stump),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), **stump, **SAMME),
    ]


@pytest.mark.parametrize("model", one_column(), ids=lambda model: type(model).__name__)
def test_ensembles_of_one_column(iris, model):
    """Regression test: the feature of leaves, -2, was used as an index."""
    X, y = iris[0][:, 2:3], iris[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prox = ForestProximity(model.fit(X, y), "uniform").fit(X, y)
    assert_array_equal(prox.proximity().diagonal(), 1)


@pytest.mark.parametrize("kind", [BaggingClassifier, IsolationForest])
def test_trees_of_one_feature_each(iris, kind):
    X, y = iris
    model = kind(n_estimators=8, max_features=1, random_state=0).fit(X, y)
    prox = ForestProximity(model, "uniform", dtype=np.float64).fit(X, y)
    leaves = np.stack(
        [
            member.apply(X[:, features])
            for member, features in zip(model.estimators_, model.estimators_features_, strict=True)
        ],
        axis=1,
    )
    expected = (leaves[:, None] == leaves[None]).mean(axis=2)
    np.testing.assert_allclose(prox.proximity().toarray(), expected, atol=1e-12)
