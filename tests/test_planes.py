"""Every loop gives the same result as the list loop, to the last bit, on every instruction set."""

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

from leafkernel import Batches, ForestProximity, WeightScheme
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


LOOPS = ["auto", "planes", "bounds"]


def assert_same_nearest(product, k, n_threads=2):
    expected = NativeEngine(n_threads, loop="lists").nearest(product, k)
    for loop in LOOPS:
        found = NativeEngine(n_threads, loop=loop).nearest(product, k)
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other, err_msg=loop)


def assert_same_rows(product, n_threads=2):
    """Compare all results that are made of rows."""
    lists = NativeEngine(n_threads, loop="lists")
    expected = lists.rows(product)
    values = np.random.default_rng(0).normal(size=(product.shape[1], 2))
    for loop in LOOPS:
        engine = NativeEngine(n_threads, loop=loop)
        found = engine.rows(product)
        for name in ("indptr", "indices", "data"):
            assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=loop)
        unsorted = engine.rows(product, sort=False)
        unsorted.sort_indices()
        assert_array_equal(unsorted.indices, expected.indices)
        assert_array_equal(engine.dense(product), expected.toarray(), err_msg=loop)
        assert_array_equal(engine.nonzeros(product), lists.nonzeros(product), err_msg=loop)
        # Sums add up the entries of a row in another order.
        scale = abs(expected).sum(axis=1).max() * abs(values).max()
        gap = engine.sums(product, values) - lists.sums(product, values)
        assert abs(gap).max() <= 1e-12 * scale


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
    assert_same_rows(kernel.training_product())
    assert_same_rows(kernel.training_product(slice(30, 61)))
    assert_same_rows(kernel.product(prox._samples.unseen(prox._samples.leaf[::3])))


def test_diagonals_and_symmetrized_kernels():
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(70, max_depth=3, random_state=0).fit(X, y)
    for diagonal in ("one", "zero"):
        for symmetrize in (False, True):
            prox = ForestProximity(forest, diagonal=diagonal, symmetrize=symmetrize).fit(X, y)
            assert_same_rows(prox.kernel_.training_product())
            assert_same_nearest(prox.kernel_.training_product(), 9)


def test_a_dense_matrix_in_parts_and_in_batches():
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X, y)
    prox = ForestProximity(forest, "uniform").fit(X[:100], y[:100])
    both = prox.extend(X[100:], y[100:])
    for fitted in (prox, both):
        assert_array_equal(fitted.proximity(dense=True), fitted.proximity().toarray())
        assert_array_equal(fitted.proximity(X[:7], dense=True), fitted.proximity(X[:7]).toarray())
    batches = Batches.from_arrays(X, batch_rows=50)
    assert_array_equal(prox.proximity(batches, dense=True), prox.proximity(X).toarray())
    slow = ForestProximity(forest, "uniform", engine="reference").fit(X, y)
    assert_array_equal(slow.proximity(dense=True), slow.proximity().toarray())


def test_a_dense_matrix_that_does_not_fit():
    prox = ForestProximity.from_leaves(np.arange(5000)[:, None], max_memory="10MB")
    assert prox.proximity().nnz == 5000
    with pytest.raises(MemoryError, match=r"95.4 MB, more than max_memory \(10.0 MB\)"):
        prox.proximity(dense=True)
    with pytest.raises(TypeError, match="dense"):
        prox.proximity(dense="yes")


def test_rows_that_are_similar_to_few():
    leaves = np.arange(200)[:, None] // 3 + np.zeros((1, 5), int)
    prox = ForestProximity.from_leaves(leaves, weight_scheme="kerf")
    assert_same_nearest(prox.kernel_.training_product(), 8)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1), st.sampled_from(["kerf", "gap"]))
def test_leaves_of_all_sizes(k, seed, scheme):
    rng = np.random.default_rng(seed)
    leaves = (rng.pareto(0.7, (400, 30)) * 3).astype(int).clip(0, 100)
    in_bag = rng.poisson(1.0, leaves.shape).astype(np.uint8)
    in_bag[:, 0] = 0
    in_bag[::7] *= 60  # one draw may weigh more than many others
    prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme=scheme)
    assert_same_nearest(prox.kernel_.training_product(), k)
    new = prox._samples.unseen(prox._samples.leaf[rng.integers(0, 400, 70)])
    assert_same_nearest(prox.kernel_.product(new), k)


@given(
    st.integers(1, 20),
    st.integers(0, 2**32 - 1),
    st.sampled_from([*SCHEMES, LeafWeights()]),
    st.sampled_from(["float32", "float64"]),
)
def test_small_and_large_leaves(k, seed, scheme, dtype):
    """With 4,000 samples, leaves of a few members are lists, and the others are bitmaps."""
    rng = np.random.default_rng(seed)
    leaves = (rng.pareto(0.5, (4000, 20)) * rng.choice([1, 30])).astype(int).clip(0, 900)
    in_bag = rng.poisson(1.0, leaves.shape).astype(np.uint8)
    in_bag[:, 0] = 0
    leaves[2000:2500] = leaves[:500]  # equal samples have equal sums, so ties are broken by index
    in_bag[2000:2500] = in_bag[:500]
    prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme=scheme, dtype=dtype)
    assert_same_nearest(prox.kernel_.training_product(slice(1950, 2050)), k)
    new = prox._samples.unseen(prox._samples.leaf[rng.integers(0, 4000, 70)])
    assert_same_nearest(prox.kernel_.product(new), k)


def test_a_tree_with_too_many_leaves_for_levels():
    leaves = np.c_[np.arange(70_000), np.arange(70_000) // 100, np.arange(70_000) % 50]
    prox = ForestProximity.from_leaves(leaves, weight_scheme="kerf")
    assert_same_nearest(prox.kernel_.training_product(slice(100, 200)), 5)


@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(SCHEMES),
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
    assert_same_rows(product)
    if n > 1:
        assert_same_nearest(product, k)
    new = prox._samples.unseen(prox._samples.leaf[rng.integers(0, n, 50)])
    assert_same_nearest(prox.kernel_.product(new), min(k, n))
    assert_same_rows(prox.kernel_.product(new))


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
        planes, lists = NativeEngine(loop="planes"), NativeEngine(loop="lists")
        assert all(map(np.array_equal, planes.nearest(product, 12), lists.nearest(product, 12)))
        assert np.array_equal(planes.dense(product), lists.dense(product))
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
