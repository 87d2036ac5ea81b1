"""The scheme "learned": tree weights from the centered alignment with the targets."""

import warnings

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel import Batches, ForestProximity, LeafkernelWarning, alignment
from leafkernel.alignment import Alignment, TreeSamples
from leafkernel.inside import Inside
from leafkernel.schemes import Learned

TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}


def fit_quietly(forest, scheme, X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafkernelWarning)
        return ForestProximity(forest, scheme, **params).fit(X, y)


@st.composite
def tree_samples(draw, most_trees=5):
    """Samples in random leaves: few or many leaves, with flags or without, classes or numbers."""
    n, n_trees = draw(st.integers(1, 25)), draw(st.integers(1, most_trees))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    sizes = rng.choice([1, 2, 3, 30], n_trees)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    is_classes = draw(st.booleans())
    targets = (
        rng.integers(0, draw(st.sampled_from([1, 2, 4])), n) if is_classes else rng.normal(size=n)
    )
    leaf = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    if draw(st.booleans()):  # leaves that follow the targets
        places = np.argsort(np.argsort(targets, kind="stable"))
        leaf = places[:, None] * sizes // n
    flags = rng.random((n, n_trees)) < draw(st.sampled_from([0.4, 0.9]))
    return TreeSamples(leaf + offsets[:-1], offsets, draw(st.sampled_from([flags, None])), targets)


def explicit(samples):
    counts_in = np.ones(samples.leaf.shape, bool) if samples.flags is None else samples.flags
    codes = samples.targets
    if codes.dtype.kind == "i":
        codes = np.unique(codes, return_inverse=True)[1]
    return oracles.alignment(samples.leaf, counts_in, codes)


def as_codes(samples):
    """Return the same samples with classes that are numbered without gaps."""
    if samples.targets.dtype.kind != "i":
        return samples
    codes = np.unique(samples.targets, return_inverse=True)[1]
    return TreeSamples(samples.leaf, samples.leaf_offsets, samples.flags, codes)


@given(samples=tree_samples(most_trees=8), n_threads=st.sampled_from([1, 3]))
def test_inner_products_equal_those_of_explicit_kernels(samples, n_threads):
    M, a, norm = explicit(samples)
    found = Alignment.of(as_codes(samples), n_threads=n_threads)
    assert_allclose(found.products, M, rtol=0, atol=1e-12 * max(M.max(), 1))
    assert_allclose(found.with_targets, a, rtol=0, atol=1e-12 * max(np.abs(a).max(), 1))
    assert found.target_norm == pytest.approx(norm, rel=1e-12, abs=1e-12)


@given(samples=tree_samples())
def test_weights_are_the_best_of_all_sets_of_trees(samples):
    M, a, norm = explicit(samples)
    found, expected = Alignment.of(as_codes(samples)).weights(), oracles.best_weights(M, a)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-12)

    def score(weights):
        size = np.sqrt(max(weights @ M @ weights, 0)) * norm
        return a @ weights / size if size > 1e-9 else 0.0

    assert score(found) == pytest.approx(score(expected), abs=1e-9)
    scale = np.sqrt(M.diagonal())
    if scale.min() > 0 and np.linalg.cond(M / np.outer(scale, scale)) < 1e3 and a.max() > 1e-6:
        assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_weights_are_those_of_a_general_solver(rng):
    X, y = make_classification(80, n_informative=6, random_state=0)
    forest = RandomForestClassifier(30, max_depth=4, random_state=0).fit(X, y)
    noise = RandomForestClassifier(10, random_state=1).fit(X, rng.permutation(y))
    leaf = np.c_[forest.apply(X), noise.apply(X)]
    M, a, _ = oracles.alignment(leaf, np.ones(leaf.shape, bool), y)
    M, a = M / M.max(), a / M.max()
    solved = minimize(
        lambda x: x @ M @ x - 2 * a @ x,
        np.full(40, 1 / 40),
        jac=lambda x: 2 * (M @ x - a),
        bounds=[(0, None)] * 40,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    ).x
    prox = ForestProximity.from_leaves(leaf, y=y, weight_scheme=Learned(folds=0))
    assert_allclose(prox.tree_weights_, solved / solved.sum(), rtol=0, atol=1e-6)
    assert 0 < np.count_nonzero(prox.tree_weights_) < 40


