"""The scheme "purity", and what schemes learn from the targets of all training samples."""

import warnings

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel import Batches, ForestProximity, LeafkernelWarning, WeightScheme, leaf_sums
from leafkernel.inside import Inside
from leafkernel.schemes import Purity, Weighting
from leafkernel.tasks import ForestKernel, ProximityOutlierDetector

KINDS = {True: ["auto", "purity", "impurity_decrease"], False: ["auto", "variance_reduction"]}


class ByClass(WeightScheme):
    """A scheme that learns the share of the first class in each leaf."""

    needs = frozenset({"targets"})

    def learn(self, samples, forest):
        first = (samples.targets == 0).astype(float)
        sums = leaf_sums.leaf_sums(samples.leaf, forest.n_leaves, values=first)
        return sums / np.maximum(forest.leaf_mass, 1)

    def query(self, samples, forest):
        return Weighting(by_leaf=np.sqrt(forest.learned))


def fit_quietly(forest, scheme, X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafkernelWarning)
        return ForestProximity(forest, scheme, dtype=np.float64, **params).fit(X, y)


@given(
    case=strategies.bootstrapped(),
    kind=st.integers(0, 2),
    estimate=st.sampled_from(["auto", "oob", "in_bag", "all"]),
    prior=st.sampled_from([0, 0.5, 1, 20]),
)
def test_quality_of_each_leaf_equals_the_formula(case, kind, estimate, prior):
    kinds = KINDS[case.y.dtype.kind == "i"]
    scheme = Purity(quality=kinds[kind % len(kinds)], estimate=estimate, prior=prior)
    prox = fit_quietly(case.forest, scheme, case.X, case.y)
    counts = oracles.bootstrap_counts(case.forest, len(case.X))
    training = oracles.Side(np.asarray(case.forest.apply(case.X)), counts, counts == 0)
    training.targets = case.y
    weights = {"in_bag": counts, "all": np.ones(counts.shape)}.get(estimate, counts == 0)
    leaf = Inside.of(prox).samples.leaf
    for t in range(leaf.shape[1]):
        for at in np.unique(leaf[:, t]):
            found = prox.kernel_.forest.learned[at]
            members = leaf[:, t] == at
            expected = oracles.quality_of(training, members, weights[:, t], prior, scheme.quality)
            assert found == pytest.approx(expected, abs=1e-12)


def test_out_of_bag_samples_show_that_pure_leaves_are_not_better(rng):
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)  # nothing to learn
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)

    def mean_quality(estimate):
        prox = ForestProximity(forest, Purity(estimate=estimate, prior=0)).fit(X, y)
        stats = prox.kernel_.forest
        return np.average(stats.learned, weights=stats.leaf_mass)

    assert mean_quality("in_bag") == 1.0
    # Leaves with one out-of-bag sample are pure, so compare with samples of shuffled targets.
    shuffled = ForestProximity(forest, Purity(estimate="oob", prior=0)).fit(X, rng.permutation(y))
    stats = shuffled.kernel_.forest
    chance = np.average(stats.learned, weights=stats.leaf_mass)
    assert mean_quality("oob") == pytest.approx(chance, abs=0.01)


def test_the_mean_of_a_leaf_does_not_matter(rng):
    """Two leaves with the same spread have the same quality, near the mean or far from it."""
    leaves, y = np.repeat([0, 1, 2], 4)[:, None], np.tile([0.0, 1.0, 1.0, 3.0], 3)
    y[4:8] += 100
    y[8:] = 50 + rng.normal(size=4)
    prox = ForestProximity.from_leaves(leaves, y=y, weight_scheme="purity")
    quality = prox.kernel_.forest.learned
    assert quality[0] == pytest.approx(quality[1], rel=1e-9)
    assert quality[0] == pytest.approx(0.8, abs=0.01)  # 4 samples, and 1 of the prior


@pytest.mark.parametrize("y", [["a"] * 4, [7] * 4, [0.1] * 4])
def test_equal_targets_give_uniform_weights(y):
    leaves = [[1, 4], [1, 5], [2, 5], [2, 5]]
    for scheme in (Purity(), Purity("impurity_decrease", prior=0)):
        prox = ForestProximity.from_leaves(leaves, y=y, weight_scheme=scheme, dtype="float64")
        expected = ForestProximity.from_leaves(leaves, dtype="float64").proximity().toarray()
        assert_allclose(prox.proximity().toarray(), expected, rtol=1e-15)


