"""Every scheme, compared with the formula in the paper and with its theory."""

import warnings

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)

from leafkernel import ForestProximity, LeafkernelWarning, WeightScheme, leaf_maps
from leafkernel.schemes import (
    Boosted,
    InstanceHardness,
    Kerf,
    SeparableOutOfBag,
    Uniform,
    Weighting,
)

TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}
BAGGED_SCHEMES = ["uniform", "kerf", "gap", "oob", "oob_separable", "purity"]


def fit_quietly(*args, **params):
    """Fit without the warning about rows that are never out of bag, which are wanted here."""
    forest, scheme, X, y = args
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafkernelWarning)
        return ForestProximity(forest, scheme, **params).fit(X, y)


def training_side(forest, X, y):
    leaf = np.asarray(forest.apply(X))
    counts = oracles.bootstrap_counts(forest, len(X))
    return oracles.Side(leaf, counts, counts == 0, targets=y)


@given(case=strategies.bootstrapped(), dtype=st.sampled_from([np.float32, np.float64]))
@pytest.mark.parametrize("scheme", BAGGED_SCHEMES)
def test_bagged_scheme_equals_the_formula(scheme, case, dtype):
    training = training_side(case.forest, case.X, case.y)
    unseen = oracles.Side.unseen(np.asarray(case.forest.apply(case.X_new)))
    expected = oracles.proximity(scheme, training, training, training)
    expected_new = oracles.proximity(scheme, unseen, training, training)
    for engine in ("native", "reference"):
        prox = fit_quietly(case.forest, scheme, case.X, case.y, dtype=dtype, engine=engine)
        P, P_new = prox.proximity(), prox.proximity(case.X_new)
        assert P.dtype == dtype
        assert_allclose(P.toarray(), expected, rtol=0, atol=TOLERANCE[dtype])
        assert_allclose(P_new.toarray(), expected_new, rtol=0, atol=TOLERANCE[dtype])


@given(
    case=strategies.boosted(),
    dtype=st.sampled_from([np.float32, np.float64]),
    engine=st.sampled_from(["native", "reference"]),
)
def test_boosted_equals_the_formula(case, dtype, engine):
    training = oracles.Side.unseen(np.asarray(case.forest.apply(case.X)))
    unseen = oracles.Side.unseen(np.asarray(case.forest.apply(case.X_new)))
    weights = oracles.variance_of_contribution(case.forest, case.X)
    prox = fit_quietly(case.forest, "boosted", case.X, case.y, dtype=dtype, engine=engine)
    for side, X in ((training, None), (unseen, case.X_new)):
        expected = oracles.proximity("boosted", side, training, training, weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeafkernelWarning)
            assert_allclose(prox.proximity(X).toarray(), expected, rtol=0, atol=TOLERANCE[dtype])


@settings(max_examples=15)
@given(
    case=strategies.bootstrapped(classes=True),
    k=st.integers(1, 6),
    scope=st.sampled_from(["all", "leaf"]),
)
def test_instance_hardness_equals_the_formula(case, k, scope):
    leaf = np.asarray(case.forest.apply(case.X))

    def path(t, i):
        return oracles.features_on_path(case.forest.estimators_[t], case.X[i])

    kdn = oracles.disagreeing_neighbors(case.X, case.y, leaf, path, k, scope)
    training = oracles.Side(leaf, np.zeros(leaf.shape), np.ones(leaf.shape, dtype=bool), 1 - kdn)
    unseen = oracles.Side.unseen(np.asarray(case.forest.apply(case.X_new)))
    scheme = InstanceHardness(k=k, neighbors=scope)
    for dtype, engine in (
        (np.float64, "native"),
        (np.float32, "native"),
        (np.float64, "reference"),
    ):
        prox = fit_quietly(case.forest, scheme, case.X, case.y, dtype=dtype, engine=engine)
        for side, X in ((training, None), (unseen, case.X_new)):
            expected = oracles.proximity("ih", side, training, training)
            found = prox.proximity(X).toarray()
            assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype])

    both = InstanceHardness(k=k, neighbors=scope, symmetric=True)
    P = fit_quietly(case.forest, both, case.X, case.y, dtype=np.float64).proximity().toarray()
    root = np.sqrt((1 - kdn) / leaf.shape[1])
    same = leaf[:, None, :] == leaf[None, :, :]
    assert_allclose(P, (same * root[:, None] * root[None]).sum(axis=2), rtol=0, atol=1e-12)


