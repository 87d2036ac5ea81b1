"""UMAP with cuML, which is used for the GPU engine if it is installed.

Neither a GPU nor cuML is needed. A stand-in checks its arguments as cuML 26.10 does, and computes
with umap-learn. The last test uses the real cuML, and is skipped without it.
"""

import importlib.util
import inspect
import pickle
import sys
import types
from contextlib import contextmanager, nullcontext

import cuda_on_cpu
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.manifold import trustworthiness

from leafkernel import ForestProximity
from leafkernel.engines import NativeEngine
from leafkernel.engines.gpu import GpuEngine, gpu_problem
from leafkernel.tasks import LeafEmbedding
from leafkernel.tasks.embedding._cuml_umap import find_cuml_umap

umap = pytest.importorskip("umap")

NO_GPU = gpu_problem()
EMULATED = NO_GPU is not None
pytestmark = pytest.mark.skipif(
    EMULATED and cuda_on_cpu.PROBLEM is not None,
    reason=f"no GPU ({NO_GPU}), and running its kernels on the processor {cuda_on_cpu.PROBLEM}",
)
#: Few epochs, because a layout is not compared with the true one.
FAST = {"n_epochs": 20}


@pytest.fixture(scope="module", autouse=True)
def device():
    """A GPU, or the processor in its place."""
    with cuda_on_cpu.emulated_device() if EMULATED else nullcontext():
        yield


class StandIn:
    """cuml.manifold.UMAP. It has the parameters and defaults of cuML 26.10."""

    made: "list[StandIn]"
    output_type = None

    def __init__(
        self,
        *,
        n_neighbors=15,
        n_components=2,
        metric="euclidean",
        metric_kwds=None,
        n_epochs=None,
        learning_rate=1.0,
        min_dist=0.1,
        spread=1.0,
        set_op_mix_ratio=1.0,
        local_connectivity=1.0,
        repulsion_strength=1.0,
        negative_sample_rate=5,
        transform_queue_size=4.0,
        init="spectral",
        a=None,
        b=None,
        target_n_neighbors=-1,
        target_weight=0.5,
        target_metric="categorical",
        hash_input=False,
        random_state=None,
        force_serial_epochs=None,
        precomputed_knn=None,
        callback=None,
        build_algo="auto",
        build_kwds=None,
        device_ids=None,
        verbose=False,
        output_type=None,
    ):
        given = {key: value for key, value in locals().items() if key != "self"}
        defaults = inspect.signature(StandIn).parameters
        self.changed = {k: v for k, v in given.items() if v is not defaults[k].default}
        self.__dict__.update(given)
        self.made.append(self)

    def fit_transform(self, X, y=None, *, knn_graph=None):
        assert type(X) is np.ndarray
        assert X.dtype == np.float32
        n = len(X)
        self._check_graph(n)
        if isinstance(self.init, str):
            assert self.init in ("random", "spectral")
        else:
            self._check_array(self.init, np.float32, (n, self.n_components))
        assert self.n_epochs is None or (type(self.n_epochs) is int and self.n_epochs > 0)
        assert self.min_dist <= self.spread
        assert self.random_state is None or 0 <= self.random_state < 2**32
        model = umap.UMAP(**self.changed, n_jobs=1 if self.random_state is not None else 2)
        found = model.fit_transform(X)
        # Without using_output_type("numpy"), the result could be a CuPy array.
        return found if StandIn.output_type == "numpy" else object()

    def _check_graph(self, n):
        assert type(self.precomputed_knn) is tuple
        rows, distances = self.precomputed_knn
        assert self.n_neighbors <= n  # cuML would use fewer, with a warning
        self._check_array(rows, np.int64, (n, self.n_neighbors))
        self._check_array(distances, np.float32, (n, self.n_neighbors))
        assert_array_equal(rows[:, 0], np.arange(n))  # each sample is its own first neighbor
        assert rows.min() >= 0
        assert rows.max() < n
        assert (distances[:, 0] == 0).all()
        assert (np.diff(distances) >= 0).all()

    @staticmethod
    def _check_array(array, dtype, shape):
        assert type(array) is np.ndarray
        assert array.dtype == dtype
        assert array.shape == shape
        assert array.flags.c_contiguous
        assert np.isfinite(array).all()


