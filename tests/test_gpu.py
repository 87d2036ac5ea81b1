"""The GPU engine against the compiled engine. Rows and neighbors are equal to the last bit.

Without a GPU, the kernels run on the processor, on smaller data: see tests/cuda_on_cpu.
"""

import copy
import dataclasses
import pickle
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import cuda_on_cpu
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from products import make_product, products
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import Batches, ForestProximity
from leafkernel.engines import NativeEngine, TooManyEntriesError
from leafkernel.engines.auto import AutoEngine
from leafkernel.engines.gpu import GpuEngine, _copies, _device, _rows, _tiles, gpu_problem
from leafkernel.engines.gpu._copies import Copier
from leafkernel.engines.gpu._index import DeviceIndex
from leafkernel.engines.gpu._tiles import Tiles
from leafkernel.forests._bootstrap import MISSING_VALUES_STRAY
from leafkernel.inside import Inside
from leafkernel.tasks import find_label_errors

EMULATED = gpu_problem() is not None
pytestmark = pytest.mark.skipif(
    EMULATED and cuda_on_cpu.PROBLEM is not None,
    reason=f"no GPU ({gpu_problem()}), and running its kernels on the processor "
    f"{cuda_on_cpu.PROBLEM}. On a machine with a GPU, run: python -m pytest tests/test_gpu.py",
)
#: Numbers of rows and samples for several parts, and the size of a part.
FEW, MANY, PART = (12, 3_000, 1_024) if EMULATED else (300, 150_000, None)


@pytest.fixture(scope="module", autouse=True)
def device():
    """A GPU, or the processor in its place."""
    with (
        pytest.MonkeyPatch.context() as stack,
        cuda_on_cpu.emulated_device() if EMULATED else nullcontext(),
    ):
        if EMULATED:  # route few samples, too, and copy small results in several pieces
            stack.setattr("leafkernel.engines.gpu._routing._FEW", 1)
            stack.setattr("leafkernel.engines.gpu._copies._SMALL_BYTES", 100)
            stack.setattr("leafkernel.engines.gpu._copies._BUFFER_BYTES", 256)
            stack.setattr("leafkernel.engines.gpu._ENTRIES_OF_PIECE", 32)
        yield


engines = st.builds(
    GpuEngine,
    part_size=st.sampled_from([None, 32, 64]),  # small parts: several for each product
    max_bytes=st.sampled_from([None, 20_000]),  # small blocks of rows
)


def assert_same(A, B):
    assert A.shape == B.shape
    assert A.dtype == B.dtype
    assert_array_equal(A.indptr, B.indptr)
    assert_array_equal(A.indices, B.indices)
    assert_array_equal(A.data, B.data)


@settings(deadline=None)
@given(product=products(), engine=engines)
def test_rows(product, engine):
    found, native = engine.rows(product), NativeEngine().rows(product)
    assert_same(found, native)
    assert found.has_canonical_format
    assert_array_equal(engine.dense(product), native.toarray())
    assert_array_equal(engine.nonzeros(product), np.diff(native.indptr))
    assert_array_equal(engine.collisions(product), NativeEngine().collisions(product))


@settings(deadline=None)
@given(product=products(), engine=engines, data=st.data())
def test_nearest(product, engine, data):
    k = data.draw(st.integers(0, product.shape[1] - (product.own is not None)))
    by_magnitude = data.draw(st.booleans())
    if data.draw(st.booleans()):
        product = signed(product)
    found = engine.nearest(product, k, by_magnitude=by_magnitude)
    native = NativeEngine().nearest(product, k, by_magnitude=by_magnitude)
    assert_array_equal(found[0], native[0])
    assert_array_equal(found[1], native[1])


def signed(product):
    """The same product with proximities of both signs, by a factor for each row."""
    query = product.query
    by_row = np.where(np.arange(query.n_rows) % 2, -1.0, 1.0)
    if query.by_row is not None:
        by_row = by_row * query.by_row
    weighting = dataclasses.replace(query.weighting, by_sample=by_row)
    return dataclasses.replace(product, query=dataclasses.replace(query, weighting=weighting))


