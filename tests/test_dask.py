"""Proximities of data on a cluster are those of the same data in memory."""

import os
import pickle
import signal
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, vstack
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.tasks import (
    LeafPCA,
    PrototypeClassifier,
    ProximityClassifier,
    ProximityHDBSCAN,
    ProximityKMedoids,
    ProximityOutlierDetector,
    ProximityRegressor,
    ProximitySpectralClustering,
    class_prototypes,
    find_label_errors,
    medoids,
    outlier_scores,
    select_prototypes,
    trust_scores,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

SCHEMES = ["gap", "kerf", "uniform", "oob", "oob_separable"]


@pytest.fixture(scope="module")
def forest(iris):
    return RandomForestClassifier(30, random_state=0).fit(*iris)


@pytest.fixture(scope="module")
def spread(iris):
    """The same data as Dask arrays: blocks of rows and of columns, and other blocks of targets."""
    X, y = iris
    return da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=60)


@pytest.fixture(scope="module")
def both(iris, forest, spread):
    """Return proximities fitted in memory and on Dask data."""

    def fit(scheme="gap", **params):
        made = [ForestProximity(forest, scheme, **params) for _ in range(2)]
        return made[0].fit(*iris), made[1].fit(*spread)

    return fit


@pytest.fixture(scope="module")
def cluster():
    local = partial(distributed.LocalCluster, n_workers=2, threads_per_worker=1, processes=True)
    connect = distributed.Client  # by address, as to a cluster that somebody else started
    with local(dashboard_address=None) as local, connect(local.scheduler_address) as client:
        yield client


def assert_same_matrix(found, expected):
    assert isinstance(found, csr_array)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


def assert_same_results(lazy, whole, X, values, ks=(1, 5, 149)):
    """Compare everything that is lazy. X is in memory; the queries are spread again."""
    for rows in (None, X):
        asked = None if rows is None else da.from_array(rows, chunks=(17, 2))
        for k in ks:
            found = lazy.kneighbors(asked, k)
            assert all(isinstance(array, da.Array) for array in found)
            for one, other in zip(dask.compute(*found), whole.kneighbors(rows, k), strict=True):
                assert_array_equal(one, other)
                assert one.dtype == other.dtype
        assert_same_matrix(lazy.proximity(asked).compute(), whole.proximity(rows))
        for numbers in (values, values[:, 0]):
            for name in ("weighted_sums", "weighted_average"):
                found = getattr(lazy, name)(numbers, asked)
                assert isinstance(found, da.Array)
                assert_allclose(
                    found.compute(), getattr(whole, name)(numbers, rows), rtol=0, atol=1e-13
                )
        if not whole.scheme_.divides_by_shared_oob:
            assert_same_matrix(lazy.query_map(asked).compute(), whole.query_map(rows))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_result_is_the_same(both, iris, rng, scheme, dtype):
    whole, lazy = both(scheme, dtype=dtype)
    assert_same_results(lazy, whole, iris[0][::3] + 0.02, rng.normal(size=(150, 2)))
    assert (lazy.n_trees_, lazy.n_leaves_, lazy.n_samples_fit_) == (30, whole.n_leaves_, 150)
    assert_array_equal(lazy.y_, iris[1])


@pytest.mark.parametrize("diagonal", ["one", "zero", "adjusted"])
def test_diagonals(both, iris, rng, diagonal):
    whole, lazy = both(diagonal=diagonal)
    assert_same_results(lazy, whole, iris[0][:20], rng.normal(size=(150, 2)))


def test_symmetrized(both, iris, rng):
    whole, lazy = both(symmetrize=True)
    assert_same_results(lazy, whole, iris[0][:20], rng.normal(size=(150, 2)))


def test_the_maps_are_lazy(both, spread):
    whole, lazy = both("kerf")
    X, _ = spread
    coordinates = lazy.transform(X)
    assert isinstance(coordinates, da.Array)
    assert coordinates.shape == (150, whole.n_leaves_)
    assert_same_matrix(coordinates.compute(), whole.transform(X.compute()))
    assert_same_matrix(lazy.reference_map().compute(), whole.reference_map())
    fitted = ForestProximity(lazy.forest_, "kerf").fit_transform(X)
    assert_same_matrix(fitted.compute(), whole.query_map())


