"""Models from files: loading, rejection, and matching with the table."""

import pickle
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.base
from cli_runs import run, run_json
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree._tree import Tree

from leafkernel.cli._models import task_of


class Unknown(RandomForestClassifier):
    """A type that skops does not know."""


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=60).round(3),
            "b": rng.normal(size=60).round(3),
            "c": rng.choice(["x", "y"], 60),
        }
    )
    frame["label"] = np.where(frame["a"] + (frame["c"] == "x") > 0.3, "yes", "no")
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def save(table, tmp_path):
    """Fit a model to the table's numbers, or to some columns, and save it."""

    def fit_and_save(model, columns=("a", "b"), target="label", name="model.joblib", rows=60):
        frame = pd.read_csv(table)[:rows]
        path = tmp_path / name
        model.fit(frame[list(columns)], frame[target])
        if name.endswith(".skops"):
            pytest.importorskip("skops.io").dump(model, path)
        else:
            joblib.dump(model, path)
        return path

    return fit_and_save


def outliers(table, *options, **more):
    return run("outliers", table, "-t", "label", *options, **more)


def test_a_model_is_used_as_it_is(table, save):
    path = save(RandomForestClassifier(13, random_state=0))
    options = ("outliers", table, "-t", "label", "--model", path, "--trust-model")
    document = run_json(*options)
    assert document["trees"] == 13
    assert document["scheme"] == "gap"
    assert document["score"]["label"] == "Out-of-bag accuracy"
    assert any("does not use 'c'" in note for note in document["notes"])


@pytest.mark.parametrize("suffix", [".skops", ".joblib", ".pkl", ".pickle"])
def test_nothing_is_loaded_without_trust(table, tmp_path, suffix):
    trap = tmp_path / f"trap{suffix}"
    sign = tmp_path / "it ran"
    trap.write_bytes(b"cos\nmkdir\n(V" + str(sign).encode() + b"\ntR.")
    text = outliers(table, "--model", trap, exit_code=2).stderr
    assert "run code" in text
    assert "--trust-model" in text
    assert not sign.exists()


def test_skops_files_need_trust(table, save):
    path = save(RandomForestClassifier(13, random_state=0), name="model.skops")
    assert "--trust-model" in outliers(table, "--model", path, exit_code=2).stderr
    options = ("outliers", table, "-t", "label", "--model", path, "--trust-model")
    assert run_json(*options)["trees"] == 13


@pytest.mark.parametrize("forest", [RandomForestClassifier, Unknown])
def test_trusted_skops_files_may_hold_any_type(table, save, forest):
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encode, forest(20, random_state=0))
    path = save(model, columns=("c", "a"), name="model.skops")
    options = ("outliers", table, "-t", "label", "--model", path, "--trust-model")
    assert run_json(*options)["trees"] == 20


def test_skops_is_not_installed(table, save, monkeypatch):
    path = save(RandomForestClassifier(3), name="model.skops")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    text = outliers(table, "--model", path, "--trust-model", exit_code=2).stderr
    assert "pip install skops" in text


def test_a_pipeline_gets_the_table_as_it_is(table, save):
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(20, random_state=0))
    path = save(model, columns=("a", "b", "c"))
    document = run_json("outliers", table, "-t", "label", "--model", path, "--trust-model")
    assert document["scheme"] == "gap"
    assert document["score"]["value"] > 0.8
    new = (table, "-t", "label", "--new", table, "-k", 1, "--model", path, "--trust-model")
    assert len(run_json("neighbors", *new)["result"]) == 60


def test_codes_of_categories_come_with_a_note(table, save):
    frame = pd.read_csv(table)
    coded = frame.assign(c=(frame["c"] == "y").astype(float))
    model = RandomForestClassifier(20, random_state=0).fit(coded[["a", "b", "c"]], frame["label"])
    path = table.with_name("coded.joblib")
    joblib.dump(model, path)
    document = run_json("outliers", table, "-t", "label", "--model", path, "--trust-model")
    assert document["scheme"] == "gap"
    assert any("'c' are passed to the model as numbers" in note for note in document["notes"])