@settings(deadline=None)
@given(product=products(), engine=engines)
def test_sums(product, engine):
    values = np.linspace(-1, 1, 3 * product.shape[1]).reshape(-1, 3)
    native = NativeEngine()
    found, expected = engine.sums(product, values), native.sums(product, values)
    assert_allclose(found, expected, rtol=0, atol=1e-12)
    close = 6e-5 if product.dtype == np.float32 else 1e-11
    found, expected = engine.apply(product, values), native.apply(product, values)
    assert_allclose(found, expected, rtol=0, atol=close)


@pytest.mark.parametrize("leaves_per_tree", [3, 100, 5000])  # bitmaps, pulled values, masks
@pytest.mark.parametrize("kinds", [("ones", "ones"), ("flags", "counts"), ("weights", "weights")])
@pytest.mark.parametrize("n_trees", [20, 300])  # counters of 8 and 16 bits
def test_several_parts(kinds, leaves_per_tree, n_trees, rng):
    product = make_product(
        rng, FEW, MANY, n_trees, kinds, leaves_per_tree=leaves_per_tree, dtype=np.float32
    )
    engine = GpuEngine(part_size=PART)
    assert_same(engine.rows(product), NativeEngine(8).rows(product))
    for k in (10, 250):
        found, native = engine.nearest(product, k), NativeEngine(8).nearest(product, k)
        assert_array_equal(found[1], native[1])
        assert_array_equal(found[0], native[0])


@pytest.mark.parametrize(("threads", "lanes"), [(256, 2), (1024, 8), (512, 16)])
@pytest.mark.parametrize("kinds", [("ones", "ones"), ("weights", "weights")])
def test_other_sizes_of_thread_blocks(kinds, threads, lanes, rng, monkeypatch):
    """The sizes that ``benchmarks/gpu.py --only tune`` compares."""
    monkeypatch.setattr(_rows, "_FILL_THREADS", threads)
    monkeypatch.setattr(_rows, "_BLOCKS_PER_UNIT", 2)
    monkeypatch.setattr(_rows, "_LANES_OF_LEAF", lanes)
    product = make_product(rng, 6, 1500, 20, kinds, leaves_per_tree=6)  # several pieces for a leaf
    assert_same(GpuEngine(part_size=512).rows(product), NativeEngine().rows(product))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n_samples", [40, 1000, 70_000])  # 70,000: several parts and chunks
def test_bitmaps_of_large_leaves(n_samples, own, rng):
    known = {"own": rng.integers(0, n_samples, FEW).astype(np.int32)} if own else {}
    product = make_product(rng, FEW, n_samples, 30, ("flags", "ones"), leaves_per_tree=5, **known)
    engine = GpuEngine()
    assert engine._on_device(product).has_large_leaves()
    for k in (1, 10, 39):
        found, native = engine.nearest(product, k), NativeEngine(8).nearest(product, k)
        assert_array_equal(found[1], native[1])
        assert_array_equal(found[0], native[0])


@pytest.mark.skipif(not EMULATED, reason="counts calls of the stand-in for CuPy")
def test_few_kernels_and_few_waits(rng, monkeypatch):
    """Each one costs time in which the device does nothing."""
    import cupy

    product = make_product(rng, 20, 300, 10, own=np.arange(20, dtype=np.int32))
    engine, counts = GpuEngine(output="cupy"), {"kernels": 0, "waits": 0, "copies": 0}
    expected = engine.rows(product)  # the samples are on the device now

    def count(kind, method):
        def call(*args, **kwargs):
            counts[kind] += 1
            return method(*args, **kwargs)

        return call

    kernel, array = cupy._compiler._Function, cupy.ndarray
    monkeypatch.setattr(kernel, "__call__", count("kernels", kernel.__call__))
    monkeypatch.setattr(array, "__int__", count("waits", array.__int__))
    monkeypatch.setattr(array, "get", count("waits", array.get))
    monkeypatch.setattr(cupy, "asarray", count("copies", cupy.asarray))
    found = engine.rows(product)
    assert counts == {"kernels": 4, "waits": 3, "copies": 0}
    monkeypatch.undo()
    assert_same(found.get(), expected.get())