def test_p_has_a_block_for_each_block_of_rows_and_each_part(both):
    _, lazy = both()
    found = lazy.proximity()
    assert found.chunks == ((40, 40, 40, 30),) * 2
    assert isinstance(found.blocks[1, 2].compute(), csr_array)


def test_nothing_is_computed_before_it_is_asked_for(both):
    _, lazy = both()
    asked = da.from_delayed(dask.delayed(lambda: 1 / 0)(), shape=(3, 4), dtype=float)
    similarity, _ = lazy.kneighbors(asked)
    lazy.proximity(asked), lazy.weighted_sums(np.ones(150), asked), lazy.transform(asked)
    with pytest.raises(ZeroDivisionError):
        similarity.compute()


def test_data_frames_and_empty_partitions(iris, forest):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = clone(forest).fit(frame, y)
    whole = ForestProximity(model).fit(frame, y)
    parts = dd.from_pandas(frame, npartitions=4)
    nothing = parts.partitions[:1].query("a > 99")
    parts = dd.concat([parts.partitions[:2], nothing, parts.partitions[2:]])
    lazy = ForestProximity(model).fit(parts, y)
    assert_array_equal(lazy.feature_names_in_, list("abcd"))
    for one, other in zip(
        dask.compute(*lazy.kneighbors(parts, 4)), whole.kneighbors(frame, 4), strict=True
    ):
        assert_array_equal(one, other)
    found = lazy.proximity(parts)
    assert np.isnan(found.shape[0])
    assert_same_matrix(found.compute(), whole.proximity(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        lazy.kneighbors(parts.rename(columns={"a": "z"}))


def test_queries_in_memory_are_lazy_too(both, iris):
    whole, lazy = both()
    for X in (iris[0][:9], iris[0][:9].tolist(), pd.DataFrame(iris[0][:9])):
        found = lazy.proximity(X)
        assert found.shape == (9, 150)
        assert_same_matrix(found.compute(), whole.proximity(X))


@pytest.mark.parametrize("scheme", [*SCHEMES, "ih"])
def test_dask_queries_to_a_proximity_in_memory(iris, forest, rng, scheme):
    X, y = iris
    whole = ForestProximity(forest, scheme).fit(X, y)
    asked = da.from_array(X[::2], chunks=(30, 4))
    assert_same_matrix(whole.proximity(asked).compute(), whole.proximity(X[::2]))
    for one, other in zip(
        dask.compute(*whole.kneighbors(asked, 3)), whole.kneighbors(X[::2], 3), strict=True
    ):
        assert_array_equal(one, other)
    values = rng.normal(size=150)
    found = whole.weighted_average(values, asked).compute()
    assert_allclose(found, whole.weighted_average(values, X[::2]), atol=1e-13)
    model = ProximityClassifier(whole).fit(X, y)
    assert_array_equal(model.predict(asked), model.predict(X[::2]))


def test_values_may_be_spread(both, rng):
    whole, lazy = both()
    values = rng.normal(size=(150, 3))
    found = lazy.weighted_sums(da.from_array(values, chunks=(70, 2)))
    assert_allclose(found.compute(), whole.weighted_sums(values), atol=1e-13)
    with pytest.raises(ValueError, match="150 training samples"):
        lazy.weighted_sums(da.zeros(7))


def test_a_row_without_proximity_has_no_average(iris):
    X, y = iris
    model = RandomForestClassifier(2, random_state=0).fit(X, y)
    with pytest.warns(LeafkernelWarning, match="in bag in every tree"):
        lazy = ForestProximity(model).fit(da.from_array(X, chunks=(50, 4)), y)
    with pytest.warns(LeafkernelWarning):
        expected = ForestProximity(model).fit(X, y).weighted_average(y)
    average = lazy.weighted_average(y)  # lazy, so no warning yet: it would be an error here
    with pytest.warns(LeafkernelWarning, match="of 50 samples have proximity 0") as caught:
        found = average.compute(scheduler="synchronous")
    assert_allclose(found, expected)
    counted = sum(int(str(each.message).split()[0]) for each in caught)
    assert counted == np.isnan(expected).sum() > 0


@pytest.mark.parametrize(
    ("forest", "scheme"),
    [
        (make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)), "gap"),
        (RandomForestClassifier(10, class_weight="balanced_subsample", random_state=0), "gap"),
        (GradientBoostingClassifier(n_estimators=5, random_state=0), "boosted"),
        (RandomForestRegressor(10, max_samples=0.5, random_state=0), "oob"),
    ],
    ids=["pipeline", "weights", "boosting", "regressor"],
)
def test_forests_of_scikit_learn(iris, spread, forest, scheme):
    X, y = iris
    model = clone(forest).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeafkernelWarning)
        whole, lazy = (ForestProximity(model, scheme).fit(*data) for data in (iris, spread))
    assert_same_matrix(lazy.proximity().compute(), whole.proximity())


