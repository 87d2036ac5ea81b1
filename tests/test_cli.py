"""The commands: results, output files and messages."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli_runs import PENGUINS, plain, run, run_json, write_birds
from sklearn.ensemble import RandomForestClassifier

import leafkernel
from leafkernel import ForestProximity
from leafkernel.cli import _options, _train
from leafkernel.cli._options import ForestOptions
from leafkernel.cli._output import Talk
from leafkernel.cli.work import embed
from leafkernel.explorer._map import MAPS
from leafkernel.tables.files import read_file
from leafkernel.tables.preparation import prepare
from leafkernel.tasks import outlier_scores

COMMANDS = (
    *("explore", "demo", "predict", "explain", "neighbors", "outliers", "prototypes", "impute"),
    *("embed", "benchmark"),
)
FEW = ("--trees", "20")


@pytest.fixture
def birds(tmp_path):
    return write_birds(tmp_path / "birds.csv")


def csv_of(result):
    return pd.read_csv(io.StringIO(result.stdout))


# --- results


def test_neighbors_are_those_of_the_library(birds):
    found = csv_of(run("neighbors", birds, "-t", "kind", "-k", 3, *FEW, "--scheme", "uniform"))
    table = prepare(read_file(birds), "kind")
    forest = RandomForestClassifier(20, random_state=0).fit(table.features, table.target)
    prox = ForestProximity(forest, "uniform").fit(table.features, table.target)
    similarity, rows = prox.kneighbors(n_neighbors=3)
    assert found["row"].tolist() == np.repeat(table.rows, 3).tolist()
    assert found["rank"].tolist() == [1, 2, 3] * 89
    assert found["neighbor"].tolist() == table.rows[rows.ravel()].tolist()
    np.testing.assert_allclose(found["proximity"], similarity.ravel(), rtol=1e-6)
    assert found["neighbor_target"].tolist() == table.target[rows.ravel()].tolist()
    # Row 7 has no target: the numbers of the others are still those of the file.
    assert 7 not in set(found["row"]) | set(found["neighbor"])
    assert set(found["neighbor_id"]) <= {f"bird {i}" for i in range(90)}
    assert found["id"][0] == "bird 0"


def test_neighbors_of_new_rows(birds, tmp_path):
    new = tmp_path / "new.csv"
    pd.DataFrame(
        {"name": ["a", "b"], "weight": [-0.5, 6.0], "eggs": [3, 3], "pond": ["east", "north"]}
    ).to_csv(new, index=False)
    result = run("neighbors", birds, "-t", "kind", "--new", new, "-k", 4, *FEW)
    found = csv_of(result)
    assert found["row"].tolist() == [0] * 4 + [1] * 4
    assert found["id"].tolist() == ["a"] * 4 + ["b"] * 4
    assert (found["neighbor_target"][:4] == "duck").sum() >= 3
    assert (found["neighbor_target"][4:] == "goose").sum() >= 3
    assert "not in the training table" in result.stderr


def test_more_neighbors_than_rows(birds):
    result = run("neighbors", birds, "-t", "kind", "-k", 1000, *FEW, "--scheme", "uniform")
    assert csv_of(result).groupby("row").size().max() <= 88
    assert "only 88 rows" in result.stderr


def test_outliers_are_sorted_and_judged(birds):
    found = csv_of(run("outliers", birds, "-t", "kind", *FEW))
    assert len(found) == 89
    assert found["score"].is_monotonic_decreasing
    assert (found["is_outlier"] == (found["score"] > 10)).all()
    table = prepare(read_file(birds), "kind")
    forest = RandomForestClassifier(20, random_state=0, oob_score=True)
    table_features = _train._filler(table.features, "gap", Talk("test", quiet=True))(table)
    forest.fit(table_features, table.target)
    prox = ForestProximity(forest).fit(table_features, table.target)
    by_row = found.sort_values("row")
    np.testing.assert_allclose(by_row["score"], outlier_scores(prox, table.target), rtol=1e-6)
    ours = by_row["prediction"].to_numpy()
    theirs = forest.classes_[forest.oob_decision_function_.argmax(axis=1)]
    certain = np.abs(forest.oob_decision_function_[:, 0] - 0.5) > 1e-9
    assert (ours == theirs)[certain].all()


def test_top_outliers_by_another_convention(birds):
    options = ("-t", "kind", "--convention", "raw", "--top", 4, *FEW)
    found = csv_of(run("outliers", birds, *options))
    assert len(found) == 4
    assert "is_outlier" not in found


def test_prototypes_stand_for_their_class(birds):
    found = csv_of(run("prototypes", birds, "-t", "kind", "-n", 2, *FEW))
    assert found["class"].tolist() == ["duck", "duck", "goose", "goose"]
    assert found["rank"].tolist() == [1, 2, 1, 2]
    table = pd.read_csv(birds)
    assert (table["kind"][found["row"]].to_numpy() == found["class"]).all()
    np.testing.assert_allclose(table["weight"][found["row"]], found["weight"])
    assert (found.groupby("class")["stands_for"].sum() <= [44, 45]).all()
    assert (found["stands_for"] >= 1).all()
    assert (found["coverage"].between(0, 1)).all()
    assert (found.groupby("class")["coverage"].diff().dropna() >= 0).all()


def test_prototypes_of_numbers_are_by_quarters(birds):
    found = csv_of(run("prototypes", birds, "-t", "weight", "-n", 1, *FEW))
    assert len(found) == 4
    assert found["class"][0].startswith("lowest quarter: ")


def test_coordinates(birds):
    found = csv_of(run("embed", birds, "-t", "kind", "-m", "pca", "-n", 3, *FEW))
    assert list(found) == ["row", "id", "pca_1", "pca_2", "pca_3", "target"]
    by_class = found.groupby("target")["pca_1"].mean()
    assert abs(by_class["duck"] - by_class["goose"]) > found["pca_1"].std()


@pytest.mark.parametrize("method", [*MAPS])
def test_maps_are_those_of_the_explorer(birds, monkeypatch, method):
    assert _options.MAPS == MAPS
    table, asked = prepare(read_file(birds), "kind"), {}

    def map_model(prox, X, method, **options):
        asked.update(options, method=method)
        return real(prox, X, "pca", **options)

    real = embed.map_model
    monkeypatch.setattr(embed, "map_model", map_model)
    found = csv_of(run("embed", birds, "-t", "kind", "-m", method, "--seed", 3, *FEW))
    expected = {"n_components": 2, "random_state": 3, "keep_scheme": False}
    assert asked == {"method": method, **expected}
    assert found["row"].tolist() == table.rows.tolist()
    assert f"{MAPS[1]}, {MAPS[2]}" in plain(run("explore", "--help").stdout)


def test_a_map_of_another_scheme(birds):
    # Without gaps, so that the forest is the same for both.
    options = ("embed", birds, "-t", "kind", "-m", "spectral", "--drop", "eggs", "--drop", "pond")
    uniform, gap = (
        csv_of(run(*options, *FEW, "--scheme", scheme))["spectral_1"].abs()
        for scheme in ("uniform", "gap")
    )
    assert not np.allclose(uniform, gap)


def test_benchmark_times_both_ways(birds):
    document = run_json("benchmark", birds, "-t", "kind", "--subset", 30, *FEW)
    steps = pd.DataFrame(document["result"])
    assert steps["step"][0] == "training the forest"
    assert (steps["seconds"] > 0).all()
    assert steps["rows"].tolist() == [89] * 5 + [30] * 2
    assert "times as fast" in document["notes"][-1]


def test_the_score_is_the_out_of_bag_one(birds):
    document = run_json("outliers", birds, "-t", "kind", "--top", 1, *FEW)
    assert document["score"]["label"] == "Out-of-bag accuracy"
    assert 0.8 < document["score"]["value"] <= 1
    assert document["score"]["baseline"]["text"] == "50.6%"
    assert document["rows"] == 89
    assert document["features"] == ["weight", "eggs", "pond"]
    assert len(document["result"]) == 1


def test_trees_grown_in_parts_are_the_same(birds):
    table = prepare(read_file(birds), "pond")
    X = table.features.fillna(0)
    talk = Talk("test")
    whole = _train._grow(talk, table, X, 23, ForestOptions(seed=3, jobs=1))
    talk.lively, steps = True, []
    talk.step = lambda *_, **__: None
    talk.advance = steps.append
    parts = _train._grow(talk, table, X, 23, ForestOptions(seed=3, jobs=1))
    assert len(steps) > 5
    assert steps[-1] == 23
    assert [tree.random_state for tree in parts] == [tree.random_state for tree in whole]
    assert (parts.apply(X) == whole.apply(X)).all()
    assert not parts.warm_start


def test_large_tables_get_fewer_trees(birds, monkeypatch):
    monkeypatch.setattr(_train, "_MANY", 50)
    monkeypatch.setattr(_train, "_TREES_OF_MANY", 12)
    document = run_json("outliers", birds, "-t", "kind")
    assert document["trees"] == 12
    assert any("Use --trees" in note for note in document["notes"])


def test_a_sample_of_the_rows(birds):
    document = run_json("outliers", birds, "-t", "weight", "--max-rows", 30, *FEW)
    assert document["rows"] == 30
    assert any("random sample of 30" in note for note in document["notes"])
    assert max(line["row"] for line in document["result"]) > 30


# --- where results go


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".feather"])
def test_results_go_to_files(birds, tmp_path, ending):
    if ending in (".parquet", ".feather"):
        pytest.importorskip("pyarrow")
    path = tmp_path / f"out{ending}"
    result = run("outliers", birds, "-t", "kind", "-o", path, *FEW)
    assert result.stdout == ""
    assert read_file(path).shape == (89, 6)
    assert [each.name for each in tmp_path.iterdir() if "part" in each.name] == []


def test_json_beside_a_file(birds, tmp_path):
    path = tmp_path / "out.csv"
    document = run_json("outliers", birds, "-t", "kind", "-o", path, *FEW)
    assert document["output"] == str(path)
    assert document["result"] is None


def test_json_has_null_for_missing(tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"a": [1.5, None] * 10, "b": ["x", None] * 10, "y": ["u", "v"] * 10})
    frame.to_csv(path, index=False)
    found = run_json("prototypes", path, "-t", "y", "-n", 1, *FEW)["result"]
    assert {line["a"] for line in found} == {1.5, None}
    assert {line["b"] for line in found} == {"x", None}


def test_quiet_says_no_notes(birds):
    options = ("outliers", birds, "-t", "kind", *FEW)
    assert "note: " in run(*options).stderr
    assert run(*options, "--quiet").stderr == ""
    assert run(*options, "--quiet").stdout == run(*options).stdout


@pytest.mark.parametrize("option", [(), ("--id", "code")])
def test_names_of_rows_are_written_to_the_letter(tmp_path, option):
    path, new = tmp_path / "t.csv", tmp_path / "new.csv"
    name = "code" if option else "id"
    ids = [f"{i}.0" if i % 2 else f" +{i} " for i in range(30)]
    lines = [f"{each},{i % 7},{i % 2}\n" for i, each in enumerate(ids)]
    path.write_text(f"{name},a,y\n" + "".join(lines))
    new.write_text(f"{name},a,y\n" + "".join(lines[:4]))
    options = ("-t", "y", *option, *FEW)
    assert [x["id"] for x in run_json("embed", path, "-m", "pca", *options)["result"]] == ids
    found = run_json("neighbors", path, "--new", new, *options)["result"]
    assert {line["id"] for line in found} == set(ids[:4])
    assert {line["neighbor_id"] for line in found} <= set(ids)


@pytest.mark.parametrize("command", ["outliers", "neighbors", "predict", "embed", "prototypes"])
def test_formulas_are_written_as_they_are_with_a_note(tmp_path, command):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    names = [f"{sign}bird{i}" for i in range(5) for sign in "=+-@"]
    frame = pd.DataFrame({"name": names, "a": [1.0, 2.0] * 10, "y": ["=cmd()", "fine"] * 10})
    frame.to_csv(path, index=False)
    method = ["-m", "pca"] if command == "embed" else []
    options = (command, path, "-t", "y", "--id", "name", *method, *FEW)
    piped = run(*options)
    assert "as a formula" in piped.stderr
    assert "'id' (" in piped.stderr
    read = pd.read_csv(io.StringIO(piped.stdout))
    assert set(read["id"]) <= set(names)
    assert run(*options, "-o", out).stderr == piped.stderr
    assert out.read_text() == piped.stdout
    escaped = run(*options, "--escape-formulas")
    assert "as a formula" not in escaped.stderr
    assert set(pd.read_csv(io.StringIO(escaped.stdout))["id"]) == {f"'{x}" for x in read["id"]}
    assert "as a formula" not in " ".join(run_json(*options)["notes"])


# --- help


def test_version():
    assert run("--version").stdout == f"leafkernel {leafkernel.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["neighbors", "--help"],
        ["predict", "t.csv", "-t", "y", "--coverage", "2"],
        ["explain", "--help"],
        ["impute", "t.csv", "--trees", "x"],
        ["outliers", "t.csv", "--scheme", "none"],
        ["embed", "t.csv", "-t", "y", "--as", "x=colour"],
        ["nothing"],
    ],
)
def test_options_need_no_heavy_library(arguments):
    """Heavy imports happen when a command runs, so that `--help` is fast."""
    script = (
        "import sys\nfrom leafkernel.cli import main\n"
        f"sys.argv = ['leafkernel', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ('numpy', 'pandas', 'scipy', 'sklearn', 'joblib', 'pyarrow')\n"
        "sys.stderr.write(f'imported: {[name for name in heavy if name in sys.modules]}')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stderr.endswith("imported: []")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    text = plain(run(command, "--help").stdout)
    assert f"Example: leafkernel {command}" in text
    assert "--json" in text
    assert "--traceback" in text


def test_help_lists_the_commands_and_exit_codes():
    text = plain(run("--help").stdout)
    for command in COMMANDS:
        assert f" {command} " in text
    assert "Exit codes" in text


def test_penguins_come_along():
    document = run_json("outliers", PENGUINS, "-t", "species", "--top", 2, *FEW)
    assert document["rows"] == 344
    assert document["score"]["value"] > 0.95
    assert json.dumps(document)
