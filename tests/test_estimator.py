"""ForestProximity as an estimator: scikit-learn's own checks, copies, pickles, pipelines."""

import copy
import io
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from leafkernel import ForestProximity
from leafkernel.inside import Inside
from leafkernel.schemes import Boosted, InstanceHardness

# Enough trees that the small data sets of the checks have no row that is always in bag.
TREES = {"n_estimators": 40, "random_state": 0}

ESTIMATORS = [
    ForestProximity(RandomForestClassifier(**TREES), "gap"),
    ForestProximity(RandomForestClassifier(**TREES), "oob"),
    ForestProximity(RandomForestClassifier(**TREES), InstanceHardness(neighbors="leaf")),
    ForestProximity(RandomForestRegressor(**TREES), "oob_separable"),
    ForestProximity(RandomForestRegressor(**TREES), "gap", symmetrize=True),
    ForestProximity(ExtraTreesClassifier(**TREES), "kerf"),
    ForestProximity(ExtraTreesRegressor(**TREES), "uniform", engine="reference"),
    ForestProximity(GradientBoostingClassifier(n_estimators=4, random_state=0), "boosted"),
    ForestProximity(GradientBoostingRegressor(n_estimators=10, random_state=0), "boosted"),
    ForestProximity(RandomTreesEmbedding(n_estimators=10, random_state=0), "uniform"),
]

WEIGHTS_DRAW = (
    "a weight of two is not a sample given twice where trees draw features or samples at random; "
    "test_a_weight_of_two_is_a_sample_given_twice has a forest that draws nothing"
)
TWO_ROLES = (
    "fit_transform gives training samples in their training role (out-of-bag trees only), while "
    "transform takes every sample as unseen: they differ by design, as for TargetEncoder"
)
DISTANCES_IN_FIT = (
    "'ih' measures distances in fit alone and refuses NaN there; new samples may have NaN where "
    "the forest takes it"
)
REQUIRED_FOREST = "forest is required, as estimator is in GridSearchCV"
WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_invariance",
)


def expected_failures(estimator):
    """Checks that fail, each for a reason that is part of the documented behavior."""
    failures = {}
    if estimator.weight_scheme in ("gap", "oob_separable"):
        failures["check_transformer_general"] = TWO_ROLES
        failures["check_transformer_data_not_an_array"] = TWO_ROLES
    if isinstance(estimator.weight_scheme, InstanceHardness):
        failures["check_estimators_nan_inf"] = DISTANCES_IN_FIT
    if parse_version(sklearn.__version__) < parse_version("1.6"):
        failures["check_parameters_default_constructible"] = REQUIRED_FOREST
    return failures


@pytest.mark.filterwarnings("ignore::leafkernel.LeafkernelWarning")
@pytest.mark.estimator_checks
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check, request):
    name = check.func.__name__
    if name in WEIGHT_CHECKS:
        pytest.skip(WEIGHTS_DRAW)
    elif reason := expected_failures(estimator).get(name):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    check(estimator)


@pytest.mark.parametrize("scheme", ["uniform", "kerf"])
def test_a_weight_of_two_is_a_sample_given_twice(diabetes, scheme):
    """For trees that draw neither samples nor features, so that both give the same trees."""
    X, y = (part[:80] for part in diabetes)
    forest = RandomForestRegressor(3, bootstrap=False, max_features=None, max_leaf_nodes=9)
    twice = np.arange(80) % 3 == 0
    weighed = ForestProximity(forest, scheme).fit(X, y, sample_weight=1.0 + twice)
    rows = np.repeat(np.arange(80), 1 + twice)
    repeated = ForestProximity(forest, scheme).fit(X[rows], y[rows])
    first = np.searchsorted(rows, np.arange(80))
    a, b = weighed.proximity(X).toarray(), repeated.proximity(X).toarray()[:, first]
    assert_array_equal(a > 0, b > 0)  # the same leaves
    if scheme == "uniform":
        assert_array_equal(a, b)


