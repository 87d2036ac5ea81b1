"""Every forest with every scheme, compared with the formula on the library's leaf ids."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracles
import pytest
import zoo
from numpy.testing import assert_allclose, assert_array_equal

from leafkernel import ForestProximity
from leafkernel.forests import adapt
from leafkernel.schemes import PathDecay

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*training samples are in bag in every tree",
    "ignore:X does not have valid feature names",
    "ignore:`XGBRF",  # deprecated in XGBoost 3.4, and still used, as is
    "ignore:.*`booster=",
)
ANIMALS = pytest.mark.parametrize("animal", zoo.ANIMALS, ids=lambda a: a.name)
BOOSTED = pytest.mark.parametrize(
    "animal", [a for a in zoo.ANIMALS if a.adds is not None], ids=lambda a: a.name
)
_known = {}


def fitted(animal):
    """Fit once for all tests."""
    if animal.name not in _known:
        _known[animal.name] = animal.fitted()
    return _known[animal.name]


@pytest.mark.parametrize("scheme", zoo.SCHEMES)
@ANIMALS
def test_every_cell(animal, scheme):
    model, X, y = fitted(animal)
    prox = ForestProximity(model, scheme, dtype=np.float64)
    refusal = animal.refusal(scheme)
    if refusal is not None:
        with pytest.raises(ValueError, match=refusal):
            prox.fit(X, y)
        return
    prox.fit(X, y)
    leaf, n = animal.leaves(model, X), len(X)
    in_bag = np.ones(leaf.shape) if animal.in_bag is None else animal.in_bag(model, n)
    training = oracles.Side(leaf, in_bag, in_bag == 0)
    if scheme == "ih":
        path = (animal.paths or zoo.paths_of_members)(model, X)
        training.easiness = 1 - oracles.disagreeing_neighbors(
            animal.seen(model, X), y, leaf, path, 5, "all"
        )
    rows = slice(0, n, 5)
    some = oracles.Side(leaf[rows], in_bag[rows], in_bag[rows] == 0)
    weights = animal.weights(model, X)
    expected = oracles.proximity(scheme, some, training, training, weights)
    assert_allclose(prox.proximity().toarray()[rows], expected, rtol=1e-5, atol=1e-9)
    unseen = oracles.Side.unseen(animal.leaves(model, X[rows] * 1.01))
    expected = oracles.proximity(scheme, unseen, training, training, weights)
    assert_allclose(prox.proximity(X[rows] * 1.01).toarray(), expected, rtol=1e-5, atol=1e-9)


@ANIMALS
def test_leaves_are_those_of_the_library(animal):
    model, X, _ = fitted(animal)
    forest = adapt(model)
    own, ours = animal.leaves(model, X), forest.leaves(X, n_threads=2)
    assert ours.shape == own.shape
    assert (ours >= forest.leaf_offsets[:-1]).all()
    assert (ours < forest.leaf_offsets[1:]).all()
    for t in range(own.shape[1]):  # the same partition, under other names
        pairs = np.unique(np.stack([own[:, t], ours[:, t]]), axis=1)
        assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]


@ANIMALS
def test_nodes_lead_to_the_leaves(animal):
    model, X, y = fitted(animal)
    forest = adapt(model)
    if "Lossguide" in animal.name:
        with pytest.raises(
            ValueError, match=r"'pbk' needs the nodes .* grow_policy='Symm.* 'kerf'"
        ):
            ForestProximity(model, "pbk").fit(X, y)
        return
    nodes, leaf = forest.nodes(), forest.leaves(X)
    at = nodes.of_leaf[leaf]
    assert (nodes.tree[at] == np.arange(leaf.shape[1])).all()
    for _ in range(int(nodes.depth.max())):  # all paths end at the root of their tree
        at = np.where(nodes.parent[at] < 0, at, nodes.parent[at])
    assert (at == nodes.offsets[:-1]).all()
    prox = ForestProximity(model, PathDecay(1e3), dtype=np.float64).fit(X, y)
    uniform = prox.reweigh("uniform").proximity().toarray()
    assert_allclose(prox.proximity().toarray(), uniform, atol=1e-12)


@BOOSTED
def test_leaf_values_add_up_to_the_model(animal):
    model, X, _ = fitted(animal)
    forest = adapt(model)
    values = forest.leaf_values()
    found = values[forest.leaves(X)]
    expected = animal.adds(model, X)
    found, expected = (a.reshape(*a.shape[:2], -1) for a in (found, expected))
    # A base value may be in the first tree or in none.
    found, expected = found - found.mean(axis=0), expected - expected.mean(axis=0)
    assert_allclose(found, expected, rtol=1e-4, atol=2e-6 * np.abs(expected).max())


def raw_prediction(animal, model, X):
    """The library's own prediction before any link function."""
    model = getattr(model, "best_estimator_", model)
    if animal.library == "LightGBM":
        averaged = "rf" in animal.name  # its raw score is a sum, its prediction the mean
        return model.predict(X, raw_score=not averaged)
    if animal.library == "CatBoost":
        catboost = pytest.importorskip("catboost")
        return catboost.CatBoost.predict(model, X, "RawFormulaVal")
    if animal.library == "XGBoost":
        xgb = pytest.importorskip("xgboost")
        booster = model if isinstance(model, xgb.Booster) else model.get_booster()
        return booster.predict(xgb.DMatrix(X), output_margin=True)
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@BOOSTED
def test_the_prediction_is_recovered_from_leaves_and_their_values(animal):
    model, X, _ = fitted(animal)
    forest = adapt(model)
    leaf = forest.leaves(X)
    found = forest.leaf_values()[leaf]
    own = np.asarray(raw_prediction(animal, model, X), dtype=np.float64).reshape(len(X), -1)
    n_outputs = own.shape[1]
    if "XGBRF" in animal.name:  # the parallel trees of a class are adjacent
        found = found.reshape(len(X), n_outputs, -1).sum(axis=2)
    else:
        found = found.reshape(len(X), -1, n_outputs).sum(axis=1)
    base = own - found  # the value that a model starts from, the same for all rows
    single = animal.library == "XGBoost"  # which computes in single precision
    scale = np.abs(own).max()
    assert np.ptp(base, axis=0).max() <= (5e-6 if single else 1e-12) * scale


