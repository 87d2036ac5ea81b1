"""Batches give the same results as all rows at once, and interrupted work can be resumed."""

import json
import os
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import Batches, ForestProximity
from leafkernel.streaming._work import GrowingArray
from leafkernel.tasks import ProximityClassifier, outlier_scores

SCHEMES = ["gap", "kerf", "uniform", "oob", "oob_separable", "purity", "learned"]
NAMES = list("abcdef")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1500, 6)).astype(np.float32), columns=NAMES)
    frame["y"] = np.where(frame["a"] + frame["b"] > 0, "high", "low")
    return frame


@pytest.fixture(scope="module")
def forest(table):
    return RandomForestClassifier(20, random_state=0).fit(table[NAMES], table["y"])


@pytest.fixture
def parquet(table, tmp_path):
    table.to_parquet(tmp_path / "table.parquet", row_group_size=170)
    return tmp_path / "table.parquet"


def assert_same_matrix(found, expected):
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


def assert_same_nearest(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_batches_give_what_all_rows_give(table, forest, parquet, scheme, tmp_path):
    X, y = table[NAMES], table["y"]
    whole = ForestProximity(forest, scheme).fit(X, y)
    batches = Batches.from_parquet(parquet, target="y", batch_rows=64)
    parted = ForestProximity(forest, scheme, max_memory="400kB")
    parted.fit(batches, folder=tmp_path / "kernel")
    assert len(parted.kernel_.index.parts) > 2
    assert_array_equal(parted.y_, y)
    assert list(parted.feature_names_in_) == NAMES
    parted.max_memory = None
    loaded = ForestProximity.load(tmp_path / "kernel")
    assert loaded.max_memory == "400kB"
    loaded.max_memory = None
    for prox in (parted, loaded):
        assert_same_matrix(prox.proximity(), whole.proximity())
        assert_same_matrix(prox.proximity(batches), whole.proximity(X))
        assert_same_nearest(prox.kneighbors(None, 7), whole.kneighbors(None, 7))
        assert_same_nearest(prox.kneighbors(batches, 7), whole.kneighbors(X, 7))
        values = np.arange(1500.0)
        for name in ("weighted_sums", "weighted_average"):
            ours = getattr(prox, name)
            assert_allclose(ours(values, batches), getattr(whole, name)(values, X), rtol=1e-12)
            assert_allclose(ours(values), getattr(whole, name)(values), rtol=1e-12)
        begin = 0
        for rows, block in prox.iter_proximity(batches, block_size=50):
            assert rows.start == begin
            assert_same_matrix(block, whole.proximity(X[rows]))
            begin = rows.stop
        assert begin == 1500
        assert_same_matrix(prox.kneighbors_graph(batches, 4), whole.kneighbors_graph(X, 4))
        assert_same_matrix(prox.proximity_to([3, 9], batches), whole.proximity_to([3, 9], X))
        if scheme != "oob":
            assert_same_matrix(prox.transform(batches), whole.transform(X))
            assert_allclose(prox.operator(batches) @ values, whole.operator(X) @ values, rtol=1e-12)
    scores = [outlier_scores(prox) for prox in (parted, whole)]
    assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize("kind", ["array", "memmap", "sparse", "frame", "function", "tuples"])
def test_every_source(table, kind, tmp_path):
    X, y = table[NAMES].to_numpy(), (table["y"] == "high").to_numpy().astype(float)
    forest = RandomForestRegressor(12, random_state=0, min_samples_leaf=3).fit(X, y)
    whole = ForestProximity(forest, "kerf").fit(X, y)
    np.save(tmp_path / "X.npy", X)
    source = {
        "array": lambda: Batches.from_arrays(X, y, batch_rows=97),
        "memmap": lambda: Batches.from_arrays(np.load(tmp_path / "X.npy", mmap_mode="r"), y),
        "sparse": lambda: Batches.from_arrays(csr_array(X), y, batch_rows=400),
        "frame": lambda: Batches.from_arrays(pd.DataFrame(X), y, batch_rows=400),
        "function": lambda: Batches.from_function(lambda: np.array_split(X, 7)),
        "tuples": lambda: Batches.from_function(
            lambda: zip(np.array_split(X, 7), np.array_split(y, 7), strict=True)
        ),
    }[kind]()
    prox = ForestProximity(forest, "kerf").fit(source, y if kind == "function" else None)
    assert_array_equal(prox.y_, y)
    assert_same_nearest(prox.kneighbors(None, 5), whole.kneighbors(None, 5))
    assert_same_nearest(prox.kneighbors(source, 5), whole.kneighbors(X, 5))


def test_other_forests(table):
    X, y = table[NAMES], table["y"]
    boosted = LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=1)).fit(X, y)
    for model, scheme in ((boosted, "boosted"), (pipeline, "gap")):
        whole = ForestProximity(model, scheme).fit(X, y)
        found = ForestProximity(model, scheme).fit(Batches.from_arrays(X, y, batch_rows=300))
        assert_same_nearest(found.kneighbors(None, 5), whole.kneighbors(None, 5))
        new = X[:40] + 0.01
        shares = [ProximityClassifier(prox).fit(X, y).predict_proba(new) for prox in (found, whole)]
        assert_allclose(*shares, atol=1e-6)


