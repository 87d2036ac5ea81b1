"""Every estimator of leafkernel.tasks: scikit-learn's checks, and the ways to name a proximity."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from leafkernel import ForestProximity
from leafkernel.schemes import Uniform
from leafkernel.tasks import (
    LeafEmbedding,
    LeafPCA,
    PrototypeClassifier,
    ProximityClassifier,
    ProximityHDBSCAN,
    ProximityKernel,
    ProximityKMedoids,
    ProximityNeighborsTransformer,
    ProximityOutlierDetector,
    ProximityRegressor,
    ProximitySpectralClustering,
    medoids,
    outlier_scores,
)

# Enough trees that the small data sets of the checks have no row that is always in bag.
CLASSIFIER = RandomForestClassifier(40, random_state=0)
REGRESSOR = RandomForestRegressor(40, random_state=0)
UNSUPERVISED = RandomTreesEmbedding(10, random_state=0)

CHECKED = [
    ProximityClassifier(CLASSIFIER),
    ProximityRegressor(REGRESSOR),
    PrototypeClassifier(CLASSIFIER),
    ProximityOutlierDetector(ForestProximity(UNSUPERVISED, "uniform")),
    LeafPCA(UNSUPERVISED, n_components=1, random_state=0),
    LeafEmbedding(UNSUPERVISED, n_components=1, method="spectral", random_state=0),
    ProximityKMedoids(UNSUPERVISED, n_clusters=2),
    ProximitySpectralClustering(UNSUPERVISED, n_clusters=2, random_state=0),
    ProximityHDBSCAN(UNSUPERVISED),
    ProximityKernel(UNSUPERVISED),
    ProximityNeighborsTransformer(UNSUPERVISED),
]

WEIGHTS_DRAW = (
    "a weight of two is not a sample given twice where trees draw features or samples at random; "
    "test_a_weight_of_two_is_a_sample_given_twice has a forest that draws nothing"
)
WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_invariance",
)

PASSED_AGAIN = (
    "a training sample that is passed to predict counts as new, and finds itself among the "
    "training samples; fit_predict judges it without itself"
)
OUTLIER_CHECKS = ("check_outliers_train", "check_outliers_fit_predict")


@pytest.mark.filterwarnings("ignore::leafkernel.LeafkernelWarning")
@pytest.mark.estimator_checks
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check, request):
    name = check.func.__name__
    if name in WEIGHT_CHECKS:
        pytest.skip(WEIGHTS_DRAW)
    if name in OUTLIER_CHECKS:
        request.applymarker(pytest.mark.xfail(reason=PASSED_AGAIN, strict=True))
    check(estimator)


def every_tree_alike(samples, forest):
    return np.full(samples.leaf.shape, 1 / np.sqrt(forest.n_trees))


def test_every_way_to_name_a_proximity(iris):
    X, y = iris
    forest = RandomForestClassifier(40, random_state=0)
    ways = {
        None: ("gap", 100),
        "kerf": ("kerf", 100),
        Uniform(): ("uniform", 100),
        every_tree_alike: ("every_tree_alike", 100),
        forest: ("gap", 40),
        ForestProximity(forest, "oob"): ("oob", 40),
    }
    for given, (scheme, n_trees) in ways.items():
        model = ProximityClassifier(given, random_state=0).fit(X, y)
        assert model.proximity_.scheme_.name == scheme
        assert model.proximity_.n_trees_ == n_trees
        assert model.proximity is given  # parameters are never touched


@pytest.mark.parametrize(
    ("model", "forest"),
    [
        (ProximityClassifier, ExtraTreesClassifier(10, random_state=0)),
        (ProximityClassifier, HistGradientBoostingClassifier(max_iter=5, random_state=0)),
        (ProximityOutlierDetector, RandomTreesEmbedding(10, random_state=0)),
    ],
)
def test_forests_without_draws_get_a_scheme_that_they_have(iris, model, forest):
    X, y = iris
    assert model(forest).fit(X, y).proximity_.scheme_.name == "uniform"
    with pytest.raises(ValueError, match="'gap' needs bootstrap samples"):
        model(ForestProximity(forest, "gap")).fit(X, y)


def test_targets_of_a_kind_that_only_the_forest_knows(rng):
    from sksurv.ensemble import RandomSurvivalForest

    X = rng.normal(size=(80, 3))
    y = np.array([(True, time) for time in rng.exponential(size=80)], dtype="?,f8")
    model = LeafPCA(RandomSurvivalForest(10, random_state=0), n_components=2).fit(X, y)
    assert model.embedding_.shape == (80, 2)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_targets_are_refused(iris, missing):
    X, _ = iris
    labels = np.array(["a", "b", missing] * 50, dtype=object)
    prox = ForestProximity(CLASSIFIER, "uniform").fit(*iris)
    for work in (
        lambda: ProximityClassifier(CLASSIFIER).fit(X, labels),
        lambda: LeafPCA(CLASSIFIER).fit(X, labels),
        lambda: outlier_scores(prox, labels),
        lambda: medoids(prox, labels),
    ):
        with pytest.raises(ValueError, match=r"y contains (NaN|missing values)|contains NaN"):
            work()


def test_numbers_are_no_classes(iris, diabetes):
    prox = ForestProximity(CLASSIFIER, "uniform").fit(*iris)
    with pytest.raises(ValueError, match=r"y contains numbers \(\d+ different values\)"):
        medoids(prox, diabetes[1][:150])


def test_what_is_fitted_is_used_as_it_is(iris):
    X, y = iris
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    model = ProximityClassifier(ForestProximity(forest, "uniform")).fit(X, y)
    assert model.proximity_.forest_ is forest
    prox = ForestProximity(forest, "uniform").fit(X, y)
    assert ProximityClassifier(prox).fit(X, y).proximity_.kernel_ is prox.kernel_
    with pytest.raises(ValueError, match="X has 100 samples, but the proximity was fitted on 150"):
        ProximityClassifier(prox).fit(X[:100], y[:100])
    with pytest.raises(
        ValueError, match="X does not contain the samples that the proximity was fitted"
    ):
        ProximityClassifier(prox).fit(X[::-1], y[::-1])
    # A clone is not fitted and fits itself, as cross-validation requires.
    again = clone(ProximityClassifier(prox)).fit(X[:100], y[:100])
    assert again.proximity_.n_samples_fit_ == 100


def test_default_forests_follow_the_targets(iris, diabetes):
    X, y = diabetes
    for targets in (y, y.round(), np.column_stack([y, y])):  # also floats that look like classes
        forest = LeafPCA(n_components=2, random_state=0).fit(X, targets).proximity_.forest_
        assert isinstance(forest, RandomForestRegressor)
    for targets in (iris[1], iris[1].astype(float), iris[1].astype(str)):
        forest = LeafPCA(n_components=2, random_state=0).fit(iris[0], targets).proximity_.forest_
        assert isinstance(forest, RandomForestClassifier)
    forest = LeafPCA(n_components=2, random_state=0).fit(X).proximity_.forest_
    assert isinstance(forest, RandomTreesEmbedding)


@pytest.mark.parametrize("model", CHECKED, ids=lambda model: type(model).__name__)
def test_copies_give_the_same_numbers(iris, model):
    X, y = iris
    model = clone(model).fit(X, y)
    ask = "predict" if hasattr(model, "predict") else "transform"
    expected = getattr(model, ask)(X[:30] + 0.1)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        found = getattr(twin, ask)(X[:30] + 0.1)
        if hasattr(found, "toarray"):
            found, known = found.toarray(), expected.toarray()
        else:
            known = expected
        assert_allclose(found, known)


def test_frames_keep_their_names(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ProximityClassifier(CLASSIFIER).fit(frame, y)
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert_array_equal(model.predict(frame), model.predict(frame.set_axis(range(150))))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])


def test_nothing_is_asked_of_what_is_not_fitted(iris):
    X, _ = iris
    with pytest.raises(NotFittedError):
        outlier_scores(ForestProximity(CLASSIFIER), None)
    with pytest.raises(NotFittedError):
        LeafPCA(CLASSIFIER).transform(X)