def test_results_do_not_vary(rng):
    product = make_product(rng, FEW, MANY, 50, leaves_per_tree=200, dtype=np.float64)
    engine, values = GpuEngine(), rng.normal(size=(MANY, 3))
    first = engine.rows(product), engine.sums(product, values), engine.apply(product, values)
    for _ in range(3):
        assert_same(engine.rows(product), first[0])
        assert_array_equal(engine.sums(product, values), first[1])
        assert_array_equal(engine.apply(product, values), first[2])


@pytest.mark.skipif(not EMULATED, reason="emulates a device with less shared memory")
@pytest.mark.parametrize("n_trees", [20, 300, 2_000, 5_000])  # masks, pulled, ragged values
@pytest.mark.parametrize("kinds", [("ones", "ones"), ("weights", "weights")])
def test_little_shared_memory(kinds, n_trees, rng, monkeypatch):
    """A device without more shared memory than every kernel may use."""
    import cupy

    limits = {**cupy.cuda.Device.attributes, "MaxSharedMemoryPerBlockOptin": 49_152}
    monkeypatch.setattr(cupy.cuda.Device, "attributes", limits)
    _device._attribute.cache_clear()
    try:
        product = make_product(rng, 4, 500, n_trees, kinds, leaves_per_tree=20)
        found = GpuEngine().rows(product)
        assert_same(found, NativeEngine().rows(product))
        nearest = GpuEngine().nearest(product, 5)[1]
        assert_array_equal(nearest, NativeEngine().nearest(product, 5)[1])
    finally:
        _device._attribute.cache_clear()


@settings(deadline=None)
@given(product=products(), part_size=st.sampled_from([32, 64, 1024]))
def test_lists(product, part_size):
    """Lists that the device makes have the members of those of the processor."""
    index = product.index
    found = DeviceIndex.of(index, part_size)
    offsets, members = found.list_offsets.get().astype(int), found.members.get()
    for leaf in range(found.n_leaves):
        here = slice(index.offsets[leaf], index.offsets[leaf + 1])
        order = np.argsort(index.sample_at[index.members[here]])
        lists = [
            slice(*offsets[one : one + 2]) for one in range(leaf, len(offsets) - 1, found.n_leaves)
        ]
        samples = np.concatenate([members[one] + i * part_size for i, one in enumerate(lists)])
        assert_array_equal(samples, index.sample_at[index.members[here]][order])
        if index.weights is not None:
            weights = np.concatenate([found.member_weights.get()[one] for one in lists])
            assert_array_equal(weights, index.weights[here][order])


def test_limits(rng):
    with pytest.raises(ValueError, match=r"max_bytes must be positive; got -5"):
        GpuEngine(max_bytes=-5)
    with pytest.raises(ValueError, match=r"part_size must be from 1 to 65,536; got 65537"):
        GpuEngine(part_size=65_537)
    product = make_product(rng, 50, 500, 5, ("ones", "ones"))
    with pytest.raises(TooManyEntriesError):
        GpuEngine(max_bytes=100_000).rows(product, most_entries=1000)
    with pytest.raises(MemoryError, match=r"One row of P can need .* of GPU memory"):
        GpuEngine(max_bytes=100).rows(product)
    done = []
    product = make_product(rng, 50, 500, 5)
    GpuEngine(max_bytes=20_000).nearest(product, 3, done.append)
    assert len(done) > 1
    assert done[-1] == 50