def test_tasks(both, iris, spread):
    X, y = iris
    (whole, lazy), (uniform, lazy_uniform) = both(dtype=np.float64), both("uniform")
    new = X[::5] + 0.01

    def compare(work, pairs=((whole, lazy), (uniform, lazy_uniform)), **tolerance):
        for in_memory, on_dask in pairs:
            expected, found = work(in_memory, X), work(on_dask, spread[0])
            assert not isinstance(found, da.Array)
            assert_allclose(found, expected, rtol=1e-6, atol=1e-12, **tolerance)

    compare(lambda prox, X: ProximityClassifier(prox).fit(X, y).predict_proba(new))
    compare(lambda prox, X: ProximityClassifier(prox).fit(X, y).predict_proba())
    compare(lambda prox, X: ProximityClassifier(prox, n_neighbors=3).fit(X, y).predict_proba())
    compare(lambda prox, X: ProximityRegressor(prox).fit(X, 1.0 * y).predict(X))
    compare(lambda prox, _: outlier_scores(prox))
    compare(lambda prox, _: find_label_errors(prox).scores)
    compare(lambda prox, _: [*medoids(prox).values()])
    compare(lambda prox, _: select_prototypes(prox, n_prototypes=2).rows)
    compare(lambda prox, X: class_prototypes(prox, X).cases)
    compare(lambda prox, X: PrototypeClassifier(prox).fit(X, y).predict(X))
    compare(lambda prox, X: ProximityKMedoids(prox, n_clusters=3).fit(X, y).labels_)
    compare(lambda prox, X: ProximityKMedoids(prox, n_clusters=3).fit(X, y).predict(new))
    compare(lambda prox, X: ProximityHDBSCAN(prox).fit(X, y).labels_)
    compare(
        lambda prox, X: (
            ProximitySpectralClustering(prox, n_clusters=3, random_state=0).fit(X, y).labels_
        )
    )
    compare(trust_scores, [(whole, lazy)])
    compare(
        lambda prox, X: ProximityOutlierDetector(prox).fit(X, y).outlier_scores_, [(whole, lazy)]
    )
    compare(lambda prox, _: prox.kneighbors_graph(n_neighbors=4).toarray())
    compare(lambda prox, X: prox.kneighbors_graph(X, 4, mode="distance").toarray())
    compare(lambda prox, X: prox.proximity_to([149, 3, 70], X).toarray())
    compare(lambda prox, X: prox.proximity_to([149, 3, 70]).toarray())
    compare(lambda prox, _: prox.operator() @ y)
    compare(lambda prox, _: prox.operator().T @ y)
    compare(lambda prox, _: prox.neighbors_frame(n_neighbors=2)["proximity"])
    compare(lambda prox, X: vstack([b for _, b in prox.iter_proximity(X, block_size=33)]).toarray())


