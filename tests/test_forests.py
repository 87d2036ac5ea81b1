"""The forests of scikit-learn, and the kinds of data that they take."""

import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.utils.fixes import parse_version

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.forests import adapt

FORESTS = [
    RandomForestClassifier(20, random_state=0),
    RandomForestClassifier(20, max_leaf_nodes=9, random_state=0),  # nodes not in depth-first order
    RandomForestClassifier(20, bootstrap=False, max_features=1, random_state=0),
    RandomForestRegressor(20, random_state=0),
    ExtraTreesClassifier(20, random_state=0),
    ExtraTreesClassifier(20, bootstrap=True, random_state=0),
    ExtraTreesRegressor(20, random_state=0),
    RandomTreesEmbedding(20, random_state=0),
    GradientBoostingClassifier(n_estimators=7, random_state=0),
    GradientBoostingClassifier(n_estimators=7, subsample=0.5, random_state=0),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    GradientBoostingRegressor(
        n_estimators=50, n_iter_no_change=2, init="zero", max_leaf_nodes=4, random_state=0
    ),
]


def apply(forest, X):
    return np.asarray(forest.apply(X)).reshape(len(X), -1)


@pytest.mark.parametrize("forest", FORESTS, ids=str)
def test_uniform_is_the_share_of_common_leaves(forest, iris):
    X, y = iris
    prox = ForestProximity(clone(forest), "uniform", dtype=np.float64).fit(X, y)
    leaf = apply(prox.forest_, X)
    leaf_new = apply(prox.forest_, X[::7] + 0.1)
    assert prox.n_trees_ == leaf.shape[1]
    assert_allclose(
        prox.proximity().toarray(), (leaf[:, None] == leaf[None]).mean(axis=2), rtol=0, atol=1e-12
    )
    assert_allclose(
        prox.proximity(X[::7] + 0.1).toarray(),
        (leaf_new[:, None] == leaf[None]).mean(axis=2),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("forest", FORESTS, ids=str)
def test_leaf_ids_are_global_and_grow_with_the_tree(forest, iris):
    X, y = iris
    adapted = adapt(forest := clone(forest).fit(X, y))
    leaf = adapted.leaves(X)
    assert leaf.dtype == np.int32
    assert (np.diff(leaf, axis=1) > 0).all()
    assert (leaf >= adapted.leaf_offsets[:-1]).all()
    assert (leaf < adapted.leaf_offsets[1:]).all()
    assert len(np.unique(leaf)) <= adapted.leaf_offsets[-1]
    if not isinstance(forest, RandomTreesEmbedding):
        trees = np.asarray(forest.estimators_).ravel()
        assert_array_equal(np.diff(adapted.leaf_offsets), [tree.get_n_leaves() for tree in trees])


@pytest.mark.parametrize("forest", FORESTS, ids=str)
def test_features_on_paths(forest, iris):
    X, y = iris
    adapted = adapt(forest := clone(forest).fit(X, y))
    offsets, features = adapted.path_features()
    leaf = adapted.leaves(X)
    for t, tree in enumerate(np.asarray(forest.estimators_).ravel()):
        path = tree.decision_path(X.astype(np.float32))
        for i in range(0, 150, 17):
            nodes = path.indices[path.indptr[i] : path.indptr[i + 1]]
            expected = sorted({f for f in tree.tree_.feature[nodes] if f >= 0})
            found = features[offsets[leaf[i, t]] : offsets[leaf[i, t] + 1]]
            assert found.tolist() == expected


@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_tree_weights_are_the_variance_of_what_each_tree_adds(diabetes, subsample):
    X, y = diabetes
    booster = GradientBoostingRegressor(
        n_estimators=9, learning_rate=0.3, subsample=subsample, random_state=0
    ).fit(X, y)
    adapted = adapt(booster)
    expected = oracles.variance_of_contribution(booster, X)
    mass = np.bincount(adapted.leaves(X).ravel(), minlength=adapted.leaf_offsets[-1])
    assert_allclose(adapted.tree_weights(mass), expected, rtol=1e-10)


def test_single_leaf_trees(iris):
    X, _ = iris
    forest = RandomForestRegressor(30, random_state=0).fit(X, np.zeros(150))
    for scheme in ("uniform", "kerf", "gap", "oob"):
        prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, np.zeros(150))
        assert prox.n_leaves_ == 30
    assert_allclose(ForestProximity(forest, "uniform").fit(X).proximity().toarray(), 1, rtol=1e-6)


def test_one_sample():
    forest = RandomForestRegressor(3, random_state=0)
    prox = ForestProximity(forest, "uniform").fit([[1.0, 2.0]], [3.0])
    assert_allclose(prox.proximity().toarray(), [[1]], rtol=1e-6)
    assert_allclose(prox.weighted_average([3.0], [[0.0, 0.0], [9.0, 9.0]]), [3, 3])


@pytest.mark.parametrize("scheme", ["uniform", "kerf", "boosted"])
def test_reference_samples_may_be_fewer_than_the_training_set(iris, scheme):
    """Leaves that no reference sample reaches are empty: queries there collide with nothing."""
    X, y = iris
    if scheme == "boosted":
        forest = GradientBoostingClassifier(n_estimators=5, max_depth=6, random_state=0)
    else:
        forest = RandomForestClassifier(15, random_state=0)
    forest.fit(X, y)
    few = np.arange(0, 150, 15)
    prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X[few], y[few])
    leaf, leaf_few = apply(forest, X), apply(forest, X[few])
    same = leaf[:, None] == leaf_few[None]
    n_trees = leaf.shape[1]
    if scheme == "uniform":
        expected = same.mean(axis=2)
    elif scheme == "kerf":
        mass = np.maximum((leaf_few[:, None] == leaf_few[None]).sum(axis=1), 1)  # (few, T)
        expected = (same / mass[None]).sum(axis=2) / n_trees
    else:
        trees = forest.estimators_.ravel()
        # The contribution of a tree depends on its own training set.
        weights = np.array([np.var(tree.predict(X)) for tree in trees])
        expected = same @ (weights / weights.sum())
    P = prox.proximity(X)
    assert P.shape == (150, 10)
    assert_allclose(P.toarray(), expected, rtol=0, atol=1e-12)
    assert (prox.kernel_.forest.leaf_mass == 0).any()  # or this would test nothing


