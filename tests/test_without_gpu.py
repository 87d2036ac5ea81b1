"""What the GPU engine does on a machine without a GPU, and what needs none."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zoo
from numpy.testing import assert_array_equal

from leafkernel import ForestProximity
from leafkernel.engines import NativeEngine, find_engine
from leafkernel.engines.auto import AutoEngine, auto_engine
from leafkernel.engines.gpu import gpu_problem
from leafkernel.forests import adapt
from leafkernel.training import leaves_by

LEAVES = np.random.default_rng(0).integers(0, 9, (60, 8))
WITHOUT_GPU = pytest.mark.skipif(gpu_problem() is None, reason="this machine has a GPU")


@WITHOUT_GPU
def test_the_error_says_why_and_what_to_install():
    with pytest.raises((ImportError, RuntimeError)) as found:
        ForestProximity.from_leaves(LEAVES, engine="gpu")
    message = str(found.value)
    assert 'pip install "leafkernel[gpu]"' in message or 'Use engine="native"' in message


def test_cupy_is_not_imported_unless_asked_for():
    program = (
        "import sys, numpy as np; from leafkernel import ForestProximity;"
        "ForestProximity.from_leaves(np.arange(20).reshape(10, 2)).proximity();"
        "print('cupy' in sys.modules, 'leafkernel.engines.gpu' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert run.stdout.split() == ["False", "False"]


def test_the_forecast_names_the_engine():
    text = str(ForestProximity.from_leaves(LEAVES, engine="native", n_jobs=2).forecast())
    assert "  engine            native, 2 threads\n" in text
    auto = str(ForestProximity.from_leaves(LEAVES).forecast())
    assert "(CuPy is not installed)" in auto or "too few for a GPU)" in auto


def test_auto_stays_on_the_processor_for_small_work(monkeypatch):
    native = ForestProximity.from_leaves(LEAVES, engine="native")
    prox = ForestProximity.from_leaves(LEAVES, engine=AutoEngine())
    for X in (None, LEAVES[:5]):
        assert_array_equal(prox.proximity(X).toarray(), native.proximity(X).toarray())
        assert_array_equal(prox.proximity(X, dense=True), native.proximity(X, dense=True))
        assert_array_equal(prox.kneighbors(X)[1], native.kneighbors(X)[1])
        assert_array_equal(prox.weighted_sums(LEAVES, X), native.weighted_sums(LEAVES, X))
        assert_array_equal(prox.operator(X) @ LEAVES, native.operator(X) @ LEAVES)
    assert "leaf collisions are too few for a GPU)" in prox.forecast().engine
    with_diagonal = prox.reweigh(diagonal="one")
    assert_array_equal(
        with_diagonal.weighted_sums(LEAVES), native.reweigh(diagonal="one").weighted_sums(LEAVES)
    )
    monkeypatch.setattr("leafkernel.engines.auto.find_spec", lambda name: None)
    assert auto_engine(n_threads=3) == NativeEngine(3)
    monkeypatch.setattr("leafkernel.engines.auto.find_spec", lambda name: "found")
    assert find_engine("auto", n_threads=3) == AutoEngine(3)


@WITHOUT_GPU
def test_auto_gives_the_reason_if_a_gpu_cannot_be_used(monkeypatch):
    monkeypatch.setattr("leafkernel.engines.auto._LARGE_WORK", 1)
    prox = ForestProximity.from_leaves(LEAVES, engine=AutoEngine())
    assert prox.forecast().engine.startswith(f"native, 1 thread ({gpu_problem()[:20]}")


def test_kernels_are_part_of_the_package():
    import leafkernel.engines

    folder = Path(leafkernel.engines.__file__).parent / "gpu" / "kernels"
    names = {path.name for path in folder.glob("*.cu*")}
    assert {"views.cuh", "fill_rows.cu", "nearest.cu", "route.cu"} <= names


@pytest.mark.filterwarnings("ignore:.*", "ignore:`XGBRF")
@pytest.mark.parametrize("animal", zoo.ANIMALS, ids=lambda a: a.name)
def test_packed_trees_lead_to_the_leaves_of_the_library(animal):
    """Devices route by packed trees, so these must give the same leaves."""
    model, X, _ = animal.fitted()
    forest = adapt(model)
    if forest.learns_leaves:
        return
    packed = forest.packed(X)
    found = leaves_by(lambda table, x: table.leaves(x, n_threads=1), forest, X)
    assert (packed is None) == (found is None)
    if found is not None:
        assert_array_equal(found, forest.leaves(X))


def test_xgboost_gets_the_right_number_of_features():
    """It corrupts memory if there are more."""
    module = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(90, 5))
    forest = adapt(module.XGBClassifier(n_estimators=3).fit(X, X[:, 0] > 0))
    for wrong in (X[:, :3], np.c_[X, X], np.c_[X, X].tolist()):
        with pytest.raises(ValueError, match=r"X has \d+ features, but XGBC.* 5 features"):
            forest.leaves(wrong)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_packed_trees_of_boosting_libraries(library):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:200, 0] = 0.0
    y = (np.nan_to_num(X[:, 0]) > np.nan_to_num(X[:, 1])).astype(int)
    quiet = {"verbose": -1} if library == "lightgbm" else {}
    kind = module.LGBMClassifier if library == "lightgbm" else module.XGBClassifier
    forest = adapt(kind(n_estimators=30, **quiet).fit(X, y))
    table, numbers = forest.packed(X)
    assert_array_equal(table.leaves(numbers, n_threads=1), forest.leaves(X))
    in_double = X.astype(np.float64)
    assert forest.packed(in_double) is not None  # nothing is lost
    is_exact = forest.packed(in_double + 1e-12) is not None
    assert is_exact == (library == "xgboost")  # LightGBM compares in float64
    assert forest.packed(np.where(np.isnan(X), np.inf, X)) is None
    assert forest.packed(X[:, :3]) is None
