"""Rows with equal leaves are computed once, with unchanged results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import leafkernel._native as core
from leafkernel import ForestProximity
from leafkernel.engines import NativeEngine, ReferenceEngine, TooManyEntriesError
from leafkernel.engines import twins as module
from leafkernel.engines.twins import Twins


def few_distinct(rng, n=300, n_distinct=40, n_trees=6):
    """Return leaves of rows of which many are equal."""
    leaves = rng.integers(0, 9, (n_distinct, n_trees))
    return leaves[rng.integers(0, n_distinct, n)]


@pytest.fixture(autouse=True)
def look_at_small_products(monkeypatch):
    monkeypatch.setattr(module, "_FEW", 10)


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["uniform", "kerf", "oob_separable"]),
    st.sampled_from(["float32", "float64"]),
)
def test_results_are_those_of_all_rows(seed, scheme, dtype):
    rng = np.random.default_rng(seed)
    leaves = few_distinct(rng)
    in_bag = np.repeat(rng.integers(0, 2, (1, 6)), len(leaves), axis=0).astype(np.uint8)
    in_bag[:, 0] = 0
    prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme=scheme, dtype=dtype)
    new = prox._samples.unseen(prox._samples.leaf[rng.permutation(300)[:200]])
    engine, oracle = NativeEngine(2), ReferenceEngine()
    for product in (prox.kernel_.training_product(), prox.kernel_.product(new)):
        assert Twins.of(product, 2) is not None
        rows, expected = engine.rows(product), oracle.rows(product)
        rows.check_format()
        assert_array_equal(rows.indptr, expected.indptr)
        assert_array_equal(rows.indices, expected.indices)
        np.testing.assert_allclose(rows.data, expected.data, rtol=1e-6)
        k = int(rng.integers(1, 299 if product.own is not None else 301))
        found, plain = engine.nearest(product, k), no_twins(engine.nearest, product, k)
        assert_array_equal(found[1], plain[1])
        assert_array_equal(found[0], plain[0])


def no_twins(method, *args):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", 10**9)
        return method(*args)


def test_wide_indices_limits_and_progress():
    leaves = few_distinct(np.random.default_rng(0))
    ones = ForestProximity.from_leaves(leaves, diagonal="one").kernel_.training_product()
    assert Twins.of(ones, 1) is None  # each row has another diagonal entry
    product = ForestProximity.from_leaves(leaves).kernel_.training_product()
    narrow, wide = (NativeEngine(1, wide_indices=wide).rows(product) for wide in (False, True))
    assert wide.indices.dtype == wide.indptr.dtype == np.int64
    assert narrow.indices.dtype == np.int32
    assert abs(narrow - wide).max() == 0
    with pytest.raises(TooManyEntriesError):
        NativeEngine(1).rows(product, most_entries=narrow.nnz - 1)
    seen = []
    NativeEngine(1).rows(product, seen.append, most_entries=narrow.nnz)
    assert seen[-1] == len(leaves)


def test_rows_that_differ_are_no_twins():
    rng = np.random.default_rng(0)
    leaves = few_distinct(rng, 300)
    same = ForestProximity.from_leaves(leaves, weight_scheme="uniform").kernel_.training_product()
    first = core.twins(same.query, 2)
    table = np.asarray(same.query.incidence.columns)
    for row, one in enumerate(first):
        assert_array_equal(table[row], table[one])
    assert len(np.unique(first)) == len(np.unique(table, axis=0))
    distinct = ForestProximity.from_leaves(np.arange(300)[:, None], weight_scheme="uniform")
    assert Twins.of(distinct.kernel_.training_product(), 1) is None


def test_rows_to_repeat_are_checked():
    values, columns = np.ones(3, np.float32), np.arange(3, dtype=np.int32)
    offsets = np.array([0, 1, 3], np.int32)
    for wrong in ([2], [-1], [0, 5]):
        with pytest.raises(ValueError, match="does not exist"):
            core.repeat_rows(values, columns, offsets, np.array(wrong), 1)
    with pytest.raises(ValueError, match="offsets"):
        core.repeat_rows(values, columns, offsets[::-1].copy(), np.array([0]), 1)
    with pytest.raises(ValueError, match="values"):
        core.repeat_rows(values[:2], columns, offsets, np.array([0]), 1)
