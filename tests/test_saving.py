"""Saved proximities: loading returns the saved data, or raises an error with the reason."""

import hashlib
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import ForestProximity, WeightScheme, saving
from leafkernel.saving import DamagedError
from leafkernel.schemes import Boosted, InstanceHardness
from leafkernel.tasks import ProximityClassifier, explain_prediction, find_label_errors

pytestmark = pytest.mark.filterwarnings("ignore::leafkernel.LeafkernelWarning")


def same(a, b, X):
    """Whether two proximities give the same numbers, to the last bit."""
    for queries in (None, X[:7]):
        p, q = a.proximity(queries), b.proximity(queries)
        assert p.dtype == q.dtype
        assert (p != q).nnz == 0
        for found, expected in zip(b.kneighbors(queries, 3), a.kneighbors(queries, 3), strict=True):
            assert_array_equal(found, expected)
    values = np.arange(a.n_samples_fit_, dtype=float)
    assert_array_equal(a.weighted_sums(values, X[:7]), b.weighted_sums(values, X[:7]))


@pytest.fixture
def saved(iris, tmp_path):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(6, random_state=0), "kerf").fit(X, y)
    prox.save(tmp_path / "saved")
    return prox, tmp_path / "saved"


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def reseal(folder, change):
    """Change the manifest as somebody would who knows the format."""
    path = folder / "saved.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    change(content)
    text = json.dumps(content, sort_keys=True)
    content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(content, sort_keys=True, indent=1) + "\n")


def replace_array(folder, name, change):
    """Replace an array and its checksums."""
    (path,) = folder.glob(f"data-*/{name}.npy")
    array = change(np.load(path))
    np.save(path, array, allow_pickle=True)

    def describe(content):
        raw = path.read_bytes()
        told = content["files"][path.name]
        told.update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
        told.update(dtype=array.dtype.str, shape=list(array.shape))

    reseal(folder, describe)


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize(
    "scheme",
    ["gap", "uniform", "kerf", "oob", "oob_separable", "learned", InstanceHardness(3, "leaf")],
)
def test_every_scheme_comes_back(iris, tmp_path, scheme, symmetrize):
    X, y = iris
    forest = RandomForestClassifier(8, random_state=0)
    params = {"symmetrize": symmetrize, "diagonal": "one", "dtype": np.float64, "n_jobs": 2}
    prox = ForestProximity(forest, scheme, **params).fit(X, y)
    prox.save(tmp_path)
    again = ForestProximity.load(tmp_path)
    same(prox, again, X)
    assert again.scheme_ == prox.scheme_
    for name, value in params.items():
        assert getattr(again, name) == value
    same(prox.reweigh("kerf"), again.reweigh("kerf"), X)
    same(prox, pickle.loads(pickle.dumps(again)), X)


def test_saves_from_before_schemes_learned(iris, tmp_path):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(8, random_state=0), "gap").fit(X, y)
    prox.save(tmp_path)

    def forget(content):
        del content["values"]["samples"]["targets"], content["values"]["stats"]["learned"]

    reseal(tmp_path, forget)
    again = ForestProximity.load(tmp_path)
    same(prox, again, X)
    same(prox.reweigh("learned"), again.reweigh("learned"), X)


def boosted_models():
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    catboost = pytest.importorskip("catboost")
    quiet = {"n_estimators": 5, "random_state": 0}
    return {
        "LGBMClassifier": lightgbm.LGBMClassifier(**quiet, verbose=-1),
        "XGBClassifier": xgboost.XGBClassifier(**quiet),
        "XGBRegressor": xgboost.XGBRegressor(**quiet),
        "CatBoostClassifier": catboost.CatBoostClassifier(
            iterations=5, verbose=False, allow_writing_files=False
        ),
    }


@pytest.mark.parametrize(
    "name", ["LGBMClassifier", "XGBClassifier", "XGBRegressor", "CatBoostClassifier"]
)
def test_boosted_models_are_written_by_their_library(iris, tmp_path, name):
    X, y = iris
    model = boosted_models()[name].fit(X, y)
    prox = ForestProximity(model, "boosted").fit(X, y)
    prox.save(tmp_path)
    again = ForestProximity.load(tmp_path)
    same(prox, again, X)
    wanted = "Booster" if name == "LGBMClassifier" else name
    assert type(again.forest_).__name__ == wanted
    assert not list(tmp_path.glob("data-*/*.skops"))