@pytest.mark.parametrize("kind", [csr_array, csc_array])
@pytest.mark.parametrize("scheme", ["gap", "ih"])
def test_sparse_x(iris, kind, scheme):
    X, y = iris
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    dense = ForestProximity(forest, scheme).fit(X, y)
    sparse = ForestProximity(forest, scheme).fit(kind(X), y)
    assert (dense.proximity() != sparse.proximity()).nnz == 0
    assert (dense.proximity(X) != sparse.proximity(kind(X))).nnz == 0


def test_missing_values_where_the_forest_takes_them(iris, rng):
    X, y = iris
    X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, y)
    leaf = forest.apply(X)
    uniform = ForestProximity(forest, "uniform", dtype=np.float64).fit(X, y).proximity()
    assert_allclose(
        uniform.toarray(), (leaf[:, None] == leaf[None]).mean(axis=2), rtol=0, atol=1e-12
    )
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        with pytest.raises(ValueError, match=r"scikit-learn < 1\.8 can send them"):
            ForestProximity(forest).fit(X, y)
        return
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    one_hot = (y[:, None] == np.arange(3)).astype(float)
    assert_allclose(prox.proximity() @ one_hot, forest.oob_decision_function_, rtol=0, atol=1e-10)


@pytest.mark.parametrize("forest", [GradientBoostingClassifier(n_estimators=3)], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_where_the_forest_does_not_take_them(iris, forest, bad):
    X, y = iris
    prox = ForestProximity(forest, "uniform").fit(X, y)
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        prox.proximity(broken)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ForestProximity(forest, "uniform").fit(broken, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "forest", [RandomForestClassifier(40, random_state=0), FORESTS[8]], ids=["bagged", "boosted"]
)
def test_data_frames_keep_their_names(iris, library, forest):
    X, y = iris
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    if library == "pandas":
        frame, target = pd.DataFrame(X, columns=names), pd.Series(y)
    else:
        frame, target = pl.DataFrame(X, schema=names), pl.Series(y)
    forest = clone(forest)
    prox = ForestProximity(forest, "kerf").fit(frame, target)
    assert prox.feature_names_in_.tolist() == names
    plain = ForestProximity(forest, "kerf").fit(X, y)
    assert (prox.proximity() != plain.proximity()).nnz == 0
    assert (prox.proximity(frame) != plain.proximity(X)).nnz == 0
    assert_allclose(prox.weighted_average(target), plain.weighted_average(y))
    assert prox.get_feature_names_out(names).shape == (prox.n_leaves_,)
    with pytest.raises(ValueError, match="input_features is not equal"):
        prox.get_feature_names_out(list("abcd"))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        prox.proximity(X)


def test_string_labels(iris):
    X, codes = iris
    y = np.array(["a", "b", "c"])[codes]
    forest = RandomForestClassifier(40, random_state=0)
    for scheme in ("gap", "ih"):
        by_name = ForestProximity(forest, scheme).fit(X, y).proximity()
        assert (by_name != ForestProximity(forest, scheme).fit(X, codes).proximity()).nnz == 0
        series = pd.Series(y, dtype="category")
        assert (ForestProximity(forest, scheme).fit(X, series).proximity() != by_name).nnz == 0


def test_fitted_forest_without_y(iris):
    X, y = iris
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    with_y = ForestProximity(forest, "gap").fit(X, y).proximity()
    assert (ForestProximity(forest, "gap").fit(X).proximity() != with_y).nnz == 0


def test_unsupervised_embedding_needs_no_y(iris):
    X, _ = iris
    prox = ForestProximity(RandomTreesEmbedding(10, random_state=0), "kerf").fit(X)
    assert_allclose(prox.proximity().sum(axis=1), 1, rtol=1e-5)


def test_identity_fails_where_leaves_are_not_means(diabetes):
    """Documented in Gap: with medians in the leaves the proximities are exact, the identity not."""
    X, y = diabetes
    forest = RandomForestRegressor(
        50, criterion="absolute_error", min_samples_leaf=5, oob_score=True, random_state=0
    ).fit(X, y)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    assert_allclose(prox.proximity().sum(axis=1), 1)
    assert np.abs(prox.proximity() @ y - forest.oob_prediction_).max() > 1


def test_large_bootstrap_counts_do_not_overflow():
    """Few samples drawn a thousand times each: counts above 255."""
    X, y = np.arange(3.0)[:, None], np.arange(3.0)
    forest = RandomForestRegressor(4, max_samples=3000, max_depth=1, random_state=0)
    if parse_version(sklearn.__version__) < parse_version("1.9"):
        pytest.skip("scikit-learn < 1.9 draws at most n samples")
    with pytest.warns(LeafkernelWarning, match="3 of 3"):
        prox = ForestProximity(forest, "gap", dtype=np.float64).fit(X, y)
    assert_allclose(prox.weighted_average(y, X), prox.forest_.predict(X))