@given(st.integers(0, 1700), st.integers(1, 700))
def test_rows_can_be_skipped(table, tmp_path_factory, skip, batch_rows):
    folder = tmp_path_factory.getbasetemp() / "skipped"
    if not folder.exists():
        folder.mkdir()
        for i, part in enumerate(np.array_split(np.arange(1500), 3)):
            table.iloc[part].to_parquet(folder / f"{i}.parquet", row_group_size=130)
    sources = [
        Batches.from_parquet(folder, columns=NAMES, batch_rows=batch_rows),
        Batches.from_arrays(table[NAMES], batch_rows=batch_rows),
        Batches.from_function(lambda: np.array_split(table[NAMES].to_numpy(), 11)),
    ]
    for source in sources:
        found = [np.asarray(batch.X) for batch in source.rows_from(skip)]
        found = np.concatenate([np.empty((0, 6)), *found])
        assert_array_equal(found, table[NAMES].to_numpy()[skip:])


def test_results_are_written(table, forest, parquet, tmp_path):
    X, y = table[NAMES], table["y"]
    whole = ForestProximity(forest).fit(X, y)
    prox = ForestProximity(forest, max_memory="400kB")
    prox.fit(Batches.from_arrays(X, y, batch_rows=100))
    for rows in (None, X[:333], Batches.from_parquet(parquet, target="y", batch_rows=200)):
        expected = whole.kneighbors(X if isinstance(rows, Batches) else rows, 6)
        path = prox.write_neighbors(tmp_path / "out.npy", rows, 6)
        assert_array_equal(np.load(path), expected[1])
        assert_array_equal(np.load(tmp_path / "out.proximity.npy"), expected[0])
        found = pd.read_parquet(prox.write_neighbors(tmp_path / "out.parquet", rows, 6))
        row, rank = np.nonzero(expected[0])
        assert_array_equal(found["row"], row)
        assert_array_equal(found["neighbor"], expected[1][row, rank])
        assert_array_equal(found["proximity"], expected[0][row, rank])
    found = pd.read_parquet(prox.write_proximity(tmp_path / "P.parquet"))
    P = csr_array((found["proximity"], (found["row"], found["neighbor"])), shape=(1500, 1500))
    assert (whole.proximity() != P).nnz == 0
    assert not list(tmp_path.glob("*.part"))  # no leftovers


def test_what_is_wrong_is_said(table, forest, parquet, tmp_path):
    X, y = table[NAMES], table["y"]
    batches = Batches.from_arrays(X, y)
    for prox, error, words in [
        (ForestProximity(RandomForestClassifier()), ValueError, "not fitted, and it cannot be"),
        (ForestProximity(forest, "ih"), ValueError, "needs the features of all training samples"),
        (ForestProximity(forest, symmetrize=True), ValueError, "symmetrize=True"),
        (ForestProximity(forest, max_memory="20kB"), MemoryError, "smaller batch_rows"),
    ]:
        with pytest.raises(error, match=words):
            prox.fit(batches)
    prox = ForestProximity(forest, "kerf")
    with pytest.raises(ValueError, match="folder can only be used if X is a Batches object"):
        prox.fit(X, y, folder=tmp_path / "k")
    with pytest.raises(ValueError, match="no rows"):
        prox.fit(Batches.from_function(list))
    with pytest.raises(ValueError, match=r"y has 3 rows, but the batches of X have 1,500"):
        prox.fit(Batches.from_arrays(X), y[:3])
    with pytest.raises(ValueError, match="missing values"):
        prox.fit(Batches.from_arrays(X, y.where(y.index != 700, None), batch_rows=100))
    with pytest.raises(ValueError, match="different columns in the batch at row 9"):
        prox.fit(Batches.from_function(lambda: [X[:9], X[9:20].rename(columns={"a": "z"})]))
    with pytest.raises(ValueError, match="y must be in all batches or in none; the batch at row 9"):
        prox.fit(Batches.from_function(lambda: [(X[:9], y[:9]), X[9:20]]))
    with pytest.raises(ValueError, match="contains 'price', which is not in"):
        Batches.from_parquet(parquet, target="price")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        Batches.from_parquet(tmp_path / "nothing")
    prox.fit(batches)
    with pytest.raises(ValueError, match=r"end in \.parquet or \.npy"):
        prox.write_neighbors(tmp_path / "out.csv")
    with pytest.raises(ValueError, match="written as a Parquet file"):
        prox.write_proximity(tmp_path / "out.npy")
    with pytest.raises(ValueError, match="n_neighbors=1500"):
        prox.write_neighbors(tmp_path / "out.npy", None, 1500)


