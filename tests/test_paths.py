"""Kernels that compare whole paths, against the definitions written with ``decision_path``."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from leafkernel import Batches, ForestProximity
from leafkernel._memory import is_mapped
from leafkernel.engines import NativeEngine, PathEngine, engine_for_paths
from leafkernel.inside import Inside
from leafkernel.schemes import Collapsed, NodeWeights, PathDecay, PathScheme, RandomPartition
from tests.strategies import bootstrapped

X, y = load_breast_cancer(return_X_y=True)
X, y, X_new = X[:240], y[:240], X[240:270]


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(12, random_state=0).fit(X, y)


def trees_of(forest):
    return list(np.ravel(getattr(forest, "estimators_", [forest])))


def pair_depths(tree, A, B):
    """Depths of the leaves of A and of B, and of the lowest common node of each pair."""
    a, b = (tree.decision_path(np.float32(rows)).toarray().astype(int) for rows in (A, B))
    return a.sum(axis=1)[:, None] - 1, b.sum(axis=1)[None] - 1, a @ b.T - 1


def pbk(forest, A, B, decay):
    """exp(-λ·edges between the leaves), averaged over trees."""
    trees = trees_of(forest)
    total = np.zeros((len(A), len(B)))
    for tree in trees:
        a, b, common = pair_depths(tree, A, B)
        total += np.exp(-decay * (a + b - 2 * common))
    return total / len(trees)


def nodes_at_depth(tree, rows, depth):
    """The node of each row if the tree is cut at a depth."""
    on_path = tree.decision_path(np.float32(rows)).toarray().astype(bool)
    wanted = np.minimum(depth, on_path.sum(axis=1) - 1)
    # Nodes have larger numbers than their parents, so a path is in the order of depths.
    depths = np.cumsum(on_path, axis=1) - 1
    return (on_path & (depths == wanted[:, None])).argmax(axis=1)


def rpk(forest, A, B):
    """Co-membership at every depth from 0 to the depth of the tree, averaged."""
    trees = trees_of(forest)
    total = np.zeros((len(A), len(B)))
    for tree in trees:
        depths = range(tree.tree_.max_depth + 1)
        for depth in depths:
            a, b = (nodes_at_depth(tree, rows, depth) for rows in (A, B))
            total += (a[:, None] == b[None]) / len(depths)
    return total / len(trees)


def brute(scheme, forest, A, B):
    return pbk(forest, A, B, scheme.decay) if scheme.name == "pbk" else rpk(forest, A, B)


SCHEMES = [PathDecay(0.1), PathDecay(1.0), PathDecay(7.0), RandomPartition()]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_every_result_is_that_of_the_definition(forest, scheme, engine):
    # The reference engine is slow, so it gets fewer samples.
    few = slice(0, 60 if engine == "reference" else len(X))
    prox = ForestProximity(forest, scheme, dtype=np.float64, engine=engine).fit(X[few], y[few])
    V = np.random.default_rng(0).normal(size=(prox.n_samples_fit_, 23))
    for given_X in (None, X_new):
        A = X[few] if given_X is None else given_X
        P = brute(scheme, forest, A, X[few])
        close = {"rtol": 0, "atol": 1e-12}
        np.testing.assert_allclose(prox.proximity(given_X).toarray(), P, **close)
        np.testing.assert_allclose(prox.proximity(given_X, dense=True), P, **close)
        maps = prox.query_map(given_X) @ prox.reference_map().T
        np.testing.assert_allclose(maps.toarray(), P, **close)
        operator = prox.operator(given_X)
        np.testing.assert_allclose(operator @ V, P @ V, rtol=0, atol=1e-11)
        np.testing.assert_allclose(operator.T @ P, P.T @ P, rtol=0, atol=1e-10)
        np.testing.assert_allclose(prox.weighted_sums(V, given_X), P @ V, rtol=0, atol=1e-11)
        averages = P @ V / P.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(prox.weighted_average(V, given_X), averages, rtol=0, atol=1e-11)
        columns = prox.proximity_to([5, 2], given_X).toarray()
        np.testing.assert_allclose(columns, P[:, [5, 2]], **close)
        for rows, block in prox.iter_proximity(given_X, block_size=17):
            np.testing.assert_allclose(block.toarray(), P[rows], **close)


def check_neighbors(prox, P, k, given_X=None):
    """Neighbors have the k largest proximities, and ties are ordered by position."""
    similarity, neighbors = prox.kneighbors(given_X, k)
    others = P.copy()
    if given_X is None:
        np.fill_diagonal(others, -1)
    largest = -np.sort(-others, axis=1)[:, :k]
    np.testing.assert_allclose(similarity, largest, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(others, neighbors, 1), largest, atol=1e-12)
    for row in range(len(P)):
        assert len({*neighbors[row]}) == k
        for left, right in zip(range(k - 1), range(1, k), strict=True):
            if similarity[row, left] == similarity[row, right]:
                assert neighbors[row, left] < neighbors[row, right]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("k", [1, 10, 239])
def test_neighbors_are_exact(forest, scheme, k):
    prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
    check_neighbors(prox, brute(scheme, forest, X, X), k)
    check_neighbors(prox, brute(scheme, forest, X_new, X), k, X_new)


@given(
    bootstrapped(),
    st.sampled_from([PathDecay(0.01), PathDecay(0.5), PathDecay(1e3), RandomPartition()]),
    st.integers(1, 24),
)
def test_any_forest(case, scheme, k):
    prox = ForestProximity(case.forest, scheme, dtype=np.float64).fit(case.X, case.y)
    for given_X in (None, case.X_new):
        A = case.X if given_X is None else given_X
        P = brute(scheme, case.forest, A, case.X)
        np.testing.assert_allclose(prox.proximity(given_X).toarray(), P, rtol=0, atol=1e-12)
        np.testing.assert_allclose(prox.operator(given_X) @ P.T, P @ P.T, rtol=0, atol=1e-11)
        most = len(case.X) - (given_X is None)
        if most:
            check_neighbors(prox, P, min(k, most), given_X)


def test_neighbors_do_not_depend_on_threads_or_order_of_rows(forest):
    prox = ForestProximity(forest, "rpk").fit(X, y)
    found = prox.kneighbors(n_neighbors=7)
    prox.n_jobs = 3
    for one, other in zip(found, prox.kneighbors(n_neighbors=7), strict=True):
        np.testing.assert_array_equal(one, other)
    rows = np.random.default_rng(0).permutation(len(X))
    inside = Inside.of(prox)
    some = inside.engine.nearest(inside.product().take(rows), 7)
    for one, other in zip(found, some, strict=True):
        np.testing.assert_array_equal(one[rows], other)


def test_bounds_save_most_of_the_work():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 5))
    classes = (points[:, 0] + points[:, 1] ** 2 > 1).astype(int)
    forest = RandomForestClassifier(20, random_state=0).fit(points, classes)
    inside = Inside.of(ForestProximity(forest, "pbk").fit(points, classes))
    _, _, looks = PathEngine().nearest_and_looks(inside.product(), 5)
    assert looks.sum() < 0.15 * 3000 * 3000 * 20


@pytest.mark.parametrize("scheme", ["pbk", "rpk"])
def test_the_kernel_is_positive_semidefinite_with_ones_on_the_diagonal(forest, scheme):
    prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
    P = prox.proximity().toarray()
    np.testing.assert_allclose(P, P.T, atol=1e-15)
    np.testing.assert_allclose(np.diag(P), 1, atol=1e-14)
    assert np.linalg.eigvalsh(P).min() > -1e-12
    largest = eigsh(prox.operator(), 3, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(largest), np.linalg.eigvalsh(P)[-3:], rtol=1e-10)
    zero = prox.reweigh(diagonal="zero")
    without = P - np.diag(np.diag(P))
    np.testing.assert_allclose(zero.proximity().toarray(), without, atol=1e-15)
    np.testing.assert_allclose(zero.operator() @ np.ones(len(X)), without.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(zero.weighted_sums(np.ones(len(X))), without.sum(axis=1), rtol=1e-12)


def test_sums_without_the_diagonal_take_one_sweep(forest, monkeypatch):
    prox = ForestProximity(forest, "pbk", diagonal="zero", dtype=np.float64).fit(X, y)
    P, values = prox.proximity().toarray(), np.column_stack([np.arange(240.0), np.ones(240)])
    monkeypatch.setattr(PathEngine, "_dense_rows", None)  # rows of P are not needed
    np.testing.assert_allclose(prox.weighted_sums(values), P @ values, rtol=1e-12)


@pytest.mark.parametrize("decay", [12.0, 1e3])
def test_sums_without_the_diagonal_keep_their_digits(decay):
    """Samples that are alone in their leaves have tiny proximities to all others, or none."""
    target = np.random.default_rng(0).normal(size=240)
    forest = RandomForestRegressor(3, bootstrap=False, max_features=2, random_state=0)
    prox = ForestProximity(forest, PathDecay(decay), diagonal="zero", dtype=np.float64)
    P = prox.fit(X, target).proximity().toarray()
    assert P.max() < 1e-9
    sums = prox.weighted_sums(target)
    np.testing.assert_allclose(sums, P @ target, rtol=1e-9)
    assert sums.any() == (decay < 100)


def test_float32_neighbors_are_the_first_of_all_neighbors(forest):
    for scheme in (PathDecay(0.05), PathDecay(3.0), RandomPartition()):
        prox = ForestProximity(forest, scheme).fit(X, y)
        similarity, neighbors = prox.kneighbors(n_neighbors=239)
        assert (np.diff(similarity) == 0).any()  # there are ties
        for k in (1, 5, 60):
            some = prox.kneighbors(n_neighbors=k)
            np.testing.assert_array_equal(some[0], similarity[:, :k])
            np.testing.assert_array_equal(some[1], neighbors[:, :k])


def test_no_neighbors_and_too_large_proximities(forest):
    class Huge(PathScheme):
        def node_weights(self, forest):
            return NodeWeights(np.full(forest.nodes.n_nodes, 1e39))

    inside = Inside.of(ForestProximity(forest, "pbk").fit(X, y))
    assert PathEngine().nearest(inside.product(), 0)[1].shape == (240, 0)
    prox = ForestProximity(forest, Huge()).fit(X, y)
    for compute in (prox.proximity, prox.kneighbors):
        with pytest.raises(OverflowError, match="too large for float32"):
            compute()


class Signed(PathScheme):
    """Nodes count, and samples have a sign."""

    signed = True

    def query(self, samples, forest):
        return np.where(samples.leaf[:, :1] % 2, 1.0, -1.0) * np.ones(samples.leaf.shape)

    def node_weights(self, forest):
        return NodeWeights(np.ones(forest.nodes.n_nodes) / forest.n_trees, 0.5)


def test_weights_of_samples_and_signs(forest):
    plain = ForestProximity(forest, Signed(), dtype=np.float64).fit(X, y)
    P = plain.proximity().toarray()
    assert (P < 0).any()
    slow = ForestProximity(forest, Signed(), dtype=np.float64, engine="reference").fit(X, y)
    np.testing.assert_allclose(slow.proximity_to([0, 9]).toarray(), P[:, [0, 9]], atol=1e-12)
    maps = plain.query_map(X_new) @ plain.reference_map().T
    np.testing.assert_allclose(plain.proximity(X_new).toarray(), maps.toarray(), atol=1e-12)
    check_neighbors(plain, P, 7)
    largest = plain.kneighbors(n_neighbors=7, by="magnitude")[0]
    np.fill_diagonal(P, 0)
    np.testing.assert_allclose(np.abs(largest), -np.sort(-np.abs(P), axis=1)[:, :7], atol=1e-12)


def test_engines_for_paths(forest):
    expected = ForestProximity(forest, "pbk").fit(X, y).kneighbors()
    for engine in (PathEngine(2), NativeEngine(2)):
        found = ForestProximity(forest, "pbk", engine=engine).fit(X, y).kneighbors()
        np.testing.assert_array_equal(found[1], expected[1])


def test_a_large_decay_gives_uniform(forest):
    prox = ForestProximity(forest, PathDecay(1e3), dtype=np.float64).fit(X, y)
    uniform = prox.reweigh("uniform").proximity()
    np.testing.assert_allclose(prox.proximity().toarray(), uniform.toarray(), atol=1e-14)


def test_sampled_depths_have_the_expected_kernel_as_their_mean(forest):
    expected = ForestProximity(forest, "rpk", dtype=np.float64).fit(X, y)
    drawn = np.stack(
        [
            expected.reweigh(RandomPartition("sampled", seed)).proximity(dense=True)
            for seed in range(200)
        ]
    )
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    off = np.abs(drawn.mean(axis=0) - expected.proximity(dense=True))
    assert (off <= 5.5 * error + 1e-12).all()
    assert (off <= 2 * error + 1e-12).mean() > 0.9


def test_sampled_depths_are_cut_trees_with_a_seed(forest):
    prox = ForestProximity(forest, RandomPartition("sampled", 3), dtype=np.float64).fit(X, y)
    again = prox.reweigh(RandomPartition("sampled", 3)).proximity()
    assert (prox.proximity() != again).nnz == 0
    assert (prox.proximity() != prox.reweigh(RandomPartition("sampled", 4)).proximity()).nnz
    heights = [tree.tree_.max_depth for tree in forest.estimators_]
    depths = np.random.default_rng(3).integers(0, heights, endpoint=True)
    pairs = list(zip(forest.estimators_, depths, strict=True))
    for A, given_X in ((X, None), (X_new, X_new)):
        cut = [[nodes_at_depth(tree, rows, d) for tree, d in pairs] for rows in (A, X)]
        P = np.mean([a[:, None] == b[None] for a, b in zip(*cut, strict=True)], axis=0)
        np.testing.assert_allclose(prox.proximity(given_X).toarray(), P, atol=1e-14)


class Splits(PathScheme):
    """The number of shared splits."""

    name = "splits"

    def node_weights(self, forest):
        return NodeWeights(np.where(forest.nodes.is_leaf, 0.0, 1.0))


def test_your_own_node_weights(forest):
    prox = ForestProximity(forest, Splits(), dtype=np.float64).fit(X, y)
    shared = 0.0
    for tree in forest.estimators_:
        _, _, common = pair_depths(tree, X_new, X)
        same = tree.apply(np.float32(X_new))[:, None] == tree.apply(np.float32(X))[None]
        shared = shared + np.where(same, common, common + 1)
    np.testing.assert_allclose(prox.proximity(X_new).toarray(), shared, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (NodeWeights(np.ones(3)), "one weight for each of the"),
        (NodeWeights(np.float64(1.0)), "one weight for each of the"),
        ("negative", "finite, nonnegative"),
        ("nan", "finite, nonnegative"),
        ("decay", "edge_factor from 0 to 1; got 1.5"),
        ("none", "edge_factor from 0 to 1; got None"),
    ],
)
def test_wrong_node_weights_are_refused(forest, weights, message):
    class Wrong(PathScheme):
        def node_weights(self, forest):
            ones = np.ones(forest.nodes.n_nodes)
            known = {
                "negative": NodeWeights(-ones),
                "nan": NodeWeights(np.nan * ones),
                "decay": NodeWeights(ones, 1.5),
                "none": NodeWeights(ones, None),
            }
            return known[weights] if isinstance(weights, str) else weights

    with pytest.raises(ValueError, match=message):
        ForestProximity(forest, Wrong()).fit(X, y)


def test_wrong_parameters_are_refused(forest):
    for scheme, message in [
        (PathDecay(0), "decay must be a finite number greater than 0; got 0"),
        (PathDecay("fast"), "decay must be a finite number greater than 0; got 'fast'"),
        (PathDecay(np.inf), "decay must be a finite number greater than 0"),
        (RandomPartition("all"), "depths must be"),
        (RandomPartition("sampled", -1), "random_state must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            ForestProximity(forest, scheme).fit(X, y)


def test_a_matrix_past_max_memory_is_refused_with_the_reason(forest):
    prox = ForestProximity(forest, "pbk", max_memory="100KB").fit(X, y)
    with pytest.raises(MemoryError, match=r"'pbk' it has no zeros, because all samples share"):
        prox.proximity()
    with pytest.raises(MemoryError, match="no zeros"):
        prox.proximity(dense=True)
    assert not prox.forecast().fits
    assert "shared roots      691,200" in str(prox.forecast())
    assert prox.kneighbors(n_neighbors=3)[1].shape == (240, 3)


def test_forests_without_nodes_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"'pbk' needs the nodes of the trees, but .* does not"):
        ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]], weight_scheme="pbk")


def test_engines_that_cannot_compare_paths_are_refused(forest):
    class Own(PathEngine):
        key = "own"

    with pytest.raises(ValueError, match="engine=Own does not support schemes that compare"):
        ForestProximity(forest, "pbk", engine=Own()).fit(X, y)
    with pytest.raises(ValueError, match="engine='gpu' does not support schemes"):
        engine_for_paths("gpu", n_threads=1)


MODELS = {
    "regressor": RandomForestRegressor(5, random_state=0),
    "extra": ExtraTreesClassifier(5, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=6, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "isolation": IsolationForest(n_estimators=5, random_state=0),
    "best_first": RandomForestClassifier(5, max_leaf_nodes=9, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_forests_of_scikit_learn(name):
    forest = MODELS[name].fit(X, y)
    prox = ForestProximity(forest, PathDecay(0.3), dtype=np.float64).fit(X, y)
    expected = pbk(forest, X_new, X, 0.3)
    np.testing.assert_allclose(prox.proximity(X_new).toarray(), expected, atol=1e-12)


def leaf_paths(prox, rows):
    """Paths from the trees of an adapter: a list of nodes for each row and tree."""
    inside = Inside.of(prox)
    trees, leaf = inside.forest.trees(), inside.route(rows).leaf
    offsets = inside.stats.leaf_offsets
    found = []
    for t, tree in enumerate(trees):
        parent = {}
        for node, (left, right) in enumerate(
            zip(tree.children_left, tree.children_right, strict=True)
        ):
            if left >= 0:
                parent[int(left)] = parent[int(right)] = node
        nodes = np.flatnonzero(np.asarray(tree.children_left) < 0)[leaf[:, t] - offsets[t]]
        paths = []
        for node in nodes.tolist():
            path = [node]
            while path[-1] in parent:
                path.append(parent[path[-1]])
            paths.append(path)
        found.append(paths)
    return found


def boosted_models():
    models = {"hist": lambda: HistGradientBoostingClassifier(max_iter=5, random_state=0)}
    for module, name, options in [
        ("lightgbm", "LGBMClassifier", {"n_estimators": 6, "verbose": -1}),
        ("xgboost", "XGBClassifier", {"n_estimators": 6, "gamma": 0.5}),
        ("catboost", "CatBoostClassifier", {"iterations": 6, "verbose": 0, "depth": 3}),
    ]:
        models[module] = lambda m=module, n=name, o=options: getattr(pytest.importorskip(m), n)(**o)
    return models


@pytest.mark.parametrize("name", boosted_models())
def test_boosted_models_of_other_libraries(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # CatBoost writes files
    model = boosted_models()[name]().fit(X, y)
    prox = ForestProximity(model, PathDecay(0.4), dtype=np.float64).fit(X, y)
    ours, theirs = leaf_paths(prox, X_new), leaf_paths(prox, X)
    P = np.zeros((len(X_new), len(X)))
    for of_new, of_old in zip(ours, theirs, strict=True):
        for (i, a), (j, b) in product(enumerate(of_new), enumerate(of_old)):
            P[i, j] += np.exp(-0.4 * len({*a} ^ {*b}))
    np.testing.assert_allclose(prox.proximity(X_new).toarray(), P / len(ours), atol=1e-12)


def test_saved_extended_and_pickled_kernels(forest, tmp_path):
    for scheme in (PathDecay(0.5), RandomPartition(), RandomPartition("sampled", 2)):
        prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
        expected = prox.proximity(X_new).toarray(), *prox.kneighbors(n_neighbors=5)
        parts = ForestProximity(forest, scheme, dtype=np.float64).fit(X[:100], y[:100])
        parts.extend(X[100:140], y[100:140]).extend(X[140:], y[140:])
        loaded = ForestProximity.load(prox.save(tmp_path / f"{scheme}"))
        for other in (loaded, parts, pickle.loads(pickle.dumps(prox))):
            found = other.proximity(X_new).toarray(), *other.kneighbors(n_neighbors=5)
            for one, another in zip(expected, found, strict=True):
                np.testing.assert_allclose(one, another, rtol=0, atol=1e-15)
            values = other.weighted_average(np.arange(240.0), X_new)
            np.testing.assert_allclose(values, prox.weighted_average(np.arange(240.0), X_new))


def test_batches(forest, tmp_path):
    prox = ForestProximity(forest, "pbk", dtype=np.float64, max_memory="1MB")
    prox.fit(Batches.from_arrays(X, y, batch_rows=50), folder=tmp_path / "kernel")
    expected = ForestProximity(forest, "pbk", dtype=np.float64).fit(X, y)
    for one, other in zip(
        prox.kneighbors(n_neighbors=4), expected.kneighbors(n_neighbors=4), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-15)
    assert is_mapped(prox.kernel_.query.incidence.columns)


@pytest.mark.parametrize(
    "scheme", [PathDecay(), RandomPartition("sampled"), Collapsed("kerf", min_samples=15)], ids=str
)
def test_dask(forest, scheme):
    array = pytest.importorskip("dask.array")
    prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
    on_dask = ForestProximity(forest, scheme, dtype=np.float64)
    on_dask.fit(array.from_array(X, chunks=(100, X.shape[1])), y)
    for given_X in (None, X_new):
        P = prox.proximity(given_X)
        assert abs(on_dask.proximity(given_X).compute() - P).max() < 1e-14
        averages = prox.weighted_average(y, given_X)
        np.testing.assert_allclose(on_dask.weighted_average(y, given_X), averages, rtol=1e-12)
        maps = on_dask.query_map(given_X).compute()
        assert abs(maps - prox.query_map(given_X)).max() < 1e-15
    for one, other in zip(
        prox.kneighbors(n_neighbors=4), on_dask.kneighbors(n_neighbors=4), strict=True
    ):
        np.testing.assert_array_equal(one, np.asarray(other))


def test_tasks_take_path_kernels(forest):
    from leafkernel import tasks

    prox = ForestProximity(forest, "pbk").fit(X, y)
    assert tasks.ProximityClassifier(prox).fit(X, y).predict(X_new).shape == (30,)
    assert tasks.LeafPCA(prox, n_components=2).fit_transform(X, y).shape == (240, 2)
    assert np.isfinite(tasks.outlier_scores(prox, X)).all()
    assert len(tasks.medoids(prox, y)) == 2
    assert tasks.find_label_errors(prox, y) is not None
    with pytest.raises(ValueError, match="explain_pair needs a scheme that compares the leaves"):
        tasks.explain_pair(prox, 0, 1)
    graph = prox.kneighbors_graph(n_neighbors=30, mode="distance")
    assert KNeighborsClassifier(5, metric="precomputed").fit(graph, y).score(graph, y) > 0.9
    assert prox.get_feature_names_out()[:2].tolist() == ["tree0_node0", "tree0_node1"]
    assert len(prox.get_feature_names_out()) == prox.transform(X_new).shape[1]


def test_regression_and_float32():
    points, target = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(10, random_state=0).fit(points, target)
    prox = ForestProximity(forest, "rpk", n_jobs=2).fit(points, target)
    P = rpk(forest, points[:50], points)
    np.testing.assert_allclose(prox.proximity(points[:50]).toarray(), P, atol=1e-6)
    np.testing.assert_allclose(prox.operator(points[:50]) @ target, P @ target, rtol=1e-5)


def test_collapsed_leaves_do_not_take_paths():
    with pytest.raises(ValueError, match="'pbk' cannot be collapsed"):
        Collapsed("pbk", max_depth=2)
