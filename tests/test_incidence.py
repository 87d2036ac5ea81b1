"""Rows of columns and their weights, against dense matrices that are written entry by entry."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.engines import NativeEngine
from leafkernel.incidence import Coordinates, Incidence, WeighedRows, shared_by_tree
from leafkernel.inside import Inside
from leafkernel.leaf_index import LeafIndex
from leafkernel.leaf_maps import leaf_map, side_by_side
from leafkernel.product import Product
from leafkernel.weighting import Weighting

DOUBLE = np.dtype(np.float64)


@st.composite
def weighed_rows(draw, n_rows=None):
    """Rows over a few trees: one leaf of each, or any number of columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 9)) if n_rows is None else n_rows
    first = np.concatenate([[0], np.cumsum(draw(st.lists(st.integers(1, 5), min_size=1)))])
    coordinates = Coordinates.of_leaves(first)
    if draw(st.booleans()):
        has = rng.random((n, first[-1])) < 0.4
        columns, offsets = np.nonzero(has)[1], np.concatenate([[0], np.cumsum(has.sum(axis=1))])
    else:
        columns, offsets = rng.integers(first[:-1], first[1:], (n, len(first) - 1)), None
    kinds = {
        "ones": None,
        "flags": rng.random(columns.shape) < 0.5,
        "counts": rng.integers(0, 4, columns.shape).astype(np.uint8),
        "weights": rng.normal(size=columns.shape),
    }
    weighting = Weighting(
        scale=0.5,
        by_sample=rng.random(n) if draw(st.booleans()) else None,
        by_leaf=rng.random(first[-1]) if draw(st.booleans()) else None,
        by_entry=kinds[draw(st.sampled_from(list(kinds)))],
    )
    return WeighedRows(Incidence.of(columns, coordinates, offsets), weighting.compact(DOUBLE))


def entries_of(rows, i):
    """The places of a row's entries in the flat arrays, found the slow way."""
    incidence = rows.incidence
    if incidence.offsets is None:
        width = incidence.columns.shape[1]
        return range(i * width, (i + 1) * width)
    return range(incidence.offsets[i], incidence.offsets[i + 1])


def dense_map(rows):
    """The map, entry by entry."""
    weighting, columns = rows.weighting, rows.incidence.columns.ravel()
    matrix = np.zeros((rows.n_rows, rows.incidence.coordinates.n_columns))
    for i in range(rows.n_rows):
        for e in entries_of(rows, i):
            weight = weighting.scale
            weight *= 1 if weighting.by_sample is None else weighting.by_sample[i]
            weight *= 1 if weighting.by_leaf is None else weighting.by_leaf[columns[e]]
            weight *= 1 if weighting.by_entry is None else weighting.by_entry.ravel()[e]
            matrix[i, columns[e]] = weight
    return matrix


@given(weighed_rows())
def test_the_map_has_each_weight_in_its_column(rows):
    assert_allclose(leaf_map(rows, DOUBLE).toarray(), dense_map(rows), rtol=1e-15)


@given(weighed_rows(), st.data())
def test_some_rows_are_those_rows(rows, data):
    expected = dense_map(rows)
    begin = data.draw(st.integers(0, rows.n_rows))
    some = data.draw(st.lists(st.integers(0, rows.n_rows - 1), max_size=12))
    for chosen in (slice(begin, begin + 4), slice(None), np.array(some, dtype=np.int64)):
        assert_allclose(dense_map(rows.rows(chosen)), expected[chosen], rtol=1e-15)
        columns = rows.incidence.columns[rows.incidence.entries(chosen)]
        assert rows.dense(chosen).shape == columns.shape


@given(weighed_rows())
def test_groups_are_the_columns_of_a_tree(rows):
    coordinates, expected = rows.incidence.coordinates, dense_map(rows)
    rebuilt = np.zeros_like(expected)
    for tree in range(coordinates.n_trees):
        (group,) = coordinates.groups_of(tree)
        (found,) = rows.in_groups([group])
        rebuilt[found.row, found.leaf + coordinates.first[group]] = found.weight
        columns = np.arange(coordinates.first[group], coordinates.first[group + 1])
        assert_array_equal(coordinates.tree_of(columns), tree)
    assert_allclose(rebuilt, expected, rtol=1e-15)


