"""Steps of ``fit`` in the compiled core, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import leafkernel._native as core
from leafkernel import ForestProximity
from leafkernel.incidence import Coordinates, Incidence
from leafkernel.leaf_index import Samples

THREADS = [1, 2, 16]


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (1, 1), (20_000, 7)])
def test_flags(shape, n_threads, rng):
    counts = rng.integers(0, 3, shape, dtype=np.uint8)
    zeros = core.zeros(counts, n_threads)
    assert zeros.dtype == bool
    assert_array_equal(zeros, counts == 0)
    assert_array_equal(core.count_flags(zeros, n_threads), (counts == 0).sum(axis=1, keepdims=True))


def test_oob_trees_of_flags_in_any_layout(rng):
    flags = rng.random((50, 9)) < 0.5
    for given in (flags, np.asfortranarray(flags), np.broadcast_to(np.True_, (50, 9))):
        samples = Samples(np.zeros((50, 9), dtype=np.int32), oob_flags=given)
        samples.count_oob_trees(n_threads=2)
        assert_array_equal(samples.n_oob_trees, given.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(("n_rows", "n_leaves"), [(2000, 11), (5, 2000), (1, 1), (0, 3)])
def test_order_of_rows(n_rows, n_leaves, rng):
    leaves = rng.integers(0, n_leaves, (n_rows, 1), dtype=np.int32)
    incidence = Incidence.of(leaves, Coordinates.of_leaves(np.array([0, n_leaves])))
    order = incidence.locality_order()
    assert order.dtype == np.int64
    assert not order.flags.writeable
    assert_array_equal(order, np.argsort(leaves[:, 0], kind="stable"))


@pytest.mark.parametrize("n_threads", THREADS)
def test_the_first_tree_with_other_masses_is_found(n_threads, rng):
    X = rng.normal(size=(300, 4))
    forest = RandomForestClassifier(20, random_state=0).fit(X, X[:, 0] > 0)
    trees = [member.tree_ for member in forest.estimators_]
    recorded = [tree.weighted_n_node_samples[tree.children_left < 0] for tree in trees]
    offsets = np.concatenate([[0], np.cumsum([len(of_tree) for of_tree in recorded])])
    masses = np.concatenate(recorded)
    assert core.find_other_masses(trees, masses, offsets, n_threads) == -1
    for t in (17, 4):
        masses[offsets[t]] += 0.01
        assert core.find_other_masses(trees, masses, offsets, n_threads) == t
    shifted = offsets.copy()
    shifted[2] -= 1
    assert core.find_other_masses(trees, np.concatenate(recorded), shifted, n_threads) == 1


@pytest.mark.parametrize("scheme", ["gap", "uniform", "kerf", "oob", "oob_separable"])
def test_fit_is_the_same_on_any_number_of_threads(scheme):
    """More rows than a block has, and rows and trees that no number of threads divides."""
    X, y = make_classification(9001, 8, random_state=0)
    forest = RandomForestClassifier(43, min_samples_leaf=3, random_state=0, n_jobs=2).fit(X, y)
    one, two, many = (
        ForestProximity(forest, scheme, n_jobs=n_jobs).fit(X, y).kernel_ for n_jobs in (1, 2, 16)
    )
    for other in (two, many):
        assert_array_equal(one.query.incidence.columns, other.query.incidence.columns)
        for name in ("leaf_mass", "in_bag_masses"):
            assert_array_equal(getattr(one.forest, name), getattr(other.forest, name))
        for name in ("offsets", "members", "weights", "sample_at", "by_leaf"):
            assert_array_equal(getattr(one.index, name), getattr(other.index, name))


@pytest.mark.parametrize("scheme", ["gap", "kerf"])
@pytest.mark.filterwarnings("ignore:.*in bag in every tree")
def test_lists_are_those_of_sorting(scheme):
    X, y = make_classification(9001, 8, random_state=0)
    forest = RandomForestClassifier(21, min_samples_leaf=3, random_state=0, n_jobs=2).fit(X, y)
    kernel = ForestProximity(forest, scheme, n_jobs=2).fit(X, y).kernel_
    columns, entry = kernel.reference.incidence.columns, kernel.reference.weighting.by_entry
    weights = np.ones(columns.shape, np.uint8) if entry is None else entry
    place = kernel.index.place_of[:, None] + np.zeros_like(columns)
    order = np.lexsort([place.ravel(), columns.ravel()])
    order = order[weights.ravel()[order] != 0]
    assert_array_equal(kernel.index.members, place.ravel()[order])
    if entry is not None:
        assert_array_equal(kernel.index.weights, weights.ravel()[order])
    sizes = np.bincount(columns.ravel()[order], minlength=kernel.forest.n_leaves)
    assert_array_equal(kernel.index.leaf_sizes, sizes)
    assert_array_equal(
        kernel.forest.leaf_mass, np.bincount(columns.ravel(), minlength=kernel.forest.n_leaves)
    )


def test_the_factor_of_leaves_is_kept_once(rng):
    X = rng.normal(size=(200, 4))
    kernel = ForestProximity(RandomForestClassifier(50, random_state=0)).fit(X, X[:, 0] > 0).kernel_
    factor = kernel.leaf_factors[1]
    assert factor is not None
    assert factor.given is factor.taken
    assert not factor.taken.flags.writeable
