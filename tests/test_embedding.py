"""Embeddings: equal to dense decompositions, the same for samples passed again, new samples."""

import importlib.util
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

from leafkernel import ForestProximity
from leafkernel.tasks import LeafEmbedding, LeafPCA
from leafkernel.tasks.embedding import _neighbor_maps
from leafkernel.tasks.embedding._phate import _metric_mds
from leafkernel.tasks.embedding._spectrum import top_eigenpairs

ITERATIVE = ["arpack", "randomized", "dense"]
KERNEL_METHODS = ["pca", "mds", "spectral", "diffusion", "svd"]
LIBRARIES = {"umap": "umap", "tsne": "openTSNE", "phate": "phate"}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600], X[600:800], y[600:800]


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def forest(digits):
    X, y, *_ = digits
    return RandomForestClassifier(30, random_state=0).fit(X, y)


def fitted(forest, digits, scheme, **params):
    return ForestProximity(forest, scheme, dtype=np.float64, **params).fit(*digits[:2])


def assert_same_up_to_signs(found, expected, **tolerance):
    signs = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * signs, expected, **tolerance)


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("scheme", ["kerf", "uniform", "gap", "oob_separable"])
def test_leaf_pca_is_pca_of_the_leaf_map(digits, forest, scheme, solver):
    X, y, X_new, _ = digits
    prox = fitted(forest, digits, scheme)
    found = LeafPCA(prox, n_components=3, solver=solver, random_state=0).fit(X, y)
    dense = PCA(3, svd_solver="full").fit(prox.query_map().toarray())
    close = {"atol": 2e-2 if solver == "randomized" else 1e-9}
    assert_same_up_to_signs(found.embedding_, dense.transform(prox.query_map().toarray()), **close)
    new = dense.transform(prox.query_map(X_new).toarray())
    assert_same_up_to_signs(found.transform(X_new), new, **close)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        assert_allclose(getattr(found, name), getattr(dense, name), rtol=1e-3)


def test_leaf_pca_of_a_symmetrized_kernel(digits, forest):
    X, y, X_new, _ = digits
    prox = fitted(forest, digits, "gap", symmetrize=True)
    found = LeafPCA(prox, n_components=2).fit(X, y)
    dense = PCA(2, svd_solver="full").fit(prox.query_map().toarray())
    assert_same_up_to_signs(
        found.transform(X_new), dense.transform(prox.query_map(X_new).toarray()), atol=1e-9
    )


@pytest.mark.parametrize("method", KERNEL_METHODS)
def test_training_samples_passed_again_stay_where_they_are(digits, forest, method):
    X, y, *_ = digits
    model = LeafEmbedding(fitted(forest, digits, "uniform"), method=method, random_state=0)
    assert_allclose(model.fit_transform(X, y), model.embedding_)
    if method in ("spectral", "diffusion"):  # a sample that is passed again can step to itself
        assert np.corrcoef(model.transform(X)[:, 0], model.embedding_[:, 0])[0, 1] > 0.99
        return
    assert_allclose(model.transform(X), model.embedding_, atol=1e-7)


def test_spectral_solves_the_walk(digits, forest):
    X, y, *_ = digits
    prox = fitted(forest, digits, "uniform")
    model = LeafEmbedding(prox, method="spectral", n_components=3).fit(X, y)
    walk = prox.proximity().toarray()
    np.fill_diagonal(walk, 0)
    walk /= walk.sum(axis=1, keepdims=True)
    values = np.sort(np.linalg.eigvals(walk).real)[::-1]
    moved = walk @ model.embedding_
    assert_allclose(moved, model.embedding_ * values[1:4], atol=1e-8)


def test_diffusion_corrects_for_density(digits, forest):
    X, y, *_ = digits
    prox = fitted(forest, digits, "uniform")
    model = LeafEmbedding(prox, method="diffusion", n_components=2, parameters={"time": 3}).fit(
        X, y
    )
    P = prox.proximity().toarray()
    np.fill_diagonal(P, 0)
    density = P.sum(axis=1)
    corrected = P / np.outer(density, density)
    walk = corrected / corrected.sum(axis=1, keepdims=True)
    values = np.sort(np.linalg.eigvals(walk).real)[::-1][1:3]
    assert_allclose(walk @ model.embedding_, model.embedding_ * values, atol=1e-8)
    slow = LeafEmbedding(prox, method="diffusion", parameters={"time": 1}).fit(X, y)
    assert_same_up_to_signs(model.embedding_, slow.embedding_ * values**2, atol=1e-8)


