"""After fit, nothing that happens to the model, the data or a scheme's buffers changes a result."""

import numpy as np
import pandas as pd
import pytest
import zoo
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from leafkernel import ForestProximity, WeightScheme
from leafkernel.forests import Unavailable
from leafkernel.inside import Inside
from leafkernel.schemes import Boosted, Weighting
from leafkernel.tasks import (
    ForestKernel,
    ProximityClassifier,
    ProximityKMedoids,
    ProximityRegressor,
    explain_pair,
    local_importance,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*training samples are in bag in every tree",
    "ignore:X does not have valid feature names",
    "ignore:`XGBRF",
    "ignore:.*`booster=",
)


def results(prox, X):
    """Everything that the model, the leaves or the weights have a part in."""
    found = [
        prox.proximity().toarray(),
        prox.proximity(X).toarray(),
        *prox.kneighbors(X, 3),
        prox.proximity_to([0, 5], X).toarray(),
        prox.weighted_sums(np.arange(len(X)), X),
    ]
    if prox.scheme_.separable:
        found += [prox.reference_map().toarray(), prox.query_map(X).toarray()]
        found.append(prox.operator(X).T @ np.ones(len(X)))
    try:
        Inside.of(prox).forest.trees()
    except Unavailable:
        return found
    return [*found, local_importance(prox, X)]


def same(before, after):
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert_array_equal(a, b)


def train_again(animal, model):
    """Fit a model again on other columns, other rows and other targets, as its library can."""
    X, y, *more = animal.data()
    other = np.random.default_rng(1).normal(size=(len(X), X.shape[1] + 1))
    if hasattr(model, "fit"):
        model.fit(other, None if y is None else y[::-1], **(more[0] if more else {}))
        return
    rest = animal.make()(other, y[::-1])
    if animal.library == "XGBoost":
        model.load_model(rest.save_raw(raw_format="ubj"))
    elif animal.library == "LightGBM":
        model.model_from_string(rest.model_to_string())
    else:
        pytest.skip("this model cannot be trained again")


@pytest.mark.parametrize("animal", zoo.ANIMALS, ids=lambda a: a.name)
def test_training_the_model_again(animal):
    model, X, y = animal.fitted()
    prox = ForestProximity(model, "uniform").fit(X, y)
    new = X * 1.01
    before = results(prox, new)
    train_again(animal, model)
    same(before, results(prox, new))


@pytest.mark.parametrize("wrapped", [True, False])
def test_loading_another_model_into_xgboost(iris, tmp_path, wrapped):
    xgboost = pytest.importorskip("xgboost")
    X, y = iris
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=2).fit(X, y)
    given = model if wrapped else model.get_booster()
    prox = ForestProximity(given, "boosted").fit(X, y)
    before = results(prox, X)
    xgboost.XGBClassifier(n_estimators=9, max_depth=1).fit(X[::-1], y).save_model(
        tmp_path / "other.json"
    )
    given.load_model(tmp_path / "other.json")
    same(before, results(prox, X))


@pytest.mark.parametrize("kind", [RandomForestClassifier, GradientBoostingClassifier])
def test_pruning_the_trees_in_place(iris, kind):
    """People prune trees by writing to these arrays."""
    X, y = iris
    model = kind(n_estimators=5, random_state=0).fit(X, y)
    prox = ForestProximity(model, "uniform").fit(X, y)
    before = results(prox, X)
    for member in np.ravel(model.estimators_):
        member.tree_.children_left[:] = -1
        member.tree_.children_right[:] = -1
        member.tree_.threshold[:] = 7
    same(before, results(prox, X))


@pytest.mark.parametrize("kind", [RandomForestClassifier, HistGradientBoostingClassifier])
def test_overwriting_the_names_of_columns(iris, kind):
    X, y = pd.DataFrame(iris[0], columns=list("abcd")), iris[1]
    model = kind(random_state=0).fit(X, y)
    prox = ForestProximity(model, "uniform").fit(X, y)
    before = prox.proximity(X).toarray()
    model.feature_names_in_[:] = "z"  # with old versions also the names of X itself
    again = pd.DataFrame(iris[0], columns=list("abcd"))
    assert_array_equal(prox.proximity(again).toarray(), before)


def test_explanations_after_a_pipeline_was_fitted_again(iris):
    X, y = iris
    model = make_pipeline(
        FunctionTransformer(np.asarray), RandomForestClassifier(8, random_state=0)
    )
    prox = ForestProximity(model.fit(X, y), "uniform").fit(X, y)
    before = str(explain_pair(prox, 2, 3))
    model.fit(X[:, :2], y)
    assert str(explain_pair(prox, 2, 3)) == before


@pytest.mark.parametrize(
    "scheme", ["uniform", "kerf", "gap", "oob", "oob_separable", "ih", "purity", "learned"]
)
def test_overwriting_the_data(scheme):
    X, y = load_iris(return_X_y=True)
    kept = X.copy()
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    prox = ForestProximity(forest, scheme).fit(X, y)
    before = results(prox, kept)
    blocks = prox.iter_proximity(X, block_size=50)
    first = next(blocks)[1].toarray()
    X[:] = 0
    y[:] = 0
    same(before, results(prox, kept))
    rest = [block.toarray() for _, block in blocks]
    assert_array_equal(np.vstack([first, *rest]), prox.proximity(kept).toarray())


