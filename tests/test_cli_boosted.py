"""Boosted models on the command line: trained there or loaded, explained, and on pages."""

import re

import joblib
import numpy as np
import pandas as pd
import pytest
from cli_runs import PENGUINS, plain, run, run_json
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from leafkernel import ForestProximity
from leafkernel.cli import _train
from leafkernel.tasks import explain_prediction

FEW = ("--trees", "10")


@pytest.fixture
def table(tmp_path):
    """90 rows with a number, a category, classes and another number."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["duck", "goose", "swan"], 30)
    frame = pd.DataFrame(
        {
            "weight [kg]": np.repeat([1.0, 3.0, 5.0], 30) + rng.normal(size=90),
            "pond": rng.choice(["north", "south"], 90),
            "kind": kind,
            "eggs": 1.0 + rng.poisson(np.repeat([2, 4, 6], 30)) + rng.random(90).round(3),
        }
    )
    path = tmp_path / "birds.csv"
    frame.to_csv(path, index=False)
    return path


def save(model, path):
    joblib.dump(model, path)
    return ("--model", path, "--trust-model")


@pytest.mark.parametrize("forest", ["hist", "lightgbm", "xgboost", "catboost"])
def test_models_that_are_trained(table, forest):
    if forest != "hist":
        pytest.importorskip(forest)
    options = ("explain", table, "-t", "kind", "--drop", "eggs", "--row", 70, "--forest", forest)
    document = run_json(*options, "--top", 3, *FEW)
    (told,) = document["explained"]
    assert told["is_of_model"]
    assert told["score"] == pytest.approx(told["base_score"] + told["total"])
    assert told["total"] == pytest.approx(told["up_total"] + told["down_total"])
    assert told["made_by"] == told["n_up"] + told["n_down"]
    shares = told["prediction"]
    assert set(shares) == {"duck", "goose", "swan"}
    assert told["class"] == max(shares, key=shares.get)
    assert told["linked_prediction"] == pytest.approx(shares[told["class"]], rel=1e-4)
    found = pd.DataFrame(document["result"])
    assert {"contribution", "effect", "neighbor", "neighbor_target", "pond"} <= set(found)
    assert len(found) == min(3, told["n_up"]) + min(3, told["n_down"])
    assert document["trees"] in (10, 30)
    text = run(*options, "--top", 3, *FEW).stdout
    assert f"Class {told['class']}: {told['sentence']}" in text
    assert f"Probability of {told['class']} " in text
    assert "The model was trained with this row. Its own contribution is included." in text
    assert f"{told['n_up']} rows push it up, by " in text
    assert re.search(r"rows? push(es)? it down, by |No row pushes it down", text)
    assert "Why row 70 and row " in text


@pytest.mark.parametrize("forest", ["hist", "lightgbm", "xgboost", "catboost"])
def test_numbers(table, forest, tmp_path):
    if forest != "hist":
        pytest.importorskip(forest)
    out = tmp_path / "rows.csv"
    options = ("explain", table, "-t", "eggs", "--drop", "kind", "--row", 3, "--forest", forest)
    text = run(*options, *FEW).stdout
    assert re.search(r"\nPrediction \S+ = base \S+ [+-] \S+ from \d+ rows\n", text)
    assert "Probability" not in text
    run(*options, *FEW, "-o", out)
    found = pd.read_csv(out)
    (told,) = run_json(*options, *FEW, "--top", 90)["explained"]
    assert told["prediction"] == pytest.approx(told["score"], rel=1e-5)
    assert (found["contribution"].iloc[0] > 0) & (found["contribution"].iloc[-1] < 0)


def test_a_class_can_be_chosen(table):
    options = ("explain", table, "-t", "kind", "--row", 70, "--forest", "hist", *FEW)
    for name in ("duck", "swan"):
        (told,) = run_json(*options, "--class", name)["explained"]
        assert told["class"] == name
    error = run(*options, "--class", "heron", exit_code=2).stderr
    assert "--class heron has no score in this model. Use one of 'duck', 'goose'" in plain(error)
    forest = ("explain", table, "-t", "kind", "--row", 70, *FEW)
    error = run(*forest, "--class", "duck", exit_code=2).stderr
    assert "--class duck requires a boosted model" in plain(error)
    error = run(*options, "--class", "duck", "--scheme", "kerf", exit_code=2).stderr
    assert "--class duck cannot be combined with --scheme kerf" in plain(error)


def test_models_that_are_loaded(table, tmp_path):
    frame = pd.read_csv(table)
    two = frame[frame["kind"] != "swan"].drop(columns="eggs").reset_index(drop=True)
    two.to_csv(table, index=False)
    X, y = two[["weight [kg]"]], two["kind"]
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    known = save(model, tmp_path / "model.joblib")
    new = tmp_path / "new.csv"
    pd.DataFrame({"weight [kg]": [0.5, 4.2], "pond": "north"}).to_csv(new, index=False)
    options = ("explain", table, "-t", "kind", *known, "--new", new, "--top", 4)
    document = run_json(*options)
    prox = ForestProximity(model, "gradient").fit(X, y)
    rows = pd.DataFrame(document["result"])
    for told, weight in zip(document["explained"], [0.5, 4.2], strict=True):
        why = explain_prediction(prox, pd.DataFrame({"weight [kg]": [weight]}), n=4)
        assert told["score"] == pytest.approx(why.score)
        assert told["class"] == "goose"
        assert told["prediction"]["goose"] == pytest.approx(why.prediction)
        own = rows[rows["row"] == told["row"]]
        np.testing.assert_allclose(own["contribution"], why.contributions, rtol=1e-5)
        assert own["neighbor"].tolist() == why.rows.tolist()
    text = run(*options).stdout
    assert "trained with this row" not in text
    with_row = ("explain", table, "-t", "kind", *known, "--row", 2)
    assert "The model may have been trained with this row" in run(*with_row).stdout


def test_pipelines(table, tmp_path):
    frame = pd.read_csv(table)
    encode = make_column_transformer((OneHotEncoder(), ["pond"]), ("passthrough", ["weight [kg]"]))
    model = make_pipeline(encode, HistGradientBoostingRegressor(max_iter=5))
    model.fit(frame[["pond", "weight [kg]"]], frame["eggs"])
    known = save(model, tmp_path / "model.joblib")
    (told,) = run_json("explain", table, "-t", "eggs", *known, "--row", 5)["explained"]
    expected = model.predict(frame[["pond", "weight [kg]"]][5:6])[0]
    assert told["score"] == pytest.approx(expected, rel=1e-5)


def test_a_model_that_is_refused_falls_back_on_similar_rows(table, tmp_path):
    frame = pd.read_csv(table)
    model = HistGradientBoostingRegressor(loss="absolute_error", max_iter=5)
    known = save(model.fit(frame[["weight [kg]"]], frame["eggs"]), tmp_path / "m.joblib")
    result = run("explain", table, "-t", "eggs", *known, "--row", 5)
    assert "Prediction from similar rows: " in result.stdout
    assert "are medians of residuals, not sums over samples" in plain(result.stderr)
    # Trained on other rows: the data do not reproduce the leaf values.
    model = HistGradientBoostingClassifier(max_iter=5).fit(
        frame[["weight [kg]"]][::2], frame["kind"][::2]
    )
    known = save(model, tmp_path / "m.joblib")
    result = run("explain", table, "-t", "kind", *known, "--row", 5)
    assert "do not reproduce the leaf values" in plain(result.stderr)
    assert "Prediction from similar rows: " in result.stdout


def test_options_that_do_not_go_together(table, tmp_path):
    frame = pd.read_csv(table)
    model = RandomForestClassifier(5).fit(frame[["weight [kg]"]], frame["kind"])
    known = save(model, tmp_path / "m.joblib")
    options = ("explain", table, "-t", "kind", "--row", 1)
    error = run(*options, *known, "--forest", "hist", exit_code=2).stderr
    assert "--forest cannot be combined with --model" in plain(error)


def test_a_library_that_is_missing(table, monkeypatch):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(_train, "import_module", fail)
    error = run("explain", table, "-t", "kind", "--row", 1, "--forest", "xgboost", exit_code=2)
    assert "pip install xgboost" in plain(error.stderr)


@pytest.mark.parametrize("command", ["predict", "neighbors", "outliers", "prototypes", "embed"])
def test_other_commands(table, command, tmp_path):
    out = tmp_path / "out.csv"
    more = ("--method", "pca") if command == "embed" else ()
    run(command, table, "-t", "kind", "--forest", "hist", *FEW, *more, "-o", out)
    assert len(pd.read_csv(out)) > 0


def test_pages(tmp_path):
    page = tmp_path / "penguins.html"
    options = ("explore", PENGUINS, "-t", "species", "--embedding", "pca", "-o", page)
    run(*options, "--forest", "hist", *FEW)
    assert "contributionSection" in page.read_text("utf-8")