def test_boosters_without_a_wrapper(iris, tmp_path):
    X, y = iris
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    boosters = (
        xgboost.train({"max_depth": 3}, xgboost.DMatrix(X, y), 4),
        lightgbm.train({"verbose": -1}, lightgbm.Dataset(X, y), 4),
    )
    for booster in boosters:
        prox = ForestProximity(booster, "boosted").fit(X, y)
        prox.save(tmp_path)
        same(prox, ForestProximity.load(tmp_path), X)


@pytest.mark.parametrize(
    ("forest", "scheme"),
    [
        (ExtraTreesRegressor(5, random_state=0), "kerf"),
        (RandomTreesEmbedding(5, random_state=0), "uniform"),
        (GradientBoostingClassifier(n_estimators=4, random_state=0), "boosted"),
        (HistGradientBoostingRegressor(max_iter=4), Boosted([1.0, 2.0, 3.0, 4.0])),
        (make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)), "gap"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_forests_of_scikit_learn(iris, tmp_path, forest, scheme):
    if isinstance(forest, HistGradientBoostingRegressor) and not hasattr(
        np.random.default_rng(0).bit_generator, "seed_seq"
    ):
        pytest.skip("skops needs NumPy 1.25 or later to write a random generator")
    X, y = iris
    prox = ForestProximity(forest, scheme).fit(X, y)
    prox.save(tmp_path)
    again = ForestProximity.load(tmp_path)
    same(prox, again, X)
    if hasattr(prox.forest_, "predict"):
        assert_array_equal(again.forest_.predict(X), prox.forest_.predict(X))


def test_types_that_skops_does_not_know_need_trust(iris, tmp_path):
    X, y = iris
    search = GridSearchCV(RandomForestClassifier(3, random_state=0), {"max_depth": [3]}, cv=2)
    prox = ForestProximity(search, "kerf").fit(X, y)
    prox.save(tmp_path)
    with pytest.raises(TypeError, match=r"types that skops does not trust: .*load it with trusted"):
        ForestProximity.load(tmp_path)
    trusted = [
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
    ]
    same(prox, ForestProximity.load(tmp_path, trusted=trusted), X)


def test_leaves_alone(tmp_path):
    rng = np.random.default_rng(0)
    leaves, in_bag = rng.integers(0, 9, (40, 5)), rng.integers(0, 3, (40, 5))
    prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme="gap", y=np.arange(40))
    prox.save(tmp_path)
    again = ForestProximity.load(tmp_path)
    same(prox, again, leaves)
    unknown = np.full((1, 5), 77)
    assert again.proximity(unknown).nnz == 0
    assert_array_equal(again.y_, np.arange(40))


class Halves:
    """A custom forest: each tree tests whether a feature is above its middle."""

    def leaves(self, X):
        return (np.asarray(X) > 3).astype(int)


def test_a_forest_of_ones_own_is_given_again(iris, tmp_path):
    X, y = iris
    prox = ForestProximity(Halves(), "kerf").fit(X, y)
    prox.save(tmp_path)
    with pytest.raises(ValueError, match=r"is not in the folder\. Load it with forest=\.\.\."):
        ForestProximity.load(tmp_path)
    same(prox, ForestProximity.load(tmp_path, forest=Halves()), X)


class Doubled(WeightScheme):
    """Twice the share of shared leaves."""

    def query(self, samples, forest):
        return np.full(samples.leaf.shape, np.sqrt(2 / forest.n_trees))


def test_a_scheme_of_ones_own_is_given_again(iris, tmp_path):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(4, random_state=0), Doubled()).fit(X, y)
    prox.save(tmp_path)
    with pytest.raises(ValueError, match=r"'Doubled'.*Load it with weight_scheme=\.\.\."):
        ForestProximity.load(tmp_path)
    with pytest.raises(ValueError, match="but the proximity was saved with the scheme 'Doubled'"):
        ForestProximity.load(tmp_path, weight_scheme="kerf")
    same(prox, ForestProximity.load(tmp_path, weight_scheme=Doubled()), X)