def test_another_diagonal(both):
    whole, lazy = both("uniform")
    found = lazy.reweigh(diagonal="zero").proximity()
    assert isinstance(found, da.Array)
    assert_same_matrix(found.compute(), whole.reweigh(diagonal="zero").proximity())


def test_what_does_not_work_says_so(both, iris, spread, forest, tmp_path):
    _, lazy = both()
    X, y = spread
    with pytest.raises(NotImplementedError, match="save is not available"):
        lazy.save(tmp_path / "saved")
    with pytest.raises(NotImplementedError, match="fit again"):
        lazy.reweigh("kerf")
    with pytest.raises(NotImplementedError, match="computed in blocks"):
        lazy.forecast()
    with pytest.raises(NotImplementedError, match="some of the samples"):
        lazy.explore(X)
    with pytest.raises(NotImplementedError, match="data in memory"):
        LeafPCA(lazy).fit(X)
    with pytest.raises(ValueError, match="is not fitted"):
        ForestProximity(clone(forest)).fit(X, y)
    with pytest.raises(ValueError, match="needs all training samples in one process"):
        ForestProximity(forest, "ih").fit(X, y)
    with pytest.raises(ValueError, match="expecting 4 features"):
        lazy.kneighbors(da.zeros((5, 3)))
    with pytest.raises(ValueError, match="Expected 2D array"):
        lazy.kneighbors(da.zeros(5))
    with pytest.raises(ValueError, match="n_neighbors=150"):
        lazy.kneighbors(n_neighbors=150)
    with pytest.raises(TypeError, match="has no list of its leaves"):
        ForestProximity(type("Own", (), {"leaves": lambda self, X: X})(), "kerf").fit(X, y)
    with pytest.raises(ValueError, match="has no rows"):
        ForestProximity(forest, "kerf").fit(X[:0])
    with pytest.raises(ValueError, match="does not contain the samples that the proximity"):
        ProximityClassifier(lazy).fit(X[::-1], y)


def test_other_samples_than_those_of_the_forest_are_refused(spread, forest):
    X, y = spread
    with pytest.raises(ValueError, match=r"X has 140 samples, but .* was fitted on 150"):
        ForestProximity(forest).fit(X[:140], y[:140])
    with pytest.raises(ValueError, match="does not match the rows"):
        ForestProximity(forest).fit(X[::-1], y[::-1])
    with pytest.raises(ValueError, match="y has 40 rows"):
        ForestProximity(forest, "kerf").fit(X, y[:40])


def test_neighbors_are_written_to_parquet(both, spread, tmp_path):
    whole, lazy = both()
    for X, name in ((None, "training"), (spread[0][:70], "new")):
        folder = lazy.write_neighbors(tmp_path / name, X, n_neighbors=3)
        assert len([*folder.iterdir()]) == (4 if X is None else 2)
        found = pd.read_parquet(folder)
        similarity, neighbors = whole.kneighbors(None if X is None else X.compute(), 3)
        row, rank = np.nonzero(similarity)
        assert_array_equal(found["row"], row)
        assert_array_equal(found["neighbor"], neighbors[row, rank])
        assert_array_equal(found["proximity"], similarity[row, rank])
        pairs = pd.read_parquet(lazy.write_proximity(tmp_path / f"P-{name}", X))
        P = whole.proximity(None if X is None else X.compute()).tocoo()
        for column, expected in (("row", P.row), ("neighbor", P.col), ("proximity", P.data)):
            assert_array_equal(pairs[column], expected)


def test_it_can_be_pickled_without_a_cluster(both):
    whole, lazy = both()
    assert_same_matrix(pickle.loads(pickle.dumps(lazy)).proximity().compute(), whole.proximity())


def test_very_many_partitions_are_put_together(iris, forest):
    X, y = iris
    lazy = ForestProximity(forest).fit(da.from_array(X, chunks=(1, 4)), y)
    found = lazy.kneighbors(n_neighbors=5)
    assert found[0].numblocks[0] <= 128
    expected = ForestProximity(forest).fit(X, y).kneighbors(n_neighbors=5)
    for one, other in zip(dask.compute(*found), expected, strict=True):
        assert_array_equal(one, other)


