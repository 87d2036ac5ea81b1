"""Schemes with negative weights: entries that cancel, sums, neighbors, maps, on both engines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafkernel import ForestProximity, WeightScheme
from leafkernel.inside import Inside
from leafkernel.schemes import Weighting


class Signed(WeightScheme):
    """Weights that were drawn: small whole numbers, whose sums are exact and often cancel."""

    signed = True
    symmetric = False

    def __init__(self, factor, seed):
        self.factor, self.seed = factor, seed

    def _draw(self, shape, seed):
        return np.random.default_rng(seed).integers(-2, 3, shape).astype(float)

    def query(self, samples, forest):
        return Weighting(by_leaf=self._draw(forest.n_leaves, self.seed))

    def reference(self, samples, forest):
        shape = {
            "by_entry": samples.leaf.shape,
            "by_leaf": (forest.n_leaves,),
            "by_sample": (samples.n_samples,),
        }[self.factor]
        return Weighting(**{self.factor: self._draw(shape, self.seed + 1)})


def slow_proximity(prox, leaf):
    """A double loop over pairs and trees."""
    kernel = prox.kernel_
    samples = Inside.of(prox).samples.leaf
    q = Signed._draw(prox.scheme_, kernel.forest.n_leaves, prox.scheme_.seed)
    w = prox.scheme_.reference(Inside.of(prox).samples, kernel.forest).dense(samples)
    P = np.zeros((len(leaf), len(samples)))
    for i, row in enumerate(leaf):
        for j, other in enumerate(samples):
            for t in range(samples.shape[1]):
                if row[t] == other[t]:
                    P[i, j] += q[row[t]] * w[j, t]
    return P


@st.composite
def proximities(draw):
    n_trees = draw(st.integers(1, 5))
    leaf = st.lists(st.integers(0, 2), min_size=n_trees, max_size=n_trees)
    leaves = np.array(draw(st.lists(leaf, min_size=2, max_size=14)))
    scheme = Signed(
        draw(st.sampled_from(["by_entry", "by_leaf", "by_sample"])), draw(st.integers(0, 99))
    )
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    engine = draw(st.sampled_from(["native", "reference"]))
    return ForestProximity.from_leaves(leaves, weight_scheme=scheme, dtype=dtype, engine=engine)


@given(proximities())
def test_every_result_equals_a_double_loop(prox):
    P = slow_proximity(prox, Inside.of(prox).samples.leaf)
    found = prox.proximity()
    assert_array_equal(found.toarray(), P)
    assert (found.data != 0).all()
    assert found.nnz == np.count_nonzero(P)
    assert_array_equal(
        np.diff(found.indptr), Inside.of(prox).engine.nonzeros(Inside.of(prox).product())
    )
    blocks = [block.toarray() for _, block in prox.iter_proximity(block_size=3)]
    assert_array_equal(np.vstack(blocks), P)

    values = np.stack([np.arange(len(P)), np.ones(len(P))], axis=1)
    assert_array_equal(prox.weighted_sums(values), P @ values)
    assert_array_equal(Inside.of(prox).engine.sums(Inside.of(prox).product(), values), P @ values)
    operator = prox.operator()
    assert_array_equal(operator @ values, P @ values)
    assert_array_equal(operator.T @ values, P.T @ values)
    maps = prox.query_map() @ prox.reference_map().T
    assert_array_equal(maps.toarray(), P)
    assert_array_equal(prox.proximity_to([1, 0]).toarray(), P[:, [1, 0]])


@given(proximities(), st.sampled_from(["value", "magnitude"]), st.integers(1, 13))
def test_neighbors_equal_a_stable_sort(prox, by, k):
    P = slow_proximity(prox, Inside.of(prox).samples.leaf)
    k = min(k, len(P) - 1)
    similarity, neighbors = prox.kneighbors(n_neighbors=k, by=by)
    for i, row in enumerate(P):
        order = np.argsort(-np.abs(row) if by == "magnitude" else -row, kind="stable")
        order = order[order != i][:k]
        assert_array_equal(neighbors[i], order)
        assert_array_equal(similarity[i], row[order])


@given(proximities())
def test_symmetrized(prox):
    P = slow_proximity(prox, Inside.of(prox).samples.leaf)
    both = prox.reweigh(symmetrize=True)
    assert_allclose(both.proximity().toarray(), (P + P.T) / 2, atol=1e-5)


def test_many_neighbors_of_long_rows(rng):
    """Rows with more entries than are kept at once, of both signs."""
    leaves = rng.integers(0, 3, (600, 7))
    prox = ForestProximity.from_leaves(leaves, weight_scheme=Signed("by_entry", 5))
    P = prox.proximity().toarray()
    for by, size in (("value", P), ("magnitude", np.abs(P))):
        similarity, neighbors = prox.kneighbors(n_neighbors=20, by=by)
        for i in range(0, 600, 50):
            order = np.argsort(-size[i], kind="stable")
            assert_array_equal(neighbors[i], order[order != i][:20])
            assert_array_equal(similarity[i], P[i, neighbors[i]])


def test_small_and_large_negative_weights_keep_their_digits():
    class Wide(Signed):
        def reference(self, samples, forest):
            return Weighting(by_entry=np.array([[-1e-60], [2e-60], [-3e-30]]))

    prox = ForestProximity.from_leaves([[0], [0], [0]], weight_scheme=Wide("by_entry", 3))
    factor = prox.weighted_sums([0, 0, 1])[0] / -3e-30
    found = prox.weighted_sums([1, 0, 0]), prox.weighted_sums([0, 1, 0])
    assert_allclose(found[0], -1e-60 * factor, rtol=1e-6)
    assert_allclose(found[1], 2e-60 * factor, rtol=1e-6)


def test_schemes_that_do_not_declare_it_are_refused():
    class Undeclared(Signed):
        signed = False

    with pytest.raises(ValueError, match=r"negative weights.*set signed = True"):
        ForestProximity.from_leaves(np.arange(40)[:, None], weight_scheme=Undeclared("by_leaf", 0))
    prox = ForestProximity.from_leaves([[0], [0]], weight_scheme=Signed("by_leaf", 0))
    with pytest.raises(ValueError, match="negative weights, so averages are not defined"):
        prox.weighted_average([1, 2])
    with pytest.raises(ValueError, match="by must be one of 'value', 'magnitude'"):
        prox.kneighbors(n_neighbors=1, by="size")