def mean_of_leaves(model, forest, X):
    """The mean prediction of the leaves over trees, with normalized classes."""
    values = []
    for member in getattr(model, "estimators_", [model]):
        tree = member.tree_
        of_leaf = tree.value[tree.children_left < 0, 0]
        if hasattr(member, "classes_"):
            of_leaf = of_leaf / of_leaf.sum(axis=1, keepdims=True)
        values.append(of_leaf)
    return np.concatenate(values)[forest.leaves(X)].mean(axis=1)


@pytest.mark.parametrize(
    "name",
    [
        "RandomForestClassifier",
        "RandomForestRegressor",
        "ExtraTrees",
        "BaggingClassifier of trees",
        "BaggingRegressor of trees",
        "DecisionTree",
        "ExtraTree",
        "BalancedRandomForestClassifier",
        "RandomForestQuantileRegressor",
    ],
)
def test_the_prediction_is_the_mean_over_leaves(name):
    animal = next((a for a in zoo.ANIMALS if a.name == name), None)
    if animal is None:
        pytest.skip("not installed")
    model, X, _ = fitted(animal)
    found = mean_of_leaves(model, adapt(model), X).squeeze()
    if hasattr(model, "predict_proba"):
        own = model.predict_proba(X)
    elif "Quantile" in name:
        own = model.predict(X, quantiles="mean", aggregate_leaves_first=False)
    else:
        own = model.predict(X)
    assert_allclose(found, own, rtol=1e-12)