def test_names_on_the_dashboard(both):
    _, lazy = both()
    similarity, _ = lazy.kneighbors(n_neighbors=3)
    names = {dask.utils.key_split(key) for key in similarity.__dask_graph__()}
    assert {f"leafkernel-{step}" for step in ("part", "queries", "nearest", "merge")} <= names


@pytest.mark.processes
def test_a_cluster_of_processes(cluster, both, iris, spread, rng):
    for scheme in ("gap", "oob"):
        whole, lazy = both(scheme)  # with the parts on workers
        held = {dask.utils.key_split(key) for keys in cluster.has_what().values() for key in keys}
        assert "leafkernel-part" in held
        assert_same_results(lazy, whole, iris[0][::3], rng.normal(size=(150, 2)), ks=(5,))
    assert_allclose(outlier_scores(lazy), outlier_scores(whole), rtol=1e-9)


# XGBoost 2.0 leaves sockets of its own open.
@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_forests_that_learn_from_dask_data(cluster, iris, library):
    module = pytest.importorskip(f"{library}.dask")
    order = np.random.default_rng(0).permutation(150)
    X, y = iris[0][order], iris[1][order]
    parts = da.from_array(X, chunks=(75, 4)), da.from_array(y, chunks=75)
    name = {"xgboost": "DaskXGBClassifier", "lightgbm": "DaskLGBMClassifier"}[library]
    model = getattr(module, name)(n_estimators=4, max_depth=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Parameter n_jobs will be ignored")
        lazy = ForestProximity(model, "boosted").fit(*parts)
    whole = ForestProximity(lazy.forest_, "boosted").fit(X, y)
    again = ForestProximity(lazy.forest_, "boosted").fit(*parts)  # fitted already
    for prox in (lazy, again):
        assert_same_matrix(prox.proximity().compute(), whole.proximity())
        assert_same_matrix(prox.proximity(parts[0]).compute(), whole.proximity(X))


@pytest.mark.processes
def test_a_worker_that_dies_changes_nothing(cluster, iris, forest):
    X, y = iris
    whole = ForestProximity(forest).fit(X, y)
    lazy = ForestProximity(forest).fit(da.from_array(X, chunks=(20, 4)), y)
    results = [*lazy.kneighbors(n_neighbors=5), lazy.proximity()]
    pids = cluster.run(os.getpid)
    parts = {
        worker: [key for key in keys if "leafkernel-part" in str(key)]
        for worker, keys in cluster.has_what().items()
    }
    assert all(parts.values())  # each of them has something to lose
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    similarity, neighbors, matrix = dask.compute(*results)
    assert_array_equal(similarity, whole.kneighbors(n_neighbors=5)[0])
    assert_array_equal(neighbors, whole.kneighbors(n_neighbors=5)[1])
    assert_same_matrix(matrix, whole.proximity())
    cluster.wait_for_workers(2, timeout=60)


def test_a_proximity_with_parts_takes_dask_queries(iris, tmp_path):
    X, y = iris
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    whole = ForestProximity(forest, "kerf").fit(X, y)
    parted = ForestProximity(forest, "kerf").fit(X[:120], y[:120]).extend(X[120:], y[120:])
    assert len(parted.kernel_.index.parts) == 2
    queries = da.from_array(X + 0.01, chunks=(40, 4))
    found = parted.kneighbors(queries, 4)
    assert isinstance(found[0], da.Array)  # extend changes nothing about that
    for one, other in zip(dask.compute(*found), whole.kneighbors(X + 0.01, 4), strict=True):
        assert_array_equal(one, other)
    assert_same_matrix(parted.proximity(queries).compute(), whole.proximity(X + 0.01))
    parted.write_neighbors(tmp_path / "out", queries, 3)
    with pytest.raises(FileExistsError, match="is not empty"):
        parted.write_neighbors(tmp_path / "out", queries, 3)
    with pytest.raises(ValueError, match="folder of Parquet files"):
        parted.write_neighbors(tmp_path / "out.npy", queries, 3)