class StoppedError(Exception):
    """An error raised by a source after some batches."""


def stops_after(batches, n, log=None):
    """Return the same batches that stop, the first time, after n of them."""
    left = [n]

    def read(skip):
        for batch in batches.rows_from(skip):
            if left[0] == 0:
                left[0] = -1
                raise StoppedError
            left[0] -= 1
            if log is not None:
                log.append(batch.n_rows)
            yield batch

    return Batches(read, n_rows=batches.n_rows, identity=lambda: batches.identity)


def test_an_interrupted_fit_goes_on(table, forest, tmp_path):
    X, y = table[NAMES], table["y"]
    whole = ForestProximity(forest).fit(X, y)
    log = []
    source = stops_after(Batches.from_arrays(X, y, batch_rows=100), 9, log)
    prox = ForestProximity(forest, max_memory="400kB")
    with pytest.raises(StoppedError):
        prox.fit(source, folder=tmp_path / "k")
    log.clear()
    prox.fit(source, folder=tmp_path / "k")
    # It was stopped after seven batches: two were read to tell the fit from others, and one first.
    assert sum(log) == 200 + 1500 - 700
    assert_same_nearest(prox.kneighbors(None, 5), whole.kneighbors(None, 5))
    log.clear()
    again = ForestProximity(forest, max_memory="400kB").fit(source, folder=tmp_path / "k")
    assert log == [100]  # it is all there: only the first rows are compared
    assert_same_nearest(again.kneighbors(None, 5), whole.kneighbors(None, 5))
    other = RandomForestClassifier(20, random_state=5).fit(X, y)  # replaces existing files
    ForestProximity(other).fit(source, folder=tmp_path / "k")
    found = ForestProximity.load(tmp_path / "k").kneighbors(None, 5)
    assert_same_nearest(found, ForestProximity(other).fit(X, y).kneighbors(None, 5))
    assert len(list((tmp_path / "k").iterdir())) == 2


def test_interrupted_results_go_on(table, forest, tmp_path):
    X, y = table[NAMES], table["y"]
    prox = ForestProximity(forest).fit(X, y)
    log = []
    source = stops_after(Batches.from_arrays(X, batch_rows=100), 7, log)
    path = tmp_path / "out.npy"
    with pytest.raises(StoppedError):
        prox.write_neighbors(path, source, 4)
    assert not path.exists()
    with pytest.raises(FileExistsError, match="unfinished work"):
        prox.write_neighbors(path, source, 5)
    log.clear()
    prox.write_neighbors(path, source, 4)
    assert sum(log) == 800
    assert_array_equal(np.load(path), prox.kneighbors(X, 4)[1])


KILLED = dedent(
    """
    import os, random, signal, sys, time
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier
    from leafkernel import Batches, ForestProximity

    folder, draw = sys.argv[1], random.Random(0)
    X = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
    y = X[:, 0] > 0
    forest = RandomForestClassifier(30, random_state=0, min_samples_leaf=5).fit(X, y)

    def read():
        for begin in range(0, 3000, 50):
            yield X[begin : begin + 50], y[begin : begin + 50]

    def run():
        prox = ForestProximity(forest, max_memory="300kB")
        prox.fit(Batches.from_function(read), folder=f"{folder}/kernel")
        prox.write_neighbors(f"{folder}/out.npy", Batches.from_function(read), 5)

    kills = 0
    while True:
        child = os.fork()
        if not child:
            run()
            os._exit(0)
        begin = time.monotonic()
        wait = draw.uniform(0.0, 0.15) if kills < 20 else 60.0
        while time.monotonic() - begin < wait:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.001)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
            continue
        assert status == 0, status
        break
    whole = ForestProximity(forest).fit(X, y)
    similarity, neighbors = whole.kneighbors(X, 5)
    assert np.array_equal(np.load(f"{folder}/out.npy"), neighbors)
    assert np.array_equal(np.load(f"{folder}/out.proximity.npy"), similarity)
    loaded = ForestProximity.load(f"{folder}/kernel")
    loaded.max_memory = None
    assert (loaded.proximity() != whole.proximity()).nnz == 0
    print(kills, *sorted(os.listdir(folder)))
    """
)


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills with a POSIX signal")
def test_kill_9_at_any_moment_loses_nothing(tmp_path):
    run = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kills, *files = done.stdout.split()
    assert int(kills) >= 10
    assert files == ["kernel", "out.npy", "out.proximity.npy"]