@pytest.fixture
def small_device(monkeypatch):
    """Limit the memory that the engine may use. The emulated device has no more."""

    def limit(n_bytes):
        for module in ("_tiles", "_routing"):
            monkeypatch.setattr(f"leafkernel.engines.gpu.{module}.usable_bytes", lambda: n_bytes)
        monkeypatch.setattr(_device, "_FREE", {})
        if EMULATED:
            import cupy

            used = cupy.cuda.memory.pool.used
            monkeypatch.setattr(cupy.cuda.memory, "size", used + int(n_bytes / 0.6) + 60_000)

    return limit


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(product=products(), data=st.data())
def test_a_device_that_is_smaller_than_the_samples(small_device, product, data):
    n_entries = product.n_rows * product.query.incidence.columns.shape[-1]
    if product.query.incidence.offsets is not None or n_entries < 50:
        return
    rows = product.index.rows
    n_at_once = data.draw(st.integers(1, 20))
    lists = _tiles._LEAF_BYTES * rows.incidence.coordinates.n_columns
    small_device(4 * (lists + n_at_once * _tiles._sample_bytes(rows)))
    engine, native = GpuEngine(part_size=32), NativeEngine()
    k = data.draw(st.integers(0, product.shape[1] - (product.own is not None)))
    if Tiles.of(product, engine) is not None:
        assert "because its memory is too small" in engine.describe(product)
    done = []
    assert_same(engine.rows(product, done.append), native.rows(product))
    assert done == sorted(done)
    assert done[-1] == product.n_rows
    for found, expected in zip(engine.nearest(product, k), native.nearest(product, k), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(engine.nonzeros(product), native.nonzeros(product))
    assert_array_equal(engine.collisions(product), native.collisions(product))
    assert_array_equal(engine.dense(product), native.rows(product).toarray())
    values = np.linspace(-1, 1, 2 * product.shape[1]).reshape(-1, 2)
    assert_allclose(engine.sums(product, values), native.sums(product, values), atol=1e-12)


@pytest.mark.parametrize("scheme", ["gap", "oob", "kerf"])
def test_tiles_of_a_fitted_kernel(scheme, small_device, leaves, monkeypatch):
    known = {"weight_scheme": scheme, **leaves}
    native = ForestProximity.from_leaves(engine="native", **known)
    small_device(150_000)
    gpu = ForestProximity.from_leaves(engine="gpu", **known)
    tiles = Tiles.of(Inside.of(gpu).product(), GpuEngine())
    assert len(tiles.references) > 1
    assert len(tiles.queries) > 1
    product, started, used = Inside.of(gpu).product(), [], []
    with monkeypatch.context() as patch:
        upload, remember = Copier.upload, _tiles.remember
        patch.setattr(Copier, "upload", lambda *args: started.append(1) or upload(*args))
        patch.setattr(_tiles, "remember", lambda *args: used.append(1) or remember(*args))
        collisions = GpuEngine().collisions(product)
    assert len(started) == len(used) == len(tiles.references) - 1
    assert "_lists" not in vars(gpu.kernel_.index)
    assert_array_equal(collisions, NativeEngine().collisions(product))
    assert_same(gpu.proximity(), native.proximity())
    for found, expected in zip(gpu.kneighbors(None, 7), native.kneighbors(None, 7), strict=True):
        assert_array_equal(found, expected)
    on_device = ForestProximity.from_leaves(engine=GpuEngine(output="cupy"), **known)
    assert_array_equal(on_device.kneighbors(None, 7)[1].get(), expected)
    some = leaves["leaves"][:70]
    assert_same(on_device.proximity(some).get(), native.proximity(some))


@pytest.mark.parametrize("output", ["numpy", "cupy"])
def test_many_columns_are_multiplied_in_groups(output, small_device, rng):
    product = make_product(rng, 60, 300, 10, ("ones", "ones"))
    small_device(300_000)
    engine, native, values = GpuEngine(output=output), NativeEngine(), rng.normal(size=(300, 400))
    done = []
    host = np.asarray if output == "numpy" else lambda array: array.get()
    found = (
        host(engine.sums(product, values, done.append)),
        host(engine.apply(product, values=values)),
    )
    assert len(done) > 1
    assert done == sorted(done)
    assert done[-1] == 60
    expected = native.sums(product, values), native.apply(product, values)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, atol=1e-10)
    nearest = GpuEngine().nearest(product, k=3)[1]  # by name, as in the protocol
    assert_array_equal(nearest, native.nearest(product, 3)[1])