def test_both_solvers_agree(rng):
    for n_trees in (1, 3, 40):
        for _ in range(10):
            kernels = np.abs(rng.normal(size=(n_trees, 60)))
            M, a = kernels @ kernels.T, kernels @ rng.normal(0.3, size=60)
            scale = np.sqrt(M.diagonal())
            M, a = M / np.outer(scale, scale), a / scale
            fast = alignment._by_pivoting(M, a)
            assert fast is not None
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(alignment, "_by_pivoting", lambda *_: None)
                slow = alignment._nonnegative(M, a)
            assert_allclose(fast, slow, rtol=0, atol=1e-9 * max(slow.max(), 1))


@settings(max_examples=25)
@given(case=strategies.bootstrapped(), folds=st.sampled_from([0, 2, 5]), data=st.data())
def test_every_kernel_equals_the_formula(case, folds, data):
    dtype, engine = data.draw(st.sampled_from([(np.float32, "native"), (np.float64, "reference")]))
    prox = fit_quietly(
        case.forest, Learned(folds=folds), case.X, case.y, dtype=dtype, engine=engine
    )
    weights = prox.tree_weights_
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    training = oracles.Side.unseen(np.asarray(case.forest.apply(case.X)))
    unseen = oracles.Side.unseen(np.asarray(case.forest.apply(case.X_new)))
    for side, X in ((training, None), (unseen, case.X_new)):
        expected = oracles.proximity("learned", side, training, training, weights)
        found = prox.proximity(X).toarray()
        assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype])
    P = prox.proximity().toarray()
    assert_allclose(P.diagonal(), 1, rtol=0, atol=TOLERANCE[dtype])
    assert np.linalg.eigvalsh(P.astype(float)).min() > -1e-5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("classes", [True, False])
def test_cross_validation_equals_the_definition(seed, classes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=24)
    y = (y > 0).astype(int) if classes else y
    kind = RandomForestClassifier if classes else RandomForestRegressor
    forest = kind(4, max_depth=3, max_features=1, random_state=seed).fit(X, y)
    prox = fit_quietly(forest, Learned(folds=3, random_state=seed), X, y)
    order = np.random.default_rng(seed).permutation(24)
    oob = oracles.bootstrap_counts(forest, 24) == 0
    folds = [np.sort(order[fold::3]) for fold in range(3)]
    expected = oracles.cross_validated_weights(forest.apply(X), oob, y, folds)
    assert_allclose(prox.tree_weights_, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("classes", [True, False])
def test_trees_of_shuffled_targets_lose_their_weight(classes, rng):
    if classes:
        X, y = make_classification(800, n_informative=6, class_sep=1.5, random_state=0)
        kind, Y = RandomForestClassifier, np.eye(2)[y]
    else:
        X, y = make_friedman1(800, random_state=0)
        kind, Y = RandomForestRegressor, (y - y.mean())[:, None] / y.std()
    old, new = slice(400), slice(400, 800)
    forests = [
        kind(25, min_samples_leaf=20, random_state=seed).fit(X[old], targets)
        for seed, targets in enumerate([y[old], rng.permutation(y[old])])
    ]
    leaves = np.hstack([forest.apply(X) for forest in forests])
    in_bag = np.hstack([oracles.bootstrap_counts(forest, 400) for forest in forests])
    learned = ForestProximity.from_leaves(
        leaves[old], in_bag=in_bag, y=y[old], weight_scheme="learned", dtype=np.float64
    )
    assert learned.tree_weights_[:25].sum() > 0.75

    # New samples were not used by any tree. Their proximities fit the targets better, too.
    def alignment_of_new(weights):
        K = (leaves[new][:, None] == leaves[new][None]) @ weights
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        target = (Y[new] - Y[new].mean(axis=0)) @ (Y[new] - Y[new].mean(axis=0)).T
        return np.sum(K * target) / np.linalg.norm(K) / np.linalg.norm(target)

    def error(prox):
        return np.mean((prox.weighted_average(Y[old], leaves[new]) - Y[new]) ** 2)

    assert alignment_of_new(learned.tree_weights_) > 1.02 * alignment_of_new(np.full(50, 0.02))
    assert error(learned) < 0.9 * error(learned.reweigh("uniform"))


@pytest.mark.parametrize("seed", range(3))
def test_targets_without_signal_give_equal_weights(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=seed).fit(X, y)
    alone = ForestProximity(forest, Learned(folds=0)).fit(X, y)
    assert np.ptp(alone.tree_weights_) > 1e-3
    assert_allclose(alone.reweigh("learned").tree_weights_, 1 / 20, rtol=0, atol=1e-12)


def test_pure_leaves_of_training_samples_are_no_advantage(rng):
    """Trees that see only noise have pure leaves, too, but not for out-of-bag samples."""
    X, y = make_classification(
        400, 8, n_informative=4, n_redundant=0, shuffle=False, random_state=0
    )
    noise = rng.normal(size=X.shape)
    good, bad = (RandomForestClassifier(15, random_state=0).fit(rows, y) for rows in (X, noise))
    leaves = np.c_[good.apply(X), bad.apply(noise)]
    in_bag = np.hstack([oracles.bootstrap_counts(forest, 400) for forest in (good, bad)])
    shares = {}
    for estimate in ("oob", "all"):
        scheme = Learned(estimate=estimate, folds=0)
        prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, y=y, weight_scheme=scheme)
        shares[estimate] = prox.tree_weights_[15:].sum()
    assert shares["oob"] < 0.02
    assert shares["all"] > 5 * shares["oob"] + 0.05