def test_the_votes_of_adaboost():
    animal = next(a for a in zoo.ANIMALS if a.name == "AdaBoostClassifier of trees")
    model, X, y = fitted(animal)
    forest = adapt(model)
    leaf = forest.leaves(X)
    trees = [member.tree_ for member in model.estimators_]
    choice = np.concatenate([t.value[t.children_left < 0, 0].argmax(axis=1) for t in trees])
    votes = np.eye(len(model.classes_))[choice[leaf]]
    weights = ForestProximity(model, "boosted").fit(X, y).kernel_.forest.tree_weights
    found = np.einsum("ntc,t->nc", votes, weights)
    assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))


def test_the_scores_of_an_isolation_forest():
    animal = next(a for a in zoo.ANIMALS if a.name == "IsolationForest")
    model, X, _ = fitted(animal)

    def expected_depth(n):
        n = np.asarray(n, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            many = 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n
        return np.where(n > 2, many, np.where(n == 2, 1.0, 0.0))

    depths = []
    for member in model.estimators_:
        tree = member.tree_
        depth = np.zeros(tree.node_count)
        for node in range(tree.node_count):  # parents come before their children
            for child in (tree.children_left[node], tree.children_right[node]):
                if child >= 0:
                    depth[child] = depth[node] + 1
        is_leaf = tree.children_left < 0
        depths.append(depth[is_leaf] + expected_depth(tree.n_node_samples[is_leaf]))
    mean = np.concatenate(depths)[adapt(model).leaves(X)].mean(axis=1)
    assert_allclose(-(2 ** (-mean / expected_depth(25))), model.score_samples(X), rtol=1e-10)


@BOOSTED
def test_tree_weights_are_variances_of_what_trees_add(animal):
    model, X, y = fitted(animal)
    prox = ForestProximity(model, "boosted").fit(X, y)
    found = prox.kernel_.forest.tree_weights
    assert_allclose(found, animal.weights(model, X), rtol=1e-4, atol=1e-12)
    assert (found > 0).any()


@ANIMALS
def test_an_unfitted_model_is_cloned_and_fitted(animal):
    model = animal.make()
    X, y, *more = animal.data()
    if more or not hasattr(model, "fit"):
        pytest.skip("its fit needs more than X and y")
    prox = ForestProximity(model, "kerf", dtype=np.float64).fit(X, y)
    assert prox.forest_ is not model
    again, _, _ = fitted(animal)
    expected = ForestProximity(again, "kerf", dtype=np.float64).fit(X, y).proximity()
    assert_allclose(prox.proximity().toarray(), expected.toarray(), rtol=1e-12)


@ANIMALS
def test_a_pickled_kernel_is_the_same(animal):
    model, X, y = fitted(animal)
    prox = ForestProximity(model, "kerf").fit(X, y)
    again = pickle.loads(pickle.dumps(prox))
    assert_array_equal(again.proximity(X[::3]).toarray(), prox.proximity(X[::3]).toarray())


def test_the_table_in_the_documentation_says_the_same():
    page = (Path(__file__).parent.parent / "docs" / "forests.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    told = {row[0].partition(" (")[0]: row[1:] for row in rows if len(row) == 8}
    for animal in zoo.ANIMALS:
        for scheme, cell in zip(zoo.SCHEMES, told[animal.name], strict=True):
            assert (cell == "✓") == (animal.refusal(scheme) is None), (animal.name, scheme)


def test_models_trained_in_another_process(tmp_path):
    """A model comes pickled from one process, is wrapped here, and both kernels agree."""
    code = f"""
import pickle, sys, warnings
sys.path.insert(0, {str(__file__)!r}.rsplit("/", 1)[0])
import zoo
from leafkernel import ForestProximity
found = {{}}
for animal in zoo.ANIMALS:
    if hasattr(animal.make(), "fit"):
        model, X, y = animal.fitted()
        found[animal.name] = model, X, y, ForestProximity(model, "uniform").fit(X, y).proximity()
pickle.dump(found, open(sys.argv[1], "wb"))
"""
    path = tmp_path / "models.pickle"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], check=True)
    found = pickle.loads(path.read_bytes())
    assert len(found) > 10
    for model, X, y, expected in found.values():
        prox = ForestProximity(model, "uniform").fit(X, y)
        assert_array_equal(prox.proximity().toarray(), expected.toarray())
