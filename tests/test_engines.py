"""The native engine against the reference engine, on products of all shapes, types and threads."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from leafkernel.engines import find_engine
from leafkernel.engines.native import NativeEngine
from leafkernel.engines.reference import ReferenceEngine
from leafkernel.kernel import Product
from leafkernel.leaf_maps import index_by_leaf


def random_map(rng, shape, density, dtype):
    dense = np.where(rng.random(shape) < density, rng.random(shape), 0)
    return csr_array(dense.astype(dtype))


@st.composite
def products(draw, *, dtype=None):
    """Any Q and W, not only those of forests: rows may be empty, leaves unused."""
    n_rows, n_samples = draw(st.integers(0, 30)), draw(st.integers(1, 200))
    n_leaves = draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = dtype or draw(st.sampled_from([np.float32, np.float64]))
    leaf_type = draw(st.sampled_from([np.int32, np.int64]))
    density = draw(st.sampled_from([0.05, 0.3, 1.0]))

    query = random_map(rng, (n_rows, n_leaves), density, dtype)
    reference = random_map(rng, (n_samples, n_leaves), density, dtype)
    known = {}
    if draw(st.booleans()):
        known["own"] = rng.integers(0, n_samples, n_rows).astype(np.int32)
        if draw(st.booleans()):
            known["diagonal"] = rng.choice([0.0, 0.5, 1.0], n_rows)
    if draw(st.booleans()):
        words = draw(st.integers(1, 3))
        shape = (n_samples, words)
        known["reference_oob"] = rng.integers(0, 2**63, shape, dtype=np.uint64)
        known["reference_oob"][rng.random(n_samples) < 0.3] = 0
        known["query_oob"] = rng.integers(0, 2**63, (n_rows, words), dtype=np.uint64)
    return Product(
        query_offsets=query.indptr.astype(np.int64),
        query_leaves=query.indices.astype(leaf_type),
        query_weights=query.data,
        reference=index_by_leaf(reference, rng.permutation(n_samples)),
        row_order=rng.permutation(n_rows),
        **known,
    )


def plain_product(Q, W, **known):
    """Q Wᵀ with samples and rows in their natural order."""
    return Product(
        query_offsets=Q.indptr.astype(np.int64),
        query_leaves=Q.indices,
        query_weights=Q.data,
        reference=index_by_leaf(W, np.arange(W.shape[0])),
        row_order=np.arange(Q.shape[0]),
        **known,
    )


def same_matrix(A, B):
    return A.shape == B.shape and A.dtype == B.dtype and (A != B).nnz == 0 and A.nnz == B.nnz


@given(product=products(), n_threads=st.integers(1, 4), wide=st.booleans())
def test_rows(product, n_threads, wide):
    P = NativeEngine(n_threads, wide_indices=wide).rows(product)
    assert same_matrix(P, ReferenceEngine().rows(product))
    assert P.has_canonical_format
    fresh = csr_array((P.data, P.indices, P.indptr), shape=P.shape)
    assert fresh.has_canonical_format  # checked here from the arrays, not from the flag
    if wide:
        assert P.indices.dtype == P.indptr.dtype == np.int64


@given(product=products(), n_threads=st.integers(1, 4), data=st.data())
def test_nearest(product, n_threads, data):
    available = product.shape[1] - (product.own is not None)
    k = data.draw(st.integers(0, available))
    native = NativeEngine(n_threads).nearest(product, k)
    slow = ReferenceEngine().nearest(product, k)
    assert_array_equal(native[0], slow[0])
    assert_array_equal(native[1], slow[1])


@given(product=products(), n_threads=st.integers(1, 4))
def test_sums_and_nonzeros(product, n_threads):
    values = np.linspace(-1, 1, 3 * product.shape[1]).reshape(-1, 3)
    native, slow = NativeEngine(n_threads), ReferenceEngine()
    assert_allclose(native.sums(product, values), slow.sums(product, values), rtol=0, atol=1e-12)
    assert_array_equal(native.nonzeros(product), slow.nonzeros(product))
    assert_array_equal(native.nonzeros(product), np.diff(slow.rows(product).indptr))


@given(product=products())
def test_collisions_bound_the_nonzeros(product):
    expected = [
        sum(product.reference.leaf_sizes[leaf] for leaf in product.query_leaves[a:b])
        for a, b in zip(product.query_offsets[:-1], product.query_offsets[1:], strict=True)
    ]
    assert_array_equal(product.collisions(), expected)


@given(product=products(), data=st.data())
def test_taking_rows(product, data):
    rows = data.draw(st.lists(st.integers(0, max(product.n_rows - 1, 0)), max_size=10))
    if product.n_rows == 0:
        rows = []
    rows = np.array(rows, dtype=np.int64)
    taken = NativeEngine().rows(product.take(rows))
    assert_array_equal(taken.toarray(), NativeEngine().rows(product).toarray()[rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(dtype, rng):
    """Enough rows for many blocks, so that threads really share them."""
    Q = random_map(rng, (5000, 3000), 0.01, dtype)
    product = plain_product(Q, Q[:2000])
    one, many = NativeEngine(1), NativeEngine(5)
    P = one.rows(product)
    assert same_matrix(P, many.rows(product))
    assert_array_equal(one.nearest(product, 9)[1], many.nearest(product, 9)[1])
    values = rng.normal(size=(2000, 2))
    assert_array_equal(one.sums(product, values), many.sums(product, values))
    expected = (Q.astype(np.float64) @ Q[:2000].T.astype(np.float64)).toarray()
    assert_allclose(P.toarray(), expected, rtol=1e-6 if dtype == np.float32 else 1e-13)


def test_underflow_leaves_no_explicit_zeros():
    tiny = csr_array(np.array([[1e-30, 0.5], [1e-30, 0]], dtype=np.float32))
    product = plain_product(tiny, tiny)
    assert NativeEngine().rows(product).toarray().tolist() == [[0.25, 0], [0, 0]]
    assert NativeEngine().rows(product).nnz == 1
    assert NativeEngine().nonzeros(product).tolist() == [1, 0]


def test_float32_sums_many_trees_without_drift():
    """A thousand float additions of 0.001 would be off in the fifth digit."""
    ones = csr_array(np.full((1, 1000), np.sqrt(0.001), dtype=np.float32))
    assert NativeEngine().rows(plain_product(ones, ones))[0, 0] == pytest.approx(1, abs=2e-7)


def test_a_diagonal_where_no_leaf_is_shared():
    nothing = csr_array((3, 2), dtype=np.float64)
    known = {"own": np.arange(3, dtype=np.int32), "diagonal": np.array([1.0, 0.0, 0.5])}
    product = plain_product(nothing, nothing, **known)
    P = NativeEngine().rows(product)
    assert P.toarray().tolist() == np.diag([1, 0, 0.5]).tolist()
    assert P.nnz == 2


def test_broken_products_are_refused_before_memory_is_read():
    Q = csr_array(np.eye(3))
    good = plain_product(Q, Q)
    engine = NativeEngine()

    def broken(**changes):
        return dataclasses.replace(good, **changes)

    with pytest.raises(ValueError, match="query offsets"):
        engine.rows(broken(query_offsets=np.array([0, 1, 2, 9])))
    with pytest.raises(ValueError, match="query weights has 2 entries, expected 3"):
        engine.rows(broken(query_weights=Q.data[:2]))
    with pytest.raises(ValueError, match="row_order has 2"):
        engine.rows(broken(row_order=np.arange(2)))
    with pytest.raises(ValueError, match="own has 2"):
        engine.rows(broken(own=np.zeros(2, np.int32)))
    with pytest.raises(ValueError, match="own has 0"):
        engine.rows(broken(diagonal=np.zeros(3)))
    with pytest.raises(ValueError, match="query_oob"):
        engine.rows(broken(reference_oob=np.zeros((3, 1), np.uint64)))
    with pytest.raises(ValueError, match="k is larger"):
        engine.nearest(good, 4)
    with pytest.raises(ValueError, match="one row for each reference"):
        engine.sums(good, np.zeros((2, 1)))
    with pytest.raises(TypeError, match="query_offsets has the wrong dtype"):
        engine.rows(broken(query_offsets=Q.indptr.astype(np.int16)))


def test_read_only_arrays_are_fine():
    product = plain_product(csr_array(np.eye(3)), csr_array(np.eye(3)))
    for array in (product.query_offsets, product.query_leaves, product.query_weights):
        array.flags.writeable = False
    assert NativeEngine().rows(product).nnz == 3


def test_unknown_engine_names_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'native'"):
        find_engine("natve", n_threads=1)
