"""Very large and very small weights: exact or rejected, never silently 0 or infinite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.schemes import Boosted, Weighting

pytestmark = pytest.mark.filterwarnings("ignore:.*are in bag in every tree")
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
SIDES = {"diagonal": "scheme", "symmetrize": False}, {"diagonal": "one", "symmetrize": True}


@pytest.fixture(scope="module")
def leaves():
    return np.random.default_rng(0).integers(0, 4, (40, 6))


@pytest.fixture(scope="module")
def in_bag():
    return np.random.default_rng(1).integers(0, 4, (40, 6)).astype(float)


def gap(leaves, in_bag, **params):
    return ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme="gap", **params)


@DTYPES
@pytest.mark.parametrize("factor", [1e39, 1e-46, 1e290, 1e-290])
@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_in_bag_weights_count_by_their_ratios(leaves, in_bag, dtype, factor, sides):
    expected = gap(leaves, in_bag, dtype=dtype, **sides)
    prox = gap(leaves, in_bag * factor, dtype=dtype, **sides)
    close = {"rtol": 1e-6 if dtype is np.float32 else 1e-12}
    assert_allclose(prox.proximity().toarray(), expected.proximity().toarray(), **close)
    values = np.arange(40.0)
    assert_allclose(prox.weighted_sums(values), expected.weighted_sums(values), **close)
    assert_allclose(prox.reference_map().toarray(), expected.reference_map().toarray(), rtol=1e-6)
    assert np.isfinite(prox.operator().T @ values).all()


@DTYPES
@pytest.mark.parametrize("factor", [1e305, 1e-305])
def test_in_bag_weights_whose_sums_leave_float64_are_refused(leaves, in_bag, dtype, factor):
    with pytest.raises(ValueError, match="in-bag weights must be 0 or between 1e-300 and"):
        gap(leaves, in_bag * factor, dtype=dtype)


def test_in_bag_weights_that_differ_by_more_than_float32_holds(leaves):
    """In one leaf: 1 and 1e-90, of which the second would be lost."""
    in_bag = np.where(np.arange(40)[:, None] % 2, 1e45, 1e-45) * np.ones((40, 6))
    in_bag[:3] = 0
    with pytest.raises(
        ValueError, match=r"'gap' \(reference\): weights from 1e-45 to 1e\+45 do not"
    ):
        gap(leaves, in_bag)
    assert np.isfinite(gap(leaves, in_bag, dtype=np.float64).proximity().data).all()


@pytest.mark.parametrize("weights", [[1e308] * 6, [1e-310] * 6, [1e308, 1e300, 1, 1, 0, 1e-300]])
def test_tree_weights_count_by_their_ratios(leaves, weights):
    shares = np.asarray(weights) / 1e308 if max(weights) > 1 else np.ones(6)
    expected = ForestProximity.from_leaves(leaves, weight_scheme=Boosted(shares))
    for given_as in (
        {"weight_scheme": Boosted(weights)},
        {"weight_scheme": "boosted", "tree_weights": weights},
    ):
        found = ForestProximity.from_leaves(leaves, **given_as).proximity()
        assert found.nnz
        assert_allclose(found.toarray(), expected.proximity().toarray(), rtol=1e-6)


def constant(weight, form):
    def scheme(samples, forest):
        if form == "array":
            return np.full(samples.leaf.shape, weight)
        if form == "scale":
            return Weighting(scale=weight)
        shapes = {"by_sample": samples.n_samples, "by_leaf": forest.n_leaves}
        shape = shapes.get(form, samples.leaf.shape)
        return Weighting(**{form: np.full(shape, weight)})

    return scheme


FORMS = ["array", "scale", "by_sample", "by_leaf", "by_entry"]


@pytest.mark.parametrize("form", FORMS)
def test_weights_that_float32_cannot_hold_give_exact_products_where_those_fit(leaves, form):
    """1e-23 is no trouble, and its square is one of the smallest numbers of float32."""
    uniform = ForestProximity.from_leaves(leaves, dtype=np.float64).proximity().toarray()
    for weight in (1e-18, 1e18):
        scheme = constant(weight, form)
        found = ForestProximity.from_leaves(leaves, weight_scheme=scheme).proximity().toarray()
        assert_allclose(found, 6 * weight**2 * uniform, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["proximity", "kneighbors", "query_map"])
def test_proximities_that_float32_cannot_hold_are_refused(leaves, form, method):
    prox = ForestProximity.from_leaves(leaves, weight_scheme=constant(1e39, form))
    with pytest.raises(OverflowError, match=r"too large for float32[.;] [Uu]se dtype=np\.float64"):
        getattr(prox, method)()
    in_double = ForestProximity.from_leaves(
        leaves, weight_scheme=constant(1e39, form), dtype=np.float64
    )
    assert np.isfinite(in_double.proximity().data).all()
    assert in_double.proximity().max() == pytest.approx(6e78)
    values = np.ones(40)
    assert_allclose(prox.weighted_sums(values), in_double.weighted_sums(values), rtol=1e-6)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("form", ["by_leaf", "by_sample", "by_entry"])
def test_proximities_that_float64_cannot_hold_are_refused(leaves, engine, form):
    scheme = constant(1e200, form)
    known = {"weight_scheme": scheme, "dtype": np.float64, "engine": engine}
    prox = ForestProximity.from_leaves(leaves, **known)
    asked = {"proximity": [], "kneighbors": [], "weighted_sums": [np.ones(40)]}
    for method, arguments in asked.items():
        with pytest.raises(OverflowError, match="too large for float64"):
            getattr(prox, method)(*arguments)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider floats")
def test_weights_past_float64_are_refused(leaves):
    scheme = constant(np.longdouble("1e400"), "array")
    with pytest.raises(ValueError, match="infinite or too large for float64"):
        ForestProximity.from_leaves(leaves, weight_scheme=scheme)


def test_products_with_large_vectors(leaves):
    prox = ForestProximity.from_leaves(leaves)
    P = prox.proximity().astype(np.float64)
    for values in (np.full(40, 1e300), np.full(40, 1e39, dtype=np.float64)):
        assert_allclose(prox.operator() @ values, P @ values, rtol=1e-6)


@given(
    exponents=st.lists(st.integers(-300, 300), min_size=6, max_size=6),
    seed=st.integers(0, 1000),
)
def test_any_in_bag_weights_are_right_or_refused(exponents, seed):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, 3, (12, 6))
    in_bag = rng.integers(0, 3, (12, 6)) * 10.0 ** np.array(exponents)
    try:
        found = gap(leaves, in_bag).proximity().toarray()
    except ValueError as error:
        assert "do not fit in float32" in str(error) or "between 1e-300" in str(error)  # noqa: PT017
        return
    # One number for each tree: nothing but the counts has a part in the ratios.
    expected = gap(leaves, in_bag / 10.0 ** np.array(exponents), dtype=np.float64).proximity()
    assert_allclose(found, expected.toarray(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("large", ["scale", "by_sample", "by_leaf", "by_entry"])
@pytest.mark.parametrize("small", ["scale", "by_sample", "by_leaf", "by_entry"])
def test_factors_whose_product_is_ordinary(leaves, dtype, large, small):
    """1e200 times 1e-200, in whatever order they are multiplied."""
    if large == small:
        return

    def scheme(samples, forest):
        shapes = {"by_sample": samples.n_samples, "by_leaf": forest.n_leaves, "scale": ()}
        both = ((large, 1e200), (small, 1e-200))
        factors = {name: np.full(shapes.get(name, samples.leaf.shape), f) for name, f in both}
        return Weighting(**factors)

    prox = ForestProximity.from_leaves(leaves, weight_scheme=scheme, dtype=dtype)
    uniform = 6 * ForestProximity.from_leaves(leaves, dtype=np.float64).proximity().toarray()
    assert_allclose(prox.proximity().toarray(), uniform, rtol=1e-6)
    assert_allclose(prox.weighted_sums(np.ones(40)), uniform.sum(axis=1), rtol=1e-6)
    assert_allclose(prox.operator().T @ np.ones(40), uniform.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("factor", [1e30, 1e38, 1e-30])
@pytest.mark.parametrize("size", [1.0, 1e-7, 1e-15])
def test_the_adjoint_with_large_in_bag_weights(leaves, in_bag, factor, size):
    prox = gap(leaves, in_bag * factor)
    v = (size * np.random.default_rng(0).random(40)).astype(np.float32)
    expected = gap(leaves, in_bag, dtype=np.float64).proximity().T @ v.astype(np.float64)
    assert_allclose(prox.operator().T @ v, expected, rtol=1e-5)


def test_products_that_are_too_large_are_refused(leaves):
    prox = ForestProximity.from_leaves(leaves, weight_scheme=constant(1e25, "array"))
    with pytest.raises(OverflowError, match="too large for float32"):
        prox.operator() @ np.ones(40, dtype=np.float32)


@pytest.mark.parametrize("weight", [1.0, 1e5, 1e9])
def test_some_columns_with_another_diagonal(leaves, weight):
    """The diagonal is set, not corrected: 1 would be lost in a sum with 1e18."""
    known = {"weight_scheme": constant(weight, "array"), "diagonal": "one"}
    prox = ForestProximity.from_leaves(leaves, **known)
    rows = [3, 0, 3]
    expected = prox.proximity().toarray()[:, rows]
    found = prox.proximity_to(rows)
    assert found.has_sorted_indices
    np.testing.assert_array_equal(found.toarray(), expected)
    assert expected[3, 0] == 1


def test_what_is_taken_in_float32_is_the_same_to_the_last_bit_as_ever(iris):
    """Scaling is for weights that need it."""
    X, y = iris
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    weights = np.random.default_rng(0).random((150, 10))
    kept = ForestProximity(forest, lambda *_: weights).fit(X, y).kernel_.query.weighting
    assert kept.scale == 1
    np.testing.assert_array_equal(kept.by_entry, weights.astype(np.float32))