def test_leaves_are_counted_on_the_processor_if_the_device_is_full(many_rows, monkeypatch):
    forest, X, y = many_rows

    def full(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("leafkernel.engines.gpu._listing.kernel", full)
    gpu, native = (ForestProximity(forest, engine=e).fit(X, y) for e in ("gpu", "native"))
    assert_array_equal(Inside.of(gpu).stats.in_bag_mass, Inside.of(native).stats.in_bag_mass)


@pytest.mark.parametrize("k", [1, 100])
def test_neighbors_count_as_memory(k, small_device, rng):
    product = make_product(rng, 200, 150, 3, ("ones", "ones"))
    small_device(60_000)
    tiles = Tiles.of(product, GpuEngine(part_size=32), 12 * k)
    assert tiles is None if k == 1 else len(tiles.queries) > 10
    found, expected = (
        GpuEngine(part_size=32).nearest(product, k),
        NativeEngine().nearest(product, k),
    )
    assert_array_equal(found[1], expected[1])


@pytest.mark.skipif(not EMULATED, reason="watches the memory of the emulated device")
@pytest.mark.parametrize("name", ["rows", "dense"])
def test_results_that_wait_to_be_copied_do_not_fill_the_device(name, rng, monkeypatch):
    import cupy

    product = make_product(rng, 100, 1000, 5, ("ones", "ones"), leaves_per_tree=3)
    engine, pool = GpuEngine(max_bytes=60_000), cupy.cuda.memory.pool
    getattr(engine, name)(product)  # the samples are on the device now

    def slowly(*args, finish=_copies._finish):
        time.sleep(0.001)
        finish(*args)

    monkeypatch.setattr(_copies, "_finish", slowly)
    pool.most = before = pool.used
    getattr(engine, name)(product)
    assert pool.most - before < 4 * 60_000


def test_no_rows(rng):
    product = make_product(rng, 0, 50, 4, ("ones", "ones"), leaves_per_tree=3)
    assert [found.shape for found in GpuEngine().nearest(product, 3)] == [(0, 3), (0, 3)]


def test_two_threads(leaves):
    known = {"weight_scheme": "gap", **leaves}
    gpu = ForestProximity.from_leaves(engine="gpu", **known)
    expected = ForestProximity.from_leaves(engine="native", **known).kneighbors(None, 5)[1]
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: gpu.kneighbors(None, 5)[1], range(6)):
            assert_array_equal(found, expected)


def test_leaves_that_do_not_fit(small_device, leaves):
    small_device(1000)
    prox = ForestProximity.from_leaves(engine="gpu", **leaves)
    with pytest.raises(MemoryError, match=r"The lists of 1,\d{3} leaves need .* of GPU memory"):
        prox.kneighbors()


def test_a_proximity_that_is_too_large():
    leaves = np.zeros((3, 1), dtype=int)

    def huge(samples, forest):
        return np.full(samples.leaf.shape, 1e30)

    known = {"weight_scheme": huge, "dtype": np.float32}
    with pytest.raises(OverflowError, match=r"too large for float32\. Use dtype=np\.float64"):
        ForestProximity.from_leaves(leaves, engine="gpu", **known).proximity()


N = 250 if EMULATED else 900
SCHEMES = ["uniform", "kerf", "gap", "oob", "oob_separable", "boosted"]