def test_leaves_that_say_nothing_give_a_warning():
    with pytest.warns(LeafkernelWarning, match="All leaves have quality 0"):
        prox = ForestProximity.from_leaves([[1], [1], [1]], y=[0.5, 1, 2], weight_scheme="purity")
    assert prox.proximity().nnz == 0


def test_huge_numbers_are_no_problem(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    one = ForestProximity(forest, "purity").fit(X, y).kernel_.forest.learned
    other = ForestProximity(forest, "purity").fit(X, y * 1e300).kernel_.forest.learned
    assert_allclose(one, other, rtol=1e-12)


def test_forests_without_bootstrap_use_all_samples(iris, diabetes):
    for (X, y), forest in (
        (iris, ExtraTreesClassifier(10, random_state=0)),
        (diabetes, GradientBoostingRegressor(n_estimators=5, random_state=0)),
    ):
        auto, whole = (
            ForestProximity(forest, Purity(estimate=estimate)).fit(X, y)
            for estimate in ("auto", "all")
        )
        assert_array_equal(auto.kernel_.forest.learned, whole.kernel_.forest.learned)
        with pytest.raises(ValueError, match="'purity' needs bootstrap samples"):
            ForestProximity(forest, Purity(estimate="oob")).fit(X, y)


def test_blocks_of_rows_do_not_matter(iris, monkeypatch):
    X, y = iris
    forest = RandomForestClassifier(7, random_state=0).fit(X, y)
    whole = ForestProximity(forest, "purity").fit(X, y).kernel_.forest.learned
    monkeypatch.setattr(leaf_sums, "_ENTRIES_AT_ONCE", 21)
    found = ForestProximity(forest, "purity").fit(X, y).kernel_.forest.learned
    assert_allclose(found, whole, rtol=1e-12)


@pytest.mark.parametrize("scheme", ["purity", Purity("impurity_decrease", "all"), ByClass()])
def test_learned_arrays_survive_save_and_load(iris, tmp_path, scheme):
    pytest.importorskip("skops")
    X, y = iris
    labels = np.array(["a", "b", "c"])[y]
    prox = ForestProximity(RandomForestClassifier(9, random_state=0), scheme).fit(X, labels)
    own = scheme if isinstance(scheme, ByClass) else None
    again = ForestProximity.load(prox.save(tmp_path / "saved"), weight_scheme=own)
    assert_array_equal(again.kernel_.forest.learned, prox.kernel_.forest.learned)
    assert_array_equal(again.y_, labels)
    for queries in (None, X[:9] + 0.05):
        assert (again.proximity(queries) != prox.proximity(queries)).nnz == 0
    more = again.reweigh("uniform").reweigh(scheme)
    assert (more.proximity() != prox.proximity()).nnz == 0


def test_reweigh_learns_for_each_scheme(iris):
    X, y = iris
    forest = RandomForestClassifier(9, random_state=0).fit(X, y)
    prox = ForestProximity(forest, "purity").fit(X, y)
    other = prox.reweigh(ByClass())
    assert_array_equal(
        other.kernel_.forest.learned,
        ForestProximity(forest, ByClass()).fit(X, y).kernel_.forest.learned,
    )
    assert other.reweigh("kerf").kernel_.forest.learned is None
    assert (other.reweigh("purity").proximity() != prox.proximity()).nnz == 0
    assert other.reweigh(diagonal="zero").kernel_.forest.learned is not None


@pytest.mark.parametrize("scheme", [Purity(estimate="all"), ByClass()], ids=["purity", "own"])
def test_extend_learns_from_all_samples(iris, scheme):
    X, y = iris
    forest = RandomForestClassifier(9, random_state=0).fit(X, y)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    prox = ForestProximity(forest, scheme).fit(X[:90], y[:90]).extend(X[90:], y[90:])
    expected = ForestProximity(forest, scheme).fit(X, y)
    stats = prox.kernel_.forest
    assert_allclose(stats.learned, expected.kernel_.forest.learned, rtol=1e-12)
    assert stats.plus(stats).learned is None
    assert abs(prox.proximity() - expected.proximity()).max() < 1e-6


def test_added_samples_are_out_of_bag_in_all_trees(iris):
    X, y = iris
    forest = RandomForestClassifier(9, random_state=0).fit(X[:100], y[:100])
    prox = ForestProximity(forest, Purity(prior=0)).fit(X[:100], y[:100])
    prox.extend(X[100:], y[100:])
    samples = Inside.of(prox).samples
    assert samples.is_oob[100:].all()
    assert_array_equal(samples.targets, y)
    counts = oracles.bootstrap_counts(forest, 100)
    assert_array_equal(samples.in_bag[:100], counts)
    oob = np.r_[counts == 0, np.ones((50, 9), dtype=bool)]
    training = oracles.Side(samples.leaf, None, oob, targets=y)
    for t, leaf in enumerate(samples.leaf[0]):
        members = samples.leaf[:, t] == leaf
        expected = oracles.quality_of(training, members, oob[:, t], 0)
        assert prox.kernel_.forest.learned[leaf] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_batches(iris, kind):
    X, y = iris
    forest = kind(9, random_state=0).fit(X, y)
    prox = ForestProximity(forest, "purity").fit(Batches.from_arrays(X, y, batch_rows=40))
    whole = ForestProximity(forest, "purity").fit(X, y)
    assert_array_equal(prox.kernel_.forest.learned, whole.kernel_.forest.learned)
    assert (prox.proximity() != whole.proximity()).nnz == 0


def test_other_tasks(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), "purity").fit(X, y)
    assert ForestKernel(prox)(X[:4]).shape == (4, 4)
    assert not prox.scheme_.out_of_bag
    ProximityOutlierDetector(prox).fit(X, y)