@contextmanager
def using_output_type(output_type):
    before, StandIn.output_type = StandIn.output_type, output_type
    yield before
    StandIn.output_type = before


class Importer:
    """Imports the stand-in, or fails. Like cuML, it replaces CuPy's allocator."""

    def __init__(self, version, error):
        self.version, self.error = version, error

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "cuml" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        import cupy

        cupy.cuda.set_allocator(lambda size: pytest.fail("cuML's allocator was used"))
        if self.error is not None:
            raise self.error
        module.__version__ = self.version
        module.manifold = types.SimpleNamespace(UMAP=StandIn)
        module.using_output_type = using_output_type


@pytest.fixture
def install(monkeypatch):
    """Returns a function that installs the stand-in, and returns the list of its models."""
    import cupy

    if EMULATED:  # arrays of the emulated device have no allocator
        current = [object()]
        monkeypatch.setattr(cupy.cuda, "get_allocator", lambda: current[0], raising=False)
        replace = lambda new: current.__setitem__(0, new)  # noqa: E731
        monkeypatch.setattr(cupy.cuda, "set_allocator", replace, raising=False)
    before = cupy.cuda.get_allocator()
    saved = {name: sys.modules.pop(name) for name in list(sys.modules) if name == "cuml"}

    def install(version="26.10.00", error=None):
        StandIn.made = []
        monkeypatch.setattr(sys, "meta_path", [Importer(version, error), *sys.meta_path])
        return StandIn.made

    yield install
    sys.modules.pop("cuml", None)
    sys.modules.update(saved)
    assert cupy.cuda.get_allocator() == before


@pytest.fixture(scope="module")
def forest(iris):
    return RandomForestClassifier(30, random_state=0).fit(*iris)


def embedded(forest, iris, engine="gpu", scheme="kerf", **params):
    prox = ForestProximity(forest, scheme, engine=engine).fit(*iris)
    params = {"parameters": FAST, "random_state": 0, "n_neighbors": 10, **params}
    return LeafEmbedding(prox, method="umap", source="kernel", **params).fit(*iris)


@pytest.mark.parametrize("engine", ["gpu", "numpy", "cupy"])
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_the_same_graph_and_parameters_as_for_umap_learn(forest, iris, install, engine, init):
    own = {**FAST, "init": init, "min_dist": 0.3, "negative_sample_rate": 3, "n_jobs": 1}
    native = embedded(forest, iris, "native", parameters=own)
    made = install()
    engine = engine if engine == "gpu" else GpuEngine(output=engine)
    found = embedded(forest, iris, engine, parameters=own)
    (model,) = made
    assert (model.n_neighbors, model.min_dist, model.negative_sample_rate) == (11, 0.3, 3)
    assert_array_equal(found.embedding_, native.embedding_)
    assert found.embedding_.dtype == np.float64
    X = iris[0] + 0.1
    assert_array_equal(found.transform(X), native.transform(X))


def test_the_start_is_that_of_umap_learn_with_noise(forest, iris, install, monkeypatch):
    starts = []

    class Recorder(umap.UMAP):
        def fit_transform(self, X, y=None):
            starts.append(self.init)
            return super().fit_transform(X, y)

    monkeypatch.setattr(umap, "UMAP", Recorder)
    embedded(forest, iris, "native")
    made = install()
    found = embedded(forest, iris)
    (model,), (plain, noisy) = made, starts
    assert len(np.unique(plain, axis=0)) < len(plain)  # some samples have the same leaves
    assert len(np.unique(noisy, axis=0)) == len(noisy)
    assert_allclose(noisy, plain, atol=1e-3)
    same = embedded(forest, iris, "native", parameters={**FAST, "init": model.init})
    assert_array_equal(found.embedding_, same.embedding_)


def test_a_seed_gives_the_same_coordinates_again(forest, iris, install):
    made = install()
    found = [embedded(forest, iris, random_state=seed).embedding_ for seed in (0, 0, 1)]
    assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert len(made) == 3
    embedded(forest, iris, random_state=None)
    assert made[3].random_state is None


def test_as_many_neighbors_as_samples_and_three_coordinates(forest, iris, install):
    made = install()
    found = embedded(forest, iris, n_neighbors=1000, n_components=3)
    assert made[0].n_neighbors == len(iris[0])
    assert found.embedding_.shape == (150, 3)