def test_instance_hardness_does_not_depend_on_the_order_of_rows(iris, rng):
    X, y = iris
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
    order = rng.permutation(len(y))
    P = ForestProximity(forest, "ih", dtype=np.float64).fit(X, y).proximity().toarray()
    shuffled = ForestProximity(forest, "ih", dtype=np.float64).fit(X[order], y[order])
    assert_allclose(shuffled.proximity().toarray(), P[np.ix_(order, order)], rtol=0, atol=1e-12)


def test_instance_hardness_of_many_ties_is_at_most_one():
    """25 ties share 7 places, and 25 * (7 / 25) / 7 is larger than 1 by rounding."""
    X, y = np.zeros((26, 1)), np.arange(26) == 0
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    prox = ForestProximity(forest, InstanceHardness(k=7), dtype=np.float64).fit(X, y)
    assert prox.proximity().toarray()[:, 0].max() == 0.0


def test_instance_hardness_among_a_subsample(iris):
    X, y = iris
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    full = ForestProximity(forest, InstanceHardness()).fit(X, y).proximity()
    capped = ForestProximity(forest, InstanceHardness(max_reference=1000)).fit(X, y).proximity()
    assert (full != capped).nnz == 0
    sampled = ForestProximity(forest, InstanceHardness(max_reference=30)).fit(X, y).proximity()
    again = ForestProximity(forest, InstanceHardness(max_reference=30)).fit(X, y).proximity()
    assert (sampled != again).nnz == 0
    assert (sampled != full).nnz > 0
    # Rows are ordered by class: candidates from the first rows alone would make all others hard.
    assert sampled[100:, 100:].sum() > 0.5 * full[100:, 100:].sum()


def test_instance_hardness_works_through_blocks(iris, monkeypatch):
    X, y = iris
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    whole = ForestProximity(forest, "ih").fit(X, y).proximity()
    monkeypatch.setattr("leafkernel.schemes.ih._PAIRS_AT_ONCE", 400)
    assert (ForestProximity(forest, "ih").fit(X, y).proximity() != whole).nnz == 0


def test_multiclass_boosting_has_a_tree_for_each_class_and_round(iris):
    X, y = iris
    booster = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, y)
    prox = ForestProximity(booster, "boosted", dtype=np.float64).fit(X, y)
    assert prox.n_trees_ == 12
    leaf = booster.apply(X).reshape(len(X), -1)
    weights = oracles.variance_of_contribution(booster, X)
    same = leaf[:, None, :] == leaf[None, :, :]
    assert_allclose(
        prox.proximity().toarray(), same @ (weights / weights.sum()), rtol=0, atol=1e-12
    )


