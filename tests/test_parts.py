"""Reference samples in parts give the same results as in one piece."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

from leafkernel import ForestProximity, WeightScheme
from leafkernel.engines import PartedEngine, ReferenceEngine
from leafkernel.leaf_index import list_by_leaf
from leafkernel.parts import PartedIndex, cut, nearest_of_both
from leafkernel.schemes import Weighting
from leafkernel.tasks import (
    ProximityClassifier,
    find_label_errors,
    medoids,
    outlier_scores,
)
from leafkernel.tasks._quantiles import weighted_quantiles

SCHEMES = ["gap", "uniform", "kerf", "oob", "oob_separable", "ih", "purity", "learned"]
SIZES = [1, 7, 64, 149]


class Signed(WeightScheme):
    """Weights of both signs that differ from entry to entry."""

    signed = True

    def query(self, samples, forest):
        return Weighting(by_entry=np.cos(samples.leaf.astype(float)))

    def reference(self, samples, forest):
        return Weighting(by_entry=np.sin(1.0 + samples.leaf), by_leaf=1.0 / (1 + forest.leaf_mass))


def in_parts(prox, size):
    """Return the same proximity with its reference samples in parts."""
    other = prox.__copy__()
    kernel = prox.kernel_
    other.kernel_ = replace(
        kernel,
        index=PartedIndex.of(kernel.reference, cut(150, size), lambda _, rows: list_by_leaf(rows)),
    )
    if kernel.packed_oob is not None:
        oob = kernel.packed_oob[other.kernel_.index.sample_at]
        other.kernel_ = replace(other.kernel_, oob_by_place=oob)
    return other


@pytest.fixture(scope="module")
def forest(iris):
    return RandomForestClassifier(30, random_state=0).fit(*iris)


@pytest.fixture(scope="module", params=[*SCHEMES, Signed()], ids=[*SCHEMES, "signed"])
def whole(request, iris, forest):
    X, y = iris
    return ForestProximity(forest, request.param, dtype="float64").fit(X, y)


def assert_same_matrix(found, expected):
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("size", SIZES)
def test_every_result_is_the_same(whole, iris, size):
    X, _ = iris
    parted = in_parts(whole, size)
    assert len(parted.kernel_.index.parts) == -(-150 // size)
    values = np.random.default_rng(0).normal(size=(150, 3))
    for rows in (None, X[::7] + 0.02):
        assert_same_matrix(parted.proximity(rows), whole.proximity(rows))
        for k in (1, 5, 149):
            for by in ("value", "magnitude"):
                found = parted.kneighbors(rows, k, by=by)
                for one, other in zip(found, whole.kneighbors(rows, k, by=by), strict=True):
                    assert_array_equal(one, other)
        assert_allclose(
            parted.weighted_sums(values, rows), whole.weighted_sums(values, rows), atol=1e-14
        )
        for (some, one), (same, other) in zip(
            parted.iter_proximity(rows, block_size=40),
            whole.iter_proximity(rows, block_size=40),
            strict=True,
        ):
            assert some == same
            assert_same_matrix(one, other)
        for name in ("collisions", "nonzeros", "nonzeros_at_most"):
            assert getattr(parted.forecast(rows), name) == getattr(whole.forecast(rows), name)
    some = np.array([3, 100, 149])
    assert_same_matrix(parted.proximity_to(some), whole.proximity_to(some))
    if whole.scheme_.divides_by_shared_oob:
        return
    a, b = parted.operator(), whole.operator()
    assert_allclose(a @ values, b @ values, atol=1e-14)
    assert_allclose(a.T @ values, b.T @ values, atol=1e-14)


@pytest.mark.parametrize("diagonal", ["one", "zero", "adjusted"])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_diagonals_and_engines(iris, forest, diagonal, engine):
    X, y = iris
    whole = ForestProximity(forest, diagonal=diagonal, engine=engine).fit(X[:], y)
    parted = in_parts(whole, 40)
    assert_same_matrix(parted.proximity(), whole.proximity())
    for one, other in zip(parted.kneighbors(None, 9), whole.kneighbors(None, 9), strict=True):
        assert_array_equal(one, other)


def test_symmetrized(iris, forest):
    X, y = iris
    whole = ForestProximity(forest, symmetrize=True, dtype="float64").fit(X, y)
    parted = in_parts(whole, 31)
    assert_same_matrix(parted.proximity(), whole.proximity())
    assert_same_matrix(parted.proximity(X[:9]), whole.proximity(X[:9]))


def test_tasks_on_parts(iris, forest):
    X, y = iris
    whole = ForestProximity(forest, dtype="float64").fit(X, y)
    parted = in_parts(whole, 50)
    assert_allclose(outlier_scores(parted), outlier_scores(whole), rtol=1e-9, atol=1e-12)
    assert_array_equal(find_label_errors(parted).scores, find_label_errors(whole).scores)
    assert_array_equal([*medoids(parted).values()], [*medoids(whole).values()])
    shares = [ProximityClassifier(prox).fit(X, y).predict_proba(X[:20]) for prox in (parted, whole)]
    assert_allclose(*shares, atol=1e-14)
    halves = [
        weighted_quantiles(prox, y.astype(float), None, np.array([0.5]))[0]
        for prox in (parted, whole)
    ]
    assert_array_equal(*halves)


def test_a_parted_kernel_is_saved_and_pickled(whole, tmp_path):
    parted = in_parts(whole, 40)
    own = isinstance(whole.scheme_, Signed)
    parted.save(tmp_path / "saved")
    loaded = ForestProximity.load(tmp_path / "saved", weight_scheme=whole.scheme_ if own else None)
    assert len(loaded.kernel_.index.parts) == 4
    assert_same_matrix(loaded.proximity(), whole.proximity())
    assert_same_matrix(pickle.loads(pickle.dumps(parted)).proximity(), whole.proximity())


def test_progress_goes_over_all_parts_once(iris, forest):
    X, y = iris
    parted = in_parts(ForestProximity(forest).fit(X, y), 50)
    seen = []
    PartedEngine(ReferenceEngine()).nearest(parted.kernel_.training_product(), 3, seen.append)
    assert seen[-1] == 150
    assert seen == sorted(seen)


@given(st.data())
def test_the_nearest_of_lists_are_the_nearest_of_all(data):
    n, k = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    values = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n)), float)
    by_magnitude = data.draw(st.booleans())
    at = data.draw(st.integers(0, n))
    rank = np.abs(values) if by_magnitude else values
    expected = np.argsort(-rank, kind="stable")[: min(k, n)]

    def best(columns):
        order = columns[np.argsort(-rank[columns], kind="stable")][:k]
        return values[order][None], order[None]

    halves = best(np.arange(at)), best(np.arange(at, n))
    similarity, samples = nearest_of_both(*halves, k, by_magnitude=by_magnitude)
    assert_array_equal(samples[0], expected)
    assert_array_equal(similarity[0], values[expected])


@given(st.integers(0, 40), st.integers(1, 50))
def test_cuts_cover_all_rows(n, size):
    cuts = cut(n, size)
    assert_array_equal(np.concatenate([np.arange(n)[some] for some in cuts]), np.arange(n))


def test_statistics_add_up(iris, forest):
    X, y = iris
    whole = ForestProximity(forest).fit(X, y)
    samples, stats = whole._samples, whole.kernel_.forest
    halves = [
        type(stats).of(samples.rows(rows), stats.leaf_offsets)
        for rows in (slice(0, 60), slice(60, 150))
    ]
    both = halves[0].plus(halves[1])
    assert_array_equal(both.leaf_mass, stats.leaf_mass)
    assert_array_equal(both.in_bag_mass, stats.in_bag_mass)
    other = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    foreign = ForestProximity(other, "uniform").fit(X, y).kernel_.forest
    with pytest.raises(ValueError, match="different forests"):
        both.plus(foreign)