@pytest.fixture(scope="module")
def leaves():
    rng = np.random.default_rng(5)
    return {
        "leaves": rng.integers(0, 40, (N, 30)),
        "in_bag": rng.integers(0, 3, (N, 30)),
        "tree_weights": np.arange(1, 31),
    }


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("diagonal", ["scheme", "one"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_and_method(scheme, diagonal, symmetrize, leaves):
    known = {"weight_scheme": scheme, "diagonal": diagonal, "symmetrize": symmetrize, **leaves}
    gpu = ForestProximity.from_leaves(engine="gpu", **known)
    native = ForestProximity.from_leaves(engine="native", **known)
    values = np.arange(float(N))
    for X in (None, leaves["leaves"][:70]):
        assert_same(gpu.proximity(X), native.proximity(X))
        assert_array_equal(gpu.proximity(X, dense=True), native.proximity(X, dense=True))
        for found, expected in zip(gpu.kneighbors(X, 7), native.kneighbors(X, 7), strict=True):
            assert_array_equal(found, expected)
        assert_allclose(gpu.weighted_sums(values, X), native.weighted_sums(values, X), rtol=1e-5)
        assert_same(gpu.proximity_to([3, 5], X), native.proximity_to([3, 5], X))
        blocks = zip(gpu.iter_proximity(X), native.iter_proximity(X), strict=True)
        for (rows, found), (same_rows, expected) in blocks:
            assert rows == same_rows
            assert_same(found, expected)
        if scheme != "oob":
            close = {"rtol": 1e-5, "atol": 1e-8}
            assert_allclose(gpu.operator(X) @ values, native.operator(X) @ values, **close)
    assert gpu.forecast().nonzeros == native.forecast().nonzeros
    assert "gpu, " in str(gpu.forecast())


def test_signed_contributions(iris):
    X, y = iris
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[:100], y[:100])
    fits = [
        ForestProximity(model, "gradient", engine=e).fit(X[:100], y[:100])
        for e in ("gpu", "native")
    ]
    assert_same(*(prox.proximity() for prox in fits))
    gpu, native = (prox.kneighbors(X, 9, by="magnitude") for prox in fits)
    assert_array_equal(gpu[0], native[0])
    assert_array_equal(gpu[1], native[1])


@pytest.fixture(scope="module")
def many_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400 if EMULATED else 20_000, 8)).astype(np.float32)
    if not MISSING_VALUES_STRAY:  # training and prediction agree on their leaves
        X[rng.random(X.shape) < 0.01] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 > 1).astype(int)
    return RandomForestClassifier(20, random_state=0, n_jobs=-1).fit(X, y), X, y


def test_routing_on_the_device(many_rows):
    import cupy

    forest, X, y = many_rows
    for kind in (np.asarray, cupy.asarray):  # training and new samples, in main memory and not
        fits = [
            ForestProximity(forest, engine=e, n_jobs=8).fit(x(X), y)
            for e, x in (("gpu", kind), ("native", np.asarray))
        ]
        assert_array_equal(fits[0]._samples.leaf, fits[1]._samples.leaf)
        gpu, native = (Inside.of(prox).stats for prox in fits)
        assert_array_equal(gpu.leaf_mass, native.leaf_mass)
        assert_array_equal(gpu.in_bag_mass, native.in_bag_mass)
        some = X[: len(X) * 3 // 4]
        gpu, native = fits[0].kneighbors(kind(some)), fits[1].kneighbors(some)
        assert_array_equal(gpu[0], native[0])
        assert_array_equal(gpu[1], native[1])
        assert "_lists" not in vars(fits[0].kernel_.index)  # the processor listed nothing
        assert fits[0].kneighbors(kind(X[:5]))[1].tolist() == gpu[1][:5].tolist()
    with pytest.raises(ValueError, match="features"):
        fits[0].kneighbors(cupy.asarray(X[:, :3]))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_routing_of_boosted_models(library):
    """Splits at zero, and values that CUDA takes for zero."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (400, 5)).astype(np.float32)
    X[:, 4] = rng.choice(np.float32([-1e-40, 0.0, 1e-40, np.nan]), 400)
    y = (X[:, 0] < 0) ^ (X[:, 1] < 0) ^ (X[:, 4] < 0)
    module = pytest.importorskip(library)
    options = {"min_child_samples": 1, "verbose": -1} if library == "lightgbm" else {}
    kind = module.LGBMClassifier if library == "lightgbm" else module.XGBClassifier
    model = kind(n_estimators=20, **options).fit(X, y)
    gpu, native = (ForestProximity(model, "kerf", engine=e).fit(X) for e in ("gpu", "native"))
    assert_array_equal(gpu._samples.leaf, native._samples.leaf)
    assert_same(gpu.proximity(X[:50]), native.proximity(X[:50]))


@pytest.mark.parametrize("engine", ["gpu", "native", AutoEngine()], ids=["gpu", "native", "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", ["XGBClassifier", "LGBMClassifier", HistGradientBoostingClassifier]
)
def test_samples_on_the_device(kind, dtype, engine):
    """The device finds their leaves if it can. Otherwise, they are copied to main memory."""
    import cupy

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(dtype)
    y = (X[:, 0] > 0).astype(int)
    if isinstance(kind, str):
        library = pytest.importorskip({"X": "xgboost", "L": "lightgbm"}[kind[0]])
        model = getattr(library, kind)(n_estimators=5, max_depth=4).fit(X, y)
    else:
        model = kind(max_iter=5).fit(X, y)
    native = ForestProximity(model, "kerf", engine="native").fit(X)
    prox = ForestProximity(model, "kerf", engine=engine).fit(cupy.asarray(X))
    assert_array_equal(prox._samples.leaf, native._samples.leaf)
    found = prox.kneighbors(cupy.asarray(X[:20]), 3)[1]
    assert_array_equal(found, native.kneighbors(X[:20], 3)[1])


class Tensor:
    """An array of another library on the device."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __len__(self):
        return len(self.array)

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


@pytest.mark.parametrize("is_fitted", [True, False])
@pytest.mark.parametrize("engine", ["gpu", "native"])
def test_tensors_on_the_device(engine, is_fitted, iris):
    import cupy

    X, y = iris
    X, weight = X.astype(np.float32), np.linspace(1, 2, len(y))
    forest = RandomForestClassifier(5, random_state=0)
    if is_fitted:
        forest.fit(X, y, sample_weight=weight)
    on_device = [Tensor(cupy.asarray(array)) for array in (X, y, weight)]
    prox = ForestProximity(forest, "kerf", engine=engine).fit(*on_device)
    native = ForestProximity(forest, "kerf", engine="native").fit(X, y, weight)
    assert_same(prox.proximity(on_device[0]), native.proximity(X))
    averages = prox.weighted_average(y, on_device[0])
    assert_allclose(averages, native.weighted_average(y, X), rtol=1e-6)


def test_samples_on_the_device_for_a_pipeline(iris):
    import cupy

    X, y = iris
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, y)
    native = ForestProximity(pipeline, "kerf", engine="native").fit(X, y)
    prox = ForestProximity(pipeline, "kerf", engine="gpu").fit(cupy.asarray(X), y)
    assert_same(prox.proximity(cupy.asarray(X)), native.proximity(X))


