"""Neighbors by bit planes are those of the list loop, to the last bit, on every instruction set."""

import os
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity, WeightScheme
from leafkernel._native import simd
from leafkernel.engines import NativeEngine
from leafkernel.schemes import Weighting

SCHEMES = ["uniform", "kerf", "gap", "oob", "oob_separable"]


class LeafWeights(WeightScheme):
    """Weights of leaves that differ by orders of magnitude; some are zero."""

    def query(self, samples, forest):
        rng = np.random.default_rng(0)
        factor = rng.choice([0.0, 1e-6, 0.3, 1.0, 40.0], forest.n_leaves)
        return Weighting(by_leaf=factor)


def assert_same_nearest(product, k, n_threads=2):
    loops = [NativeEngine(n_threads, loop=loop) for loop in ("planes", "lists")]
    found, expected = (engine.nearest(product, k) for engine in loops)
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scheme", [*SCHEMES, LeafWeights()], ids=[*SCHEMES, "leaf weights"])
def test_planes_are_lists(scheme, dtype):
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(70, max_depth=3, random_state=0).fit(X, y)
    prox = ForestProximity(forest, scheme, dtype=dtype).fit(X, y)
    kernel = prox.kernel_
    for k in (1, 10, len(y) - 1):
        assert_same_nearest(kernel.training_product(), k)
    assert_same_nearest(kernel.training_product(slice(30, 61)), 5)
    assert_same_nearest(kernel.product(prox._samples.unseen(prox._samples.leaf[::3])), 7)


@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["uniform", "kerf", "gap"]),
)
def test_any_leaves(n, n_trees, n_leaves, seed, scheme):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, n_leaves, (n, n_trees)) ** 2
    in_bag = rng.integers(0, 9, (n, n_trees)) * rng.integers(0, 2, (n, n_trees))
    in_bag[:, 0] = 0  # every row is out of bag somewhere
    prox = ForestProximity.from_leaves(
        leaves, in_bag=in_bag.astype(np.uint8), weight_scheme=scheme, dtype="float64"
    )
    k = int(rng.integers(1, n)) if n > 1 else 1
    product = prox.kernel_.training_product()
    if n > 1:
        assert_same_nearest(product, k)
    new = prox._samples.unseen(prox._samples.leaf[rng.integers(0, n, 50)])
    assert_same_nearest(prox.kernel_.product(new), min(k, n))


def test_more_samples_than_a_chunk():
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 4, (40_000, 7))
    for scheme in ("uniform", "kerf"):
        prox = ForestProximity.from_leaves(leaves, weight_scheme=scheme)
        assert_same_nearest(prox.kernel_.training_product(slice(39_900, 40_000)), 30)


def test_planes_are_chosen_where_leaves_are_large():
    X, y = load_digits(return_X_y=True)
    shallow = RandomForestClassifier(20, max_depth=2, random_state=0).fit(X, y)
    seen = []
    prox = ForestProximity(shallow, "uniform").fit(X, y)
    engine = NativeEngine(1)
    assert_array_equal(
        engine.nearest(prox.kernel_.training_product(), 5, seen.append)[1],
        NativeEngine(1, loop="lists").nearest(prox.kernel_.training_product(), 5)[1],
    )
    assert seen[-1] == len(y)


def test_too_large_values_are_refused():
    prox = ForestProximity.from_leaves(np.zeros((60, 3), int))
    product = prox.kernel_.training_product()
    vars(product)["by_leaf"] = np.full(prox.n_leaves_, 1e39)
    for loop in ("planes", "lists"):
        with pytest.raises(OverflowError, match="too large"):
            NativeEngine(loop=loop).nearest(product, 3)


ON_ONE = dedent(
    """
    import sys
    import numpy as np
    from leafkernel import ForestProximity
    from leafkernel._native import simd
    from leafkernel.engines import NativeEngine

    rng = np.random.default_rng(1)
    leaves = rng.integers(0, 5, (900, 130))
    found = []
    for scheme in ("uniform", "kerf"):
        prox = ForestProximity.from_leaves(leaves, weight_scheme=scheme)
        product = prox.kernel_.training_product()
        a = NativeEngine(loop="planes").nearest(product, 12)
        b = NativeEngine(loop="lists").nearest(product, 12)
        assert all(map(np.array_equal, a, b))
    print(simd())
    """
)


@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512", "neon"])
def test_every_instruction_set(name):
    env = {**os.environ, "LEAFKERNEL_SIMD": name}
    run = [sys.executable, "-c", ON_ONE]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=env)
    if "does not have" in done.stderr:
        pytest.skip(f"this processor or build has no {name}; it has {simd()}")
    assert done.stdout == f"{name}\n", done.stderr
