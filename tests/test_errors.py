"""Bad input gives an error that says what was wrong, what was found and what to do."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from leafkernel import ForestProximity, LeafkernelWarning, WeightScheme
from leafkernel._suggestions import suggest
from leafkernel._validation import count_threads
from leafkernel.engines import NativeEngine
from leafkernel.schemes import Boosted, InstanceHardness, Weighting
from leafkernel.tasks import ProximityClassifier, ProximityRegressor, outlier_scores

TREES = {"n_estimators": 30, "random_state": 0}


@pytest.fixture(scope="module")
def forest(iris):
    return RandomForestClassifier(**TREES).fit(*iris)


@pytest.fixture(scope="module")
def prox(forest, iris):
    return ForestProximity(forest).fit(*iris)


METHODS = {
    "proximity": lambda prox, X: prox.proximity(X),
    "iter_proximity": lambda prox, X: prox.iter_proximity(X),
    "kneighbors": lambda prox, X: prox.kneighbors(X, 2),
    "kneighbors_graph": lambda prox, X: prox.kneighbors_graph(X, 2),
    "query_map": lambda prox, X: prox.query_map(X),
    "operator": lambda prox, X: prox.operator(X),
    "weighted_average": lambda prox, X: prox.weighted_average(np.zeros(150), X),
    "weighted_sums": lambda prox, X: prox.weighted_sums(np.zeros(150), X),
    "proximity_to": lambda prox, X: prox.proximity_to([0, 1], X),
    "forecast": lambda prox, X: prox.forecast(X),
    "transform": lambda prox, X: prox.transform(X),
}


@pytest.mark.parametrize("method", METHODS)
def test_unfitted(iris, method):
    prox = ForestProximity(RandomForestClassifier())
    with pytest.raises(NotFittedError, match="ForestProximity instance is not fitted"):
        METHODS[method](prox, iris[0])
    with pytest.raises(ValueError, match=r"X has \d+ rows, but (y|sample_weight) has \d+\."):
        prox.fit(iris[0], [0])
    with pytest.raises(NotFittedError):  # a fit that failed is no fit
        METHODS[method](prox, iris[0])


@pytest.mark.parametrize("method", ["reference_map", "get_feature_names_out"])
def test_unfitted_without_x(method):
    with pytest.raises(NotFittedError):
        getattr(ForestProximity(RandomForestClassifier()), method)()


@pytest.mark.parametrize("method", METHODS)
def test_wrong_number_of_features(prox, method):
    with pytest.raises(ValueError, match="X has 3 features, but ForestProximity is expecting 4"):
        METHODS[method](prox, np.zeros((5, 3)))


@pytest.mark.parametrize("method", METHODS)
def test_empty_x(prox, method):
    with pytest.raises(ValueError, match="0 sample"):
        METHODS[method](prox, np.zeros((0, 4)))


def test_one_dimensional_x(prox):
    with pytest.raises(ValueError, match="Reshape your data"):
        prox.proximity(np.zeros(4))
    with pytest.raises(ValueError, match="Reshape your data"):
        prox.proximity([0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("kind", [RandomForestClassifier, GradientBoostingClassifier])
def test_wrong_column_names(iris, kind):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    prox = ForestProximity(kind(n_estimators=5, random_state=0), "uniform").fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        prox.proximity(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names should match"):
        prox.proximity(frame[list("dcba")])


@pytest.mark.parametrize("kind", [RandomForestClassifier, GradientBoostingClassifier])
def test_wrong_column_names_for_a_fitted_forest(iris, kind):
    X, y = iris
    forest = kind(n_estimators=5, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match="feature names should match"):
        ForestProximity(forest, "uniform").fit(pd.DataFrame(X, columns=list("abce")), y)


@pytest.mark.parametrize("scheme", ["gap", "oob", "oob_separable"])
def test_fitted_forest_with_other_samples(forest, iris, rng, scheme):
    X, y = iris
    with pytest.raises(ValueError, match=r"X has 100 samples, but .* was fitted on 150"):
        ForestProximity(forest, scheme).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"X has 151 samples, but .* was fitted on 150"):
        ForestProximity(forest, scheme).fit(np.vstack([X, X[:1]]), np.append(y, 0))
    order = rng.permutation(150)
    with pytest.raises(ValueError, match="the rows that RandomForestClassifier was"):
        ForestProximity(forest, scheme).fit(X[order], y[order])
    with pytest.raises(ValueError, match="does not match the rows"):
        ForestProximity(forest, scheme).fit(X + 0.3, y)


def test_two_exchanged_samples_are_noticed(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(**TREES).fit(X, y)
    swapped = X.copy()
    swapped[[3, 50]] = X[[50, 3]]
    with pytest.raises(ValueError, match="does not match the rows"):
        ForestProximity(forest).fit(swapped, y)


def test_forgotten_sample_weight_is_noticed(iris, rng):
    X, y = iris
    weight = rng.uniform(0.5, 2, 150)
    forest = RandomForestClassifier(**TREES).fit(X, y, sample_weight=weight)
    P = ForestProximity(forest, dtype=np.float64).fit(X, y, sample_weight=weight).proximity()
    if hasattr(forest, "_sample_weight"):  # scikit-learn >= 1.9 remembers them
        assert (ForestProximity(forest, dtype=np.float64).fit(X, y).proximity() != P).nnz == 0
        with pytest.raises(ValueError, match="sample_weight differs from the weights that"):
            ForestProximity(forest).fit(X, y, sample_weight=weight[::-1])
    else:
        with pytest.raises(ValueError, match="and the same sample_weight"):
            ForestProximity(forest).fit(X, y)
    if not hasattr(forest, "_sample_weight"):  # a small difference is noticed too
        weight[3] *= 1.01
        with pytest.raises(ValueError, match="does not match the rows"):
            ForestProximity(forest).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("scheme", ["gap", "uniform"])
def test_sample_weight_of_a_wrong_length(forest, iris, scheme):
    X, y = iris
    for model in (forest, RandomForestClassifier(**TREES)):
        with pytest.raises(ValueError, match=r"X has \d+ rows, but (y|sample_weight) has \d+\."):
            ForestProximity(model, scheme).fit(X, y, sample_weight=np.ones(3))


def test_class_weights_need_y(iris):
    X, y = iris
    forest = RandomForestClassifier(**TREES, class_weight="balanced_subsample").fit(X, y)
    with pytest.raises(ValueError, match="Pass the y that the forest was fitted on"):
        ForestProximity(forest).fit(X)


@pytest.mark.parametrize("scheme", ["gap", "oob", "oob_separable"])
def test_in_bag_schemes_without_bootstrap(iris, scheme):
    X, y = iris
    expected = (
        rf"weight_scheme='{scheme}' needs bootstrap samples \(in-bag weights\), but "
        r"ExtraTreesClassifier\(bootstrap=False\) has none: .* Refit with bootstrap=True, or use"
    )
    with pytest.raises(ValueError, match=expected):
        ForestProximity(ExtraTreesClassifier(**TREES), scheme).fit(X, y)
    with pytest.raises(ValueError, match=r"RandomTreesEmbedding.* Use 'kerf' or 'uniform'"):
        ForestProximity(RandomTreesEmbedding(5), scheme).fit(X)
    with pytest.raises(ValueError, match=r"GradientBoostingClassifier.* Use 'boosted'"):
        ForestProximity(GradientBoostingClassifier(n_estimators=2), scheme).fit(X, y)


def test_boosted_without_tree_weights(iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"'boosted' needs tree weights, .* Boosted\(tree_weights"):
        ForestProximity(RandomForestClassifier(**TREES), "boosted").fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"30 trees\. Pass one weight for each"),
        ([-1] * 30, "nonnegative"),
        ([np.nan] * 30, "finite"),
        ([0] * 30, "all zero"),
    ],
)
def test_bad_tree_weights(iris, weights, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        ForestProximity(RandomForestClassifier(**TREES), Boosted(weights)).fit(X, y)


def test_all_tree_weights_zero_warns(diabetes):
    X, y = diabetes
    forest = GradientBoostingRegressor(n_estimators=2)
    with pytest.warns(LeafkernelWarning, match="All tree weights are zero"):
        prox = ForestProximity(forest, "boosted").fit(X, np.ones(len(y)))
    assert prox.proximity().nnz == 0


def test_unknown_scheme_suggests_the_nearest(iris):
    with pytest.raises(
        ValueError, match=r"'gab' is unknown. Did you mean 'gap'\?.*Use one of 'uniform'"
    ):
        ForestProximity(RandomForestClassifier(), "gab").fit(*iris)
    with pytest.raises(
        TypeError, match="must be a name such as 'gap', a WeightScheme, or a function"
    ):
        ForestProximity(RandomForestClassifier(), 7).fit(*iris)
    with pytest.raises(TypeError, match=r"Pass an instance: InstanceHardness\(\)"):
        ForestProximity(RandomForestClassifier(), InstanceHardness).fit(*iris)


CUSTOM = {
    "wrong shape": (lambda s, f: np.ones(5), r"shape \(n_samples, n_trees\) = \(150, 30\); got"),
    "NaN": (lambda s, f: np.full(s.leaf.shape, np.nan), "returned NaN"),
    "a factor's NaN": (lambda s, f: Weighting(scale=np.nan), "scale, returned NaN"),
    "a factor's shape": (
        lambda s, f: Weighting(by_leaf=np.ones(f.n_leaves + 1)),
        "by_leaf, must return an array of shape",
    ),
    "a negative factor": (
        lambda s, f: Weighting(by_sample=-np.ones(s.n_samples)),
        "by_sample, returned negative",
    ),
    "infinite": (lambda s, f: np.full(s.leaf.shape, np.inf), "infinite"),
    "negative": (lambda s, f: np.full(s.leaf.shape, -1.0), "negative weights"),
}


@pytest.mark.parametrize("case", CUSTOM)
def test_custom_scheme_with_bad_weights(forest, iris, case):
    function, message = CUSTOM[case]
    with pytest.raises(ValueError, match=message):
        ForestProximity(forest, function).fit(*iris)

    class Scheme(WeightScheme):
        name = "mine"
        symmetric = False

        def query(self, samples, forest):
            return np.ones(samples.leaf.shape)

        def reference(self, samples, forest):
            return function(samples, forest)

    with pytest.raises(ValueError, match=r"'mine' \(reference\).*" + message):
        ForestProximity(forest, Scheme()).fit(*iris)


def test_custom_scheme_that_returns_text(forest, iris):
    with pytest.raises(TypeError, match="must return real numbers"):
        ForestProximity(forest, lambda s, f: np.full(s.leaf.shape, "a")).fit(*iris)


def test_custom_scheme_with_unknown_needs(forest, iris):
    def scheme(samples, forest):
        return samples.leaf

    scheme.needs = {"inbag"}
    with pytest.raises(ValueError, match=r"contains unknown values: \['inbag'\]"):
        ForestProximity(forest, scheme).fit(*iris)


def test_too_many_neighbors(prox, iris):
    with pytest.raises(ValueError, match="n_neighbors=150 is too large: there are only 149"):
        prox.kneighbors(n_neighbors=150)
    with pytest.raises(ValueError, match="n_neighbors=151 is too large: there are only 150"):
        prox.kneighbors(iris[0], 151)
    assert prox.kneighbors(iris[0], 150)[1].shape == (150, 150)
    for bad in (0, -3):
        with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
            prox.kneighbors(n_neighbors=bad)
    for wrong in (2.5, "3", True, None):
        with pytest.raises(TypeError, match="n_neighbors must be an integer"):
            prox.kneighbors(n_neighbors=wrong)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"diagonal": "ones"}, ValueError, "Did you mean 'one'"),
        (
            {"engine": "fast"},
            ValueError,
            "engine must be one of 'auto', 'native', 'gpu', 'reference'",
        ),
        ({"symmetrize": 1}, TypeError, "symmetrize must be True or False"),
        ({"progress": "yes"}, TypeError, "progress must be True or False"),
        ({"dtype": np.int32}, ValueError, "dtype must be numpy.float32 or numpy.float64"),
        ({"dtype": "nonsense"}, ValueError, "dtype must be"),
        ({"dtype": None}, ValueError, "dtype must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"n_jobs": "all"}, TypeError, "n_jobs must be an integer or None"),
        ({"n_jobs": 2.5}, TypeError, "n_jobs must be an integer or None"),
        ({"max_memory": "much"}, ValueError, "text like '2GB'; got 'much'"),
        ({"max_memory": -1}, ValueError, "max_memory must be positive"),
        ({"max_memory": [1]}, TypeError, "max_memory must be a number"),
        (
            {"weight_scheme": "kerf", "diagonal": "adjusted"},
            ValueError,
            "only for weight_scheme='gap'; got 'kerf'",
        ),
    ],
)
def test_bad_parameters(forest, iris, params, error, message):
    with pytest.raises(error, match=message):
        ForestProximity(forest, **params).fit(*iris)


def test_y_of_another_length(forest, iris):
    X, y = iris
    for scheme in ("gap", "ih"):
        with pytest.raises(ValueError, match=r"X has \d+ rows, but (y|sample_weight) has \d+\."):
            ForestProximity(forest, scheme).fit(X, y[:5])
    with pytest.raises(ValueError, match=r"X has \d+ rows, but (y|sample_weight) has \d+\."):
        ForestProximity.from_leaves([[1, 2], [3, 4]], y=[1])


def test_not_a_forest(iris):
    with pytest.raises(
        TypeError,
        match=r"tree ensemble; got SVC\. Use .*The supported models are RandomForest.*CatBoost",
    ):
        ForestProximity(SVC()).fit(*iris)
    with pytest.raises(TypeError, match=r"Pass an instance: RandomForestClassifier\(\)"):
        ForestProximity(RandomForestClassifier).fit(*iris)
    with pytest.raises(TypeError, match="forest must be a tree ensemble; got 'forest'"):
        ForestProximity("forest").fit(*iris)


@pytest.mark.parametrize("what", ["query_map", "reference_map", "operator"])
def test_exact_oob_has_no_maps(forest, iris, what):
    prox = ForestProximity(forest, "oob").fit(*iris)
    with pytest.raises(ValueError, match="Use 'oob_separable'"):
        getattr(prox, what)()


def test_never_oob_rows_warn_once_with_their_count(iris):
    X, y = iris
    forest = RandomForestClassifier(3, random_state=0)
    with pytest.warns(LeafkernelWarning) as caught:
        prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    counts = np.stack(
        [np.bincount(s, minlength=150) for s in prox.forest_.estimators_samples_], axis=1
    )
    never = (counts > 0).all(axis=1)
    assert len(caught) == 1
    assert f"{never.sum()} of 150 training samples are in bag in every tree" in str(
        caught[0].message
    )
    assert caught[0].filename == __file__
    for again in (
        lambda: ForestProximity(forest).fit_transform(X, y),
        lambda: ForestProximity.from_leaves([[1], [2]], in_bag=[[1], [1]], weight_scheme="gap"),
    ):
        with pytest.warns(LeafkernelWarning, match="in bag in every tree") as caught:
            again()
        assert caught[0].filename == __file__
    sums = prox.proximity().sum(axis=1)  # and no further warning: it would be an error here
    assert (sums[never] == 0).all()
    np.testing.assert_allclose(sums[~never], 1)


def test_rows_without_mass_have_no_average(iris):
    X, y = iris
    with pytest.warns(LeafkernelWarning):
        prox = ForestProximity(RandomForestClassifier(3, random_state=0)).fit(X, y)
    with pytest.warns(LeafkernelWarning, match="of 150 samples have proximity 0"):
        average = prox.weighted_average(y)
    assert np.isnan(average).sum() == (prox.proximity().sum(axis=1) == 0).sum()


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.zeros(10), ValueError, "values has 10 rows, but there are 150 training samples"),
        (np.array(["a"] * 150), TypeError, "values must be numeric; .* use class indicators"),
        (np.full(150, np.nan), ValueError, "NaN or infinity"),
        (np.zeros((150, 2, 2)), ValueError, "1 or 2 dimensions"),
    ],
)
def test_bad_values(prox, values, error, message):
    with pytest.raises(error, match=message):
        prox.weighted_average(values)


@pytest.mark.parametrize("mode", ["connectivity", None])
def test_bad_graph_mode(prox, mode):
    with pytest.raises(ValueError, match="mode must be one of 'proximity', 'distance'"):
        prox.kneighbors_graph(mode=mode)


def test_bad_block_size_is_told_at_once(prox):
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        prox.iter_proximity(block_size=0)


@pytest.mark.parametrize(
    ("leaves", "error", "message"),
    [
        ([1, 2, 3], ValueError, r"must have shape \(n_samples, n_trees\)"),
        (np.zeros((2, 2, 2), int), ValueError, "must have shape"),
        (np.zeros((0, 3), int), ValueError, "empty"),
        ([[1, -2]], ValueError, "nonnegative; found -2"),
        ([[1.5, 2.0]], ValueError, "leaves must be integers"),
        ([[np.nan, 2.0]], ValueError, "leaves must be integers"),
        ([["a", "b"]], TypeError, "must be integers"),
        ([[True, False]], TypeError, "must be integers"),
        ([[1e19, 2e19]], ValueError, "the id 2000.*dtype float64 must be below"),
        (np.array([[2**24, 5]], dtype=np.float32), ValueError, "dtype float32 must be below"),
        (np.array([[2**11, 5]], dtype=np.float16), ValueError, "dtype float16 must be below"),
        (np.array([[2**63, 5]], dtype=np.uint64), ValueError, "dtype uint64 must be below"),
        (csr_array([[1, 2]]), TypeError, "sparse matrix"),
    ],
)
def test_bad_leaves(leaves, error, message):
    with pytest.raises(error, match=message):
        ForestProximity.from_leaves(leaves)
    good = ForestProximity.from_leaves([[1, 2], [3, 4]])
    with pytest.raises(error, match=message):
        good.proximity(leaves)


def test_leaves_of_another_number_of_trees():
    prox = ForestProximity.from_leaves([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="X has 3 features, but ForestProximity is expecting 2"):
        prox.proximity([[1, 2, 3]])


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            {"weight_scheme": "gap"},
            ValueError,
            r"'gap' needs bootstrap samples .*, but from_leaves",
        ),
        ({"weight_scheme": "boosted"}, ValueError, "'boosted' needs tree weights, but from_leaves"),
        ({"weight_scheme": "ih", "y": [0, 1]}, ValueError, "'ih' needs tree paths"),
        ({"weight_scheme": "gap", "in_bag": [[1, 1]]}, ValueError, r"in_bag has shape \(1, 2\)"),
        ({"weight_scheme": "gap", "in_bag": [[1, -1], [0, 1]]}, ValueError, "nonnegative"),
        ({"weight_scheme": "gap", "in_bag": [["a", "b"]] * 2}, TypeError, "numeric"),
        ({"weight_scheme": "boosted", "tree_weights": [1]}, ValueError, "2 trees"),
    ],
)
def test_bad_companions_of_leaves(params, error, message):
    with pytest.raises(error, match=message):
        ForestProximity.from_leaves([[1, 2], [3, 4]], **params)


@pytest.mark.parametrize(
    ("scheme", "y_change", "message"),
    [
        (InstanceHardness(), lambda y: None, "needs class labels. Pass y"),
        (InstanceHardness(), lambda y: y + 0.5, "needs class labels, but y is continuous"),
        (InstanceHardness(k=0), None, "k must be at least 1"),
        (InstanceHardness(neighbors="tree"), None, "neighbors must be one of 'all', 'leaf'"),
        (InstanceHardness(max_reference=0), None, "max_reference must be at least 1"),
    ],
)
def test_bad_instance_hardness(forest, iris, scheme, y_change, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        ForestProximity(forest, scheme).fit(X, y_change(y) if y_change else y)


def test_instance_hardness_refuses_regressors(diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match="RandomForestRegressor is a regressor"):
        ForestProximity(RandomForestRegressor(**TREES), "ih").fit(X, np.round(y))


def test_instance_hardness_refuses_missing_values(iris):
    X, y = iris
    X = X.copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="X contains NaN or infinity, but weight_scheme='ih'"):
        ForestProximity(RandomForestClassifier(**TREES), "ih").fit(X, y)


def masked(values, which=0):
    array = np.ma.array(values, copy=True)
    array[which] = np.ma.masked
    return array


def test_masked_values_are_refused(iris):
    X, y = iris
    leaves = np.zeros((4, 2), dtype=int)
    in_bag, weights = np.array([[0, 1], [1, 0], [1, 1], [0, 2]]), np.ones(2)
    prox = ForestProximity(RandomForestClassifier(5, random_state=0), "uniform").fit(X, y)
    asked = {
        "X": [lambda: prox.proximity(masked(X)), lambda: clone(prox).fit(masked(X), y)],
        "y": [
            lambda: clone(prox).fit(X, masked(y)),
            lambda: ProximityClassifier().fit(X, masked(y)),
            lambda: outlier_scores(prox, masked(y)),
        ],
        "sample_weight": [lambda: clone(prox).fit(X, y, masked(np.ones(150)))],
        "values": [lambda: prox.weighted_sums(masked(np.ones(150)))],
        "rows": [lambda: prox.proximity_to(masked([1, 2]))],
        "leaves": [lambda: ForestProximity.from_leaves(masked(leaves))],
        "in_bag": [
            lambda: ForestProximity.from_leaves(leaves, in_bag=masked(in_bag), weight_scheme="gap")
        ],
        "tree_weights": [
            lambda: ForestProximity.from_leaves(leaves, weight_scheme=Boosted(masked(weights))),
            lambda: ForestProximity.from_leaves(
                leaves, tree_weights=masked(weights), weight_scheme="boosted"
            ),
        ],
        "weight scheme 'weigh'": [
            lambda: ForestProximity.from_leaves(leaves, weight_scheme=weigh),
        ],
    }

    def weigh(samples, forest):
        return masked(np.ones(samples.leaf.shape))

    for name, calls in asked.items():
        for call in calls:
            with pytest.raises(ValueError, match=rf"{name}.* is a masked array with \d+ masked"):
                call()
    assert ForestProximity.from_leaves(np.ma.array(leaves)).n_trees_ == 2  # nothing is masked


def test_a_symmetric_scheme_with_other_reference_weights_is_refused(iris):
    X, y = iris

    class Directed(WeightScheme):
        symmetric = True

        def query(self, samples, forest):
            return np.ones(samples.leaf.shape)

        def reference(self, samples, forest):
            return np.full(samples.leaf.shape, 2.0)

    class Same(Directed):
        def reference(self, samples, forest):
            return self.query(samples, forest)

    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"'Directed' has symmetric=True, but its reference\(\)"):
        ForestProximity(forest, Directed()).fit(X, y)
    assert ForestProximity(forest, Same()).fit(X, y).proximity().nnz


@pytest.mark.parametrize("n_jobs", [10**8, 2**31, 2**70, -(10**8), np.int64(10**8)])
def test_any_number_of_jobs_starts_few_threads(iris, n_jobs):
    resource = pytest.importorskip("resource")
    X, y = iris
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    prox = ForestProximity(forest, "kerf", n_jobs=n_jobs).fit(X, y)
    assert count_threads(n_jobs) <= max(os.cpu_count(), 8)
    began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert prox.proximity(X).shape == (150, 150)
    assert prox.kneighbors(X)[1].shape == (150, 10)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began < 100_000


def test_the_compiled_core_takes_any_number_of_threads(iris):
    prox = ForestProximity(RandomForestClassifier(5, random_state=0), "kerf").fit(*iris)
    engine = NativeEngine(n_threads=2**31 - 1)
    product = prox.kernel_.training_product()
    assert (engine.rows(product) != prox.proximity()).nnz == 0


def test_only_likely_words_are_suggested():
    assert suggest("gab", ["gap", "kerf"]) == " Did you mean 'gap'?"
    assert suggest("ernel", ["kernel", "gap"]) == " Did you mean 'kernel'?"
    assert suggest("foo", ["gap", "oob"]) == ""
    assert suggest(3, ["gap"]) == ""


def test_transform_says_why_it_does_not_exist():
    prox = ForestProximity(RandomForestClassifier(5, random_state=0), "oob")
    assert not hasattr(prox, "transform")
    for name in ("transform", "fit_transform", "get_feature_names_out"):
        with pytest.raises(
            AttributeError, match=rf"'oob' does not support {name}\(\).*Use 'oob_sep"
        ):
            getattr(prox, name)
    assert hasattr(prox.set_params(weight_scheme="kerf"), "transform")


def test_an_unknown_argument_is_reported_with_the_method():
    prox = ForestProximity.from_leaves([[0], [0], [1]])
    with pytest.raises(TypeError, match=r"proximity\(\) got an unexpected keyword argument"):
        prox.proximity(max_memory=10)


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"is a file. Pass the name of a folder"):
        ForestProximity.from_leaves([[0], [0], [1]]).save(path)
    assert path.read_text() == "mine"


def test_text_is_no_target_of_a_regressor(iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"y must contain numbers.*use ProximityClassifier"):
        ProximityRegressor().fit(X, np.array(["a", "b", "c"])[y])