def test_tree_weights_given_by_the_user(iris):
    X, y = iris
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    weights = [4, 0, 1, 3]
    leaf = forest.apply(X)
    same = leaf[:, None, :] == leaf[None, :, :]
    prox = ForestProximity(forest, Boosted(weights), dtype=np.float64).fit(X, y)
    assert_allclose(prox.proximity().toarray(), same @ (np.array(weights) / 8), rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def big_forest():
    X, y = make_classification(300, n_informative=5, random_state=0)
    return RandomForestClassifier(200, random_state=0).fit(X, y), X, y


@pytest.mark.parametrize(
    "scheme", ["uniform", "kerf", "oob_separable", "boosted", "ih", "purity", "learned"]
)
def test_symmetric_schemes_are_positive_semidefinite(diabetes, big_forest, scheme):
    forest, X, y = big_forest
    if scheme == "boosted":
        X, y = diabetes
        forest = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    chosen = InstanceHardness(symmetric=True, neighbors="leaf") if scheme == "ih" else scheme
    P = ForestProximity(forest, chosen, dtype=np.float64).fit(X, y).proximity().toarray()
    assert_allclose(P, P.T, rtol=0, atol=1e-15)
    assert np.linalg.eigvalsh(P).min() > -1e-10


def test_rows_of_gap_and_kerf_sum_to_one(big_forest):
    forest, X, y = big_forest
    for scheme in ("gap", "kerf"):
        P = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y).proximity()
        assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-12)
    P_new = ForestProximity(forest, "gap", dtype=np.float64).fit(X, y).proximity(X + 0.1)
    assert_allclose(P_new.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_diagonals_that_the_formulas_give(big_forest):
    forest, X, y = big_forest

    def diagonal(scheme):
        prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
        return prox.proximity().diagonal()

    assert_allclose(diagonal("uniform"), 1, rtol=0, atol=1e-12)
    assert_allclose(diagonal("oob"), 1, rtol=0, atol=1e-12)
    assert (diagonal("gap") == 0).all()


def test_separable_oob_tends_to_the_exact_one(big_forest):
    _, X, y = big_forest
    spread = []
    for n_trees in (50, 800):
        forest = RandomForestClassifier(n_trees, random_state=0).fit(X, y)
        exact = ForestProximity(forest, "oob", dtype=np.float64).fit(X, y).proximity()
        separable = ForestProximity(forest, "oob_separable", dtype=np.float64).fit(X, y)
        pairs = exact.tocoo()
        off_diagonal = pairs.row != pairs.col
        ratio = separable.proximity().toarray()[pairs.row, pairs.col] / pairs.data
        ratio = ratio[off_diagonal]
        spread.append(np.abs(ratio - 1).mean())
    assert spread[1] < 0.5 * spread[0]
    n = len(y)
    limit = (1 - 2 / n) ** n / (1 - 1 / n) ** (2 * n)  # the paper's r_N / p_N²
    assert ratio.mean() == pytest.approx(limit, abs=0.01)


def test_original_is_another_name_for_uniform(iris):
    X, y = iris
    forest = ExtraTreesClassifier(5, random_state=0).fit(X, y)
    original = ForestProximity(forest, "original").fit(X, y).proximity()
    assert (original != ForestProximity(forest, "uniform").fit(X, y).proximity()).nnz == 0


def test_a_function_and_a_class_define_the_same_scheme(iris):
    X, y = iris
    forest = RandomForestClassifier(50, random_state=0).fit(X, y)

    def separable(samples, stats):
        return np.sqrt(stats.n_trees) * samples.is_oob / samples.n_oob_trees

    separable.needs = {"in_bag"}
    # In float64, weights given as an array are as exact as weights in factors.
    by_function = ForestProximity(forest, separable, dtype=np.float64).fit(X, y)
    by_class = ForestProximity(forest, SeparableOutOfBag(), dtype=np.float64).fit(X, y)
    difference = by_function.proximity() - by_class.proximity()
    assert abs(difference).max() < 1e-14
    assert by_function.scheme_.name == "separable"


def test_a_scheme_with_a_reference_of_its_own_is_not_symmetric_unless_it_says_so(iris):
    X, y = iris
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)

    class Directed(WeightScheme):
        def query(self, samples, forest):
            return np.ones(samples.leaf.shape)

        def reference(self, samples, forest):
            return np.broadcast_to(np.arange(len(samples.leaf))[:, None], samples.leaf.shape)

    class Inherited(Directed):
        name = "mine"

    class Mixin:
        def reference(self, samples, forest):
            return np.zeros(samples.leaf.shape)

    class Mixed(Mixin, Uniform):
        pass

    prox = ForestProximity(forest, Directed(), dtype=np.float64).fit(X, y)
    leaf = forest.apply(X)
    same = (leaf[:, None] == leaf[None]).sum(axis=2)
    assert_allclose(prox.proximity().toarray(), same * np.arange(150), rtol=0, atol=1e-12)
    assert Directed.name == "Directed"
    assert not Directed().symmetric
    assert not Inherited().symmetric
    assert Inherited.name == "mine"
    assert ForestProximity(forest, Mixed()).fit(X, y).proximity().nnz == 0


def test_a_scheme_reads_features_out_of_sample_too(iris):
    X, y = iris

    class FirstFeature(WeightScheme):
        needs = frozenset({"features"})

        def query(self, samples, forest):
            return np.broadcast_to(samples.features[:, :1], samples.leaf.shape)

    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    prox = ForestProximity(forest, FirstFeature(), dtype=np.float64).fit(X, y)
    leaf = forest.apply(X)
    expected = (leaf[:, None] == leaf[None]).sum(axis=2) * np.outer(X[:, 0], X[:, 0])
    assert_allclose(prox.proximity(X).toarray(), expected, rtol=1e-12)
    blocks = [block.toarray() for _, block in prox.iter_proximity(X, block_size=40)]
    assert_allclose(np.vstack(blocks), expected, rtol=1e-12)


