"""Matrix, blocks, neighbors, graph, maps, operator and averages are views of the same P."""

import warnings

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator
from sklearn.cluster import DBSCAN
from sklearn.ensemble import RandomForestClassifier
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.schemes import InstanceHardness


def by_tree_number(samples, forest):
    """A custom scheme: later trees have larger weights."""
    return np.broadcast_to(np.arange(1.0, forest.n_trees + 1), samples.leaf.shape) / forest.n_trees


SCHEMES = [
    "uniform",
    "kerf",
    "gap",
    "oob",
    "oob_separable",
    InstanceHardness(neighbors="leaf"),
    by_tree_number,
]
POLICIES = ["scheme", "one", "zero"]


def nearest_by_sorting(P, k, *, drop_self):
    """The k largest of each dense row, ties by index."""
    order = np.argsort(-P, axis=1, kind="stable")
    if drop_self:
        order = np.array([row[row != i] for i, row in enumerate(order)]).reshape(len(P), -1)
    order = order[:, :k]
    return np.take_along_axis(P, order, axis=1), order


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("diagonal", POLICIES)
@pytest.mark.parametrize("scheme", SCHEMES[:5])
def test_columns_and_sums(iris, scheme, diagonal, symmetrize):
    X, y = iris
    if scheme == "oob" and symmetrize:
        symmetrize = False  # it is symmetric already
    forest = RandomForestClassifier(30, random_state=0)
    prox = ForestProximity(
        forest, scheme, diagonal=diagonal, symmetrize=symmetrize, dtype=np.float64
    ).fit(X, y)
    rows = [5, 149, 3, 77, 5]
    for new in (None, X[:9] + 0.1):
        P = prox.proximity(new).toarray()
        found = prox.proximity_to(rows, new)
        assert_allclose(found.toarray(), P[:, rows], atol=1e-12)
        assert (found.data != 0).all()
        assert_allclose(prox.weighted_sums(y, new), P @ y, atol=1e-12)
        assert_allclose(prox.weighted_sums(np.eye(3)[y], new), P @ np.eye(3)[y], atol=1e-12)
        blocks = [block for _, block in prox.iter_proximity(new, block_size=4, sort=False)]
        assert_allclose(np.vstack([block.toarray() for block in blocks]), P, atol=1e-12)


def test_columns_of_no_sample_and_of_wrong_ones(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(20, random_state=0), "kerf").fit(X, y)
    assert prox.proximity_to([]).shape == (150, 0)
    with pytest.raises(ValueError, match="rows must be between 0 and 149"):
        prox.proximity_to([150])
    with pytest.raises(TypeError, match="rows must be integers"):
        prox.proximity_to([0.5])
    with pytest.raises(ValueError, match="rows must be a 1D list of positions"):
        prox.proximity_to(3)


@settings(max_examples=60)
@given(
    case=strategies.bootstrapped(classes=True),
    scheme=st.sampled_from(SCHEMES),
    diagonal=st.sampled_from(POLICIES),
    symmetrize=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    engine=st.sampled_from(["native", "reference"]),
    data=st.data(),
)
def test_all_views_agree(case, scheme, diagonal, symmetrize, dtype, engine, data):
    prox = ForestProximity(
        case.forest, scheme, diagonal=diagonal, symmetrize=symmetrize, dtype=dtype, engine=engine
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafkernelWarning)
        prox.fit(case.X, case.y)
        for X in (None, case.X_new):
            check_views(prox, X, data)


