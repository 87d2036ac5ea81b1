"""``leafkernel predict``: the source of predictions, and the reported accuracy."""

import io

import joblib
import numpy as np
import pandas as pd
import pytest
from cli_runs import PENGUINS, plain, run, run_json, write_birds
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from leafkernel import ForestProximity
from leafkernel.cli import _train
from leafkernel.cli._output import Talk
from leafkernel.tasks import ProximityRegressor, trust_scores

FEW = ("--trees", "30")


@pytest.fixture
def birds(tmp_path):
    return write_birds(tmp_path / "birds.csv")


@pytest.fixture
def numbers(tmp_path):
    """Write 80 rows whose target is a number, and 40 others."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120).round(4), "b": rng.normal(size=120).round(4)})
    frame["size"] = (2 * frame["a"] + rng.normal(0, 0.3, 120)).round(4)
    frame[:80].to_csv(tmp_path / "numbers.csv", index=False)
    frame[80:].to_csv(tmp_path / "more.csv", index=False)
    return tmp_path / "numbers.csv", tmp_path / "more.csv"


@pytest.fixture
def summaries(monkeypatch):
    """Collect the messages that a user would see."""
    shown = []
    monkeypatch.setattr(Talk, "summary", lambda self, lines: shown.append(lines))
    return shown


def csv_of(result):
    return pd.read_csv(io.StringIO(result.stdout))


def save(model, path):
    joblib.dump(model, path)
    return ("--model", path, "--trust-model")


# --- classes


def test_new_rows_get_the_forests_own_probabilities(birds, tmp_path):
    frame = pd.read_csv(birds)
    table, new = tmp_path / "table.csv", tmp_path / "new.csv"
    frame = frame[["name", "weight", "kind"]].dropna()
    frame.to_csv(table, index=False)
    frame[:9].drop(columns="kind").to_csv(new, index=False)
    found = csv_of(run("predict", table, "-t", "kind", "--new", new, *FEW))
    assert list(found) == [
        *("row", "id", "prediction", "trust", "probability_duck", "probability_goose")
    ]
    X, y = frame[["weight"]], frame["kind"]
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    theirs = forest.predict_proba(X[:9])
    np.testing.assert_allclose(found[["probability_duck", "probability_goose"]], theirs)
    assert found["prediction"].tolist() == forest.predict(X[:9]).tolist()
    assert found["id"].tolist() == [f"bird {i}" for i in (0, 1, 2, 3, 4, 5, 6, 8, 9)]
    prox = ForestProximity(forest).fit(X, y)
    np.testing.assert_allclose(found["trust"], trust_scores(prox, X[:9]), rtol=1e-6)


def test_training_rows_are_predicted_out_of_bag(birds, summaries):
    document = run_json("predict", birds, "-t", "kind", *FEW)
    found = pd.DataFrame(document["result"])
    assert len(found) == 89
    assert document["new"] is None
    right = (found["target"] == found["prediction"]).mean()
    assert right == pytest.approx(document["score"]["value"])
    assert right < 1
    assert "Out-of-bag accuracy" in summaries[0]["score"]
    shares = found[["probability_duck", "probability_goose"]]
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert found["trust"].between(0, 1).all()


def test_rows_that_every_tree_was_trained_with(birds):
    result = run("predict", birds, "-t", "kind", "--trees", 2)
    found = csv_of(result)
    empty = found["prediction"].isna()
    assert 0 < empty.sum() < 89
    assert found.loc[empty, ["trust", "probability_duck"]].isna().all(axis=None)
    assert f"{empty.sum()} rows have no out-of-bag prediction" in result.stderr
    result = run("predict", birds, "-t", "weight", "--trees", 2)
    empty = csv_of(result)[["prediction", "low", "high"]].isna()
    assert empty.any(axis=None)
    assert (empty.nunique(axis=1) == 1).all()
    assert "all training samples together" not in result.stderr


def test_new_rows_with_targets_are_scored(birds, tmp_path, summaries):
    new = tmp_path / "new.csv"
    pd.DataFrame(
        {
            "weight": [0.5, 5.0, 5.1, 0.4],
            "eggs": [3, 3, None, 4],
            "pond": ["north", "east", None, "a, b; c"],
            "kind": ["Duck ", "goose", None, "swan"],
        }
    ).to_csv(new, index=False)
    document = run_json("predict", birds, "-t", "kind", "--new", new, *FEW)
    assert document["new"] == {
        "table": str(new),
        "rows": 4,
        "with_target": 3,
        "accuracy": pytest.approx(2 / 3),
    }
    assert [row["target"] for row in document["result"]] == ["duck", "goose", None, "swan"]
    assert summaries[0]["new rows"] == (
        "new.csv: 4 rows, 3 of them with a target; accuracy 66.7%, 2 of 3 right"
    )
    notes = " ".join(document["notes"])
    assert "1 row has a class that is not in the training table: 'swan'." in notes
    assert "'pond' (2 values) has categories that are not in the training table" in notes
    # A target column without values counts as missing.
    pd.read_csv(new).assign(kind=None).to_csv(new, index=False)
    document = run_json("predict", birds, "-t", "kind", "--new", new, *FEW)
    assert document["new"]["with_target"] == 0
    assert "target" not in document["result"][0]


# --- numbers


def test_numbers_have_calibrated_intervals(numbers, summaries):
    table, more = numbers
    document = run_json("predict", table, "-t", "size", "--new", more, "--coverage", 0.8, *FEW)
    found = pd.DataFrame(document["result"])
    train, test = pd.read_csv(table), pd.read_csv(more)
    forest = RandomForestRegressor(30, random_state=0).fit(train[["a", "b"]], train["size"])
    np.testing.assert_allclose(found["prediction"], forest.predict(test[["a", "b"]]))
    prox = ForestProximity(forest).fit(train[["a", "b"]], train["size"])
    model = ProximityRegressor(prox).fit(train[["a", "b"]], train["size"]).calibrate(coverage=0.8)
    np.testing.assert_allclose(found[["low", "high"]], model.predict_interval(test[["a", "b"]]))
    inside = found["target"].between(found["low"], found["high"]).mean()
    assert document["new"]["covered"] == pytest.approx(inside)
    assert document["new"]["r2"] == pytest.approx(forest.score(test[["a", "b"]], test["size"]))
    assert document["calibrated"] is True
    assert document["coverage"] == 0.8
    assert f"the intervals contain {inside:.1%} of the targets" in summaries[0]["new rows"]
    assert summaries[0]["intervals"] == "for 80% of the targets, calibrated out of bag"


def test_intervals_of_training_rows(numbers, summaries):
    document = run_json("predict", numbers[0], "-t", "size", *FEW)
    found = pd.DataFrame(document["result"])
    assert list(found) == ["row", "target", "prediction", "low", "high"]
    inside = found["target"].between(found["low"], found["high"]).mean()
    assert document["covered"] == pytest.approx(inside)
    assert 0.85 < inside < 1
    assert f"they contain {inside:.1%} of the targets" in summaries[0]["intervals"]


def test_a_single_new_row_has_no_r2(numbers):
    table, more = numbers
    pd.read_csv(more)[:1].to_csv(more, index=False)
    document = run_json("predict", table, "-t", "size", "--new", more, *FEW)
    assert document["new"]["r2"] is None
    assert document["new"]["typical_error"] >= 0


def test_dates_are_predicted_as_dates(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.normal(size=60).round(3)
    day = pd.Timestamp("2024-06-01") + pd.to_timedelta((30 * a).round(), unit="D")
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": a, "due": day.strftime("%Y-%m-%d")}).to_csv(path, index=False)
    document = run_json("predict", path, "-t", "due", "--new", path, *FEW)
    for name in ("target", "prediction", "low", "high"):
        assert all(row[name].startswith("202") for row in document["result"])
    assert document["new"]["r2"] > 0.8
    assert 0.5 < document["new"]["covered"] <= 1


def test_other_ways_to_write_numbers(tmp_path):
    """A target in euros with decimal commas is read in the same way in both tables."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 120, 60)
    lines = [f"{s},5;{f'{15 * s:,}'.replace(',', '.')},50 €" for s in sizes]
    table, new = tmp_path / "t.csv", tmp_path / "new.csv"
    table.write_text("size;rent\n" + "\n".join(lines) + "\n", encoding="utf-8")
    new.write_text("size;rent\n70,5;1.050,50 €\n30,5;450,50 €\n", encoding="utf-8")
    document = run_json("predict", table, "-t", "rent", "--new", new, *FEW)
    assert [row["target"] for row in document["result"]] == [1050.5, 450.5]
    assert document["new"]["r2"] > 0.8