def test_overwriting_leaf_ids_and_what_came_with_them(rng):
    leaves = rng.integers(0, 3, (30, 5))
    in_bag = rng.integers(0, 3, (30, 5)).astype(np.uint8)
    tree_weights = rng.random(5)
    known = {"in_bag": in_bag, "tree_weights": tree_weights}
    fitted = [
        ForestProximity.from_leaves(leaves, weight_scheme=scheme, **known)
        for scheme in ("gap", "oob_separable", "boosted")
    ]
    kept = leaves.copy()
    before = [results(prox, kept) for prox in fitted]
    for array in (leaves, in_bag, tree_weights):
        array[:] = 1
    for prox, found in zip(fitted, before, strict=True):
        same(found, results(prox, kept))


def test_fitting_the_stand_in_for_leaves_again(rng):
    """The router followed the ids of the new fit, past the end of the old index."""
    small, big = rng.integers(0, 3, (20, 4)), rng.integers(0, 300, (500, 4))
    prox = ForestProximity.from_leaves(small)
    before = prox.proximity(big).toarray()
    prox.forest_.fit(big)
    assert_array_equal(prox.proximity(big).toarray(), before)


def test_a_custom_forest_that_uses_its_buffers_again(iris):
    class Halves:
        drawn = np.zeros((150, 4), dtype=np.uint8)
        ids = np.zeros((150, 4), dtype=np.int64)

        def leaves(self, X):
            np.greater(X, 2, out=self.ids[: len(X)], casting="unsafe")
            return self.ids[: len(X)]

        def in_bag(self, X, y):
            self.drawn[:] = np.arange(600).reshape(150, 4) % 3 > 0
            return self.drawn

        def tree_weights(self):
            return np.arange(1.0, 5)

    X, y = iris
    for scheme in ("gap", "oob", "boosted"):
        forest = Halves()
        prox = ForestProximity(forest, scheme).fit(X, y)
        before = results(prox, X)
        forest.drawn[:] = 1
        forest.ids[:] = 7
        same(before, results(prox, X))


class Reusing(WeightScheme):
    """Write the weights of each side into the same array, or into a new one each time."""

    def __init__(self, factor, dtype, *, reuse):
        self.factor, self.dtype, self.reuse = factor, dtype, reuse
        self.buffer = None

    def weigh(self, samples, forest, every):
        shapes = {"by_sample": samples.n_samples, "by_leaf": forest.n_leaves}
        shape = shapes.get(self.factor, samples.leaf.shape)
        if self.buffer is None or not self.reuse:
            self.buffer = np.zeros(shape, dtype=self.dtype)
        self.buffer.flat = np.arange(self.buffer.size) % every > 0
        return self.buffer if self.factor == "array" else Weighting(**{self.factor: self.buffer})

    def query(self, samples, forest):
        return self.weigh(samples, forest, 3)

    def reference(self, samples, forest):
        return self.weigh(samples, forest, 5)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("factor", ["by_entry", "by_leaf", "by_sample", "array"])
def test_a_scheme_that_uses_its_buffers_again(iris, dtype, factor):
    X, y = iris
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    fresh = ForestProximity(forest, Reusing(factor, dtype, reuse=False)).fit(X, y)
    prox = ForestProximity(forest, Reusing(factor, dtype, reuse=True)).fit(X, y)
    prox.scheme_.buffer.flat = 0
    for got, expected in (
        (prox.proximity(), fresh.proximity()),
        (prox.reference_map(), fresh.reference_map()),
        (prox.query_map(), fresh.query_map()),
        (prox.proximity_to([3], X), fresh.proximity_to([3], X)),
    ):
        assert expected.nnz
        assert_array_equal(got.toarray(), expected.toarray())


def test_the_arrays_of_a_scheme_that_was_given(iris):
    X, y = iris
    forest = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, y)
    weights = np.arange(1.0, 10)
    prox = ForestProximity(forest, Boosted(weights)).fit(X, y)
    before = results(prox, X)
    weights[:] = [0] * 8 + [1]
    same(before, results(prox, X))


def test_schemes_cannot_write_to_what_they_are_given(iris):
    X, y = iris

    def vandal(samples, forest):
        with pytest.raises(ValueError, match="read-only"):
            forest.leaf_mass[:] = 0
        with pytest.raises(ValueError, match="read-only"):
            forest.path_features(0)[:] = 0
        return np.ones(samples.leaf.shape)

    vandal.needs = ("paths",)
    ForestProximity(RandomForestClassifier(5, random_state=0), vandal).fit(X, y)


@pytest.mark.parametrize("task", [ProximityClassifier, ProximityKMedoids])
def test_a_task_keeps_the_fit_that_it_was_given(iris, task):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(10, random_state=0), "kerf").fit(X, y)
    model = task(prox).fit(X, y)
    before = model.predict(X)
    prox.fit(X[:100, :2], y[:100])
    assert_array_equal(model.predict(X), before)


def test_a_gaussian_process_keeps_the_fit_that_it_was_given(diabetes):
    X, y = diabetes
    prox = ForestProximity(RandomForestRegressor(10, random_state=0), "kerf").fit(X, y)
    process = GaussianProcessRegressor(ForestKernel(prox), alpha=0.5).fit(X, y)
    before = process.predict(X)
    prox.fit(X[:50, :3], y[:50])
    assert_array_equal(process.predict(X), before)


def test_a_regressor_keeps_its_targets(diabetes):
    X, y = diabetes[0], diabetes[1].copy()
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    model = ProximityRegressor(ForestProximity(forest).fit(X, y)).fit(X, y)
    before = model.predict(X)
    y[:] = 0
    assert_array_equal(model.predict(X), before)