def test_pca_spectral_and_diffusion_are_one_picture_under_kerf_only(wine):
    X, y = wine

    def first(method, scheme):
        model = LeafEmbedding(scheme, method=method, n_components=1, random_state=0).fit(X, y)
        return model.embedding_[:, 0]

    for method in ("spectral", "diffusion"):
        for scheme, same in (("kerf", True), ("uniform", False)):
            likeness = abs(np.corrcoef(first("pca", scheme), first(method, scheme))[0, 1])
            assert (likeness > 0.999) == same
    prox = ForestProximity(RandomForestClassifier(10, random_state=0), "kerf").fit(X, y)
    assert_allclose(prox.proximity().sum(axis=1), 1, rtol=1e-5)


def test_mds_keeps_breimans_squared_distances(wine):
    X, y = wine
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), "uniform", dtype=np.float64)
    model = LeafEmbedding(prox, method="mds", n_components=len(y) - 1).fit(X, y)
    placed = model.embedding_
    squares = ((placed[:, None] - placed[None]) ** 2).sum(axis=-1)
    expected = 1 - model.proximity_.proximity().toarray()
    assert_allclose(squares, expected, atol=1e-8)


def test_mds_of_an_asymmetric_kernel(digits, forest):
    X, y, X_new, _ = digits
    prox = fitted(forest, digits, "gap")
    model = LeafEmbedding(prox, method="mds").fit(X, y)
    P = prox.proximity().toarray()
    inner = (P + P.T) / 4
    np.fill_diagonal(inner, 0.5)
    center = np.eye(len(y)) - 1 / len(y)
    values, vectors = eigh(center @ inner @ center)
    expected = (vectors * np.sqrt(np.maximum(values, 0)))[:, :-3:-1]
    assert_same_up_to_signs(model.embedding_, expected, atol=1e-8)
    assert model.transform(X_new).shape == (200, 2)


def test_left_and_right_coordinates_of_an_asymmetric_kernel(digits, forest):
    X, y, X_new, _ = digits
    prox = fitted(forest, digits, "gap")
    k = 20
    model = LeafEmbedding(prox, method="svd", n_components=k).fit(X, y)
    P = prox.proximity().toarray()
    U, values, Vt = np.linalg.svd(P)
    best = (U[:, :k] * values[:k]) @ Vt[:k]
    assert_allclose(model.embedding_ @ model.reference_embedding_.T, best, atol=1e-8)
    # The positions of new samples follow from their proximities.
    V = model.reference_embedding_ / np.sqrt(values[:k])
    expected = prox.proximity(X_new).toarray() @ V / np.sqrt(values[:k])
    assert_allclose(model.transform(X_new), expected, atol=1e-8)


@pytest.mark.parametrize("source", ["pca", "kernel"])
@pytest.mark.parametrize("method", LIBRARIES)
def test_pictures_keep_the_classes_apart(digits, forest, method, source):
    own = (method, source) == ("phate", "kernel")
    if not own and importlib.util.find_spec(LIBRARIES[method]) is None:
        pytest.skip(f"{LIBRARIES[method]} is not installed")
    X, y, X_new, y_new = digits
    prox = ForestProximity(forest, "kerf").fit(X, y)
    model = LeafEmbedding(prox, method=method, source=source, n_neighbors=15, random_state=0)
    model.fit(X, y)
    placed = model.transform(X_new)
    assert placed.shape == (200, 2)
    assert np.isfinite(placed).all()
    neighbors = KNeighborsClassifier(10).fit(model.embedding_, y)
    assert neighbors.score(placed, y_new) > 0.6  # two principal components give 0.5