# --- models and schemes


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_a_boosted_model_makes_its_own_predictions(numbers, tmp_path, task):
    table, more = numbers
    train, test = pd.read_csv(table), pd.read_csv(more)
    X, y, kind = train[["a", "b"]], train["size"], GradientBoostingRegressor
    if task == "classes":
        y, kind = np.where(y > 0, "large", "small"), GradientBoostingClassifier
        train.assign(size=y).to_csv(table, index=False)
        test.drop(columns="size").to_csv(more, index=False)
    model = kind(random_state=0).fit(X, y)
    options = save(model, tmp_path / "model.joblib")
    document = run_json("predict", table, "-t", "size", "--new", more, *options)
    found, notes = pd.DataFrame(document["result"]), " ".join(document["notes"])
    assert document["scheme"] == "kerf"
    if task == "classes":
        assert found["prediction"].tolist() == model.predict(test[["a", "b"]]).tolist()
        proba = model.predict_proba(test[["a", "b"]])
        np.testing.assert_allclose(found[["probability_large", "probability_small"]], proba)
        assert "trust" not in found
        assert "no trust scores" in notes
    else:
        np.testing.assert_allclose(found["prediction"], model.predict(test[["a", "b"]]))
        assert document["calibrated"] is False
        assert "not calibrated" in notes
        assert (found["low"] < found["high"]).any()