def test_a_scheme_cannot_change_what_it_reads(iris):
    X, y = iris

    def vandal(samples, forest):
        samples.leaf[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        ForestProximity(RandomForestClassifier(3, random_state=0), vandal).fit(X, y)


def test_a_scheme_that_reads_what_it_did_not_declare_is_told_so(iris):
    X, y = iris
    with pytest.raises(AttributeError, match=r"needs = frozenset\(\{'in_bag'\}\)"):
        ForestProximity(
            RandomForestClassifier(5, random_state=0), lambda samples, forest: samples.in_bag
        ).fit(X, y)


FACTORS = {
    "scale": lambda samples, _: Weighting(scale=0.3),
    "by_sample": lambda samples, _: Weighting(by_sample=1.0 + np.arange(samples.n_samples)),
    "by_leaf": lambda _, forest: Weighting(by_leaf=1.0 / (1 + forest.leaf_mass)),
    "flags": lambda samples, _: Weighting(by_entry=samples.leaf % 2 == 0),
    "counts": lambda samples, _: Weighting(by_entry=(samples.leaf % 4).astype(np.uint8)),
    "many": lambda samples, _: Weighting(by_entry=samples.leaf % 1000),
    "all": lambda samples, forest: Weighting(
        scale=2.0,
        by_sample=1.0 + np.arange(samples.n_samples),
        by_leaf=1.0 / (1 + forest.leaf_mass),
        by_entry=np.sqrt(samples.leaf % 3),
    ),
}


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_factors_give_what_the_array_of_their_products_gives(iris, factors, engine):
    X, y = iris
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)

    def dense(samples, stats):
        return factors(samples, stats).dense(samples.leaf)

    known = {"dtype": np.float64, "engine": engine}
    by_factors = ForestProximity(forest, factors, **known).fit(X, y)
    by_array = ForestProximity(forest, dense, **known).fit(X, y)
    for X_new in (None, X[:7] + 0.1):
        P, expected = by_factors.proximity(X_new), by_array.proximity(X_new)
        assert P.nnz == expected.nnz
        assert_allclose(P.toarray(), expected.toarray(), rtol=1e-12)
    assert_allclose(
        by_factors.query_map().toarray(), by_array.query_map().toarray(), rtol=1e-12, atol=0
    )


def test_old_names_of_what_a_scheme_declares_still_work():
    with pytest.warns(FutureWarning, match="separable was renamed .* divides_by_shared_oob = True"):

        class Old(Uniform):
            separable = False

    assert Old().divides_by_shared_oob
    assert not Old().separable
    with pytest.warns(FutureWarning, match="equal_diagonal was renamed .* own_proximity = 1.0"):

        class Equal(Kerf):
            equal_diagonal = True

    assert Equal().own_proximity == 1
    assert Equal().equal_diagonal

    class New(Old):
        divides_by_shared_oob = False

    assert New().separable
    with pytest.raises(TypeError, match="separable was renamed to divides_by_shared_oob"):

        class Computed(Uniform):
            @property
            def separable(self):
                return False


def test_the_warning_of_an_old_name_points_at_the_scheme():
    with pytest.warns(FutureWarning) as found:

        class Old(Uniform):
            separable = True

    assert found[0].filename == __file__


@pytest.mark.parametrize("symmetrize", [False, True])
def test_a_query_makes_no_factor_of_all_leaves(iris, symmetrize, monkeypatch):
    """The factors of all leaves are computed once, in fit, so that queries stay cheap."""
    X, y = iris
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    sizes, look = [], leaf_maps._check_factor

    def note(factor, *args, **known):
        sizes.append(np.size(factor))
        look(factor, *args, **known)

    monkeypatch.setattr(leaf_maps, "_check_factor", note)
    for scheme in ("kerf", "gap", Boosted(np.arange(1.0, 31.0))):
        prox = ForestProximity(forest, scheme, symmetrize=symmetrize).fit(X, y)
        assert max(sizes) >= prox.n_leaves_
        sizes.clear()
        prox.proximity(X[:1])
        assert max(sizes, default=0) < prox.n_leaves_