@settings(max_examples=10)
@given(case=strategies.bootstrapped())
def test_every_kernel_is_positive_semidefinite(case):
    P = fit_quietly(case.forest, "purity", case.X, case.y).proximity().toarray()
    assert_allclose(P, P.T, rtol=0, atol=1e-15)
    assert np.linalg.eigvalsh(P).min() > -1e-10
    assert P.max(initial=0) <= 1 + 1e-12


def test_targets_that_do_not_fit_are_refused(iris, diabetes):
    X, y = iris
    forest = ExtraTreesClassifier(3, random_state=0).fit(X, y)
    regressor = RandomForestRegressor(3, random_state=0).fit(*diabetes)
    for model, (rows, targets), words in [
        (forest, (X, None), "y is missing, but weight_scheme='purity' needs the targets"),
        (forest, (X, np.c_[y, y]), r"one target for each sample, but y has shape \(150, 2\)"),
        (forest, (X, np.where(y == 0, np.nan, y)), "y contains NaN or infinity"),
        (forest, (X, np.array([("a", 1)] * 150, dtype="U1,i4")), "y has several fields"),
        (regressor, (diabetes[0], ["a"] * 200), "needs numbers as targets"),
    ]:
        with pytest.raises(ValueError, match=words):
            ForestProximity(model, "purity").fit(rows, targets)
    assert ForestProximity(forest, "purity").fit(X, y[:, None]).n_samples_fit_ == 150


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        (Purity("pure"), "quality must be one of 'auto', 'purity'"),
        (Purity("variance_reduction"), "because the targets are classes. Use 'purity' or"),
        (Purity(estimate="bag"), "estimate must be one of"),
        (Purity(prior=-1), "prior must be a finite number of at least 0; got -1"),
        (Purity(prior=np.nan), "prior must be a finite number"),
        (Purity(prior="1"), "prior must be a finite number"),
    ],
)
def test_wrong_parameters(iris, scheme, words):
    with pytest.raises(ValueError, match=words):
        ForestProximity(RandomForestClassifier(3, random_state=0), scheme).fit(*iris)


def test_wrong_parameters_for_numbers(diabetes):
    forest = RandomForestRegressor(3, random_state=0)
    with pytest.raises(ValueError, match=r"the targets are numbers\. Use 'variance_reduction' or"):
        ForestProximity(forest, Purity("purity")).fit(*diabetes)


def test_own_schemes_that_learn_something_wrong(iris):
    class Wrong(ByClass):
        def learn(self, samples, forest):
            return np.array(["text"])

    with pytest.raises(TypeError, match=r"learn\(\) of the weight scheme 'Wrong' must return real"):
        ForestProximity(ExtraTreesClassifier(3), Wrong()).fit(*iris)

    class Unknown(ByClass):
        optional_needs = frozenset({"labels"})

    with pytest.raises(ValueError, match=r"optional_needs=\['labels'\] .* unknown values"):
        ForestProximity(ExtraTreesClassifier(3), Unknown()).fit(*iris)


@pytest.mark.parametrize("scheme", ["purity", ByClass()])
def test_dask_data_are_refused(iris, scheme):
    array = pytest.importorskip("dask.array")
    X, y = iris
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="needs all training samples in one process"):
        ForestProximity(forest, scheme).fit(array.from_array(X, chunks=(50, 4)), y)