@pytest.mark.parametrize("scheme", ["kerf", "gap"])
def test_phate_of_few_samples_smooths_no_more_than_its_time(wine, scheme):
    X, y = wine
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), scheme, dtype=np.float64)
    model = LeafEmbedding(prox, method="phate", source="kernel", parameters={"time": 3})
    found = model.fit_transform(X, y)
    P = model.proximity_.proximity().toarray()
    walk = (P + P.T) / (P + P.T).sum(axis=1, keepdims=True)
    potential = -np.log(np.linalg.matrix_power(walk, 3) + 1e-7)
    expected = _metric_mds(squareform(pdist(potential)), 2)
    assert_same_up_to_signs(found, expected, atol=1e-3 * np.abs(expected).max())


def test_phate_over_landmarks_is_near_phate_over_all(digits, forest):
    X, y, X_new, y_new = digits
    prox = ForestProximity(forest, "kerf").fit(X, y)
    fit = LeafEmbedding(
        prox, method="phate", source="kernel", parameters={"n_landmarks": 100}, random_state=0
    ).fit(X, y)
    score = KNeighborsClassifier(10).fit(fit.embedding_, y).score(fit.transform(X_new), y_new)
    assert score > 0.6


def test_metric_mds_finds_places_that_exist(rng):
    places = rng.normal(size=(40, 2))
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    found = _metric_mds(distances, 2)
    assert_allclose(np.linalg.norm(found[:, None] - found[None], axis=-1), distances, atol=1e-6)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_eigenpairs_of_a_known_matrix(rng, solver):
    basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    values = 0.6 ** np.arange(60)
    matrix = basis * values @ basis.T
    found, vectors = top_eigenpairs(
        lambda V: matrix @ V, 60, 4, solver=solver, random_state=np.random.RandomState(0)
    )
    assert_allclose(found, values[:4], rtol=1e-6)
    assert_same_up_to_signs(vectors, basis[:, :4], atol=1e-4)


@pytest.mark.parametrize("n_parts", [3, 12])
def test_equal_eigenvalues_are_all_found(rng, n_parts):
    """A similarity with several components has the eigenvalue 1 once for each."""
    part = rng.integers(0, n_parts, 700)
    leaves = part[:, None] * 5 + rng.integers(0, 5, (700, 8))
    prox = ForestProximity.from_leaves(leaves, weight_scheme="kerf", dtype=np.float64)
    walk = LeafEmbedding(prox, method="spectral", n_components=n_parts - 1, random_state=0)
    walk.fit(leaves)
    for c in range(n_parts):  # constant on each part, and different between them
        assert np.ptp(walk.embedding_[part == c], axis=0).max() < 1e-6
    found = LeafPCA(prox, n_components=n_parts + 3, random_state=0).fit(leaves)
    dense = LeafPCA(prox, n_components=n_parts + 3, solver="dense").fit(leaves)
    assert_allclose(found.explained_variance_, dense.explained_variance_, rtol=1e-6)


def smoothing(n):
    """Return the product with a chain's smoothing, and its eigenvalues: their gaps are tiny."""

    def apply(V):
        padded = np.pad(V, ((1, 1), (0, 0)))
        return 2 * V + padded[:-2] + padded[2:]

    return apply, 2 + 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))


def test_pairs_that_arpack_cannot_tell_apart_come_from_a_dense_solver():
    apply, values = smoothing(1500)
    found, vectors = top_eigenpairs(apply, 1500, 3, solver="arpack", random_state=0)
    assert_allclose(found, values[:3], rtol=1e-12)
    assert_allclose(apply(vectors), vectors * found, atol=1e-12)


def test_pairs_that_nothing_can_tell_apart_are_given_with_a_warning():
    apply, values = smoothing(5000)
    with pytest.warns(ConvergenceWarning, match="too close to each other"):
        found, vectors = top_eigenpairs(apply, 5000, 3, random_state=0)
    assert_allclose(found, values[:3], rtol=0.05)
    assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)


def test_pictures_of_exact_oob_from_its_neighbors(digits):
    if importlib.util.find_spec("openTSNE") is None:
        pytest.skip("openTSNE is not installed")
    X, y, X_new, _ = digits
    model = LeafEmbedding(
        ForestProximity(RandomForestClassifier(30, random_state=0), "oob"),
        method="tsne",
        source="kernel",
        n_neighbors=5,
        parameters={"n_iter": 50, "early_exaggeration_iter": 20},
        random_state=0,
    ).fit(X[:150], y[:150])
    assert model.transform(X_new).shape == (200, 2)


