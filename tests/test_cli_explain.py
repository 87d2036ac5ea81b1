"""``leafkernel explain``: which rows led to a prediction, and why they are similar, in words."""

import re

import joblib
import numpy as np
import pandas as pd
import pytest
from cli_runs import PENGUINS, run, run_json, write_birds
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leafkernel import ForestProximity
from leafkernel.cli import _train
from leafkernel.tasks import explain_pair, explain_prediction

FEW = ("--trees", "30")


@pytest.fixture
def birds(tmp_path):
    return write_birds(tmp_path / "birds.csv")


def save(model, path):
    joblib.dump(model, path)
    return ("--model", path, "--trust-model")


def numbers_of(birds):
    """Return the rows of the birds without gaps in their features."""
    return pd.read_csv(birds)[["name", "weight", "kind"]].dropna().reset_index(drop=True)


# --- explanations


def test_the_rows_are_those_of_the_library(birds, tmp_path):
    frame = numbers_of(birds)
    table, out = tmp_path / "table.csv", tmp_path / "out.csv"
    frame.to_csv(table, index=False)
    options = ("explain", table, "-t", "kind", "--row", "bird 20", "--top", 4, *FEW)
    forest = RandomForestClassifier(30, random_state=0).fit(frame[["weight"]], frame["kind"])
    prox = ForestProximity(forest).fit(frame[["weight"]], frame["kind"])
    expected = explain_prediction(prox, row=19, n=4)
    document = run_json(*options)
    found = pd.DataFrame(document["result"])
    assert list(found) == [
        *("row", "id", "rank", "neighbor", "neighbor_id", "neighbor_target", "proximity", "share"),
        *("weight", "name"),
    ]
    assert found["neighbor"].tolist() == expected.rows.tolist()
    np.testing.assert_allclose(found["share"], expected.shares)
    np.testing.assert_allclose(found["proximity"], expected.proximities)
    assert found["neighbor_target"].tolist() == expected.targets.tolist()
    np.testing.assert_allclose(found["weight"], frame["weight"][expected.rows])
    (told,) = document["explained"]
    assert (told["row"], told["id"], told["target"]) == (19, "bird 20", "duck")
    assert list(told["prediction"].values()) == pytest.approx(expected.prediction.tolist())
    assert told["is_of_model"] is True
    assert told["made_by"] == expected.n_rows
    pair = explain_pair(prox, 19, int(expected.rows[0]))
    (said,) = told["pairs"]
    assert said["trees"] == len(pair.trees)
    assert said["together"][0]["column"] == "weight"
    assert run(*options, "-o", out).stdout == ""
    assert pd.read_csv(out).shape == (4, 10)


def test_the_words_for_a_training_row():
    text = run("explain", PENGUINS, "-t", "species", "--row", 182, "--top", 3, *FEW).stdout
    lines = text.splitlines()
    assert lines[0] == "Row 182 of penguins.csv, where species is Chinstrap"
    assert re.fullmatch(r"Out-of-bag prediction: Adelie \d.*%, Chinstrap \d.*%", lines[1])
    assert re.fullmatch(
        r"This prediction is based on \d+ training rows. These 3 have the largest shares, "
        r"[\d.]+% in total.",
        lines[3],
    )
    assert lines[4].split()[:3] == ["row", "share", "species"]
    assert lines[5].split()[:3] == ["182", "(this)", "Chinstrap"]
    assert max(map(len, lines[4:9])) <= 100
    assert re.search(r"Why row 182 and row \d+ are similar:\nThey share a leaf in \d+ of 30", text)
    assert re.search(r"%  \w+_(mm|g) +\d+.* +(above|up to) \d", text)
    assert re.search(r"in the other \d+ trees:\n +trees  column  .*\n +\d+  \w+ ", text)


def test_categories_have_their_names(tmp_path):
    rng = np.random.default_rng(0)
    pond = rng.choice(["east", "north", "south", "west"], 80)
    frame = pd.DataFrame({"pond": pond, "eggs": rng.integers(1, 9, 80)})
    frame["y"] = np.where(np.isin(pond, ["north", "south"]), "wet", "dry")
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    row = int(np.flatnonzero(pond == "north")[0])
    document = run_json("explain", path, "-t", "y", "--row", row, "--pairs", 80, *FEW)
    reasons = [
        reason
        for pair in document["explained"][0]["pairs"]
        for reason in pair["together"]
        if reason["column"] == "pond"
    ]
    assert {reason["values"][0] for reason in reasons} == {"north"}
    assert {reason["within"] for reason in reasons} <= {"north", "north, south"}
    assert all(reason["values"][1] in reason["within"] for reason in reasons)