def test_other_arguments_on_the_device(iris):
    import cupy

    X, y = iris
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    gpu, native = (ForestProximity(forest, "gap", engine=e).fit(X, y) for e in ("gpu", "native"))
    found = gpu.reweigh("ih", X=cupy.asarray(X)).proximity()
    assert_same(found, native.reweigh("ih", X=X).proximity())
    sums = gpu.weighted_sums(cupy.asarray(y))
    assert_allclose(sums, native.weighted_sums(y), atol=1e-6)
    leaves = np.arange(20).reshape(10, 2)
    on_device = ForestProximity.from_leaves(cupy.asarray(leaves), engine="gpu")
    expected = ForestProximity.from_leaves(leaves, engine="native")
    assert_same(on_device.proximity(), expected.proximity())
    for wrong in (X[:0], X.astype(complex)):
        for place in (np.asarray, cupy.asarray):
            with pytest.raises(ValueError, match=r"0 sample|[Cc]omplex data"):
                gpu.kneighbors(place(wrong), 3)


def test_batches_and_dask_with_results_on_the_device(iris):
    dask = pytest.importorskip("dask.array")
    X, y = iris
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    native = ForestProximity(forest, "kerf", engine="native").fit(X, y)
    prox = ForestProximity(forest, "kerf", engine=GpuEngine(output="cupy")).fit(X, y)
    assert_same(prox.proximity(Batches.from_arrays(X, batch_rows=60)), native.proximity(X))
    nearest = prox.kneighbors(Batches.from_arrays(X, batch_rows=60), 4)[1]
    assert_array_equal(nearest, native.kneighbors(X, 4)[1])
    some = dask.from_array(X, chunks=(60, -1))
    found = prox.kneighbors(some, 4)[1].compute(scheduler="sync")
    assert_array_equal(found, native.kneighbors(X, 4)[1])
    averages = prox.weighted_average(y, some).compute(scheduler="sync")
    assert_allclose(averages, native.weighted_average(y, X), rtol=1e-6)