def test_another_scheme_where_there_is_no_bootstrap(table, save):
    path = save(ExtraTreesClassifier(13, random_state=0))
    options = (table, "-t", "label", "--model", path, "--trust-model")
    document = run_json("outliers", *options)
    assert document["scheme"] == "kerf"
    assert any("kerf" in note for note in document["notes"])
    assert "bootstrap" in run("outliers", *options, "--scheme", "gap", exit_code=4).stderr


@pytest.mark.parametrize("form", ["names", "array"])
def test_catboost_models(table, tmp_path, form):
    catboost = pytest.importorskip("catboost")
    frame = pd.read_csv(table)
    X = frame[["a", "b"]] if form == "names" else frame[["a", "b"]].to_numpy()
    options = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoostClassifier(5, **options).fit(X, frame["label"])
    joblib.dump(model, tmp_path / "model.joblib")
    given = (table, "-t", "label", "--model", tmp_path / "model.joblib", "--trust-model")
    if form == "array":
        said = run("outliers", *given, exit_code=4).stderr
        assert "trained on 2 features, but this table has 3" in said
        assert "Use --drop" in said
        said = run("outliers", *given, "--drop", "b", "--drop", "c", exit_code=4).stderr
        assert "Use a table with all columns that the model was trained on" in said
        given = (*given, "--drop", "c")
    found = run_json("predict", *given, "--new", table)["result"]
    assert [row["prediction"] for row in found] == model.predict(X).tolist()


def test_a_model_of_other_rows_is_noticed(table, save):
    path = save(RandomForestClassifier(13, random_state=0), rows=50)
    document = run_json("outliers", table, "-t", "label", "--model", path, "--trust-model")
    assert document["scheme"] == "kerf"
    assert document["score"]["label"] == "Neighbors' accuracy"


def test_the_model_says_what_the_target_is(table, save):
    path = save(RandomForestRegressor(13, random_state=0), columns=("a",), target="b")
    frame = pd.read_csv(table)
    frame["b"] = np.tile([0, 1, 2], 20)  # few whole numbers look like classes
    frame.to_csv(table, index=False)
    options = ("outliers", table, "-t", "b", "--model", path, "--trust-model")
    assert run_json(*options)["task"] == "regression"


@pytest.mark.parametrize("values", [1.5, np.nan, np.arange(60)], ids=["one", "none", "id"])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_columns_that_the_model_wants_are_features(table, save, values, in_pipeline):
    """Also if this table alone would not show that the columns are useful."""
    model = RandomForestClassifier(13, random_state=0)
    if in_pipeline:
        model = make_pipeline(make_column_transformer(("passthrough", ["a", "b"])), model)
    path = save(model)
    pd.read_csv(table).assign(b=values).to_csv(table, index=False)
    options = ("outliers", table, "-t", "label", "--model", path, "--trust-model")
    document = run_json(*options)
    assert document["features"] == ["a", "b", "c"]
    assert not any("'b'" in note for note in document["notes"])


@pytest.mark.parametrize(
    ("columns", "said"), [(["a", "z"], "'z'"), (["a", "b", "label"], "'label'")]
)
def test_columns_that_are_not_there(table, columns, said):
    model = RandomForestClassifier(3, random_state=0)
    model.fit(pd.DataFrame(np.eye(len(columns)), columns=columns), np.arange(len(columns)))
    path = table.with_name("other.joblib")
    joblib.dump(model, path)
    text = outliers(table, "--model", path, "--trust-model", exit_code=4).stderr
    assert said in text


def test_models_without_names(table):
    frame = pd.read_csv(table)
    model = RandomForestClassifier(9, random_state=0)
    model.fit(frame[["a", "b"]].to_numpy(), frame["label"])
    path = table.with_name("bare.joblib")
    joblib.dump(model, path)
    options = ("--model", path, "--trust-model")
    assert "2 features" in outliers(table, *options, exit_code=4).stderr
    outliers(table, *options, "--drop", "c")


