"""Long work can be watched and interrupted."""

import builtins
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.schemes import InstanceHardness

INTERRUPTED = textwrap.dedent(
    """
    import signal, time
    import numpy as np
    from leafkernel import ForestProximity
    # Where the tests run in the background of a shell, it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Work of several minutes, far more than the test waits.
    leaves = np.random.default_rng(0).integers(0, 2, ({n_rows}, 100))
    prox = ForestProximity.from_leaves(leaves, n_jobs={n_jobs})
    print("ready", flush=True)
    try:
        prox.{call}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    # The object is still good for work.
    print(prox.proximity(leaves[:3]).shape, flush=True)
    """
)


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("call", ["kneighbors(n_neighbors=5)", "proximity()"])
def test_ctrl_c_stops_native_work(n_jobs, call):
    n_rows = 60_000 if call == "proximity()" else 600_000
    script = INTERRUPTED.format(n_jobs=n_jobs, call=call, n_rows=n_rows)
    if call == "proximity()":  # all pairs of 60,000 would not fit; the limit is not the point here
        script = script.replace("n_jobs=", "max_memory='1TB', n_jobs=")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "ready\n"
        time.sleep(1.0)
        assert run.poll() is None, "finished before it could be interrupted"
        run.send_signal(signal.SIGINT)
        try:
            out, _ = run.communicate(timeout=60)
        finally:
            run.kill()
    assert out == f"interrupted\n(3, {n_rows})\n"
    assert run.returncode == 0


def test_python_threads_run_while_native_code_works():
    """The GIL is released: another thread counts on while neighbors are searched."""
    leaves = np.random.default_rng(0).integers(0, 20, (50_000, 30))
    prox = ForestProximity.from_leaves(leaves)
    works, stop, ticks = threading.Event(), threading.Event(), []

    def tick():
        while not stop.is_set():
            ticks.append(works.is_set())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    works.set()
    prox.kneighbors(n_neighbors=1)
    works.clear()
    stop.set()
    thread.join()
    assert sum(ticks) > 50  # with a held GIL it would be a few, when the work looks for Ctrl-C


def test_progress_is_shown_when_asked_for(iris, capfd):
    X, y = iris
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    quiet = ForestProximity(forest, InstanceHardness()).fit(X, y)
    quiet.proximity()
    assert capfd.readouterr().err == ""
    prox = ForestProximity(forest, InstanceHardness(), progress=True).fit(X, y)
    assert "instance hardness: 100%" in capfd.readouterr().err
    for call, word in (
        (prox.proximity, "proximity"),
        (lambda: prox.kneighbors(n_neighbors=2), "kneighbors"),
        (lambda: list(prox.iter_proximity(block_size=20)), "proximity"),
    ):
        call()
        shown = capfd.readouterr().err
        assert f"{word}: 100%" in shown
        assert "150/150" in shown
    assert (prox.proximity() != quiet.proximity()).nnz == 0


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_progress_counts_rows(iris, engine):
    from leafkernel.engines import find_engine

    X, y = iris
    kernel = ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y).kernel_
    seen = []
    find_engine(engine, n_threads=1).rows(kernel.training_product(), seen.append)
    assert seen[-1] == 150
    assert seen == sorted(seen)


def test_an_error_in_the_watcher_stops_the_work(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y)

    def fail(done):
        raise RuntimeError("enough")

    from leafkernel.engines.native import NativeEngine

    with pytest.raises(RuntimeError, match="enough"):
        NativeEngine(2).rows(prox.kernel_.training_product(), fail)


def test_progress_without_tqdm_names_the_extra(iris, monkeypatch):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), progress=True).fit(X, y)
    real_import = builtins.__import__

    def without_tqdm(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ImportError("No module named 'tqdm'")
        return real_import(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith("tqdm")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r'pip install "leafkernel\[progress\]"'):
        prox.proximity()
