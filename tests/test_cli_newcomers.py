"""Common mistakes of new users: a wrong model or file, and columns mistaken for ids or dates."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from cli_runs import plain, run, run_json
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from leafkernel.cli import _train

FEW = ("--trees", 8)


@pytest.fixture
def frame(rng):
    a = rng.normal(size=60).round(3)
    return pd.DataFrame(
        {
            "a": a,
            "b": rng.normal(size=60).round(3),
            "c": rng.choice(["x", "y"], 60),
            "label": np.where(a > 0.3, "yes", "no"),
        }
    )


@pytest.fixture
def write(tmp_path):
    """Write a table as CSV; return its path."""

    def to_csv(frame, name="table.csv"):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return to_csv


@pytest.fixture
def save(tmp_path):
    """Save a fitted model; return the options that load it."""

    def dump(model):
        joblib.dump(model, tmp_path / "model.joblib")
        return ("--model", tmp_path / "model.joblib", "--trust-model")

    return dump


def forest(kind=RandomForestClassifier):
    return kind(8, random_state=0)


# --- models


def test_a_model_of_another_target_is_refused(frame, write, save):
    options = save(forest().fit(frame[["a", "b"]], frame["c"]))
    text = run("outliers", write(frame), "-t", "label", *options, exit_code=4).stderr
    assert "was not trained on the classes 'no', 'yes' of the column 'label'" in text
    assert "'x', 'y'" in text


def test_a_class_that_the_model_has_not_seen(frame, write, save):
    options = save(forest().fit(frame[["a", "b"]], frame["label"]))
    frame.loc[:4, "label"] = "maybe"
    text = run("outliers", write(frame), "-t", "label", *options, exit_code=4).stderr
    assert "was not trained on the classes 'maybe'" in text


@pytest.mark.parametrize(
    ("in_table", "in_model"),
    [
        ((2, 3), (2, 3)),
        ((2, 3), (2.0, 3.0)),
        ((2, 3), ("2", "3")),
        (("2.0", "3.0"), (2, 3)),
        (("02", "03"), (2, 3)),
        (("FALSE", "TRUE"), (False, True)),
    ],
)
def test_classes_are_the_same_in_any_type(frame, write, save, in_table, in_model):
    yes = frame["label"] == "yes"
    options = save(forest().fit(frame[["a", "b"]], np.where(yes, *in_model[::-1])))
    frame["label"] = np.where(yes, *in_table[::-1])
    document = run_json("outliers", write(frame), "-t", "label", *options)
    assert document["score"]["label"] == "Out-of-bag accuracy"
    assert not any("codes" in note for note in document["notes"])


@pytest.mark.parametrize(("dtype", "said"), [(int, "'0', '1'"), (bool, "'False', 'True'")])
def test_codes_of_classes_come_with_a_note(frame, write, save, dtype, said):
    options = save(forest().fit(frame[["a", "b"]], (frame["label"] == "yes").astype(dtype)))
    document = run_json("outliers", write(frame), "-t", "label", *options)
    assert any(
        f"The classes of the model, {said}, are matched" in note for note in document["notes"]
    )


def test_another_task_than_the_models_is_refused(frame, write, save):
    frame["label"] = np.where(frame["label"] == "yes", 3, 2)
    table = write(frame)
    options = ("outliers", table, "-t", "label", "--task")
    model = save(forest().fit(frame[["a", "b"]], frame["label"]))
    assert (
        "was trained for classification" in run(*options, "regression", *model, exit_code=4).stderr
    )
    model = save(forest(RandomForestRegressor).fit(frame[["a", "b"]], frame["label"]))
    assert (
        "was trained for regression" in run(*options, "classification", *model, exit_code=4).stderr
    )


def test_trees_of_a_model_are_not_chosen(frame, write, save):
    options = save(forest().fit(frame[["a", "b"]], frame["label"]))
    text = run("outliers", write(frame), "-t", "label", *options, *FEW, exit_code=2).stderr
    assert "--trees cannot be combined with --model" in text


# --- other tables


def test_no_file_that_is_read_is_written_over(frame, write, tmp_path):
    table, new = write(frame), write(frame[:5], "new.csv")
    before = new.read_bytes()
    options = ("neighbors", table, "-t", "label", "--new", new, *FEW)
    assert "the same file as --new" in run(*options, "-o", new, exit_code=2).stderr
    assert new.read_bytes() == before
    assert "the input table" in run(*options, "-o", table, exit_code=2).stderr
    run(*options, "-o", tmp_path / "result.csv")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "result.csv")
    model = ("--model", tmp_path / "link.csv", "-o", tmp_path / "result.csv")
    text = run("outliers", table, "-t", "label", *model, exit_code=2).stderr
    assert "the same file as --model" in text


def test_no_rows_to_find_neighbors_for(frame, write):
    table, new = write(frame), write(frame[:0], "new.csv")
    text = run("neighbors", table, "-t", "label", "--new", new, *FEW, exit_code=4).stderr
    assert "new.csv has column names but no rows" in text


def test_names_of_other_rows(frame, write):
    frame.insert(0, "id", np.arange(100, 160))
    new = frame[:3].assign(id=[7.0, np.nan, 9.0])
    options = ("neighbors", write(frame), "-t", "label", "--new", write(new, "new.csv"), "-k", 1)
    result = run_json(*options, *FEW)["result"]
    assert [line["id"] for line in result] == ["7.0", "row 1", "9.0"]
    assert all(line["neighbor_id"].startswith("1") for line in result)


def test_a_pipeline_gets_other_rows_in_the_same_form(frame, write, save):
    """Decimal commas and blanks are read as in the training table."""
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    options = save(make_pipeline(encode, forest()).fit(frame[["a", "b", "c"]], frame["label"]))
    commas = frame.assign(
        a=frame["a"].map(lambda number: f"{number:.3f}".replace(".", ",")), c=frame["c"] + " "
    )
    table = write(commas)
    new = write(commas[:5], "new.csv")
    options = (table, "-t", "label", "--new", new, "-k", 3, *options)
    found = run_json("neighbors", *options, "--scheme", "uniform")["result"]
    assert len(found) == 15
    best = [line for line in found if line["rank"] == 1]
    assert all(line["proximity"] == 1 for line in best)  # each is in the table, too
    lacking = write(commas.drop(columns="b"), "new.csv")
    assert lacking == new
    said = run("neighbors", *options, exit_code=4).stderr
    assert "new.csv: the model needs column 'b'" in said


@pytest.mark.parametrize("problem", ["column", "file"])
def test_other_rows_are_checked_before_the_forest_is_grown(frame, write, monkeypatch, problem):
    def fail(*_):
        raise AssertionError("the forest was grown")

    monkeypatch.setattr(_train, "_grow", fail)
    new = write(frame.drop(columns="b"), "new.csv")
    if problem == "file":
        new = new.with_name("nothing.csv")
    said = run(
        "neighbors", write(frame), "-t", "label", "--new", new, exit_code=4 - (problem == "file")
    )
    assert ("needs column 'b'" if problem == "column" else "was not found") in said.stderr


def test_a_category_that_a_pipeline_has_not_seen(frame, write, save):
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    options = save(make_pipeline(encode, forest()).fit(frame[["a", "b", "c"]], frame["label"]))
    new = write(frame.assign(c="z")[:5], "new.csv")
    text = run("neighbors", write(frame), "-t", "label", "--new", new, *options, exit_code=4).stderr
    assert "new.csv: the model rejects these rows" in text
    assert "unknown categories ['z']" in text


def test_dates_for_a_pipeline(frame, write, save):
    days = pd.date_range("2024-01-01", periods=60)
    frame["day"] = days
    encode = make_column_transformer((OneHotEncoder(), ["c"]), ("drop", ["day"]))
    options = save(make_pipeline(encode, forest()).fit(frame[["c", "day"]], frame["label"]))
    options = ("-t", "label", "--new", write(frame[:5], "new.csv"), "-k", 1, *options)
    assert len(run_json("neighbors", write(frame), *options)["result"]) == 5


# --- names of columns


def test_prototypes_of_columns_with_our_names(frame, write):
    frame = frame.rename(columns={"a": "rank", "b": "rank (value)"})
    result = run("prototypes", write(frame), "-t", "label", "-n", 1, *FEW).stdout
    names = result.splitlines()[0].split(",")
    assert len(set(names)) == len(names)
    assert {"rank", "rank (value)", "rank (value) (2)"} <= set(names)
    line = dict(zip(names, result.splitlines()[1].split(","), strict=True))
    shown = frame.iloc[int(line["row"])]
    assert float(line["rank (value)"]) == shown["rank (value)"]
    assert float(line["rank (value) (2)"]) == shown["rank"]


# --- options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("outliers", "table.csv", "--json"), "--target"),
        (("outliers", "table.csv", "-t", "y", "--json", "--trees", "many"), "--trees"),
        (
            ("outliers", "table.csv", "-t", "y", "--json", "--jobs", 0),
            "must not be 0. Use -1 for all cores.",
        ),
        (("outliers", "table.csv", "-t", "y", "--json", "--tree", 3), "--tree"),
        (("outlier", "table.csv", "--json"), "outlier"),
        (("--json",), "--json"),
        (("outliers", "table.csv", "-t", "y", "--json", "--max-rows", 5), "10"),
    ],
)
def test_wrong_options_are_json_too(options, said):
    result = run(*options, exit_code=2)
    document = json.loads(result.stdout)
    assert set(document) == {"error", "exit_code"}
    assert said in document["error"]
    assert document["exit_code"] == 2
    assert said in plain(result.stderr)
    without = run(*[each for each in options if each != "--json"] or ["--x"], exit_code=2)
    assert not without.stdout


def test_one_document_for_an_error(frame, write):
    document = run_json("outliers", write(frame), "-t", "lable", exit_code=4)
    assert document["exit_code"] == 4


def test_files_that_are_not_meant(frame, write, tmp_path):
    write(frame, "few.csv")
    options = ("-t", "label")
    assert (
        "Did you mean" not in run("outliers", tmp_path / "nofile.csv", *options, exit_code=3).stderr
    )
    write(frame, "Birds.csv")
    for name in ("birds", "bird.csv", "brids.csv", "birds.parquet"):
        text = run("outliers", tmp_path / name, *options, exit_code=3).stderr
        assert "Did you mean 'Birds.csv'?" in text


# --- targets and dates


def test_targets_that_are_long_numbers(frame, write):
    frame["label"] = [str(10**17 + i % 7) for i in range(60)]
    options = ("outliers", write(frame), "-t", "label", "--task", "regression")
    text = run(*options, exit_code=4).stderr
    assert "more than 15 digits ('1" not in text
    assert "more than 15 digits (1000" in text
    frame.loc[0, "label"] = "none"
    write(frame)
    assert "has text" in run(*options, exit_code=4).stderr


def test_targets_that_are_dates_come_out_as_dates(frame, write, tmp_path):
    frame["due"] = pd.date_range("2024-01-25", periods=60).strftime("%Y-%m-%d")
    options = ("-t", "due", *FEW)
    table = write(frame)
    first = dict(zip(range(60), frame["due"], strict=True))
    rows = run_json("outliers", table, *options)["result"]
    assert all(row["target"].startswith(first[row["row"]]) for row in rows)
    # With few trees, some rows are in every bag and have no prediction.
    predictions = {str(row["prediction"])[:5] for row in rows}
    assert "2024-" in predictions <= {"2024-", "None"}
    neighbors = tmp_path / "neighbors.csv"
    run("neighbors", table, *options, "-o", neighbors)
    found = pd.read_csv(neighbors)
    assert (found["neighbor_target"] == found["neighbor"].map(first)).all()
    points = tmp_path / "points.parquet"
    run("embed", table, *options, "-m", "pca", "-o", points)
    found = pd.read_parquet(points)
    assert list(found["target"].dt.strftime("%Y-%m-%d")) == list(frame["due"])


def test_why_targets_are_missing(frame, write):
    frame["b"] = frame["b"].astype(object)
    frame.loc[:1, "b"] = "inf"
    notes = run_json("outliers", write(frame), "-t", "b", *FEW)["notes"]
    missing = next(i for i, note in enumerate(notes) if "2 rows were left out" in note)
    infinite = [i for i, note in enumerate(notes) if "'b' (2 values) has infinite numbers" in note]
    assert len(infinite) == 1
    assert abs(infinite[0] - missing) == 1


@pytest.mark.parametrize(("first", "said"), [(1, True), (5, True), (None, False)])
def test_targets_that_are_row_numbers(frame, write, first, said):
    count = np.arange(60) ** 2 if first is None else np.arange(first, first + 60)
    table = write(frame.assign(count=count))
    options = ("outliers", table, "-t", "count", *FEW)
    assert said == any("a row number" in note for note in run_json(*options)["notes"])
    sampled = run_json(*options, "--max-rows", 40)["notes"]
    assert said == any("a row number" in note for note in sampled)
    asked = run_json(*options, "--task", "regression")["notes"]
    assert not any("a row number" in note for note in asked)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d.%m.%y", "%Y/%m/%d", "%m-%d-%Y %H:%M"])
@pytest.mark.parametrize("name", ["day", "day_id"])
def test_dates_in_other_forms_are_no_names_of_rows(frame, write, form, name):
    frame.insert(0, name, pd.date_range("2024-01-25", periods=60).strftime(form))
    document = run_json("outliers", write(frame), "-t", "label", *FEW)
    assert "id" not in document["result"][0]
    assert name not in document["features"]
    assert any("not ISO dates" in note and f"'{name}'" in note for note in document["notes"])


def test_numbers_of_people_are_names_of_rows(frame, write):
    frame.insert(0, "number", [f"{100 + i}-{i:02}-{4000 + i}" for i in range(60)])
    document = run_json("outliers", write(frame), "-t", "label", *FEW)
    assert {line["id"] for line in document["result"]} == set(frame["number"])
