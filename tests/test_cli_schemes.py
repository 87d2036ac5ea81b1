"""The scheme that a command reports is the one that it used."""

import pytest
from cli_runs import run, run_json, write_birds
from sklearn.ensemble import ExtraTreesClassifier

from leafkernel.cli._output import Talk

FEW = ("--trees", "20")


@pytest.fixture
def birds(tmp_path):
    return write_birds(tmp_path / "birds.csv")


@pytest.fixture
def summaries(monkeypatch):
    """Collect the messages that a user would see."""
    shown = []
    monkeypatch.setattr(Talk, "summary", lambda self, lines: shown.append(lines))
    return shown


@pytest.mark.parametrize(
    ("command", "default"),
    [
        (("prototypes",), "uniform"),
        (("embed", "-m", "pca"), "kerf"),
        (("embed", "-m", "mds"), "uniform"),
        (("neighbors",), "gap"),
        (("predict",), "gap"),
        (("outliers",), "gap"),
    ],
)
def test_the_default_scheme_is_like_the_same_scheme_by_name(birds, summaries, command, default):
    command, *options = command
    options = (command, birds, "-t", "kind", *options, *FEW)
    document = run_json(*options)
    named = run_json(*options, "--scheme", default)
    assert document["scheme"] == default
    assert named == document
    assert all(lines["forest"].endswith(f"scheme {default}") for lines in summaries)
    other = run_json(*options, "--scheme", "oob_separable")
    assert other["scheme"] == "oob_separable"
    assert other["result"] != document["result"]
    assert summaries[-1]["forest"].endswith("scheme oob_separable")


@pytest.mark.parametrize("scheme", ["purity", "learned", "pbk", "rpk"])
def test_other_schemes(birds, scheme):
    for options in (("-t", "kind"), ("-t", "weight"), ("-t", "kind", "--forest", "hist")):
        document = run_json("neighbors", birds, *options, *FEW, "--scheme", scheme)
        assert document["scheme"] == scheme


def test_a_model_without_bootstrap_says_why_its_scheme_is_another(birds, tmp_path):
    import joblib
    import pandas as pd

    frame = pd.read_csv(birds).dropna(subset=["kind"])
    model = ExtraTreesClassifier(10, random_state=0).fit(frame[["weight"]], frame["kind"])
    joblib.dump(model, tmp_path / "model.joblib")
    options = ("--model", tmp_path / "model.joblib", "--trust-model")
    said = run("outliers", birds, "-t", "kind", *options).stderr
    assert "needs bootstrap samples" in said
    assert "ExtraTreesClassifier" in said