def test_another_model_is_refused(iris, saved):
    X, y = iris
    prox, folder = saved
    same(prox, ForestProximity.load(folder, forest=prox.forest_), X)
    other = RandomForestClassifier(6, max_depth=2, random_state=1).fit(X, y)
    with pytest.raises(ValueError, match="has other leaves than the forest of the saved proximity"):
        ForestProximity.load(folder, forest=other)


@pytest.mark.parametrize(
    "labels",
    [
        [f"row {i}" for i in range(150)],
        pd.DatetimeIndex(list(pd.date_range("2020-01-01", periods=150))),
        pd.MultiIndex.from_product([["a", "b", "c"], range(50)], names=["letter", "number"]),
        pd.Index(range(150), name="id") * 2,
    ],
    ids=["texts", "dates", "levels", "numbers"],
)
@pytest.mark.parametrize(
    "name_of", [str, float, lambda c: ["x", "y", "z"][c], lambda c: [1, "two", None][c]]
)
def test_names_labels_and_targets_come_back(iris, tmp_path, labels, name_of):
    X, y = iris
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=labels)
    forest = RandomForestClassifier(4, random_state=0).fit(frame, y)
    targets = np.array([name_of(c) for c in y], dtype=object)
    prox = ForestProximity(forest, "kerf").fit(frame, targets)
    prox.save(tmp_path)
    again = ForestProximity.load(tmp_path)
    pd.testing.assert_index_equal(pd.Index(again.index_), pd.Index(prox.index_), exact="equiv")
    assert again.y_.tolist() == targets.tolist()
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    pd.testing.assert_frame_equal(
        again.neighbors_frame(frame[:3], 2), prox.neighbors_frame(frame[:3], 2)
    )


def test_values_without_a_plain_form_are_refused(iris, tmp_path):
    X, y = iris
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    targets = np.empty(150, dtype=object)
    targets[:] = [complex(c) for c in y]
    prox = ForestProximity(forest, "kerf").fit(X, targets)
    with pytest.raises(TypeError, match="targets contains values of type complex"):
        prox.save(tmp_path)
    assert not list(tmp_path.iterdir())  # nothing is left of it


def test_tasks_work_on_what_was_loaded(iris, saved):
    X, y = iris
    prox, folder = saved
    again = ForestProximity.load(folder)
    assert str(explain_prediction(again, x=X[0])) == str(explain_prediction(prox, x=X[0]))
    assert_array_equal(find_label_errors(again).rows, find_label_errors(prox).rows)
    expected = ProximityClassifier(prox).fit(X, y).predict_proba(X)
    assert_allclose(ProximityClassifier(again).fit(X, y).predict_proba(X), expected)


def test_arrays_are_mapped_and_read_only(saved):
    _, folder = saved
    kernel = ForestProximity.load(folder).kernel_
    for array in (kernel.query.incidence.columns, kernel.index.members):
        assert isinstance(array.base, np.memmap) or isinstance(array.base.base, np.memmap)
        assert not array.flags.writeable


def test_a_flipped_bit_in_any_file_is_found(saved):
    _, folder = saved
    draw = random.Random(0)
    for path in files_of(folder):
        good = path.read_bytes()
        for _ in range(4):
            at = draw.randrange(len(good))
            spoiled = bytearray(good)
            spoiled[at] ^= 1 << draw.randrange(8)
            path.write_bytes(spoiled)
            with pytest.raises(DamagedError):
                ForestProximity.load(folder)
        path.write_bytes(good)
    ForestProximity.load(folder)


def test_a_flipped_bit_anywhere_in_the_manifest_is_found(saved):
    _, folder = saved
    path = folder / "saved.json"
    good = path.read_bytes()
    for at in range(0, len(good), 7):
        spoiled = bytearray(good)
        spoiled[at] ^= 1 << at % 7
        path.write_bytes(spoiled)
        with pytest.raises(DamagedError):
            ForestProximity.load(folder, verify=False)


