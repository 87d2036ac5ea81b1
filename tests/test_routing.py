"""Native routing finds exactly the same leaves as scikit-learn's ``apply``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel.forests import adapt
from leafkernel.forests._routing import RouteTable


def leaves_by_apply(forest, adapted, X):
    """Nodes of ``apply``, renumbered: leaves in the order of their nodes, tree after tree."""
    nodes = np.asarray(forest.apply(X)).reshape(X.shape[0], -1).astype(int)
    trees = [tree.tree_ for tree in np.asarray(forest.estimators_).ravel()]
    numbers = [np.cumsum(tree.children_left < 0) - 1 for tree in trees]
    columns = [
        number[column] + first
        for number, column, first in zip(numbers, nodes.T, adapted.leaf_offsets, strict=False)
    ]
    return np.stack(columns, axis=1)


@given(
    seed=st.integers(0, 2**16),
    n_features=st.sampled_from([1, 2, 9, 300]),
    n_new=st.sampled_from([1, 15, 16, 17, 100]),
    kind=st.sampled_from([RandomForestRegressor, ExtraTreesRegressor, GradientBoostingRegressor]),
    max_depth=st.sampled_from([1, 4, None]),
    missing=st.booleans(),
    sparse=st.booleans(),
)
def test_leaves_equal_apply(seed, n_features, n_new, kind, max_depth, missing, sparse):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_features)).round(rng.integers(0, 6))
    X_new = rng.normal(size=(n_new, n_features)).round(rng.integers(0, 6))
    if missing and not sparse and kind is RandomForestRegressor:
        X[rng.random(X.shape) < 0.2] = np.nan
        X_new[rng.random(X_new.shape) < 0.2] = np.nan
    if sparse:
        X, X_new = (csr_array(np.where(A > 0.3, A, 0)) for A in (X, X_new))
    forest = kind(n_estimators=5, max_depth=max_depth, random_state=seed)
    forest.fit(X, rng.normal(size=60))
    adapted = adapt(forest)
    for samples in (X, X_new):
        expected = leaves_by_apply(forest, adapted, samples)
        for n_threads in (1, 3):
            assert_array_equal(adapted.leaves(samples, n_threads=n_threads), expected)


def test_thresholds_between_floats_are_compared_as_in_float64():
    """Adjacent float32 values: their float64 midpoint is not a float32."""
    rng = np.random.default_rng(0)
    values = np.float32(1.0) + np.arange(200, dtype=np.float32) * np.finfo(np.float32).eps
    X = rng.permutation(values)[:, None]
    forest = RandomForestRegressor(10, random_state=0).fit(X, rng.normal(size=200))
    adapted = adapt(forest)
    assert_array_equal(adapted.leaves(X), leaves_by_apply(forest, adapted, X))
    assert (
        forest.estimators_[0].tree_.threshold.astype(np.float32)
        != forest.estimators_[0].tree_.threshold
    ).any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_any_layout_and_type(order, dtype, rng):
    X = np.asarray(rng.integers(-50, 50, (300, 7)), dtype=dtype, order=order)
    forest = RandomForestClassifier(8, random_state=0).fit(X, X[:, 0] > X[:, 1])
    adapted = adapt(forest)
    expected = leaves_by_apply(forest, adapted, X)
    assert_array_equal(adapted.leaves(X), expected)
    assert_array_equal(adapted.leaves(X[::3]), expected[::3])
    locked = X.copy(order=order)
    locked.flags.writeable = False
    assert_array_equal(adapted.leaves(locked), expected)


def test_forests_too_wide_to_pack_take_the_slow_way(rng, monkeypatch):
    X = rng.normal(size=(100, 5))
    forest = RandomForestClassifier(8, random_state=0).fit(X, X[:, 0] > X[:, 1])
    fast = adapt(forest).leaves(X)
    trees = [tree.tree_ for tree in forest.estimators_]
    assert RouteTable.pack(trees, 5) is not None
    assert RouteTable.pack(trees, 2**30) is None
    monkeypatch.setattr(RouteTable, "pack", classmethod(lambda *_, **__: None))
    assert_array_equal(adapt(forest).leaves(X), fast)


def test_64_bit_leaf_ids(rng, monkeypatch):
    X = rng.normal(size=(100, 5))
    adapted = adapt(RandomForestClassifier(8, random_state=0).fit(X, X[:, 0] > X[:, 1]))
    narrow = adapted.leaves(X)
    assert narrow.dtype == np.int32
    monkeypatch.setattr("leafkernel.forests._routing.leaf_id_type", lambda n_leaves: np.int64)
    wide = adapted.leaves(X)
    assert wide.dtype == np.int64
    assert_array_equal(wide, narrow)


def test_a_table_is_refused_where_it_does_not_fit_the_samples(rng):
    X = rng.normal(size=(100, 5)).astype(np.float32)
    forest = RandomForestClassifier(8, random_state=0).fit(X, X[:, 0] > X[:, 1])
    table = RouteTable.pack([tree.tree_ for tree in forest.estimators_], 5)
    with pytest.raises(ValueError, match="fewer features"):
        table.leaves(X[:, :4], n_threads=1)