@pytest.mark.parametrize(
    ("leaves", "y"),
    [
        ([[0, 1], [0, 1], [0, 1]], [0, 1, 1]),  # trees of one leaf
        ([[0], [1], [0], [1]], [0, 1, 0, 1]),  # one tree
        ([[0, 1, 2]], ["a"]),  # one sample
        ([[0, 1], [1, 2], [1, 1]], ["a", "a", "a"]),  # one class
        ([[0, 1], [1, 2], [1, 1]], [0.5, 0.5, 0.5]),
        ([[0, 0], [0, 0], [1, 1], [1, 1]] * 3, [0, 1, 0, 1] * 3),  # not aligned
        ([[0, 0], [0, 0], [1, 1], [1, 1]] * 3, [0, 0, 1, 1] * 3),  # the same tree twice
    ],
)
@pytest.mark.parametrize("folds", [0, 5])
def test_corner_cases(leaves, y, folds):
    prox = ForestProximity.from_leaves(leaves, y=y, weight_scheme=Learned(folds=folds))
    weights = prox.tree_weights_
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights.min() >= 0
    assert_allclose(prox.proximity().diagonal(), 1, rtol=0, atol=1e-6)


def test_a_tree_without_out_of_bag_samples_gets_no_learned_weight():
    leaves, in_bag = [[0, 0], [0, 0], [1, 1], [1, 1]], [[0, 1], [0, 1], [0, 2], [0, 1]]
    scheme = Learned(folds=0)
    prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, y=[0, 0, 1, 1], weight_scheme=scheme)
    assert_array_equal(prox.tree_weights_, [1, 0])


def test_forests_without_bootstrap_use_all_samples(iris, diabetes):
    for (X, y), forest in (
        (iris, ExtraTreesClassifier(10, max_depth=3, random_state=0)),
        (diabetes, GradientBoostingRegressor(n_estimators=5, random_state=0)),
    ):
        auto, whole = (
            ForestProximity(forest, Learned(estimate=estimate)).fit(X, y)
            for estimate in ("auto", "all")
        )
        assert_array_equal(auto.tree_weights_, whole.tree_weights_)
        with pytest.raises(ValueError, match="'learned' needs bootstrap samples"):
            ForestProximity(forest, Learned(estimate="oob")).fit(X, y)