@given(weighed_rows(), st.integers(0, 99))
def test_both_sides_make_a_symmetric_kernel(query, seed):
    weights = np.random.default_rng(seed).random(query.incidence.columns.shape)
    reference = WeighedRows(query.incidence, Weighting(by_entry=weights))
    P = dense_map(query) @ dense_map(reference).T
    both = query.incidence.twice()
    asks = side_by_side(query, reference, both, DOUBLE)
    lends = side_by_side(reference, query, both, DOUBLE)
    assert_allclose(dense_map(asks) @ dense_map(lends).T, (P + P.T) / 2, atol=1e-14)
    assert_allclose(query.row_dots(reference), P.diagonal(), atol=1e-14)
    n_trees = query.incidence.coordinates.n_trees
    assert asks.incidence.coordinates.n_trees == n_trees
    for tree in range(n_trees):
        assert asks.incidence.coordinates.groups_of(tree) == [tree, tree + n_trees]
    by_tree = shared_by_tree(asks.rows(np.array([0])), lends.rows(np.array([-1 % len(P)])))
    assert len(by_tree) == n_trees
    assert_allclose(by_tree.sum(), ((P + P.T) / 2)[0, -1], atol=1e-14)


@given(weighed_rows(), st.integers(1, 3))
def test_products_of_any_rows(rows, n_threads):
    """Neighbors, sums and rows of a kernel whose rows have any number of columns."""
    expected = dense_map(rows) @ dense_map(rows).T
    n = rows.n_rows
    index = LeafIndex.of(rows, n_threads=n_threads)
    product = Product(rows, index, rows.incidence.locality_order(), DOUBLE)
    engine = NativeEngine(n_threads)
    assert_allclose(engine.rows(product).toarray(), expected, atol=1e-14)
    assert_allclose(engine.apply(product, np.eye(n)), expected, atol=1e-14)
    assert_allclose(engine.sums(product, np.eye(n)), expected, atol=1e-14)
    similarity, _ = engine.nearest(product, n)
    assert_allclose(similarity, -np.sort(-expected, axis=1), atol=1e-14)


@pytest.mark.parametrize("offsets", [None, [0, 2, 4]])
def test_rows_survive_a_pickle_and_are_checked_again(offsets):
    columns = np.array([[0, 1], [0, 2]], dtype=np.int32)
    if offsets is not None:
        columns, offsets = columns.ravel(), np.array(offsets)
    rows = Incidence.of(columns, Coordinates.of_leaves(np.array([0, 1, 3])), offsets)
    again = pickle.loads(pickle.dumps(rows))
    assert_array_equal(again.columns, columns)
    state = list(rows.ids.__getstate__())
    state[0] = state[0] + np.int32(2)
    empty = type(rows.ids).__new__(type(rows.ids))
    with pytest.raises(ValueError, match="leaf id is out of range"):
        empty.__setstate__(tuple(state))


def test_arrays_that_were_checked_stay_as_they_are():
    """The core does not check ids again, so they must not change."""
    mine = np.array([[0], [0]], dtype=np.int32)
    view = mine.view()
    view.flags.writeable = False
    one = Coordinates.of_leaves(np.array([0, 1]))
    for array in (mine, view):
        rows = Incidence.of(array, one)
        mine[:] = 10**9
        assert rows.columns.max() == 0
        with pytest.raises(ValueError, match="read-only"):
            rows.columns[:] = 5
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            rows.columns.flags.writeable = True
        mine[:] = 0
    locked = np.zeros((2, 1), dtype=np.int32)
    locked.flags.writeable = False
    assert np.shares_memory(Incidence.of(locked, one).columns, locked)  # read-only


def test_a_scheme_cannot_unlock_the_leaves():
    def unlock(samples, forest):
        samples.leaf.flags.writeable = True

    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        ForestProximity.from_leaves([[1, 2], [1, 3]], weight_scheme=unlock)


def test_what_leads_to_rows_cannot_change_while_it_is_read():
    """A report of progress runs Python code in the middle of the work."""
    rows = WeighedRows(
        Incidence.of(np.zeros((5000, 1), np.int32), Coordinates.of_leaves(np.array([0, 1]))),
        Weighting(),
    )
    order = np.arange(5000)
    product = Product(rows, LeafIndex.of(rows), order, DOUBLE)

    def spoil(done):
        order[:] = 2**40

    counts = NativeEngine().nonzeros(product, spoil)
    assert_array_equal(counts, 5000)
    assert order[0] == 2**40  # it was called


def test_leaves_are_kept_once_after_a_copy(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y)
    copies = [copy.deepcopy(prox)]
    copies += [pickle.loads(pickle.dumps(prox, protocol)) for protocol in range(2, 6)]
    for found in (prox, *copies):
        inside = Inside.of(found)
        assert np.shares_memory(inside.samples.leaf, inside.kernel.query.incidence.columns)
        assert (found.proximity() != prox.proximity()).nnz == 0