def test_features_on_the_device(iris):
    import cupy

    X, y = iris
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    native = ForestProximity(forest, "ih", engine="native").fit(X, y)
    prox = ForestProximity(forest, "ih", engine="gpu").fit(cupy.asarray(X), y)
    assert_same(prox.proximity(), native.proximity())


def test_routing_more_samples_than_fit(many_rows, small_device):
    forest, X, y = many_rows
    native = ForestProximity(forest, "gap", engine="native").fit(X, y)
    small_device(len(X) * 60)
    prox = ForestProximity(forest, "gap", engine="gpu").fit(X, y)
    assert_array_equal(prox._samples.leaf, native._samples.leaf)


def test_results_on_the_device(many_rows):
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    forest, X, y = many_rows
    known = {"weight_scheme": "kerf", "n_jobs": 8}
    native = ForestProximity(forest, **known, engine="native").fit(X, y)
    prox = ForestProximity(forest, **known, engine=GpuEngine(output="cupy")).fit(X, y)
    P = prox.proximity(X[:3000])
    assert isinstance(P, csr_matrix)
    assert_same(P.get(), native.proximity(X[:3000]))
    assert isinstance(prox.proximity(X[:30], dense=True), cupy.ndarray)
    similarity, samples = prox.kneighbors(cupy.asarray(X[:3000]), 4)
    assert isinstance(samples, cupy.ndarray)
    assert_array_equal(samples.get(), native.kneighbors(X[:3000], 4)[1])
    assert_array_equal(np.from_dlpack(cupy.asnumpy(similarity)), native.kneighbors(X[:3000], 4)[0])
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(similarity).device.type == "cuda"
    _, block = next(prox.iter_proximity(X[:100]))
    assert isinstance(block, csr_matrix)
    # Tasks and products with vectors get results in main memory.
    assert isinstance(prox.weighted_average(y.astype(float), X[:50]), np.ndarray)
    assert isinstance(prox.operator() @ np.ones(len(X)), np.ndarray)
    assert len(find_label_errors(prox, y).rows) == len(find_label_errors(native, y).rows)


def test_an_index_is_copied_once_and_never_pickled(leaves):
    prox = ForestProximity.from_leaves(engine="gpu", **leaves)
    product = Inside.of(prox).product()
    engine = GpuEngine()
    assert product.index.prepared(engine) is product.index.prepared(GpuEngine())
    first, again = (engine._on_device(Inside.of(prox).product()) for _ in range(2))
    assert first.columns is again.columns
    other = pickle.loads(pickle.dumps(prox))
    assert_same(other.proximity(), prox.proximity())
    assert_same(copy.deepcopy(prox).proximity(), prox.proximity())


def test_added_samples_and_saved_kernels(tmp_path, leaves):
    known = {"weight_scheme": "kerf", "engine": "gpu"}
    few = leaves["leaves"] % 10
    prox = ForestProximity.from_leaves(few[:150], **known)
    prox.extend(few[150:])  # two parts
    whole = ForestProximity.from_leaves(few, weight_scheme="kerf", engine="native")
    assert "gpu, " in str(prox.forecast())
    seen = prox.kneighbors(n_neighbors=5)[1]
    assert_array_equal(seen, prox.set_params(engine="native").kneighbors(n_neighbors=5)[1])
    whole.save(tmp_path / "kernel")
    loaded = ForestProximity.load(tmp_path / "kernel").set_params(engine="gpu")
    assert_same(loaded.proximity(), whole.proximity())


def test_auto_takes_the_device_for_large_work(rng, monkeypatch):
    product = make_product(rng, 300, 3000, 20, ("ones", "ones"), leaves_per_tree=10)
    assert "too few for a GPU" in AutoEngine(2).describe(product)
    monkeypatch.setattr("leafkernel.engines.auto._LARGE_WORK", 1000)
    assert re.fullmatch(
        r"gpu, .* \(about [\d,]+ leaf collisions\)", AutoEngine(2).describe(product)
    )
    assert_same(AutoEngine(2).rows(product), NativeEngine().rows(product))
    assert_array_equal(AutoEngine(2).nearest(product, 4)[1], NativeEngine().nearest(product, 4)[1])
