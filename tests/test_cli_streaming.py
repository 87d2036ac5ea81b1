"""Neighbors in tables that are read in small blocks, killed and resumed."""

import fnmatch
import os
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from cli_runs import plain, run, run_json
from pandas.testing import assert_frame_equal
from pyarrow import parquet
from sklearn.ensemble import RandomForestRegressor

from leafkernel import ForestProximity
from leafkernel.tables._room import ReadOptions, choose_rows
from leafkernel.tables.files import read_file
from leafkernel.tables.preparation import prepare

N = 5000
# Small enough that rows are read 1024 at a time and indexed in many parts.
LITTLE = ("--trees", "20", "-k", "4", "--max-memory", "2MB")


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """A Parquet file with a category, gaps, an index of pandas, and a category of one row."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "weight": rng.normal(size=N),
            "eggs": pd.array(rng.integers(1, 9, N), dtype="Int64"),
            "pond": rng.choice(["north", "south", "east"], N),
            "label": [f"bird {i}" for i in range(N)],
        },
        index=pd.Index(np.arange(N) * 3, name="ring"),
    )
    frame["age"] = frame["weight"] + 2.0 * (frame["pond"] == "north") + rng.normal(size=N)
    frame.loc[::30, "eggs"] = pd.NA
    frame.loc[::40, "pond"] = None
    frame.loc[::50, "age"] = np.nan
    frame.iloc[2, frame.columns.get_loc("pond")] = "west"  # a row that no sample here has
    path = tmp_path_factory.mktemp("birds") / "birds.parquet"
    frame.to_parquet(path, row_group_size=1500)
    return path


@pytest.fixture(scope="module")
def expected(birds, tmp_path_factory):
    """The output of a run that nobody interrupts."""
    return stream(birds, tmp_path_factory.mktemp("out") / "out.parquet")


def command(table, output, *more):
    return ("neighbors", table, "-t", "age", "-o", output, *LITTLE, *more)


def stream(table, output, *more):
    run(*command(table, output, *more))
    assert not output.with_name(f"{output.name}.work").exists()
    return pd.read_parquet(output)


def test_neighbors_are_those_of_the_library_for_the_same_forest(birds, tmp_path):
    found = stream(birds, tmp_path / "out.parquet", "--sample", 700)

    rows = choose_rows(N, ReadOptions(max_rows=700))
    whole = read_file(birds)
    prepared = prepare(read_file(birds, max_rows=700), "age")
    assert "west" not in set(prepared.shown["pond"])
    assert set(prepared.rows) < set(rows)  # rows without a target are not used for training
    X = prepared.read(whole).features
    forest = RandomForestRegressor(20, random_state=0).fit(prepared.features, prepared.target)
    prox = ForestProximity(forest, "kerf", diagonal="zero").fit(X)
    similarity, neighbors = prox.kneighbors(n_neighbors=4)

    assert list(found) == ["row", "neighbor", "proximity"]
    assert found["row"].to_numpy().reshape(N, 4)[:, 0].tolist() == list(range(N))
    np.testing.assert_allclose(
        found["proximity"].to_numpy().reshape(N, 4), similarity, rtol=1e-5, atol=0
    )
    exact = prox.proximity().toarray()[found["row"], found["neighbor"]]
    np.testing.assert_allclose(found["proximity"], exact, rtol=1e-5)
    assert (found["neighbor"].to_numpy() == neighbors.ravel()).mean() > 0.99  # but for ties


def test_all_rows_as_the_sample_give_what_the_command_gives_in_memory(birds, tmp_path):
    frame = pd.read_parquet(birds).dropna(subset="age")[:900]
    frame.to_parquet(tmp_path / "some.parquet")
    streamed = stream(tmp_path / "some.parquet", tmp_path / "out.parquet")
    options = ("-t", "age", "--scheme", "kerf", "--trees", 20, "-k", 4)
    run("neighbors", tmp_path / "some.parquet", *options, "-o", tmp_path / "whole.parquet")
    whole = pd.read_parquet(tmp_path / "whole.parquet")
    np.testing.assert_allclose(streamed["proximity"], whole["proximity"], rtol=1e-5)
    np.testing.assert_array_equal(streamed["row"], whole["row"])


def test_a_folder_of_files_is_one_table(birds, expected, tmp_path):
    table = parquet.read_table(birds)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, begin in enumerate(range(0, N, 1300)):
        parquet.write_table(table.slice(begin, 1300), folder / f"part{i}.parquet")
    assert_frame_equal(stream(folder, tmp_path / "out.parquet"), expected)

    parquet.write_table(table.drop_columns("pond"), folder / "part9.parquet")
    said = run(*command(folder, tmp_path / "out.parquet"), exit_code=3).stderr
    assert "have different columns or column types" in said


def test_new_rows_are_streamed_too(birds, expected, tmp_path):
    new = pd.read_parquet(birds)[:2000].drop(columns="age")
    new.to_parquet(tmp_path / "new.parquet")
    found = stream(birds, tmp_path / "out.parquet", "--new", tmp_path / "new.parquet")
    assert found["row"].max() == 1999
    first = found.groupby("row").first()
    # As a new row, each is nearest to itself, or to one in the same leaves.
    itself = first["neighbor"] == first.index
    assert itself.mean() > 0.5
    assert (first["proximity"] >= expected.groupby("row")["proximity"].first()[:2000]).all()

    new.drop(columns="weight").to_parquet(tmp_path / "new.parquet")
    options = command(birds, tmp_path / "out.parquet", "--new", tmp_path / "new.parquet")
    assert "needs column 'weight'" in run(*options, exit_code=4).stderr
    assert not (tmp_path / "out.parquet.work").exists()


def test_a_model_is_used_instead_of_a_new_forest(birds, tmp_path):
    frame = pd.read_parquet(birds)
    X = frame[["weight"]]
    model = RandomForestRegressor(10, random_state=0).fit(X[:500], X["weight"][:500])
    joblib.dump(model, tmp_path / "model.joblib")
    options = ("-k", 3, "--max-memory", "2MB", "--model", tmp_path / "model.joblib")
    output = tmp_path / "out.parquet"
    run("neighbors", birds, "-t", "age", "-o", output, *options, "--trust-model")
    prox = ForestProximity(model, "kerf", diagonal="zero").fit(X)
    similarity = prox.kneighbors(n_neighbors=3)[0]
    found = pd.read_parquet(output)["proximity"]
    np.testing.assert_allclose(found, similarity[similarity > 0], rtol=1e-5)


def test_notes_and_the_document_say_what_was_done(birds, tmp_path):
    document = run_json(*command(birds, tmp_path / "out.parquet"))
    assert document["rows"] == N
    assert document["pairs"] == 4 * N
    assert document["scheme"] == "kerf"
    notes = " ".join(document["notes"])
    assert "random sample of 1,000 of 5,000 rows" in notes
    assert "column 'pond' has categories that are not in the sample" in notes


# --- killed, and given again


def start(table, output):
    words = [str(word) for word in command(table, output)]
    return subprocess.Popen(
        [sys.executable, "-m", "leafkernel", *words], stderr=subprocess.PIPE, text=True
    )


def stop_at(process, folder, pattern, signal_number, delay):
    """Stop a process shortly after it wrote such a file, and return its output."""
    while process.poll() is None and not any(
        fnmatch.filter(names, pattern) for _, _, names in os.walk(folder)
    ):
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(signal_number)
    return process.communicate(timeout=60)[1]


@pytest.mark.processes
def test_a_run_that_is_killed_again_and_again_gives_the_same_output(birds, expected, tmp_path):
    output, folder = tmp_path / "out.parquet", tmp_path / "out.parquet.work"
    rng = np.random.default_rng()
    trees, leaf = {}, None
    for pattern in ("trees_5.skops", "leaf.npy", "part9_members.npy", "row_*.npy"):
        stop_at(start(birds, output), folder, pattern, signal.SIGKILL, rng.uniform(0, 0.05))
        if output.exists():  # it was faster
            break
        now = {path.name: path.stat().st_mtime_ns for path in folder.glob("trees_*.skops")}
        assert trees.items() <= now.items()  # the forest is not grown again
        # The last file may not be noted yet.
        trees = dict(sorted(now.items(), key=lambda item: item[1])[:-1])
        if pattern == "part9_members.npy":
            (leaf,) = (path.stat() for path in folder.glob("fit/data-*/leaf.npy"))
        elif pattern == "row_*.npy" and leaf is not None:
            (kept,) = folder.glob("fit/data-*/leaf.npy")
            assert kept.stat().st_ino == leaf.st_ino  # no row was routed again
    process = start(birds, output)
    assert process.communicate(timeout=120)[1].count("goes on where it was") <= 1
    assert process.returncode == 0
    assert_frame_equal(pd.read_parquet(output), expected)
    assert [*tmp_path.iterdir()] == [output]


@pytest.mark.processes
def test_ctrl_c_says_how_to_go_on_and_other_options_are_refused(birds, expected, tmp_path):
    output, folder = tmp_path / "out.parquet", tmp_path / "out.parquet.work"
    process = start(birds, output)
    said = stop_at(process, folder, "trees_3.skops", signal.SIGINT, 0)
    assert process.returncode == 130
    assert f"kept in {folder}. Run the same command again to continue." in said

    said = run(*command(birds, output, "--seed", 1, "--drop", "eggs"), exit_code=2).stderr
    assert "with other values of --drop, --seed" in said
    assert "delete the folder" in said
    # The same result with other threads and memory.
    run(*command(birds, output, "--jobs", 1, "--max-memory", "3MB"))
    assert_frame_equal(pd.read_parquet(output), expected)


# --- errors


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--scheme", "gap"), "requires a forest that was trained on all rows"),
        (("--scheme", "oob"), "Use kerf or uniform"),
        (("--scheme", "learned"), "requires a forest that was trained on all rows"),
        (("--scheme", "ih"), "requires the values of all rows in memory"),
        (("--max-rows", 50), "Use --sample"),
        (("--max-memory", "much"), "'much' is not a size. Write it like 500MB or 4GB."),
        (("--sample", 4000), "Use at most --sample 1000"),
        (("-o", "out.csv"), "ends in .parquet"),
    ],
)
def test_options_that_do_not_go_together_are_refused(birds, tmp_path, more, said):
    found = run(*command(birds, tmp_path / "out.parquet", *more), exit_code=2).stderr
    assert said in plain(found)
    assert not any(tmp_path.iterdir())


def test_work_that_the_disk_has_no_room_for_is_refused(birds, tmp_path):
    more = ("--trees", 10**12, "--max-memory", "1TB")
    said = run(*command(birds, tmp_path / "out.parquet", *more), exit_code=3).stderr
    assert "of disk" in said
    assert not any(tmp_path.iterdir())


def test_other_files_are_refused_with_what_to_do(birds, tmp_path):
    pd.DataFrame({"a": [1], "age": [2]}).to_csv(tmp_path / "birds.csv", index=False)
    output = tmp_path / "out.parquet"
    assert "COPY" in run(*command(tmp_path / "birds.csv", output), exit_code=3).stderr
    pd.read_parquet(birds)[:0].to_parquet(tmp_path / "empty.parquet")
    assert "no rows" in run(*command(tmp_path / "empty.parquet", output), exit_code=4).stderr
    said = run("neighbors", birds, "-t", "agee", "-o", output, *LITTLE, exit_code=4).stderr
    assert "Did you mean 'age'?" in said
    said = run("neighbors", birds, "-t", "age", "--sample", 100, exit_code=2).stderr
    assert "--sample requires --max-memory" in said
    assert not output.exists()
    assert not (tmp_path / "out.parquet.work").exists()
