"""A forest's similarity for other learners: the same learner by kernel and by leaf coordinates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.tasks import ForestKernel, ProximityKernel, ProximityNeighborsTransformer


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("scheme", ["kerf", "uniform"])
def test_kernel_ridge_is_ridge_on_leaf_coordinates(diabetes, scheme):
    X, y = diabetes
    prox = ForestProximity(RandomForestRegressor(20, random_state=0), scheme, dtype=np.float64)
    by_kernel = make_pipeline(ProximityKernel(prox), KernelRidge(alpha=0.3, kernel="precomputed"))
    by_leaves = make_pipeline(
        clone(prox), Ridge(alpha=0.3, fit_intercept=False, solver="lsqr", tol=1e-12)
    )
    first = by_kernel.fit(X[:150], y[:150]).predict(X[150:])
    assert_allclose(first, by_leaves.fit(X[:150], y[:150]).predict(X[150:]), rtol=1e-6)


def test_a_kernel_machine_is_a_linear_one_on_leaf_coordinates(wine):
    X, y = wine[0], (wine[1] == 1).astype(int)
    prox = ForestProximity(ExtraTreesClassifier(20, random_state=0), "uniform", dtype=np.float64)
    by_kernel = make_pipeline(ProximityKernel(prox), SVC(C=0.5, kernel="precomputed", tol=1e-8))
    by_leaves = make_pipeline(clone(prox), SVC(C=0.5, kernel="linear", tol=1e-8))
    first = by_kernel.fit(X[:120], y[:120]).decision_function(X[120:])
    second = by_leaves.fit(X[:120], y[:120]).decision_function(X[120:])
    assert_allclose(first, second, atol=1e-5)
    fast = make_pipeline(clone(prox), LinearSVC(C=0.5, dual=True, random_state=0)).fit(
        X[:120], y[:120]
    )
    assert np.corrcoef(first, fast.decision_function(X[120:]))[0, 1] > 0.99


def test_searches_reach_into_the_forest(wine):
    X, y = wine
    kernel = ProximityKernel(ForestProximity(RandomForestClassifier(15, random_state=0), "kerf"))
    model = make_pipeline(kernel, SVC(kernel="precomputed"))
    grid = {
        "proximitykernel__proximity__weight_scheme": ["kerf", "uniform"],
        "proximitykernel__proximity__forest__min_samples_leaf": [1, 5],
        "svc__C": [1.0, 10.0],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    assert search.best_estimator_[0].proximity_.n_samples_fit_ == len(y)


def extra_trees(X, y):
    forest = ExtraTreesRegressor(max_features=1 / 3, min_samples_leaf=10, random_state=0)
    return ForestProximity(forest, "uniform", dtype=np.float64).fit(X, y)


def test_forest_as_covariance(diabetes):
    X, y = diabetes
    prox = extra_trees(X[:100], y[:100])
    kernel = ForestKernel(prox, signal=2.0, noise=0.5)
    K = kernel(X[100:150])
    coordinates = prox.query_map(X[100:150]).toarray()
    assert_allclose(K, 2 * coordinates @ coordinates.T + 0.5 * np.eye(50))
    assert np.linalg.eigvalsh(K).min() > 0.5 - 1e-10
    assert_allclose(kernel.diag(X[:5]), np.diag(kernel(X[:5])))
    assert_allclose(kernel(X[:5], X[5:9]), kernel(X[:9])[:5, 5:])
    again = clone(kernel)
    assert_allclose(again.theta, np.log([0.5, 2.0]))
    _, gradient = kernel(X[:9], eval_gradient=True)
    for k in range(2):
        step = 1e-6 * np.eye(2)[k]
        higher = kernel.clone_with_theta(kernel.theta + step)(X[:9])
        lower = kernel.clone_with_theta(kernel.theta - step)(X[:9])
        assert_allclose(gradient[..., k], (higher - lower) / 2e-6, atol=1e-8)


def test_gaussian_process_with_a_forest_as_covariance():
    """With a noise term, it is no worse than the forest, and its intervals are well calibrated."""
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(100, random_state=0).fit(X[:300], y[:300])
    kernel = ForestKernel(extra_trees(X[:300], y[:300]))
    process = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[:300], y[:300])
    assert process.score(X[300:], y[300:]) >= forest.score(X[300:], y[300:])
    mean, deviation = process.predict(X[300:], return_std=True)
    assert 0.85 < (np.abs(mean - y[300:]) < 1.645 * deviation).mean() < 0.95
    # The mean by hand, with the signal and the noise that were learned.
    weights = np.linalg.solve(process.kernel_(X[:300]), (y[:300] - y[:300].mean()) / y[:300].std())
    expected = process.kernel_(X[300:], X[:300]) @ weights
    assert_allclose(mean, expected * y[:300].std() + y[:300].mean(), rtol=1e-6)


def test_covariances_must_be_one_function(wine):
    X, y = wine
    gap = ForestProximity(RandomForestClassifier(30, random_state=0), "gap").fit(X, y)
    with pytest.raises(ValueError, match="cannot be used as a covariance"):
        ForestKernel(gap)(X)


def test_graphs_for_neighbors_and_clusters(wine):
    X, y = wine
    forest = RandomForestClassifier(40, random_state=0)
    graph = ProximityNeighborsTransformer(ForestProximity(forest, "uniform"), n_neighbors=12)
    prox = graph.fit(X, y).proximity_
    assert (graph.transform(X[:9]) != prox.kneighbors_graph(X[:9], 12, mode="distance")).nnz == 0
    graph.set_params(both_ways=False)
    assert (graph.fit_transform(X, y) != prox.kneighbors_graph(None, 12, mode="distance")).nnz == 0
    graph.set_params(both_ways=True)
    model = make_pipeline(graph, DBSCAN(eps=0.6, min_samples=8, metric="precomputed"))
    labels = model.fit_predict(X, y)
    largest = np.argsort(np.bincount(labels[labels >= 0]))[-3:]
    assert_array_equal(sorted(np.bincount(y[labels == c]).argmax() for c in largest), [0, 1, 2])


@pytest.mark.parametrize("mode", ["distance", "proximity"])
def test_edges_count_both_ways(wine, mode):
    X, y = wine
    graph = ProximityNeighborsTransformer("gap", n_neighbors=5, mode=mode, random_state=0)
    found = graph.fit_transform(X, y)
    one_way = graph.proximity_.kneighbors_graph(n_neighbors=5).toarray()
    expected = np.maximum(one_way, one_way.T)
    if mode == "distance":
        shown = np.full(found.shape, np.inf)
        rows = np.repeat(np.arange(len(y)), np.diff(found.indptr))
        shown[rows, found.indices] = found.data
        assert_allclose(shown[expected > 0], 1 - expected[expected > 0], rtol=1e-6)
        assert (np.diag(shown) == 0).all()
        assert not found.has_sorted_indices  # or SciPy would take the columns to be in order
        for begin, end in zip(found.indptr, found.indptr[1:], strict=False):
            assert (np.diff(found.data[begin:end]) >= 0).all()
    else:
        assert_allclose(found.toarray(), expected, rtol=1e-6)


def test_samples_that_are_alike_stay_together(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(100, random_state=0), "uniform").fit(X, y)
    whole = DBSCAN(eps=0.5, metric="precomputed").fit_predict(
        np.maximum(1 - prox.proximity().toarray(), 0)
    )
    pipeline = make_pipeline(
        ProximityNeighborsTransformer(prox), DBSCAN(eps=0.5, metric="precomputed")
    )
    labels = pipeline.fit_predict(X, y)
    same = prox.proximity().toarray() >= 1
    assert (labels[:, None] == labels[None])[same].all()
    assert adjusted_rand_score(whole, labels) > 0.95


def test_more_neighbors_than_samples_are_all_of_them(wine):
    X, y = wine
    graph = ProximityNeighborsTransformer(n_neighbors=500, mode="proximity", random_state=0)
    assert graph.fit_transform(X, y).shape == (178, 178)
    assert np.diff(graph.transform(X[:3]).indptr).tolist() == [178] * 3


def test_names_of_kernel_columns(wine):
    X, y = wine
    kernel = ProximityKernel(RandomForestClassifier(10, random_state=0)).fit(X, y)
    assert kernel.get_feature_names_out()[:2].tolist() == ["sample0", "sample1"]
    assert (
        cross_val_score(make_pipeline(kernel, SVC(kernel="precomputed")), X, y, cv=3).mean() > 0.9
    )


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("gap", {}),
        ("gap", {"symmetrize": True}),
        ("oob", {}),
        ("ih", {}),
        ("kerf", {"diagonal": "zero"}),
    ],
)
def test_kernels_that_are_not_positive_semidefinite_warn(wine, scheme, options):
    X, y = wine
    prox = ForestProximity(RandomForestClassifier(60, random_state=0), scheme, **options)
    with pytest.warns(
        LeafkernelWarning, match=r"not positive semidefinite.*Use ('kerf'|diagonal='scheme')"
    ):
        ProximityKernel(prox).fit(X, y)


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("kerf", {}),
        ("uniform", {"diagonal": "one"}),
        ("oob_separable", {}),
        ("kerf", {"diagonal": "one"}),
    ],
)
def test_other_kernels_are_positive_semidefinite(wine, scheme, options):
    X, y = wine
    forest = RandomForestClassifier(60, random_state=0)
    prox = ForestProximity(forest, scheme, dtype=np.float64, **options)
    assert np.linalg.eigvalsh(ProximityKernel(prox).fit_transform(X, y)).min() > -1e-10