def test_exact_oob_starts_from_the_spectral_layout(forest, iris, install):
    made = install()
    embedded(forest, iris, scheme="oob")
    assert made[0].init == "spectral"


def test_a_fitted_model_does_not_need_cuml(forest, iris, install):
    made = install()
    model = embedded(forest, iris)
    assert made
    copy = pickle.dumps(model)
    assert b"cuml" not in copy
    assert_array_equal(pickle.loads(copy).transform(iris[0]), model.transform(iris[0]))


@pytest.mark.parametrize(
    "own",
    [
        {"densmap": True},
        {"init": "tswspectral"},
        {"local_connectivity": 2},
        {"metric": "cosine"},
        {"n_neighbors": 5},
        {"n_epochs": [5, 10]},
        {"n_epochs": 0},
    ],
)
def test_umap_learn_is_used_for_other_parameters(forest, iris, install, own):
    made = install()
    found = embedded(forest, iris, parameters={**FAST, **own})
    assert not made
    native = embedded(forest, iris, "native", parameters={**FAST, **own})
    assert_array_equal(found.embedding_, native.embedding_)


def test_umap_learn_is_used_for_principal_components(forest, iris, install):
    made = install()
    embedded(forest, iris).set_params(source="pca").fit(*iris)
    assert len(made) == 1


def test_parameters_of_cuml_alone_are_refused(forest, iris, install):
    install()
    with pytest.raises(TypeError, match="build_algo"):
        embedded(forest, iris, parameters={"build_algo": "nn_descent"})


@pytest.mark.parametrize("engine", ["native", "reference", "auto", NativeEngine()])
def test_cuml_is_not_imported_for_other_engines(forest, iris, install, engine):
    install(error=AssertionError("cuML was imported"))
    embedded(forest, iris, engine)


@pytest.mark.parametrize(
    "problem",
    [{"version": "25.12.00"}, {"error": ImportError("cudf")}, {"error": OSError("libcuml.so")}],
)
def test_umap_learn_is_used_if_cuml_is_old_or_broken(forest, iris, install, problem):
    made = install(**problem)
    found = embedded(forest, iris)
    assert not made
    assert_array_equal(found.embedding_, embedded(forest, iris, "native").embedding_)


@pytest.mark.parametrize("version", ["26.02.00", "26.10.00a12", "27.02.01"])
def test_versions(install, version):
    install(version)
    assert find_cuml_umap("gpu", {}) is not None


def test_umap_learn_is_not_needed(forest, iris, install, monkeypatch):
    install()
    monkeypatch.setattr(StandIn, "fit_transform", lambda self, X: np.zeros((len(X), 2)))
    monkeypatch.setitem(sys.modules, "umap", None)  # importing it fails
    assert embedded(forest, iris).embedding_.shape == (150, 2)
    with pytest.raises(ImportError, match="leafkernel"):
        embedded(forest, iris, "native")


def test_cuml_itself(iris, forest):
    """Needs a GPU and cuML: pip install cuml-cu13, or cuml-cu12 for older drivers."""
    if EMULATED:
        pytest.skip(f"cuML needs a GPU. {NO_GPU}")
    if importlib.util.find_spec("cuml") is None:
        pytest.skip("cuML is not installed: pip install cuml-cu13 (or cuml-cu12)")
    import cupy

    allocator = cupy.cuda.get_allocator()
    embedded(forest, iris)  # imports it, without its warnings
    assert find_cuml_umap("gpu", {}) is not None, "cuML cannot be imported, or is too old"
    assert cupy.cuda.get_allocator() == allocator
    for scheme in ("kerf", "oob"):
        found = embedded(forest, iris, scheme=scheme, parameters=None)
        again = embedded(forest, iris, scheme=scheme, parameters=None)
        native = embedded(forest, iris, "native", scheme=scheme, parameters=None)
        assert_array_equal(found.embedding_, again.embedding_)
        distances = 1 - native.proximity_.proximity(dense=True)
        np.fill_diagonal(distances, 0)
        kept = [
            trustworthiness(distances, model.embedding_, n_neighbors=10, metric="precomputed")
            for model in (found, native)
        ]
        assert kept[0] > kept[1] - 0.05
        assert found.transform(iris[0]).shape == (150, 2)