FULL = dedent(
    """
    import resource, signal, sys
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier
    from leafkernel import Batches, ForestProximity

    X = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
    y = X[:, 0] > 0
    forest = RandomForestClassifier(30, random_state=0, min_samples_leaf=5).fit(X, y)
    batches = Batches.from_arrays(X, y, batch_rows=100)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))  # as if the disk were full
    prox = ForestProximity(forest)
    try:
        prox.fit(batches, folder=sys.argv[1])
    except OSError as error:
        print(type(error).__name__, hasattr(prox, "kernel_"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    prox.fit(batches, folder=sys.argv[1])
    whole = ForestProximity(forest).fit(X, y)
    print((prox.proximity() != whole.proximity()).nnz)
    """
)


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_a_fit_goes_on_after_a_full_disk(tmp_path):
    run = [sys.executable, "-c", FULL, str(tmp_path / "k")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["OSError", "False", "0"], done.stderr


def test_growing_arrays_forget_what_was_not_noted(tmp_path):
    path = tmp_path / "a.npy"
    growing = GrowingArray(path, 3, np.int32, 0)
    growing.append(np.ones((4, 3)))
    growing.append(np.full((2, 3), 2))
    growing._file.close()  # as after a crash
    with GrowingArray(path, 3, np.int32, 4) as growing:
        growing.append(np.full((1, 3), 7))
    assert_array_equal(np.load(path)[:, 0], [1, 1, 1, 1, 7])
    assert np.load(path, mmap_mode="r").shape == (5, 3)


def test_a_temporary_folder_goes_with_the_proximity(table, forest, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    prox = ForestProximity(forest, "kerf").fit(Batches.from_arrays(table[NAMES], table["y"]))
    (folder,) = tmp_path.iterdir()
    told = json.loads((folder / "saved.json").read_bytes())
    assert told["values"]["forest"]["kind"] == "absent"
    del prox
    assert not list(tmp_path.iterdir())


def test_parquet_of_another_tool_is_read(table, tmp_path):
    table.drop(columns="y").to_parquet(tmp_path / "a.parquet", compression="gzip")
    batches = Batches.from_parquet([tmp_path / "a.parquet"] * 2)
    assert batches.n_rows == 3000 == 2 * pq.read_metadata(tmp_path / "a.parquet").num_rows
    assert sum(batch.n_rows for batch in batches) == 3000


def test_a_fit_of_other_data_is_not_taken_for_this_one(table, forest, tmp_path):
    X, y = table[NAMES], table["y"]
    turned = X.iloc[np.r_[0:300, 899:299:-1, 900:1500]]
    other = np.where(y == "high", "low", "high")
    folder = tmp_path / "k"

    def fit(*args, scheme="kerf"):
        return ForestProximity(forest, scheme).fit(*args, folder=folder)

    assert_array_equal(fit(Batches.from_arrays(X, y)).y_, y)
    assert_array_equal(fit(Batches.from_arrays(X, other)).y_, other)
    assert_array_equal(fit(Batches.from_arrays(X), y).y_, y)
    assert_array_equal(fit(Batches.from_arrays(X), other).y_, other)
    found = fit(Batches.from_arrays(turned, y)).kneighbors(None, 5)
    assert_same_nearest(found, ForestProximity(forest, "kerf").fit(turned, y).kneighbors(None, 5))
    for part in (X, turned):
        prox = fit(Batches.from_function(lambda part=part: [part]))
        assert_same_nearest(
            prox.kneighbors(X, 3), ForestProximity(forest, "kerf").fit(part).kneighbors(X, 3)
        )
    for power in (1, 2):
        prox = fit(
            Batches.from_arrays(X, y),
            scheme=lambda s, f, p=power: (1.0 * f.leaf_mass[s.leaf]) ** -p,
        )
        assert prox.proximity().max() > 0
        expected = ForestProximity(forest, prox.weight_scheme).fit(X, y)
        assert_same_matrix(prox.proximity(), expected.proximity())


def test_interrupted_results_of_other_rows_are_not_gone_on_with(table, forest, tmp_path):
    X, y = table[NAMES], table["y"]
    prox = ForestProximity(forest).fit(X, y)
    path = tmp_path / "out.npy"
    turned = X.iloc[np.r_[0:300, 899:299:-1, 900:1500]]
    with pytest.raises(StoppedError):
        prox.write_neighbors(path, stops_after(Batches.from_arrays(X, batch_rows=100), 7), 4)
    with pytest.raises(FileExistsError, match="unfinished work on other data"):
        prox.write_neighbors(path, turned, 4)
    with pytest.raises(FileExistsError, match="unfinished work on other data"):
        prox.reweigh(symmetrize=True).write_neighbors(
            path, Batches.from_arrays(X, batch_rows=100), 4
        )
    prox.write_neighbors(path, Batches.from_function(lambda: [turned]), 4)  # starts again
    assert_array_equal(np.load(path), prox.kneighbors(turned, 4)[1])


def test_targets_stay_with_their_rows_and_what_they_are(table, forest):
    X, y = table[NAMES], table["y"].to_numpy()
    prox = ForestProximity(forest, "kerf")
    shifted = [(X[:100], y[:99]), (X[100:200], y[99:200])]
    with pytest.raises(ValueError, match="y of the batch at row 0 has 99 targets"):
        prox.fit(Batches.from_function(lambda: shifted))
    with pytest.raises(ValueError, match="n_rows=500, but 200 rows were read"):
        prox.fit(Batches.from_function(lambda: [X[:200]], n_rows=500))
    once = iter([X[:50], X[50:100]])
    with pytest.raises(ValueError, match="the same iterator twice"):
        prox.fit(Batches.from_function(lambda: once))
    numbers = np.array([1, 2] * 750, dtype=object)
    assert prox.fit(Batches.from_arrays(X, numbers)).y_.dtype.kind == "i"
    with pytest.raises(TypeError, match="type int, str, which cannot be written"):
        prox.fit(Batches.from_arrays(X, np.array([1, "a"] * 750, dtype=object)))
    with pytest.raises(TypeError, match="numeric in some batches"):
        prox.fit(Batches.from_function(lambda: [(X[:10], y[:10]), (X[10:20], np.arange(10))]))


def test_folders_of_others_are_left_alone(table, forest, tmp_path):
    X, y = table[NAMES], table["y"]
    prox = ForestProximity(forest, "kerf").fit(X, y)
    for name in ("k", "out.npy.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("keep")
    with pytest.raises(FileExistsError, match="contains files that are not a saved proximity"):
        ForestProximity(forest).fit(Batches.from_arrays(X, y), folder=tmp_path / "k")
    with pytest.raises(FileExistsError, match="contains other files"):
        prox.write_neighbors(tmp_path / "out.npy")
    (tmp_path / "o.parquet").mkdir()
    with pytest.raises(IsADirectoryError, match="Pass the name of a file"):
        prox.write_neighbors(tmp_path / "o.parquet")
    with pytest.raises(ValueError, match="X has no rows"):
        prox.write_neighbors(tmp_path / "p.npy", X[:0])
    assert all((tmp_path / name / "mine.txt").exists() for name in ("k", "out.npy.part"))


@pytest.mark.skipif(os.name == "nt", reason="needs locks of POSIX")
def test_two_writers_of_one_result_do_not_meet(table, forest, tmp_path):
    X, y = table[NAMES], table["y"]
    prox = ForestProximity(forest, "kerf").fit(X, y)
    path = tmp_path / "out.npy"

    def read():
        with pytest.raises(BlockingIOError, match="is locked"):
            prox.write_neighbors(path, Batches.from_function(lambda: [X], name="rows"), 3)
        yield X

    prox.write_neighbors(path, Batches.from_function(read, name="rows"), 3)
    assert_array_equal(np.load(path), prox.kneighbors(X, 3)[1])


def test_parts_on_disk_stay_small(table, forest):
    X, y = table[NAMES], table["y"]
    prox = ForestProximity(forest, "kerf", max_memory="400kB")
    prox.fit(Batches.from_arrays(X[:1200], y[:1200], batch_rows=100))
    most = max(part.n_samples for part in prox.kernel_.index.parts)
    prox.extend(X[1200:1390], y[1200:1390]).extend(X[1390:], y[1390:])
    sizes = [part.n_samples for part in prox.kernel_.index.parts]
    assert sum(sizes) == 1500
    assert len(sizes) > 3
    assert max(sizes[:-2]) == most
    prox.max_memory = None
    assert_same_matrix(prox.proximity(), ForestProximity(forest, "kerf").fit(X, y).proximity())
    assert len(prox.reweigh("uniform").kernel_.index.parts) == len(sizes)