def test_a_file_that_is_cut_short_or_gone_is_found_without_checksums(saved):
    _, folder = saved
    for path in files_of(folder):
        good = path.read_bytes()
        path.write_bytes(good[: len(good) // 2])
        with pytest.raises(DamagedError, match=r"bytes were written|saved\.json is damaged"):
            ForestProximity.load(folder, verify=False)
        path.unlink()
        with pytest.raises((DamagedError, FileNotFoundError)):
            ForestProximity.load(folder, verify=False)
        path.write_bytes(good)


def test_checksums_can_be_compared_later(saved):
    _, folder = saved
    saving.verify(folder)
    (path,) = folder.glob("data-*/leaf_mass.npy")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    ForestProximity.load(folder, verify=False)
    with pytest.raises(DamagedError, match=r"the checksum of .* is wrong"):
        saving.verify(folder)


def test_ids_are_checked_even_where_all_checksums_fit(saved):
    """A hostile folder: its arrays point out of bounds, and its checksums are correct."""
    _, folder = saved
    for name, message in (
        ("leaf", "a leaf id is out of range"),
        ("part0_members", "ascending places"),
        ("part0_offsets", "do not span"),
        ("part0_sample_at", "not a permutation"),
    ):
        shutil.copytree(folder, folder.with_name("hostile"))
        replace_array(folder.with_name("hostile"), name, lambda array: array + array.dtype.type(7))
        with pytest.raises(ValueError, match=message):
            ForestProximity.load(folder.with_name("hostile"))
        shutil.rmtree(folder.with_name("hostile"))


@pytest.mark.parametrize("name", ["leaf", "leaf_mass", "leaf_offsets", "part0_members"])
def test_arrays_of_another_size_are_refused(saved, name):
    _, folder = saved
    replace_array(folder, name, lambda array: array[:-1])
    with pytest.raises(ValueError, match=r"leaves|leaf|belong|entries|span|by_leaf"):
        ForestProximity.load(folder).proximity()


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (os.abort, ())


def test_loading_runs_no_code(saved):
    _, folder = saved
    replace_array(folder, "leaf_mass", lambda array: np.array([Bomb()] * len(array), dtype=object))
    with pytest.raises(DamagedError, match="dtype object"):
        ForestProximity.load(folder)
    (path,) = folder.glob("data-*/leaf_mass.npy")

    def lie(content):
        content["files"][path.name].update(dtype="<i8")

    reseal(folder, lie)
    with pytest.raises(DamagedError, match="is not an NPY file"):
        ForestProximity.load(folder)


@pytest.mark.parametrize("data", ["../data-000000000000", "/etc", "data-xyz", 7, None])
def test_a_manifest_cannot_lead_elsewhere(saved, data):
    _, folder = saved
    reseal(folder, lambda content: content.update(data=data))
    with pytest.raises(DamagedError):
        ForestProximity.load(folder)


def test_a_file_name_cannot_lead_elsewhere(saved):
    _, folder = saved
    reseal(folder, lambda content: content["files"].update({"../../x.npy": {"bytes": 1}}))
    with pytest.raises(DamagedError, match="refers to the invalid file"):
        ForestProximity.load(folder)


def test_a_newer_format_says_so(saved):
    _, folder = saved
    reseal(folder, lambda content: content.update(version=99))
    with pytest.raises(DamagedError, match=r"format 99; this version reads up to 2"):
        ForestProximity.load(folder)


def test_what_is_no_save_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="contains no saved proximity"):
        ForestProximity.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"does not exist. Pass the folder that prox.save"):
        ForestProximity.load(tmp_path / "nowhere")
    (tmp_path / "saved.json").write_text("{}")
    with pytest.raises(DamagedError, match="unknown format"):
        ForestProximity.load(tmp_path)


