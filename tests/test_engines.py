"""The native engine against the reference engine, on products of all shapes, types and threads."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from products import make_product, products
from scipy.sparse import csr_array

import leafkernel._native as core
from leafkernel.engines import find_engine
from leafkernel.engines.native import NativeEngine
from leafkernel.engines.reference import ReferenceEngine
from leafkernel.incidence import Coordinates, Incidence, WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product
from leafkernel.weighting import Weighting


def test_a_product_in_another_type_keeps_what_it_knows_of_leaves(rng):
    """A solver multiplies hundreds of times, each with millions of leaves."""
    product = make_product(rng, 5, 20, 3, factors=True, dtype=np.float32)
    in_double = product.with_dtype(np.float64)
    assert in_double.dtype == np.float64
    assert in_double.by_leaf is product.by_leaf
    assert product.with_dtype(np.float32) is product
    assert product.dtype == np.float32


def plain_product(Q, W, **known):
    """Q Wᵀ for dense maps, each column a tree of one leaf; samples and rows in their order."""
    coordinates = Coordinates.of_leaves(np.arange(Q.shape[1] + 1))

    def rows(weights):
        leaves = np.tile(np.arange(Q.shape[1], dtype=np.int32), (len(weights), 1))
        return WeighedRows(Incidence.of(leaves, coordinates), Weighting(by_entry=weights))

    return Product(
        query=rows(Q),
        reference=LeafIndex.of(rows(W), np.arange(len(W), dtype=np.int32)),
        row_order=np.arange(len(Q)),
        dtype=Q.dtype,
        **known,
    )


def tolerance(product):
    """The last digits of a factor: the two engines multiply in different orders."""
    return 2e-7 if product.dtype == np.float32 else 1e-15


def same_matrix(A, B):
    return A.shape == B.shape and A.dtype == B.dtype and (A != B).nnz == 0 and A.nnz == B.nnz


@given(product=products(), n_threads=st.integers(1, 4), wide=st.booleans(), sort=st.booleans())
def test_rows(product, n_threads, wide, sort):
    P = NativeEngine(n_threads, wide_indices=wide).rows(product, sort=sort)
    slow = ReferenceEngine().rows(product)
    assert P.shape == slow.shape
    assert P.dtype == slow.dtype == product.dtype
    assert P.nnz == slow.nnz
    assert_allclose(P.toarray(), slow.toarray(), rtol=4 * tolerance(product))
    assert P.has_sorted_indices == sort
    if sort:
        fresh = csr_array((P.data, P.indices, P.indptr), shape=P.shape)
        assert fresh.has_canonical_format  # checked here from the arrays, not from the flag
    if wide:
        assert P.indices.dtype == P.indptr.dtype == np.int64
    assert same_matrix(P, NativeEngine(1).rows(product))


@given(product=products(), n_threads=st.integers(1, 4), data=st.data())
def test_nearest(product, n_threads, data):
    available = product.shape[1] - (product.own is not None)
    k = data.draw(st.integers(0, available))
    similarity, samples = NativeEngine(n_threads).nearest(product, k)
    # Use the native rows, which are tested above, so that ties agree.
    dense = NativeEngine().rows(product).toarray()
    for i, row in enumerate(dense):
        order = np.argsort(-row, kind="stable")
        if product.own is not None:
            order = order[order != product.reference.sample_at[product.own[i]]]
        assert_array_equal(samples[i], order[:k])
        assert_array_equal(similarity[i], row[order[:k]])
    slow = ReferenceEngine().nearest(product, k)[0]
    assert_allclose(similarity, slow, rtol=4 * tolerance(product))


@given(product=products(), n_threads=st.integers(1, 4))
def test_sums_and_nonzeros(product, n_threads):
    values = np.linspace(-1, 1, 3 * product.shape[1]).reshape(-1, 3)
    native, slow = NativeEngine(n_threads), ReferenceEngine()
    close = {"rtol": 0, "atol": 2000 * tolerance(product)}  # sums of up to 160 products
    assert_allclose(native.sums(product, values), slow.sums(product, values), **close)
    # The intermediate array of apply has the type of the kernel.
    close = {"rtol": 0, "atol": 6e-5 if product.dtype == np.float32 else 1e-11}
    assert_allclose(native.apply(product, values), slow.apply(product, values), **close)
    assert_array_equal(native.nonzeros(product), slow.nonzeros(product))
    assert_array_equal(native.nonzeros(product), np.diff(slow.rows(product).indptr))


@given(product=products(), n_threads=st.integers(1, 4))
def test_collisions_bound_the_nonzeros(product, n_threads):
    collisions = NativeEngine(n_threads).collisions(product)
    assert_array_equal(collisions, ReferenceEngine().collisions(product))
    if product.diagonal is None:
        assert (collisions >= NativeEngine().nonzeros(product)).all()


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
    """Enough rows for many blocks and several chunks, so that threads really share them."""
    product = make_product(rng, 9000, 2000, 20, leaves_per_tree=100, factors=True, dtype=dtype)
    one, many = NativeEngine(1), NativeEngine(5)
    P = one.rows(product)
    assert same_matrix(P, many.rows(product))
    assert same_matrix(P, many.rows(product, sort=False))
    assert_array_equal(one.nearest(product, 9)[1], many.nearest(product, 9)[1])
    values = rng.normal(size=(2000, 2))
    assert_array_equal(one.sums(product, values), many.sums(product, values))
    assert_array_equal(one.apply(product, values), many.apply(product, values))
    assert_allclose(P @ values, one.apply(product, values), rtol=0, atol=1e-4)


def test_underflow_leaves_no_explicit_zeros():
    tiny = np.array([[1e-30, 0.5], [1e-30, 0]], dtype=np.float32)
    product = plain_product(tiny, tiny)
    assert NativeEngine().rows(product).toarray().tolist() == [[0.25, 0], [0, 0]]
    assert NativeEngine().rows(product).nnz == 1
    assert NativeEngine().nonzeros(product).tolist() == [1, 0]


def test_sums_that_underflow_in_double_are_no_entries():
    """Every addition leaves the sum at zero, so a place is listed repeatedly and then dropped."""
    tiny = np.full((3, 50), 1e-200)
    tiny[0, -1] = 1.0
    P = NativeEngine().rows(plain_product(tiny, tiny))
    assert P.toarray().tolist() == [[1, 1e-200, 1e-200], [1e-200, 0, 0], [1e-200, 0, 0]]
    assert P.nnz == 5


def test_float32_sums_many_trees_without_drift():
    """A thousand float additions of 0.001 would be off in the fifth digit."""
    weights = np.full((1, 1000), np.sqrt(0.001), dtype=np.float32)
    assert NativeEngine().rows(plain_product(weights, weights))[0, 0] == pytest.approx(1, abs=2e-7)


def test_a_diagonal_where_no_leaf_is_shared():
    nothing = np.zeros((3, 2))
    known = {"own": np.arange(3, dtype=np.int32), "diagonal": np.array([1.0, 0.0, 0.5])}
    product = plain_product(nothing, nothing, **known)
    P = NativeEngine().rows(product)
    assert P.toarray().tolist() == np.diag([1, 0, 0.5]).tolist()
    assert P.nnz == 2


def test_broken_products_are_refused_before_memory_is_read():
    good = plain_product(np.eye(3), np.eye(3))
    engine = NativeEngine()

    def broken(**changes):
        return dataclasses.replace(good, **changes)

    def weighed(entries):
        return broken(query=dataclasses.replace(good.query, weighting=Weighting(by_entry=entries)))

    def incidence(columns):
        return Incidence.of(columns, good.query.incidence.coordinates)

    columns = good.query.incidence.columns

    def broken_index(**changes):
        return broken(reference=dataclasses.replace(good.reference, **changes))

    with pytest.raises(ValueError, match="weights has 2 entries, expected 9"):
        engine.rows(weighed(np.ones(2)))
    with pytest.raises(ValueError, match="present has 2 entries, expected 9"):
        engine.rows(weighed(np.ones(2, bool)))
    with pytest.raises(ValueError, match="sample_at is not a permutation"):
        good.reference.with_samples(np.array([0, 1, 3], np.int32))
    with pytest.raises(ValueError, match="leaf id is out of range"):
        incidence(columns + 1)
    with pytest.raises(ValueError, match="leaf id is out of range"):
        incidence(columns - 1)
    with pytest.raises(ValueError, match="row_order is not a permutation"):
        engine.rows(broken(row_order=np.array([0, 1, 1])))
    with pytest.raises(ValueError, match="own holds a place"):
        engine.nearest(broken(own=np.array([0, 1, 3], np.int32)), 1)
    with pytest.raises(ValueError, match="by_place has 2"):
        engine.rows(broken_index(by_place=np.ones(2)))
    with pytest.raises(ValueError, match="by_leaf has 2"):
        engine.rows(broken_index(by_leaf=np.ones(2)))
    with pytest.raises(ValueError, match="row_order has 2"):
        engine.rows(broken(row_order=np.arange(2)))
    with pytest.raises(ValueError, match="own has 2"):
        engine.rows(broken(own=np.zeros(2, np.int32)))
    with pytest.raises(ValueError, match="own has 0"):
        engine.rows(broken(diagonal=np.zeros(3)))
    with pytest.raises(ValueError, match="query_oob"):
        engine.rows(broken(reference_oob=np.zeros((3, 1), np.uint64)))
    with pytest.raises(ValueError, match="k must be between 0"):
        engine.nearest(good, 4)
    with pytest.raises(ValueError, match="one row for each reference"):
        engine.sums(good, np.zeros((2, 1)))
    with pytest.raises(TypeError, match="columns has the wrong dtype"):
        incidence(columns.astype(np.int16))


def test_damaged_lists_are_refused():
    good = plain_product(np.eye(3), np.eye(3)).reference
    kept = {name: getattr(good, name) for name in ("offsets", "members", "weights", "sample_at")}

    def lists(**changes):
        return core.LeafLists(**{**kept, **changes})

    with pytest.raises(ValueError, match="reference offsets"):
        lists(offsets=np.array([0, 1, 2, 9]))
    with pytest.raises(ValueError, match="reference offsets"):
        lists(offsets=np.array([0, 2, 1, 3]))
    with pytest.raises(ValueError, match="reference weights has 2"):
        lists(weights=np.ones(2))
    with pytest.raises(ValueError, match="ascending places"):
        lists(members=np.array([0, 1, 3], np.int32))
    with pytest.raises(ValueError, match="ascending places"):
        lists(members=np.array([0, 1, -1], np.int32))
    with pytest.raises(ValueError, match="sample_at is not a permutation"):
        lists(sample_at=np.array([0, 1, 1], np.int32))


def test_lists_refuse_what_they_cannot_place():
    leaf = np.zeros((3, 1), dtype=np.int32)
    order = np.arange(3, dtype=np.int32)
    one = Coordinates.of_leaves(np.array([0, 1]))
    rows = WeighedRows(Incidence.of(leaf, one), Weighting())
    with pytest.raises(ValueError, match="not a permutation"):
        LeafIndex.of(rows, order + 1)
    with pytest.raises(ValueError, match="sample_at has 2"):
        LeafIndex.of(rows, order[:2])


def test_rows_refuse_columns_that_they_cannot_have():
    """The loops do not check ids, so ids are checked when rows are created."""
    leaf = np.zeros((3, 1), dtype=np.int32)
    one, two = (Coordinates.of_leaves(np.arange(n + 1)) for n in (1, 2))
    for columns, coordinates in ((leaf + 7, one), (leaf - 1, one), (np.repeat(leaf, 2, 1), two)):
        with pytest.raises(ValueError, match="a leaf id is out of range, or not in its group"):
            Incidence.of(columns, coordinates)
    with pytest.raises(ValueError, match="one entry for each row and group"):
        Incidence.of(leaf, two)
    with pytest.raises(ValueError, match="groups of columns are not in order"):
        Incidence.of(np.repeat(leaf, 2, 1), Coordinates(np.array([0, 2, 1]), np.arange(2)))


def test_ragged_rows_refuse_columns_that_they_cannot_have():
    three = Coordinates.of_leaves(np.array([0, 1, 3]))
    good = np.array([0, 2, 1], dtype=np.int32)
    assert Incidence.of(good, three, np.array([0, 2, 3])).n_rows == 2
    for columns, offsets in (
        (good + 1, [0, 2, 3]),  # a column that does not exist
        (good, [0, 1, 3]),  # not ascending
        (good * 0, [0, 2, 3]),  # one column twice
    ):
        with pytest.raises(ValueError, match="a leaf id is out of range"):
            Incidence.of(columns, three, np.array(offsets))
    for offsets in ([0, 3, 2], [0, 2], [1, 3], []):
        with pytest.raises(ValueError, match="row offsets do not span"):
            Incidence.of(good, three, np.array(offsets, dtype=np.int64))


def test_read_only_arrays_are_fine():
    product = plain_product(np.eye(3), np.eye(3))
    for array in (product.query.weights, product.row_order, product.reference.members):
        array.flags.writeable = False
    assert NativeEngine().rows(product).nnz == 3


def test_unknown_engine_names_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'native'"):
        find_engine("natve", n_threads=1)
