"""Leaf ids from other sources: R's randomForest, and ids of any type."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafkernel import ForestProximity


@pytest.fixture(scope="module")
def from_r():
    """randomForest 4.7-1.1 on 60 rows of iris; data/r_iris.R made it."""
    with np.load(Path(__file__).parent / "data" / "r_iris.npz") as file:
        return dict(file)


def test_original_proximity_of_r(from_r):
    prox = ForestProximity.from_leaves(from_r["leaves"], dtype=np.float64)
    assert_allclose(prox.proximity().toarray(), from_r["proximity_original"], rtol=0, atol=1e-12)


def test_oob_proximity_of_r(from_r):
    prox = ForestProximity.from_leaves(
        from_r["leaves"], in_bag=from_r["in_bag"], weight_scheme="oob", dtype=np.float64
    )
    assert_allclose(prox.proximity().toarray(), from_r["proximity_oob"], rtol=0, atol=1e-12)


def test_ids_may_be_any_nonnegative_integers(rng):
    leaves = rng.integers(0, 6, (40, 5))
    plain = ForestProximity.from_leaves(leaves).proximity()
    for other in (
        leaves.astype(np.uint8),
        leaves.astype(float),
        leaves * 10**15 + 7,
        leaves + 100 * np.arange(5),
        leaves.tolist(),
    ):
        assert (ForestProximity.from_leaves(other).proximity() != plain).nnz == 0


def test_new_samples_are_leaf_ids_too(rng):
    leaves, new = rng.integers(0, 6, (40, 5)), rng.integers(0, 9, (7, 5))
    prox = ForestProximity.from_leaves(leaves, dtype=np.float64)
    expected = (new[:, None] == leaves[None]).mean(axis=2)
    assert_allclose(prox.proximity(new).toarray(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", ["uniform", "kerf", "gap", "oob", "oob_separable", "boosted"])
def test_unknown_leaves_collide_with_nothing(rng, scheme):
    leaves = rng.integers(0, 6, (40, 5))
    in_bag = np.arange(200).reshape(40, 5) % 2
    prox = ForestProximity.from_leaves(
        leaves, in_bag=in_bag, tree_weights=np.ones(5), weight_scheme=scheme
    )
    assert prox.proximity(np.full((2, 5), 99)).nnz == 0
    only_tree_1 = np.array([[99, leaves[0, 1], 99, 99, 99]])
    counted = {
        "gap": in_bag[:, 1] > 0,
        "oob": in_bag[:, 1] == 0,
        "oob_separable": in_bag[:, 1] == 0,
    }
    expected = (leaves[:, 1] == leaves[0, 1]) & counted.get(scheme, True)
    assert_array_equal(prox.proximity(only_tree_1).toarray()[0] > 0, expected)


def test_tree_weights(rng):
    leaves = rng.integers(0, 4, (20, 3))
    prox = ForestProximity.from_leaves(
        leaves, tree_weights=[5, 0, 3], weight_scheme="boosted", dtype=np.float64
    )
    same = leaves[:, None] == leaves[None]
    assert_allclose(prox.proximity().toarray(), same @ [5 / 8, 0, 3 / 8], rtol=0, atol=1e-12)


def test_float_in_bag_weights(rng):
    leaves = rng.integers(0, 4, (30, 6))
    weights = rng.choice([0, 0.5, 2.25], size=(30, 6))
    weights[:, 0] = np.arange(30) % 2  # each sample is out of bag somewhere
    weights[:, 1] = 1 - weights[:, 0]
    prox = ForestProximity.from_leaves(
        leaves, in_bag=weights, weight_scheme="gap", dtype=np.float64
    )
    y = rng.normal(size=30)
    i, t_oob = 3, np.flatnonzero(weights[3] == 0)
    means = []
    for t in t_oob:
        mates = leaves[:, t] == leaves[i, t]
        mass = weights[mates, t].sum()
        means.append(weights[mates, t] @ y[mates] / mass if mass else 0)
    assert (prox.proximity() @ y)[i] == pytest.approx(np.mean(means), abs=1e-12)


def test_in_bag_as_drawn_or_not(rng):
    leaves = rng.integers(0, 4, (30, 6))
    drawn = (np.arange(30)[:, None] + np.arange(6)) % 2 == 0
    for scheme in ("gap", "oob", "oob_separable"):
        found, expected = (
            ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme=scheme).proximity()
            for in_bag in (drawn, drawn.astype(int))
        )
        assert_allclose(found.toarray(), expected.toarray())