def test_other_files_are_never_overwritten(saved, tmp_path):
    prox, _ = saved
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="contains files that are not a saved proximity"):
        prox.save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_save_replaces_an_earlier_one(iris, saved):
    X, _ = iris
    prox, folder = saved
    mapped = ForestProximity.load(folder)
    other = prox.reweigh("uniform")
    other.save(folder)
    same(other, ForestProximity.load(folder), X)
    assert len(list(folder.iterdir())) == 2  # no leftovers
    if os.name == "posix":
        same(prox, mapped, X)  # files opened before stay readable


def test_an_unfitted_object_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        ForestProximity(RandomForestClassifier()).save(tmp_path / "saved")


KILLED = dedent(
    """
    import os, random, signal, sys, time
    import numpy as np
    from leafkernel import ForestProximity

    folder, draw = sys.argv[1], random.Random(0)
    leaves = np.random.default_rng(0).integers(0, 9, (300, 20))
    first = ForestProximity.from_leaves(leaves)
    second = first.reweigh("kerf")
    first.save(folder)
    names = set()
    for _ in range(20):
        child = os.fork()
        if not child:
            while True:  # one save after the other, until it is killed
                for prox in (second, first):
                    prox.save(folder)
        time.sleep(draw.uniform(0.0, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = ForestProximity.load(folder)
        names.add(found.scheme_.name)
        expected = {"uniform": first, "kerf": second}[found.scheme_.name]
        assert (found.proximity() != expected.proximity()).nnz == 0
    print(*sorted(names))
    """
)


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills with a POSIX signal")
def test_kill_9_at_any_moment_leaves_a_whole_save(tmp_path):
    run = [sys.executable, "-c", KILLED, str(tmp_path / "saved")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["kerf", "uniform"]  # it was killed after some saves, not before


FULL = dedent(
    """
    import resource, signal, sys
    import numpy as np
    from leafkernel import ForestProximity

    leaves = np.random.default_rng(0).integers(0, 9, (3000, 20))
    small, large = (ForestProximity.from_leaves(leaves[:n]) for n in (30, 3000))
    small.save(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # as if the disk were full
    try:
        large.save(sys.argv[1])
    except OSError as error:
        print(ForestProximity.load(sys.argv[1]).n_samples_fit_)
    """
)


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_a_full_disk_leaves_the_old_save(tmp_path):
    run = [sys.executable, "-c", FULL, str(tmp_path / "saved")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout == "30\n", done.stderr
    assert len(list((tmp_path / "saved").iterdir())) == 2


def test_several_save_and_load_one_folder_at_once(iris, saved):
    X, _ = iris
    prox, folder = saved
    other = prox.reweigh("uniform")
    expected = {"kerf": prox.proximity(X), "uniform": other.proximity(X)}
    stop, errors = threading.Event(), []

    def keep_saving(which):
        try:
            while not stop.is_set():
                which.save(folder)
        except BaseException as error:
            errors.append(error)
            raise

    writers = [threading.Thread(target=keep_saving, args=(which,)) for which in (prox, other)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(25):
            found = ForestProximity.load(folder)
            assert (found.proximity(X) != expected[found.scheme_.name]).nnz == 0
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors


@pytest.mark.processes
def test_two_processes_read_one_save(saved):
    prox, folder = saved
    script = (
        "import sys; from leafkernel import ForestProximity; "
        "print(ForestProximity.load(sys.argv[1]).proximity().sum())"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    found = [float(run.communicate()[0]) for run in runs]
    assert_allclose(found, float(prox.proximity().sum()), rtol=1e-6)


def test_a_save_that_died_long_ago_is_cleared_away(saved):
    prox, folder = saved
    dead, alive = folder / ".part-000000000000", folder / ".part-111111111111"
    for path in (dead, alive):
        path.mkdir()
        (path / "leaf.npy").touch()
    os.utime(dead, (0, 0))
    prox.save(folder)
    assert not dead.exists()
    assert alive.exists()


def test_the_folder_may_be_any_path(iris, saved, tmp_path, monkeypatch):
    X, _ = iris
    prox, _ = saved
    monkeypatch.chdir(tmp_path)
    for folder in ("a/new folder", Path("é ü")):
        prox.save(folder)
        same(prox, ForestProximity.load(folder), X)