def test_copies_place_samples_alike(digits, forest):
    X, y, X_new, _ = digits
    prox = ForestProximity(forest, "kerf").fit(X, y)
    for method in KERNEL_METHODS:
        model = LeafEmbedding(prox, method=method, random_state=0).fit(X, y)
        copy = pickle.loads(pickle.dumps(model))
        assert_allclose(copy.transform(X_new), model.transform(X_new))


def test_numbers_and_no_targets(diabetes):
    X, y = diabetes
    model = LeafPCA(n_components=2, random_state=0).fit(X, y)
    assert isinstance(model.proximity_.forest_, RandomForestRegressor)
    assert abs(np.corrcoef(model.embedding_[:, 0], y)[0, 1]) > 0.6
    assert LeafPCA(n_components=2, random_state=0).fit_transform(X).shape == (200, 2)


def test_names_of_coordinates(wine):
    X, y = wine
    model = LeafPCA(n_components=2, random_state=0).set_output(transform="pandas")
    assert list(model.fit_transform(X, y).columns) == ["leafpca0", "leafpca1"]


def test_errors(wine):
    X, y = wine
    with pytest.raises(ValueError, match="Did you mean 'spectral'"):
        LeafEmbedding(method="spektral").fit(X, y)
    with pytest.raises(ValueError, match="source must be one of"):
        LeafEmbedding(source="graph").fit(X, y)
    with pytest.raises(ValueError, match="Use 'oob_separable'"):
        LeafPCA("oob", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="parameters of method='pca' must be one of 'solver'"):
        LeafEmbedding(parameters={"perplexity": 3}).fit(X, y)
    with pytest.raises(ValueError, match="solver must be one of"):
        LeafEmbedding(parameters={"solver": "foo"}, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="time must be at least 1"):
        LeafEmbedding(method="phate", source="kernel", parameters={"time": 0}).fit(X, y)
    with pytest.raises(ValueError, match="'umap' requires at least 10 training samples; got n_s"):
        LeafEmbedding(method="umap", random_state=0).fit(X[[0, 70, 150]], y[[0, 70, 150]])


def test_as_many_components_as_samples_at_most(wine):
    X, y = wine
    assert LeafPCA(random_state=0).fit(X[::10], y[::10]).embedding_.shape == (18, 18)


def test_umap_of_many_samples_starts_from_principal_components(iris, monkeypatch):
    """UMAP's default start may take hours here. A start chosen by the user is still used."""
    pytest.importorskip("umap")
    X, y = iris
    monkeypatch.setattr(_neighbor_maps, "_SPECTRAL_START_AT_MOST", len(X) - 1)
    prox = ForestProximity(RandomForestClassifier(10, random_state=0), "kerf").fit(X, y)
    model = LeafEmbedding(prox, method="umap", random_state=0).fit(X, y)
    scores = LeafPCA(prox, n_components=2).fit_transform(X, y)
    start = model._map.method.model.init
    assert_allclose(np.abs(start), 10 * np.abs(scores) / np.abs(scores).max(), rtol=1e-4, atol=1e-4)
    told = LeafEmbedding(prox, method="umap", parameters={"init": "random"}, random_state=0)
    assert told.fit(X, y)._map.method.model.init == "random"


def test_umap_without_a_seed_uses_all_threads(iris):
    pytest.importorskip("umap")
    X, y = iris
    forest = RandomForestClassifier(10, random_state=0)
    for seed, threads in ((None, 2), (0, 1)):
        prox = ForestProximity(forest, "kerf", n_jobs=2).fit(X, y)
        model = LeafEmbedding(prox, method="umap", random_state=seed).fit(X, y)
        assert model._map.method.model.n_jobs == threads


def test_libraries_do_not_print_on_the_standard_output(capsys):
    X, y = make_classification(300, 5, random_state=0)  # its stress has not settled in the end
    LeafEmbedding(method="phate", random_state=0).fit(X, y)
    assert capsys.readouterr().out == ""