def check_views(prox, X, data):
    P = prox.proximity(X)
    dense = P.toarray()
    n_rows, n_samples = dense.shape
    tolerance = 1e-5 if prox.dtype == np.float32 else 1e-12

    assert P.has_canonical_format
    assert P.nnz == np.count_nonzero(dense)

    blocks = list(prox.iter_proximity(X, block_size=3))
    assert [rows.start for rows, _ in blocks] == list(range(0, n_rows, 3))
    for rows, block in blocks:
        assert_array_equal(block.toarray(), dense[rows])

    available = n_samples - (X is None)
    if available:
        k = data.draw(st.integers(1, available), label="k")
        similarity, neighbors = prox.kneighbors(X, k)
        expected = nearest_by_sorting(dense, k, drop_self=X is None)
        assert_array_equal(similarity, expected[0])
        assert_array_equal(neighbors, expected[1])
        graph = prox.kneighbors_graph(X, k)
        assert graph.has_sorted_indices
        assert_array_equal(np.diff(graph.indptr), k)
        assert_array_equal(graph.toarray()[np.arange(n_rows)[:, None], neighbors], expected[0])

    values = np.linspace(-1, 2, n_samples)
    mass = dense.sum(axis=1, dtype=np.float64)
    average = prox.weighted_average(values, X)
    assert_array_equal(np.isnan(average), mass == 0)
    has_mass = mass > 0
    assert_allclose(
        average[has_mass], (dense @ values)[has_mass] / mass[has_mass], rtol=0, atol=10 * tolerance
    )
    assert prox.forecast(X).nonzeros == P.nnz

    if not prox.scheme_.separable:
        return
    A = prox.operator(X)
    assert isinstance(A, LinearOperator)
    V = np.linspace(-1, 1, 2 * n_samples).reshape(n_samples, 2)
    U = np.linspace(-1, 1, 2 * n_rows).reshape(n_rows, 2)
    assert_allclose(A @ V, dense @ V, rtol=0, atol=tolerance)
    assert_allclose(A @ V[:, 0], dense @ V[:, 0], rtol=0, atol=tolerance)
    assert_allclose(A.T @ U, dense.T @ U, rtol=0, atol=tolerance)
    assert_allclose(A.H @ U[:, 0], dense.T @ U[:, 0], rtol=0, atol=tolerance)
    assert_allclose(A.rmatvec(U[:, 0]), dense.T @ U[:, 0], rtol=0, atol=tolerance)

    product = (prox.query_map(X) @ prox.reference_map().T).toarray()
    if X is None and prox.diagonal != "scheme":
        np.fill_diagonal(product, dense.diagonal())
    assert_allclose(product, dense, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def forest(iris):
    X, y = iris
    return RandomForestClassifier(60, random_state=0).fit(X, y)


def test_rows_with_too_few_similar_samples_are_filled_up():
    prox = ForestProximity.from_leaves([[0], [0], [0], [1], [1]])
    similarity, neighbors = prox.kneighbors(n_neighbors=2)
    assert neighbors.tolist() == [[1, 2], [0, 2], [0, 1], [4, 0], [3, 0]]
    assert similarity.tolist() == [[1, 1], [1, 1], [1, 1], [1, 0], [1, 0]]


def test_symmetrize_is_the_mean_of_p_and_its_transpose(forest, iris):
    X, y = iris
    P = ForestProximity(forest, "gap", dtype=np.float64).fit(X, y).proximity().toarray()
    half = ForestProximity(forest, "gap", symmetrize=True, dtype=np.float64).fit(X, y)
    assert_allclose(half.proximity().toarray(), (P + P.T) / 2, rtol=0, atol=1e-14)


def test_symmetrize_out_of_sample_adds_what_the_new_sample_lends(forest, iris):
    """½(P(x, x') + P(x', x)): the unseen x as query in one half, as reference in the other."""
    X, y = iris
    X_new = X[::9] + 0.05
    plain = ForestProximity(forest, "gap", dtype=np.float64).fit(X, y).proximity(X_new)
    half = ForestProximity(forest, "gap", symmetrize=True, dtype=np.float64).fit(X, y)
    assert_allclose(half.proximity(X_new).toarray(), plain.toarray() / 2, rtol=0, atol=1e-14)

    scheme = InstanceHardness(neighbors="leaf")  # an unseen sample lends 1/T in each shared leaf
    directed = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y).proximity(X_new)
    shared = ForestProximity(forest, "uniform", dtype=np.float64).fit(X, y).proximity(X_new)
    both = ForestProximity(forest, scheme, symmetrize=True, dtype=np.float64).fit(X, y)
    expected = (directed.toarray() + shared.toarray()) / 2
    assert_allclose(both.proximity(X_new).toarray(), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scheme", ["uniform", "oob"])
def test_symmetrize_leaves_symmetric_schemes_as_they_are(forest, iris, scheme):
    X, y = iris
    plain = ForestProximity(forest, scheme).fit(X, y).proximity()
    again = ForestProximity(forest, scheme, symmetrize=True).fit(X, y).proximity()
    assert (plain != again).nnz == 0


@pytest.mark.parametrize("symmetrize", [False, True])
def test_diagonal_policies_change_the_diagonal_alone(forest, iris, symmetrize):
    X, y = iris

    def matrix(diagonal):
        prox = ForestProximity(
            forest, "gap", diagonal=diagonal, symmetrize=symmetrize, dtype=np.float64
        )
        return prox.fit(X, y).proximity().toarray()

    plain = matrix("scheme")
    assert (plain.diagonal() == 0).all()
    counts = np.stack([np.bincount(s, minlength=150) for s in forest.estimators_samples_], 1)
    leaf = forest.apply(X)
    adjusted = np.zeros(150)
    for i in range(150):
        in_bag = np.flatnonzero(counts[i])
        adjusted[i] = np.mean(
            [counts[i, t] / counts[leaf[:, t] == leaf[i, t], t].sum() for t in in_bag]
        )
    for policy, expected in (("one", 1), ("zero", 0), ("adjusted", adjusted)):
        P = matrix(policy)
        assert_allclose(P.diagonal(), expected, rtol=0, atol=1e-14)
        np.fill_diagonal(P, plain.diagonal())
        assert_array_equal(P, plain)


def test_distance_graph_is_one_minus_proximity(forest, iris):
    X, y = iris
    prox = ForestProximity(forest, "uniform").fit(X, y)
    similarity, neighbors = prox.kneighbors(n_neighbors=7)
    graph = prox.kneighbors_graph(n_neighbors=7, mode="distance")
    rows = np.arange(150)[:, None]
    assert_array_equal(graph.toarray()[rows, neighbors], 1 - similarity)
    assert_array_equal(np.diff(graph.indptr), 8)  # zeros are stored, the sample itself first
    assert_array_equal(graph.indices.reshape(150, 8)[:, 1:], neighbors)
    assert_array_equal(graph.indices.reshape(150, 8)[:, 0], np.arange(150))
    new = prox.kneighbors_graph(X[:5] + 0.01, n_neighbors=7, mode="distance")
    assert_array_equal(np.diff(new.indptr), 7)


def test_distance_graphs_drop_into_scikit_learn(forest, iris):
    """Warnings are errors: scikit-learn would warn of rows that are not sorted by distance."""
    X, y = iris
    prox = ForestProximity(forest, "uniform").fit(X, y)
    graph = prox.kneighbors_graph(n_neighbors=40, mode="distance")
    searched = NearestNeighbors(n_neighbors=5, metric="precomputed").fit(graph)
    distances, _ = searched.kneighbors()
    assert_allclose(distances, 1 - prox.kneighbors(n_neighbors=5)[0], rtol=0, atol=1e-7)
    new = prox.kneighbors_graph(X[::9] + 0.01, n_neighbors=40, mode="distance")
    assert_allclose(
        searched.kneighbors(new)[0], 1 - prox.kneighbors(X[::9] + 0.01, 5)[0], rtol=0, atol=1e-7
    )

    dense = np.maximum(1 - prox.proximity().toarray(), 0)
    clusters = DBSCAN(eps=0.3, metric="precomputed").fit_predict(
        prox.kneighbors_graph(n_neighbors=149, mode="distance")
    )
    assert_array_equal(clusters, DBSCAN(eps=0.3, metric="precomputed").fit_predict(dense))

    tsne = TSNE(metric="precomputed", init="random", perplexity=10, random_state=0)
    points = tsne.fit_transform(graph)
    nearest = KNeighborsClassifier().fit(points, y)
    assert nearest.score(points, y) > 0.95


def test_distances_are_never_negative(iris):
    X, y = iris
    forest = RandomForestClassifier(12, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafkernelWarning)
        prox = ForestProximity(forest, "oob_separable").fit(X, y)
    assert prox.kneighbors(n_neighbors=5)[0].max() > 1
    assert prox.kneighbors_graph(n_neighbors=5, mode="distance").data.min() == 0


def test_fit_transform_gives_the_training_role_and_transform_the_unseen_one(forest, iris):
    X, y = iris
    prox = ForestProximity(forest, "gap", dtype=np.float64)
    training = prox.fit_transform(X, y)
    assert (training != prox.query_map()).nnz == 0
    assert (prox.transform(X) != prox.query_map(X)).nnz == 0
    assert training.nnz < prox.transform(X).nnz  # unseen samples are out of bag in every tree


def test_names_of_leaf_coordinates(forest, iris):
    X, y = iris
    prox = ForestProximity(forest, "uniform").fit(X, y)
    names = prox.get_feature_names_out()
    assert len(names) == len(set(names)) == prox.n_leaves_ == prox.transform(X).shape[1]
    assert names[0] == "tree0_leaf0"
    both = ForestProximity(forest, "gap", symmetrize=True).fit(X, y)
    names = both.get_feature_names_out()
    assert len(names) == both.transform(X).shape[1] == 2 * prox.n_leaves_
    assert names[0] == "query_tree0_leaf0"
    assert names[-1].startswith("reference_tree59_leaf")


def test_returned_maps_are_the_callers_to_change(forest, iris):
    X, y = iris
    prox = ForestProximity(forest, "kerf").fit(X, y)
    before = prox.proximity()
    for owned in (prox.query_map(), prox.reference_map(), prox.fit_transform(X, y)):
        owned.data[:] = 7
    assert (prox.proximity() != before).nnz == 0


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_unsorted_rows_hold_the_same(iris, engine):
    X, y = iris
    forest = RandomForestClassifier(30, random_state=0)
    prox = ForestProximity(forest, "kerf", engine=engine).fit(X, y)
    for X_new in (None, X[:9] + 0.05):
        P = prox.proximity(X_new, sort=False)
        assert_array_equal(P.toarray(), prox.proximity(X_new).toarray())
        assert P.nnz == prox.proximity(X_new).nnz
    with pytest.raises(TypeError, match="sort"):
        prox.proximity(sort="yes")


@pytest.mark.parametrize("scheme", ["gap", "kerf", "oob", "oob_separable"])
def test_averages_keep_the_digits_of_large_values(iris, scheme):
    """Times of day in seconds since 1970 have more digits than a float32 kernel has."""
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(200, random_state=0), scheme).fit(X, y)
    values = np.full(len(X), 1.7e9 + 0.25)
    assert_allclose(prox.weighted_average(values), values, rtol=1e-13)
    if scheme != "oob":
        mass = prox.operator() @ np.ones(len(X))
        assert_allclose((prox.operator() @ values) / mass, values, rtol=1e-13)
        assert (prox.operator() @ values.astype(np.float32)).dtype == np.float32