def test_files_that_are_no_models(table, tmp_path):
    broken = tmp_path / "broken.joblib"
    broken.write_bytes(b"not a pickle")
    assert (
        "could not be loaded"
        in outliers(table, "--model", broken, "--trust-model", exit_code=3).stderr
    )
    joblib.dump({"a": 1}, broken)
    assert "dict" in outliers(table, "--model", broken, "--trust-model", exit_code=4).stderr
    joblib.dump(RandomForestClassifier(), broken)
    assert "not a fitted" in outliers(table, "--model", broken, "--trust-model", exit_code=4).stderr
    fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    joblib.dump(fitted, broken)
    outliers(table, "--model", broken, "--trust-model", "--drop", "b", "--drop", "c", exit_code=4)
    missing = tmp_path / "missing.joblib"
    outliers(table, "--model", missing, "--trust-model", exit_code=3)
    outliers(table, "--model", tmp_path / "model.onnx", exit_code=2)


@pytest.mark.parametrize("keep", [0, 10, 500])
def test_damaged_skops_files(table, save, keep):
    path = save(RandomForestClassifier(3), name="model.skops")
    path.write_bytes(path.read_bytes()[:keep])
    text = outliers(table, "--model", path, "--trust-model", exit_code=3).stderr
    assert "could not be loaded" in text
    assert "skops.io.dump" in text
    assert text.count("\n") == 1


class OldPickler(pickle.Pickler):
    """Pickle trees as scikit-learn 1.2 did: nodes do not say where missing values go."""

    def reducer_override(self, obj):
        if not isinstance(obj, Tree):
            return NotImplemented
        make, arguments, state = obj.__reduce__()
        names = [name for name in state["nodes"].dtype.names if name != "missing_go_to_left"]
        return make, arguments, {**state, "nodes": state["nodes"][names].copy()}


@pytest.fixture
def save_old(table, tmp_path, monkeypatch):
    """Save a forest as scikit-learn 1.2.2 would have done."""

    def save(forest, dump):
        frame = pd.read_csv(table)
        forest.fit(frame[["a", "b"]], frame["label"])
        # An attribute that came later, and which the installed version uses.
        later = "_sample_weight" if hasattr(forest, "_sample_weight") else "_n_samples_bootstrap"
        del forest.__dict__[later]
        path = tmp_path / "old.pkl"
        with monkeypatch.context() as patch:
            patch.setattr(sklearn.base, "__version__", "1.2.2")
            dump(forest, path)
        return path

    return save


def dump_old_trees(forest, path):
    with path.open("wb") as file:
        OldPickler(file).dump(forest)


@pytest.mark.parametrize(
    "dump", [dump_old_trees, joblib.dump, lambda forest, path: joblib.dump(forest, path, 3)]
)
def test_models_of_another_scikit_learn(table, save_old, dump):
    """Both if loading fails and if the first use fails."""
    path = save_old(RandomForestClassifier(5, random_state=0), dump)
    result = outliers(table, "--model", path, "--trust-model", exit_code=3)
    error = result.stderr.splitlines()[-1]
    assert error.startswith(f"error: --model {path} was saved with scikit-learn 1.2.2 and does not")
    assert error.endswith(
        f"Fit the model again with scikit-learn {sklearn.__version__}, or install scikit-learn "
        "1.2.2."
    )
    assert "unexpected" not in result.stderr


def test_models_of_another_scikit_learn_that_work(table, save, monkeypatch):
    monkeypatch.setattr(sklearn.base, "__version__", "1.2.2")
    path = save(RandomForestClassifier(5, random_state=0))
    monkeypatch.undo()
    document = run_json("outliers", table, "-t", "label", "--model", path, "--trust-model")
    (note,) = [note for note in document["notes"] if "1.2.2" in note]
    assert f"but {sklearn.__version__} is installed" in note


def test_task_of_what_says_nothing():
    assert task_of(None) is None
    assert task_of(RandomForestRegressor()) == "regression"