def test_all_rows_of_another_table(birds, tmp_path):
    new = tmp_path / "new.csv"
    pd.DataFrame(
        {
            "name": ["a", "b"],
            "weight": [0.2, 5.5],
            "eggs": [None, 3],
            "pond": ["a pond; with, signs", None],
            "kind": [None, "goose"],
        }
    ).to_csv(new, index=False)
    options = ("explain", birds, "-t", "kind", "--new", new, *FEW)
    result = run(*options, "--pairs", 2)
    assert "Row 0 (a) of new.csv\nPrediction: duck" in result.stdout
    assert "Row 1 (b) of new.csv, where kind is goose\nPrediction: goose" in result.stdout
    assert result.stdout.count("are similar:") == 4
    assert "a pond; with, signs (unseen)" in result.stdout
    assert "categories that are not in the training table" in result.stderr
    document = run_json(*options, "--top", 2, "--pairs", 0)
    assert [row["row"] for row in document["result"]] == [0, 0, 1, 1]
    assert [row["id"] for row in document["result"]] == ["a", "a", "b", "b"]
    assert [row["rank"] for row in document["result"]] == [1, 2, 1, 2]
    assert [told["pairs"] for told in document["explained"]] == [[], []]
    for name in ("b", "1", "row 1"):
        one = run_json(*options, "--row", name, "--top", 2, "--pairs", 0)
        assert one["result"] == document["result"][2:]


def test_numbers_and_dates(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.normal(size=60).round(3)
    day = pd.Timestamp("2024-06-01") + pd.to_timedelta((30 * a).round(), unit="D")
    start = pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d")
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"a": a, "start": start, "due": day.strftime("%Y-%m-%d")})
    frame.to_csv(path, index=False, sep=";", decimal=",")
    options = ("explain", path, "-t", "due", "--row", 3, *FEW)
    text = run(*options).stdout
    assert text.startswith(f"Row 3 of t.csv, where due is {frame['due'][3]}\nOut-of-bag pred")
    assert re.search(r"Out-of-bag prediction: 2024-\d\d-\d\d", text)
    assert re.search(r"%  start +2020-\d\d-\d\d  2020-\d\d-\d\d +.*2020-\d\d-\d\d", text)
    document = run_json(*options)
    (told,) = document["explained"]
    assert told["target"] == f"{frame['due'][3]} 00:00:00"
    assert re.fullmatch(r"2024-\d\d-\d\d \d\d:\d\d:\d\d", told["prediction"])
    first = document["result"][0]
    assert first["neighbor_target"] == f"{frame['due'][first['neighbor']]} 00:00:00"
    text = run("explain", path, "-t", "a", "--row", 3, *FEW).stdout
    assert f"where a is {frame['a'][3]:g}\nOut-of-bag prediction: " in text


# --- models


@pytest.mark.parametrize("row", ["training", "new"])
def test_a_boosted_model_and_the_vote_of_similar_rows(birds, tmp_path, row):
    frame = numbers_of(birds)
    table = tmp_path / "table.csv"
    frame.to_csv(table, index=False)
    model = GradientBoostingClassifier(random_state=0).fit(frame[["weight"]], frame["kind"])
    options = ("explain", table, "-t", "kind", *save(model, tmp_path / "m.joblib"), "--row", 3)
    options = (*options, *(("--new", table) if row == "new" else ()), "--scheme", "kerf")
    text = run(*options).stdout
    own = model.predict_proba(frame[["weight"]][3:4])[0, 0]
    assert "Prediction from similar rows: duck" in text
    assert f"The model itself predicts: duck {own:.1%}" in text
    assert ("It may have been trained with this row." in text) == (row == "training")
    assert "This prediction is based on" in text
    (told,) = run_json(*options)["explained"]
    assert told["is_of_model"] is False
    assert told["model_prediction"]["duck"] == pytest.approx(own)
    model = GradientBoostingRegressor(random_state=0).fit(frame[["weight"]], frame.index)
    frame.assign(kind=frame.index).to_csv(table, index=False)
    save(model, tmp_path / "m.joblib")
    (told,) = run_json(*options)["explained"]
    assert told["model_prediction"] == pytest.approx(model.predict(frame[["weight"]][3:4])[0])


def test_features_of_a_pipeline_are_called_as_their_columns(birds, tmp_path):
    frame = pd.read_csv(birds).dropna()
    encode = make_column_transformer((OneHotEncoder(), ["pond"]), (StandardScaler(), ["weight"]))
    model = make_pipeline(encode, RandomForestClassifier(20, random_state=0))
    options = save(model.fit(frame[["pond", "weight"]], frame["kind"]), tmp_path / "m.joblib")
    table = tmp_path / "table.csv"
    frame.to_csv(table, index=False)
    document = run_json("explain", table, "-t", "kind", *options, "--row", 10)
    (pair,) = document["explained"][0]["pairs"]
    assert {reason["column"] for reason in pair["together"]} <= {"pond", "weight"}
    # The forest sees transformed values, so interval ends are not available.
    assert all(reason["within"] is None for reason in pair["together"])
    assert sum(reason["share"] for reason in pair["together"]) == pytest.approx(1)
    assert "together for" not in run("explain", table, "-t", "kind", *options, "--row", 10).stdout