def test_a_draw_of_samples_is_always_the_same(iris):
    X, y = iris
    forest = RandomForestClassifier(12, max_depth=3, random_state=0).fit(X, y)
    whole, large, small, again, other = (
        fit_quietly(
            forest, Learned(folds=0, max_samples=most, random_state=seed), X, y
        ).tree_weights_
        for most, seed in ((None, 0), (150, 0), (60, 0), (60, 0), (60, 1))
    )
    assert_array_equal(whole, large)
    assert_array_equal(small, again)
    assert (small != whole).any()
    assert (small != other).any()


def test_threads_do_not_matter(iris):
    X, y = iris
    forest = RandomForestClassifier(12, random_state=0).fit(X, y)
    one, four = (
        ForestProximity(forest, "learned", n_jobs=n).fit(X, y).tree_weights_ for n in (1, 4)
    )
    assert_array_equal(one, four)


def test_save_load_reweigh_and_batches(iris, tmp_path):
    pytest.importorskip("skops")
    X, y = iris
    forest = RandomForestClassifier(12, max_depth=2, random_state=0).fit(X, y)
    scheme = Learned(folds=3, max_samples=100, random_state=5)
    prox = ForestProximity(forest, scheme).fit(X, y)
    loaded = ForestProximity.load(prox.save(tmp_path / "saved"))
    assert loaded.scheme_ == scheme
    in_batches = ForestProximity(forest, scheme).fit(Batches.from_arrays(X, y, batch_rows=40))
    via_others = prox.reweigh("purity").reweigh("kerf").reweigh(scheme)
    for other in (loaded, in_batches, via_others):
        assert_array_equal(other.tree_weights_, prox.tree_weights_)
        for queries in (None, X[:9] + 0.05):
            assert (other.proximity(queries) != prox.proximity(queries)).nnz == 0


def test_extend_learns_from_all_samples(iris):
    X, y = iris
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    forest = RandomForestClassifier(12, max_depth=2, random_state=0).fit(X[:90], y[:90])
    prox = ForestProximity(forest, Learned(folds=0)).fit(X[:90], y[:90])
    before = prox.tree_weights_
    prox.extend(X[90:], y[90:])
    samples = Inside.of(prox).samples
    assert samples.is_oob[90:].all()
    found = TreeSamples(samples.leaf, prox.kernel_.forest.leaf_offsets, samples.is_oob, y)
    assert_array_equal(prox.tree_weights_, Alignment.of(found).weights())
    assert (prox.tree_weights_ != before).any()


@pytest.mark.parametrize(
    ("scheme", "error", "words"),
    [
        (Learned(estimate="in_bag"), ValueError, "estimate must be one of 'auto', 'oob', 'all'"),
        (Learned(folds=-1), ValueError, "folds must be at least 0"),
        (Learned(folds=2.5), TypeError, "folds must be an integer"),
        (Learned(max_samples=0), ValueError, "max_samples must be at least 1"),
        (Learned(random_state=None), TypeError, "random_state must be an integer"),
    ],
)
def test_wrong_parameters(iris, scheme, error, words):
    with pytest.raises(error, match=words):
        ForestProximity(RandomForestClassifier(3, random_state=0), scheme).fit(*iris)


def test_missing_targets_and_dask_data_are_refused(iris):
    X, y = iris
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="y is missing, but weight_scheme='learned' needs"):
        ForestProximity(forest, "learned").fit(X)
    with pytest.raises(AttributeError, match="only after fit with weight_scheme='learned'"):
        _ = ForestProximity(forest, "kerf").fit(X).tree_weights_
    with pytest.raises(ValueError, match="one target for each sample, but y has shape"):
        ForestProximity(ExtraTreesClassifier(3), "learned").fit(X, np.c_[y, y])
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="'learned' needs all training samples in one process"):
        ForestProximity(forest, "learned").fit(array.from_array(X, chunks=(50, 4)), y)