def roundtrip_joblib(prox):
    file = io.BytesIO()
    joblib.dump(prox, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda prox: pickle.loads(pickle.dumps(prox)),
    "joblib": roundtrip_joblib,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("scheme", ["gap", "oob", "kerf", "ih"])
def test_copies_give_the_same_numbers(iris, scheme, how):
    X, y = iris
    forest = RandomForestClassifier(**TREES).fit(X, y)
    prox = ForestProximity(forest, scheme).fit(X, y)
    same = COPIES[how](prox)
    assert (same.proximity() != prox.proximity()).nnz == 0
    assert (same.proximity(X[:9]) != prox.proximity(X[:9])).nnz == 0
    assert_array_equal(same.kneighbors(X[:9], 4)[1], prox.kneighbors(X[:9], 4)[1])


@pytest.mark.parametrize("how", COPIES)
def test_copies_of_raw_leaves(rng, how):
    leaves = rng.integers(0, 5, (30, 8))
    prox = ForestProximity.from_leaves(leaves, in_bag=rng.integers(0, 2, (30, 8)))
    same = COPIES[how](prox)
    assert (same.proximity(leaves[:4]) != prox.proximity(leaves[:4])).nnz == 0


def test_clone_is_unfitted_and_fits_to_the_same_numbers(iris):
    X, y = iris
    forest = RandomForestClassifier(**TREES).fit(X, y)
    prox = ForestProximity(forest, Boosted(np.arange(40))).fit(X, y)
    again = clone(prox)
    assert not hasattr(again, "kernel_")
    assert (again.fit(X, y).proximity() != prox.proximity()).nnz == 0


def test_clone_of_raw_leaves_refits(rng):
    leaves = rng.integers(0, 5, (30, 8))
    prox = ForestProximity.from_leaves(leaves)
    assert (clone(prox).fit(leaves).proximity() != prox.proximity()).nnz == 0


def test_a_frozen_forest_stays_fitted_through_clone(iris):
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn < 1.6 has no frozen")
    X, y = iris
    forest = RandomForestClassifier(**TREES).fit(X, y)
    prox = clone(ForestProximity(frozen.FrozenEstimator(forest), "gap")).fit(X, y)
    assert_array_equal(prox.forest_.apply(X), forest.apply(X))


def test_the_forest_given_is_left_as_it_was(iris):
    X, y = iris
    forest = RandomForestClassifier(**TREES)
    prox = ForestProximity(forest).fit(X, y)
    assert prox.forest is forest
    assert not hasattr(forest, "estimators_")
    fitted = prox.forest_
    assert ForestProximity(fitted).fit(X, y).forest_ is fitted


def test_refitting_follows_the_parameters(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(**TREES)).fit(X, y)
    prox.set_params(forest__n_estimators=50, weight_scheme="kerf", dtype="float64").fit(X, y)
    assert prox.n_trees_ == 50
    assert prox.proximity().dtype == np.float64
    assert prox.scheme_.name == "kerf"


def test_a_failed_refit_leaves_the_fitted_state_usable(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(**TREES), "kerf").fit(X, y)
    before = prox.proximity()
    with pytest.raises(ValueError, match="weight_scheme='nonsense' is unknown"):
        prox.set_params(weight_scheme="nonsense").fit(X, y)
    assert (prox.proximity() != before).nnz == 0
    with pytest.raises(ValueError, match="needs tree weights"):  # told late, after the forest's fit
        prox.set_params(weight_scheme="boosted").fit(X[:, :2], y)
    assert (prox.proximity() != before).nnz == 0
    assert prox.proximity(X).shape == (150, 150)


def test_threads_are_as_many_as_asked_for(iris):
    X, y = iris
    forest = RandomForestClassifier(**TREES).fit(X, y)
    for n_jobs, expected in ((None, 1), (1, 1), (3, 3), (-1, joblib.cpu_count())):
        prox = ForestProximity(forest, "kerf", n_jobs=n_jobs).fit(X, y)
        assert Inside.of(prox).engine.n_threads == expected
    with joblib.parallel_config("threading", n_jobs=2):
        assert Inside.of(ForestProximity(forest, "kerf").fit(X, y)).engine.n_threads == 2


def test_pipeline_and_grid_search(iris):
    X, y = iris
    pipeline = make_pipeline(
        ForestProximity(RandomForestClassifier(**TREES), "kerf"),
        TruncatedSVD(10, random_state=0),
        LogisticRegression(max_iter=500),
    )
    search = GridSearchCV(
        pipeline, {"forestproximity__weight_scheme": ["kerf", "uniform", "oob_separable"]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.9


def test_transform_is_missing_where_there_are_no_leaf_coordinates():
    prox = ForestProximity(RandomForestClassifier(**TREES), "oob")
    assert not hasattr(prox, "transform")
    assert not hasattr(prox, "fit_transform")
    with pytest.raises(AttributeError) as error:
        prox.transform  # noqa: B018
    # From scikit-learn 1.5 on the reason is the cause of a more general error.
    assert "oob_separable" in f"{error.value} {error.value.__cause__}"
    assert hasattr(prox.set_params(weight_scheme="oob_separable"), "transform")


def test_a_pickle_of_another_version_is_refused():
    """The state of an earlier version is rejected as a whole, never loaded in part."""
    old = Path(__file__).parent / "data" / "pickled_by_0.1.pickle"
    with pytest.raises(ValueError, match=r"pickled by another version of leafkernel\. Fit"):
        pickle.loads(old.read_bytes())
    state = ForestProximity.from_leaves([[1], [2]]).__getstate__()
    with pytest.raises(ValueError, match=r"layout is 99; this version reads layout \d"):
        ForestProximity(None).__setstate__({**state, "_layout": 99})


def test_an_unfitted_pickle_of_another_version_is_read():
    state = {**ForestProximity(None, "kerf").__getstate__(), "_layout": None}
    prox = ForestProximity(None)
    prox.__setstate__(state)
    assert prox.weight_scheme == "kerf"