def test_a_model_without_predictions_lets_similar_rows_vote(birds, tmp_path):
    frame = pd.read_csv(birds).dropna(subset=["kind"])
    model = save(IsolationForest(random_state=0).fit(frame[["weight"]]), tmp_path / "m.joblib")
    for target, name in (("kind", "probability_duck"), ("eggs", "low")):
        task = "regression" if name == "low" else "classification"
        options = ("-t", target, "--task", task, "--new", birds, *model)
        result = run("predict", birds, *options)
        assert "is an average over similar rows" in result.stderr
        assert name in csv_of(result)
        assert csv_of(result)["prediction"].nunique() > 1


def test_classes_of_a_model_are_called_as_in_the_table(birds, tmp_path):
    """Whole numbers, and codes of the classes."""
    frame = pd.read_csv(birds).dropna(subset=["kind"])
    forest = RandomForestClassifier(10, random_state=0)
    forest.fit(frame[["weight"]], (frame["kind"] == "goose").astype(int))
    options = save(forest, tmp_path / "m.joblib")
    found = csv_of(run("predict", birds, "-t", "kind", "--new", birds, *options))
    assert set(found["prediction"]) == {"duck", "goose"}
    assert (found["target"] == found["prediction"]).mean() > 0.9
    table = tmp_path / "coded.csv"
    frame.assign(kind=(frame["kind"] == "goose").astype(int)).to_csv(table, index=False)
    found = csv_of(run("predict", table, "-t", "kind", "--new", table, *options))
    assert list(found)[-2:] == ["probability_0", "probability_1"]


def test_another_scheme(numbers):
    table, more = numbers
    options = ("predict", table, "-t", "size", *FEW)
    own = run_json(*options, "--new", more, "--scheme", "uniform")
    gap = run_json(*options, "--new", more)
    assert own["calibrated"] is False
    # New rows get the forest's own prediction, whatever the scheme of the intervals.
    assert [x["prediction"] for x in own["result"]] == [x["prediction"] for x in gap["result"]]
    assert [x["low"] for x in own["result"]] != [x["low"] for x in gap["result"]]
    assert "Neighbors" in run_json(*options, "--scheme", "uniform")["score"]["label"]


def test_a_category_that_a_pipeline_has_not_seen(birds, tmp_path):
    frame = pd.read_csv(birds).dropna()
    encode = make_column_transformer((OneHotEncoder(), ["pond"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(10, random_state=0))
    options = save(model.fit(frame[["pond", "weight"]], frame["kind"]), tmp_path / "m.joblib")
    table, new = tmp_path / "table.csv", tmp_path / "new.csv"
    frame.to_csv(table, index=False)
    frame[:5].to_csv(new, index=False)
    assert len(csv_of(run("predict", table, "-t", "kind", "--new", new, *options))) == 5
    frame[:5].assign(pond="east").to_csv(new, index=False)
    said = run("predict", table, "-t", "kind", "--new", new, *options, exit_code=4).stderr
    assert "new.csv: the model rejects these rows" in said


# --- errors


def test_wrong_shares_are_refused(numbers):
    for share in (0, 1, 90, -0.1, "nan"):
        text = run("predict", numbers[0], "-t", "size", "--coverage", share, exit_code=2).stderr
        assert "is not between 0 and 1" in plain(text)


def test_what_is_wrong_is_said_before_the_forest_is_grown(numbers, birds, tmp_path, monkeypatch):
    def fail(*_):
        raise AssertionError("the forest was grown")

    monkeypatch.setattr(_train, "_grow", fail)
    table, more = numbers
    text = run("predict", birds, "-t", "kind", "--coverage", 0.9, exit_code=2).stderr
    assert "--coverage is only for numeric targets, but the target 'kind' has classes" in text
    text = run("predict", table, "-t", "size", "--coverage", 0.99, exit_code=4).stderr
    assert "--coverage 0.99 needs at least 99 rows" in text
    assert "the table has 80. Use a lower value, at most 0.987." in text
    pd.read_csv(more).drop(columns="b").to_csv(more, index=False)
    text = run("predict", table, "-t", "size", "--new", more, exit_code=4).stderr
    assert "more.csv: the forest needs column 'b'" in text
    pd.read_csv(table)[:0].to_csv(more, index=False)
    text = run("predict", table, "-t", "size", "--new", more, exit_code=4).stderr
    assert "more.csv has column names but no rows" in text
    run("predict", table, "-t", "size", "--new", tmp_path / "none.csv", exit_code=3)
    run("predict", table, "-t", "size", "--new", more, "-o", more, exit_code=2)


def test_the_training_table_as_new_rows(numbers):
    table, more = numbers
    said = "though the forest was trained with them"
    assert said in run("predict", table, "-t", "size", "--new", table, *FEW).stderr
    assert said not in run("predict", table, "-t", "size", "--new", more, *FEW).stderr


def test_results_go_to_files(tmp_path):
    path = tmp_path / "out.tsv"
    result = run("predict", PENGUINS, "-t", "species", "--new", PENGUINS, "-o", path, *FEW)
    assert result.stdout == ""
    assert pd.read_csv(path, sep="\t").shape == (344, 7)