# --- which row


def test_names_that_are_numbers(birds, tmp_path):
    frame = numbers_of(birds)
    frame.insert(0, "id", np.arange(1, len(frame) + 1))
    table = tmp_path / "table.csv"
    frame.drop(columns="name").to_csv(table, index=False)
    options = ("explain", table, "-t", "kind", *FEW)
    result = run(*options, "--row", 5)
    assert result.stdout.startswith("Row 4 (5) of table.csv")
    assert "is a name in column 'id'" in result.stderr
    result = run(*options, "--row", "row 5")
    assert result.stdout.startswith("Row 5 (6) of table.csv")
    assert "was taken as a name" not in result.stderr


def test_rows_that_there_are_not(birds, tmp_path, monkeypatch):
    def fail(*_):
        raise AssertionError("the forest was grown")

    monkeypatch.setattr(_train, "_grow", fail)
    options = ("explain", birds, "-t", "kind")
    assert "explain requires --row, --new or both" in run(*options, exit_code=2).stderr
    text = run(*options, "--row", 90, exit_code=4).stderr
    assert "--row 90 was not found in birds.csv. Its rows have the numbers 0 to 89, and" in text
    assert "names in column 'name' ('bird 0', 'bird 1', 'bird 2'" in text
    assert "Did you mean 'bird 3'?" in run(*options, "--row", "Bird 3", exit_code=4).stderr
    # Row 7 has no target.
    text = run(*options, "--row", "row 7", exit_code=4).stderr
    assert "was not used for training, because its target is missing" in text
    frame = pd.read_csv(birds).assign(name="same")
    table = tmp_path / "same.csv"
    frame.to_csv(table, index=False)
    text = run("explain", table, "-t", "kind", "--id", "name", "--row", "same", exit_code=4).stderr
    assert "89 rows of same.csv have this name in column 'name'" in text
    assert "Use the number of one of them: 'row 0', 'row 1'" in text


def test_tables_that_are_refused(birds, tmp_path, monkeypatch):
    def fail(*_):
        raise AssertionError("the forest was grown")

    monkeypatch.setattr(_train, "_grow", fail)
    frame, new = pd.read_csv(birds), tmp_path / "new.csv"
    options = ("explain", birds, "-t", "kind", "--new", new)
    pd.concat([frame, frame]).to_csv(new, index=False)
    text = run(*options, exit_code=2).stderr
    assert "--new new.csv has 180 rows, but at most 100 can be explained at once" in text
    frame.drop(columns="weight").to_csv(new, index=False)
    assert "needs column 'weight'" in run(*options, exit_code=4).stderr
    frame[:0].to_csv(new, index=False)
    assert "has column names but no rows" in run(*options, exit_code=4).stderr
    run(*options, "-o", new, exit_code=2)


def test_a_row_that_every_tree_was_trained_with(birds):
    found = pd.DataFrame(run_json("predict", birds, "-t", "kind", "--trees", 2)["result"])
    row = found.loc[found["prediction"].isna(), "row"].iloc[0]
    options = ("explain", birds, "-t", "kind", "--row", f"row {row}", "--trees", 2)
    text = run(*options, exit_code=4).stderr
    assert f"Row {row} has no out-of-bag prediction" in text
    assert "Use more --trees." in text


def test_cells_do_nothing_to_a_terminal(tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"a": np.arange(40) % 7, "y": ["x\x1b[31m", "two\nlines"] * 20})
    frame.to_csv(path, index=False)
    text = run("explain", path, "-t", "y", "--row", 1, *FEW).stdout
    assert "\x1b" not in text
    assert text.startswith("Row 1 of t.csv, where y is two lines\n")


def test_ends_of_intervals_of_xgboost(tmp_path):
    """XGBoost splits with "less than", so a value may be an endpoint of its interval."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(1, 4, 80), "b": rng.normal(size=80).round(3)})
    frame["y"] = np.where(frame["a"] + 0.3 * frame["b"] > 2.2, 1, 0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = xgboost.XGBClassifier(n_estimators=10).fit(frame[["a", "b"]], frame["y"])
    row = frame.index[frame["a"] == 3][0]
    options = ("-t", "y", *save(model, tmp_path / "m.joblib"), "--row", row)
    (told,) = run_json("explain", tmp_path / "t.csv", *options)["explained"]
    within = {each["column"]: each["within"] for each in told["pairs"][0]["together"]}
    assert within["a"] == "from 3"
