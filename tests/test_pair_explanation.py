"""Explanations of similar pairs: the splits of every library, and the text about them."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from walks import SCHEMES, small, walk

from leafkernel import ForestProximity
from leafkernel.forests import adapt
from leafkernel.inside import Inside
from leafkernel.tasks import explain_prediction, local_importance
from leafkernel.tasks.pair_explanation import explain_pair

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*training samples are in bag in every tree",
    "ignore:X does not have valid feature names",
    "ignore:`XGBRF",
    "ignore:.*`booster=",
)
TELLING = [a for a in zoo.ANIMALS if "Lossguide" not in a.name]
ANIMALS = pytest.mark.parametrize("animal", TELLING, ids=lambda a: a.name)
_known = {}


def fitted(animal):
    if animal.name not in _known:
        model, X, y = animal.fitted()
        _known[animal.name] = model, np.asarray(X), y
    return _known[animal.name]


def as_compared(animal, model, X):
    """The samples as the trees compare them: in single precision, but for two libraries."""
    seen = np.asarray(animal.seen(model, X))
    double = animal.library == "LightGBM" or "Hist" in animal.name
    return seen if double else seen.astype(np.float32)


# The splits of every library.


@ANIMALS
def test_splits_lead_to_the_leaves(animal):
    model, X, _ = fitted(animal)
    forest = adapt(model)
    leaf, trees = forest.leaves(X), forest.trees()
    seen = as_compared(animal, model, X)
    for i in range(0, len(X), 7):
        for t, tree in enumerate(trees):
            number = np.count_nonzero(tree.children_left[: walk(tree, seen[i])[-1]] < 0)
            assert number + forest.leaf_offsets[t] == leaf[i, t]


@pytest.mark.parametrize("name", ["sklearn", "lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize("in_training", [True, False])
def test_missing_values_go_where_the_splits_say(name, in_training, rng):
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + (X[:, 1] > 0.3)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.3] = np.nan
    settings = {"random_state": 0}
    if name == "sklearn":
        model = HistGradientBoostingRegressor(max_iter=4, **settings)
    elif name == "lightgbm":
        lgb = pytest.importorskip("lightgbm")
        model = lgb.LGBMRegressor(n_estimators=4, verbose=-1, min_child_samples=5, **settings)
    elif name == "xgboost":
        model = pytest.importorskip("xgboost").XGBRegressor(n_estimators=4, **settings)
    else:
        cb = pytest.importorskip("catboost")
        more = {"verbose": 0, "allow_writing_files": False, "nan_mode": "Max"}
        model = cb.CatBoostRegressor(iterations=4, **more, **settings)
    forest = adapt(model.fit(holes if in_training else X, y))
    if name == "catboost" and not in_training:
        return  # it refuses holes then
    leaf = forest.leaves(holes)
    seen = holes.astype(np.float64 if name in ("sklearn", "lightgbm") else np.float32)
    for t, tree in enumerate(forest.trees()):
        for i, x in enumerate(seen):
            number = np.count_nonzero(tree.children_left[: walk(tree, x)[-1]] < 0)
            assert number + forest.leaf_offsets[t] == leaf[i, t]


@ANIMALS
def test_bits_of_a_path_add_up_in_every_library(animal):
    model, X, y = fitted(animal)
    prox = ForestProximity(model, "uniform").fit(X, y)
    found = explain_pair(prox, 3, 3)
    mass = prox.kernel_.forest.leaf_mass[Inside.of(prox).samples.leaf[3]]
    assert_allclose(found.bits.sum(), np.log2(len(X) / mass).mean(), rtol=1e-12)
    assert_array_equal(found.trees, np.arange(prox.n_trees_))
    assert len(found.feature_names) == as_compared(animal, model, X).shape[1]


@ANIMALS
def test_an_interval_is_as_wide_as_can_be(animal):
    """Values inside the interval stay in all shared leaves; values just outside do not."""
    model, X, y = fitted(animal)
    if animal.seen(model, X) is not X:
        return  # behind a pipeline X cannot be moved to the end of an interval
    prox = ForestProximity(model, "kerf").fit(X, y)
    X = as_compared(animal, model, X)
    found = explain_pair(prox, 1, 2)
    forest = adapt(model)
    shared = forest.leaves(X[1:2])[0, found.trees]
    kind = X.dtype.type
    for f in range(X.shape[1]):
        low, high = found.low[f], found.high[f]
        assert low < X[1, f] <= high
        assert low < X[2, f] <= high
        at_most = {end: largest(end, kind) for end in (low, high) if np.isfinite(end)}
        for end, value in at_most.items():
            above = np.nextafter(value, kind(np.inf))
            inside, outside = (value, above) if end == high else (above, value)
            moved = np.stack([X[1], X[1]])
            moved[:, f] = inside, outside
            leaf = forest.leaves(moved)[:, found.trees]
            assert_array_equal(leaf[0], shared)
            assert (leaf[1] != shared).any()


def largest(end, kind):
    """The largest number of a type that is not above a limit."""
    value = kind(end)
    return np.nextafter(value, kind(-np.inf)) if value > end else value


# Pairs.


def oracle_pair(prox, X, a, b, weights):
    """Bits and partings by walking every tree, with nodes counted by walking all rows."""
    bits, parted = np.zeros(X.shape[1]), []
    X = X.astype(np.float32)
    for t, tree in enumerate(Inside.of(prox).forest.trees()):
        paths = [walk(tree, x) for x in X]
        count = {}
        for path in paths:
            for node in path:
                count[node] = count.get(node, 0) + 1
        if paths[a] == paths[b]:
            for above, node in pairwise(paths[a]):
                bits[tree.feature[above]] += weights[t] * np.log2(count[above] / count[node])
        else:
            together = [n for n, m in zip(paths[a], paths[b], strict=False) if n == m]
            node = together[-1]
            share = count[node] / len(X)
            parted.append((t, tree.feature[node], tree.threshold[node], len(together) - 1, share))
    return bits, parted


@given(a=st.integers(0, 89), b=st.integers(0, 89), scheme=st.sampled_from(SCHEMES))
def test_a_pair_against_walking_every_tree(a, b, scheme):
    if scheme not in _known:
        _known[scheme] = small(scheme=scheme, n_trees=6)
    prox = _known[scheme]
    X = load_diabetes().data[:90]
    found = explain_pair(prox, a, b)
    leaf = Inside.of(prox).samples.leaf
    shared = np.flatnonzero(leaf[a] == leaf[b])
    assert_array_equal(found.trees, shared)
    kernel = prox.kernel_
    adds = kernel.query.dense()[a] * kernel.reference.dense()[b] * (leaf[a] == leaf[b])
    weights = adds if adds.any() else (leaf[a] == leaf[b]).astype(float)
    weights = weights / max(weights.sum(), 1e-300)
    bits, parted = oracle_pair(prox, X, a, b, weights)
    assert_allclose(found.bits, bits, atol=1e-12)
    assert_allclose(found.tree_shares, weights[shared])
    assert_allclose(found.shares.sum(), 1 if bits.any() else 0)
    told = found.partings
    arrays = (told.trees, told.features, told.thresholds, told.depths, told.shares)
    assert_allclose(np.stack(arrays, 1), np.array(parted).reshape(-1, 5))
    assert found.parted_in.sum() == found.n_trees - len(shared)


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("diagonal", ["scheme", "one"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_proximity_is_that_of_the_matrix(scheme, diagonal, symmetrize):
    prox = small(scheme=scheme, diagonal=diagonal, symmetrize=symmetrize)
    X = load_diabetes().data[:100]
    P, new = prox.proximity().toarray(), prox.proximity(X[90:]).toarray()
    near = int(np.argsort(-P[7])[1])
    for a, b in [(7, near), (near, 7), (7, 7), (7, 8)]:
        assert_allclose(explain_pair(prox, a, b).proximity, P[a, b], rtol=1e-12)
    nearest = int(np.argmax(new[3]))
    assert_allclose(explain_pair(prox, X[93], nearest).proximity, new[3, nearest], rtol=1e-12)
    assert_allclose(explain_pair(prox, nearest, X[93]).proximity, new[3, nearest], rtol=1e-12)
    both = explain_pair(prox, X[93], X[94])
    assert both.proximity is None
    assert_allclose(both.tree_shares, 1 / max(len(both.trees), 1))


def test_a_pair_in_words_and_as_a_table():
    X, y = load_iris(return_X_y=True, as_frame=True)
    prox = ForestProximity(RandomForestClassifier(20, random_state=0)).fit(X, y)
    found = explain_pair(prox, 60, 95)
    text = repr(found)
    assert f"share a leaf in {len(found.trees)} of 20 trees. Their proximity is" in text
    first = int(np.argmax(found.shares))
    assert f"{found.shares[first]:.1%}  {X.columns[first]}" in text
    assert f"Features that separate them in the other {len(found.partings.trees)} trees:" in text
    frame = found.to_frame()
    assert frame.index[0] == X.columns[first]
    assert set(frame.index) <= set(X.columns)
    assert (frame["share"].diff().dropna() <= 0).all()
    at = found.partings.features == X.columns.get_loc(frame["parted_in"].idxmax())
    line = frame.loc[frame["parted_in"].idxmax()]
    assert line["parted_in"] == at.sum()
    assert_allclose(line["parted_at"], np.median(found.partings.thresholds[at]))
    assert_allclose(line["parted_among"], found.partings.shares[at].mean())

    apart = explain_pair(prox, 0, 149)
    assert "share a leaf in none of 20 trees. Their proximity is 0" in str(apart)
    assert "in all trees:" in str(apart)
    assert not apart.shares.any()
    new = explain_pair(prox, X.iloc[0], X.iloc[[1]])
    assert str(new).startswith("A new sample and another share a leaf in 20 of 20 trees.")
    in_bag = ForestProximity(RandomForestClassifier(1, random_state=0)).fit(X, y)
    twins = explain_pair(in_bag, 0, 0)
    assert "share a leaf in 1 of 1 trees, but all with weight 0. Their proximity is 0." in str(
        twins
    )


def test_categories_have_no_interval(table):
    X, y = table
    model = HistGradientBoostingRegressor(
        max_iter=6, categorical_features=[1], min_samples_leaf=5, random_state=0
    )
    prox = ForestProximity(model, "uniform").fit(X, y)
    found = explain_pair(prox, 1, 1)
    assert list(found.feature_names) == ["size", "kind", "age"]
    assert found.bits[1] > 0
    assert np.isnan(found.low[1])
    assert np.isnan(found.high[1])
    assert re.search(r"kind +is [a-z]( or [a-z])?$", str(found), re.MULTILINE)
    assert not np.isnan(found.low[[0, 2]]).any()
    # A row with a missing value: shared splits follow the direction of missing values.
    assert X["size"].isna()[0]
    assert explain_pair(prox, 0, 7).missing_stays[0]
    with_hole = X.iloc[[1]].assign(size=np.nan)
    leaf = Inside.of(prox).forest.leaves(pd.concat([X.iloc[[1]], with_hole]))
    assert found.missing_stays[0] == (leaf[0] == leaf[1]).all()


def test_empty_nodes_count_as_half_a_sample(diabetes):
    X, y = diabetes
    forest = ExtraTreesRegressor(4, random_state=0).fit(X, y)
    prox = ForestProximity(forest, "uniform").fit(X[:20], y[:20])
    found = explain_pair(prox, X[150], X[150])  # leaves of one row each, empty but for 20 rows
    leaf = forest.apply(X[[150]])[0]
    mass = (forest.apply(X[:20]) == leaf).sum(axis=0)
    assert (mass == 0).any()
    assert_allclose(found.bits.sum(), np.log2(20 / np.maximum(mass, 0.5)).mean())
    assert np.isfinite(found.bits).all()


# Names, and forests that do not tell.


def test_features_of_members_are_those_of_the_whole(diabetes):
    X, y = diabetes
    bagging = BaggingRegressor(DecisionTreeRegressor(), 5, max_features=3, random_state=0)
    prox = ForestProximity(bagging).fit(X, y)
    used = {int(f) for tree in bagging.fit(X, y).estimators_features_ for f in tree}
    found = explain_pair(prox, 0, 0)
    assert set(np.flatnonzero(found.bits)) <= used
    assert list(found.feature_names) == [f"x{i}" for i in range(10)]


def test_behind_a_pipeline_features_are_those_that_reach_the_forest(table):
    X, y = table
    X = X.fillna({"size": 0.0})
    encode = make_column_transformer(
        (OneHotEncoder(), ["kind"]), remainder=StandardScaler(), verbose_feature_names_out=False
    )
    forest = RandomForestRegressor(5, random_state=0)
    prox = ForestProximity(make_pipeline(encode, forest)).fit(X, y)
    found = explain_pair(prox, 0, X.iloc[[1]])
    names = ["kind_a", "kind_b", "kind_c", "kind_d", "size", "age"]
    assert list(found.feature_names) == names
    assert local_importance(prox, X).shape == (120, 6)

    silent = FunctionTransformer(np.asarray)
    prox = ForestProximity(make_pipeline(encode, silent, forest)).fit(X, y)
    assert list(explain_pair(prox, 0, 1).feature_names) == [f"x{i}" for i in range(6)]


def test_forests_that_do_not_tell_their_splits(iris):
    X, y = iris

    class Halves:
        def leaves(self, X):
            return (np.asarray(X) > 3).astype(int)

    for prox in (
        ForestProximity.from_leaves([[1, 4], [1, 5]]),
        ForestProximity(Halves(), "uniform").fit(X),
    ):
        with pytest.raises(ValueError, match="explain_pair needs the splits of the trees, but"):
            explain_pair(prox, 0, 1)
        with pytest.raises(ValueError, match=r"local_importance needs.*of scikit-learn"):
            local_importance(prox)
    assert explain_prediction(prox, X[0], y=y).predicted == 0


def test_catboost_that_does_not_tell_its_splits(diabetes):
    cb = pytest.importorskip("catboost")
    X, y = diabetes
    model = cb.CatBoostRegressor(
        iterations=3, grow_policy="Lossguide", verbose=0, allow_writing_files=False
    )
    prox = ForestProximity(model, "uniform").fit(X, y)
    with pytest.raises(ValueError, match=r"grow_policy='SymmetricTree'\.$"):
        explain_pair(prox, 0, 1)


def holds(interval, values):
    """Return whether values lie in an interval as it is printed."""
    number = r"(-?[\d.]+(?:e[+-]\d+)?)"
    forms = {
        rf"in \({number}, {number}\]": lambda low, high: (low < values) & (values <= high),
        rf"in \[{number}, {number}\]": lambda low, high: (low <= values) & (values <= high),
        rf"in \({number}, {number}\)": lambda low, high: (low < values) & (values < high),
        rf"in \[{number}, {number}\)": lambda low, high: (low <= values) & (values < high),
        rf"above {number}": lambda low: low < values,
        rf"from {number}": lambda low: low <= values,
        rf"up to {number}": lambda high: values <= high,
        rf"below {number}": lambda high: values < high,
        "any": lambda: np.isfinite(values),
    }
    for form, inside in forms.items():
        if found := re.fullmatch(form, interval):
            return bool(np.all(inside(*map(float, found.groups()))))
    raise AssertionError(interval)


@pytest.mark.parametrize("library", ["scikit-learn", "xgboost", "lightgbm"])
def test_both_rows_lie_in_the_intervals_as_they_are_printed(rng, library):
    """Rounded to four digits, years were in (1978, 1978], and small steps left a row outside.

    XGBoost sends x < 3 to the left: it said "above 3" of a row with 3.
    """
    if library == "scikit-learn":
        model = RandomForestRegressor(20, random_state=0)
    else:
        module = pytest.importorskip(library)
        kind = {"xgboost": "XGBRegressor", "lightgbm": "LGBMRegressor"}[library]
        quiet = {"verbose": -1} if library == "lightgbm" else {}
        model = getattr(module, kind)(n_estimators=20, max_depth=4, **quiet)
    X = np.stack(
        [
            rng.integers(1950, 2024, 200),
            rng.integers(0, 5, 200) + 100_000,
            rng.normal(size=200).round(3) + 50,
            rng.gamma(1.0, 1e5, 200),
        ],
        axis=1,
    )
    y = X[:, 0] + 10 * X[:, 1] + rng.normal(size=200)
    names = ["year", "code", "level", "amount"]
    prox = ForestProximity(model, "uniform").fit(pd.DataFrame(X, columns=names), y)
    near = prox.kneighbors(n_neighbors=1)[1][:, 0]
    n_told = 0
    for a in range(0, 200, 5):
        for line in str(explain_pair(prox, a, int(near[a]))).splitlines():
            if found := re.fullmatch(r" +[\d.]+%  (\w+) +(.*)", line):
                assert holds(found[2], X[[a, int(near[a])], names.index(found[1])])
                n_told += 1
    assert n_told > 40


def boosters_with_categories():
    lightgbm, xgboost = map(pytest.importorskip, ("lightgbm", "xgboost"))
    few = {"min_child_samples": 5, "min_data_per_group": 1, "cat_smooth": 1, "verbose": -1}
    return {
        "lightgbm": lightgbm.LGBMRegressor(n_estimators=8, num_leaves=6, **few),
        "lightgbm sets": lightgbm.LGBMRegressor(n_estimators=8, max_cat_to_onehot=1, **few),
        "xgboost": xgboost.XGBRegressor(n_estimators=8, enable_categorical=True, max_depth=3),
        "hist": HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype"),
        "pipeline": make_pipeline(
            FunctionTransformer(),
            HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype"),
        ),
    }


@pytest.mark.parametrize("library", ["lightgbm", "lightgbm sets", "xgboost", "hist", "pipeline"])
def test_categories_that_stay_together_are_named(rng, library):
    """Each category that keeps a row in all shared leaves is named, and no other."""
    names = ["red", "green", "blue", "gray", "pink", "white"]
    color, size = rng.choice(names, 300), rng.choice(["small", "large"], 300)
    X = pd.DataFrame({"x": rng.normal(size=300), "color": color, "size": size})
    X = X.astype({"color": "category", "size": "category"})
    y = (
        3 * np.isin(color, names[:3])
        + np.isin(color, names[2:4])
        + (size == "large")
        + 0.1 * X["x"]
    )
    prox = ForestProximity(boosters_with_categories()[library], "uniform").fit(X, y)
    near = prox.kneighbors(n_neighbors=1)[1][:, 0]
    n_named = 0
    for row in range(40):
        told = explain_pair(prox, row, int(near[row]))
        shared = Inside.of(prox).samples.leaf[row, told.trees]
        for column, categories in ((1, X["color"].cat.categories), (2, X["size"].cat.categories)):
            moved = pd.concat([X.iloc[[row]]] * len(categories), ignore_index=True)
            moved[moved.columns[column]] = pd.Categorical(categories, categories=categories)
            stays = (Inside.of(prox).forest.leaves(moved)[:, told.trees] == shared).all(axis=1)
            if column not in told.categories:
                assert stays.all()
                continue
            said = told.categories[column].removeprefix("is ").replace(" or ", ", ").split(", ")
            assert said == list(categories[stays])
            n_named += not stays.all()
            assert told.categories[column] in str(told)
    assert n_named > 20


def test_names_of_parts_of_a_pipeline_are_left_out(rng):
    X = pd.DataFrame({"age": rng.normal(size=80), "sex": rng.choice(["f", "m"], 80)})
    parts = [("num", StandardScaler(), ["age"]), ("cat", OneHotEncoder(), ["sex"])]
    forest = RandomForestClassifier(10, random_state=0)
    model = make_pipeline(ColumnTransformer(parts), forest)
    prox = ForestProximity(model, "uniform").fit(X, X["sex"])
    assert list(explain_pair(prox, 0, 1).feature_names) == ["age", "sex_f", "sex_m"]
    twice = [("raw", "passthrough", ["age"]), ("scaled", StandardScaler(), ["age"])]
    model = make_pipeline(ColumnTransformer(twice), forest)
    prox = ForestProximity(model, "uniform").fit(X, X["sex"])
    assert list(explain_pair(prox, 0, 1).feature_names) == ["raw__age", "scaled__age"]
