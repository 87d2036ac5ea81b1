"""The data of a page, compared with the results of the library."""

import base64
import gzip
import hashlib
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMRegressor
from scipy.sparse import coo_array, csr_array
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, RandomTreesEmbedding
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leafkernel import ForestProximity
from leafkernel.explorer import build_report, report
from leafkernel.explorer._blob import Blob
from leafkernel.explorer._columns import read_column
from leafkernel.explorer._map import close_gaps
from leafkernel.explorer._why import explain_neighbors
from leafkernel.tasks import class_prototypes, explain_pair, outlier_scores
from leafkernel.tasks._paths import read_trees

DATES = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"), pd.Timestamp("2021-01-01")]
HOSTILE = "</script><img src=x onerror=\"alert('1')\">{{data}}<!--"


def unpack(found):
    """Read a report as a browser does: the header, with arrays in the place of references."""
    raw = gzip.decompress(base64.b64decode(found.data))
    length = int(np.frombuffer(raw[:4], "<u4")[0])
    assert (4 + length) % 8 == 0

    def arrays(value):
        if isinstance(value, dict) and set(value) == {"offset", "length", "dtype"}:
            start = 4 + length + value["offset"]
            assert start % 8 == 0
            return np.frombuffer(raw, value["dtype"], value["length"], start)
        if isinstance(value, dict):
            return {key: arrays(inner) for key, inner in value.items()}
        return [arrays(inner) for inner in value] if isinstance(value, list) else value

    return arrays(json.loads(raw[4 : 4 + length]))


@pytest.fixture(scope="module")
def flowers(iris):
    X, y = iris
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(100, random_state=0, oob_score=True).fit(X, labels)
    return ForestProximity(forest, dtype="float64").fit(X, labels), X, labels


@pytest.fixture(scope="module")
def page(flowers):
    return unpack(build_report(*flowers, title="iris", method="pca"))


class TestClassification:
    def test_neighbors_are_those_of_the_proximity(self, flowers, page):
        similarity, rows = flowers[0].kneighbors(n_neighbors=10)
        np.testing.assert_array_equal(page["neighbors"]["rows"].reshape(150, 10), rows)
        np.testing.assert_allclose(
            page["neighbors"]["proximity"].reshape(150, 10), similarity, rtol=1e-6
        )
        makers = (flowers[0].proximity().toarray() > 0).sum(axis=1)
        np.testing.assert_array_equal(page["neighbors"]["makers"], makers)

    def test_predictions_are_the_forests_out_of_bag(self, flowers, page):
        prox, _, labels = flowers
        shares = page["probabilities"]["data"].reshape(150, 3)
        np.testing.assert_allclose(shares, prox.forest_.oob_decision_function_, atol=1e-6)
        predicted = np.array(page["prediction"]["categories"])[page["prediction"]["data"]]
        best = prox.forest_.classes_[prox.forest_.oob_decision_function_.argmax(axis=1)]
        np.testing.assert_array_equal(predicted, best)
        truth = (prox.forest_.classes_ == labels[:, None]).argmax(axis=1)
        np.testing.assert_allclose(
            page["error"]["data"], 1 - shares[np.arange(150), truth], atol=1e-6
        )
        assert page["shares"]
        assert page["score"]["text"] == f"{prox.forest_.oob_score_:.1%}"
        assert page["score"]["baseline"]["text"] == "33.3%"

    def test_outliers_are_breimans(self, flowers, page):
        prox, _, labels = flowers
        np.testing.assert_allclose(
            page["outlier"]["data"], outlier_scores(prox, labels), rtol=1e-5, atol=1e-5
        )

    def test_prototypes_are_breimans(self, flowers, page):
        prox, X, labels = flowers
        known = class_prototypes(prox, X, labels, n_neighbors=25)
        for c, found in enumerate(page["prototypes"]):
            assert (found["label"], found["row"]) == (known.classes[c], known.cases[c])
            middles = [feature["middle"] for feature in found["features"]]
            np.testing.assert_allclose(middles, known.median[c])
            np.testing.assert_allclose([f["low"] for f in found["features"]], known.lower[c])

    def test_prototypes_are_of_their_class(self, iris):
        X, _ = iris
        labels = np.random.default_rng(1).choice(["a", "b", "c"], p=[0.7, 0.2, 0.1], size=150)
        prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(X, labels)
        for found in unpack(build_report(prox, X, labels, method="pca"))["prototypes"]:
            assert labels[found["row"]] == found["label"]

    def test_features_and_importances(self, flowers, page):
        importances = [feature["importance"] for feature in page["features"]]
        np.testing.assert_allclose(importances, flowers[0].forest_.feature_importances_)
        assert [feature["column"] for feature in page["features"]] == [0, 1, 2, 3]
        for j, column in enumerate(page["columns"]):
            assert column["feature"]
            assert column["kind"] == "number"
            np.testing.assert_allclose(column["data"], flowers[1][:, j], rtol=1e-6)

    def test_reasons_are_those_of_pairs(self, flowers, page):
        prox = flowers[0]
        neighbors = page["neighbors"]["rows"].reshape(150, 10)
        features = page["why"]["feature"].reshape(150, 10, 3)
        percents = page["why"]["percent"].reshape(150, 10, 3)
        for row, k in [(0, 0), (70, 3), (106, 9)]:
            pair = explain_pair(prox, row, int(neighbors[row, k]))
            top = np.argsort(-pair.shares, kind="stable")[:3]
            np.testing.assert_array_equal(features[row, k], top)
            np.testing.assert_allclose(percents[row, k], 100 * pair.shares[top], atol=0.51)
            assert page["why"]["trees"].reshape(150, 10)[row, k] == len(pair.trees)
        assert page["why"]["n_trees"] == 100


@pytest.mark.parametrize(("scheme", "symmetrize"), [("gap", True), ("kerf", False), ("oob", False)])
def test_reasons_for_every_scheme(iris, scheme, symmetrize, monkeypatch):
    X, y = iris
    forest = RandomForestClassifier(20, random_state=0)
    prox = ForestProximity(forest, scheme, symmetrize=symmetrize, dtype="float64")
    prox.fit(X[::3], y[::3])
    _, neighbors = prox.kneighbors(n_neighbors=4)
    trees, names = read_trees(prox, "this")
    # Small enough that several blocks of rows are needed.
    monkeypatch.setattr("leafkernel.explorer._why._BITS_AT_ONCE", 4 * len(names) * 7)
    found = explain_neighbors(prox, trees, neighbors, len(names), most=9)
    for row in range(0, 50, 7):
        for k in range(4):
            pair = explain_pair(prox, row, int(neighbors[row, k]))
            if not pair.proximity:
                continue
            shares = np.zeros(len(names) + 1)  # the last is for "no feature"
            shares[found.features[row, k]] = found.shares[row, k]
            np.testing.assert_allclose(shares[:-1], pair.shares, atol=1e-6)
            assert found.trees[row, k] == len(pair.trees)


def test_regression(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(60, random_state=0, oob_score=True).fit(X, y)
    prox = ForestProximity(forest, dtype="float64").fit(X, y)
    found = build_report(prox, X, pd.Series(y, name="progression"), method="spectral")
    page = unpack(found)
    assert page["task"] == "regression"
    assert page["probabilities"] is None
    assert page["target"]["name"] == "progression"
    np.testing.assert_allclose(page["prediction"]["data"], forest.oob_prediction_, rtol=1e-5)
    np.testing.assert_allclose(page["error"]["data"], abs(y - forest.oob_prediction_), rtol=1e-4)
    assert page["score"]["text"].startswith(f"{forest.oob_score_:.3f}")
    assert "out-of-bag R²" in found.score_text
    assert [p["label"].split(":")[0] for p in page["prototypes"]] == [
        "lowest quarter",
        "second quarter",
        "third quarter",
        "highest quarter",
    ]
    assert sum(p["size"] for p in page["prototypes"]) == len(y)


def test_a_target_with_many_equal_numbers_has_fewer_parts(diabetes):
    X, _ = diabetes
    y = np.where(X[:, 2] > 0.05, X[:, 2], 0.0)
    prox = ForestProximity(RandomForestRegressor(60, random_state=0)).fit(X, y)
    labels = [p["label"] for p in unpack(build_report(prox, X, y, method="pca"))["prototypes"]]
    assert len(labels) == len(set(labels)) < 4


def test_no_row_is_a_witness_for_itself(iris):
    """A scheme that is not out of bag counts each row as its own neighbor; the page must not."""
    X, _ = iris
    noise = np.random.default_rng(0).choice(["a", "b"], size=150)
    prox = ForestProximity(RandomForestClassifier(60, random_state=0), "kerf").fit(X, noise)
    page = unpack(build_report(prox, X, noise, method="pca"))
    assert not page["shares"]
    assert page["score"]["label"] == "Neighbors' accuracy"
    P = prox.proximity().toarray()
    np.fill_diagonal(P, 0)
    shares = P @ (noise[:, None] == ["a", "b"]) / P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(page["probabilities"]["data"].reshape(150, 2), shares, atol=1e-5)
    assert (page["neighbors"]["rows"].reshape(150, 10) != np.arange(150)[:, None]).all()


def test_rows_that_every_tree_drew_have_no_prediction(iris):
    X, y = iris
    with pytest.warns(UserWarning, match="in bag in every tree"):
        prox = ForestProximity(RandomForestClassifier(4, random_state=0)).fit(X, y)
    page = unpack(build_report(prox, X, y, method="pca"))
    empty = np.diff(prox.proximity().indptr) == 0
    assert empty.any()
    np.testing.assert_array_equal(page["prediction"]["data"] == 255, empty)
    np.testing.assert_array_equal(np.isnan(page["error"]["data"]), empty)
    assert (page["neighbors"]["rows"].reshape(150, 10)[empty] == -1).all()
    assert (page["why"]["feature"].reshape(150, 10, -1)[empty] == 255).all()


class TestTables:
    def test_what_people_know_is_shown(self, table):
        X, y = table
        codes = X.assign(kind=X["kind"].cat.codes.astype(float)).fillna(-9.0)
        prox = ForestProximity(RandomForestRegressor(60, random_state=0)).fit(codes, y)
        shown = X.assign(remark=[f"remark {i}" for i in range(120)])
        ids = [f"R{i}" for i in range(120)]
        page = unpack(
            build_report(prox, codes, y, shown=shown, ids=ids, id_name="key", method="pca")
        )
        size, kind, age, remark = page["columns"]
        assert [c["kind"] for c in page["columns"]] == ["number", "category", "number", "text"]
        assert [c["feature"] for c in page["columns"]] == [True, True, True, False]
        np.testing.assert_array_equal(np.isnan(size["data"]), X["size"].isna())
        assert size["missing"] == X["size"].isna().sum()
        np.testing.assert_array_equal(np.array(kind["categories"])[kind["data"]], X["kind"])
        assert remark["values"][7] == "remark 7"
        assert (page["id"]["name"], page["id"]["values"]) == ("key", ids)
        assert page["id"]["positions"] is None
        assert age["missing"] == 0

    def test_polars_lists_and_sparse(self, iris):
        X, y = iris
        forest = RandomForestClassifier(60, random_state=0)
        names = list("abcd")
        prox = ForestProximity(forest).fit(X, y)
        arrays = unpack(build_report(prox, X, y, method="pca"))
        frame = unpack(build_report(prox, X, y, shown=pl.DataFrame(X, schema=names), method="pca"))
        assert [c["name"] for c in frame["columns"]] == names
        lists = unpack(build_report(prox, X.tolist(), y.tolist(), method="pca"))
        prox = ForestProximity(forest).fit(csr_array(X), y)
        packed = unpack(build_report(prox, csr_array(X), y, method="pca"))
        for j in range(4):
            for other in (frame, lists, packed):
                np.testing.assert_array_equal(
                    arrays["columns"][j]["data"], other["columns"][j]["data"]
                )

    @pytest.mark.parametrize(
        ("values", "kind", "missing"),
        [
            ([True, False, None, True], "category", 1),
            (["1", "2", "1", "2"], "category", 0),
            ([1, 2, 2**40, None], "number", 1),
            ([0.5, np.inf, -np.inf, np.nan], "number", 3),
            (["a", "b", "c", "d"], "text", 0),
            (pd.array([1, None, 3, 4], dtype="Int64"), "number", 1),
            (pd.array(["x", None, "x", "y"], dtype="string"), "category", 1),
            (pd.Categorical(["x", None, "x", "y"]), "category", 1),
            (pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"]), "number", 1),
            ([None, None, None, None], "category", 4),
            ([[1], [2], [3], {}], "text", 0),
            (np.array([1, 2.5, None, pd.NA], dtype=object), "number", 2),
            (pd.interval_range(0, 4), "text", 0),
            (pd.array([1, 2, 3, 4], dtype="double[pyarrow]"), "number", 0),
            (pd.array([None, *DATES], dtype="timestamp[s, UTC][pyarrow]"), "number", 1),
            (pd.Series([None, *DATES]).astype("date32[pyarrow]"), "number", 1),
            (pl.Series([[1], [2, 3], [], None]), "text", 1),
            (pl.Series([{"a": 1}, {"a": 2}, {"a": 1}, {"a": 3}]), "text", 0),
            (pl.Series(["u", "v", "u", None], dtype=pl.Categorical), "category", 1),
        ],
    )
    def test_kinds_of_columns(self, values, kind, missing):
        column = values if isinstance(values, (pl.Series, np.ndarray)) else pd.Series(values)
        about = read_column("x", column).describe(Blob())
        assert (about["kind"], about["missing"]) == (kind, missing)

    def test_large_whole_numbers_stay_exact(self):
        about = read_column("x", pd.Series([1, 2**40 + 1])).describe(Blob())
        assert about["data"]["dtype"] == "float64"

    def test_numbers_with_many_digits_stay_exact(self, monkeypatch):
        short, long = pd.Series([39.1, 1e-7, 0.0]), pd.Series([39.1, 0.1234567])
        assert read_column("x", short).describe(Blob())["data"]["dtype"] == "float32"
        about = read_column("x", long).describe(Blob())
        assert (about["data"]["dtype"], about["rounded"]) == ("float64", False)
        monkeypatch.setattr("leafkernel.explorer._columns._MOST_DOUBLES", 1)
        about = read_column("x", long).describe(Blob())
        assert (about["data"]["dtype"], about["rounded"]) == ("float32", True)

    def test_dates_are_days(self):
        noons = ["1970-01-02T12:00", None, "2024-02-29T12:00"]
        for dates in (
            pd.Series(pd.to_datetime(noons)),
            pd.Series(pd.to_datetime(noons)).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            pl.Series(noons).str.to_datetime(),
            np.array(noons, dtype="datetime64[s]"),
        ):
            column = read_column("when", dates)
            assert column.is_date
            np.testing.assert_array_equal(column.values, [1.5, np.nan, 19782.5])
            assert column.describe(Blob())["data"]["dtype"] == "float64"

    def test_the_most_important_of_many_columns(self, rng):
        X = pd.DataFrame(rng.normal(size=(60, 400))).add_prefix("c")
        y = (X["c399"] > 0).to_numpy()
        sparse = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(csr_array(X), y)
        names = [c["name"] for c in unpack(build_report(sparse, coo_array(X), y))["columns"]]
        assert (len(names), "x399" in names) == (300, True)
        prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(X, y)
        page = unpack(build_report(prox, X, y, method="pca"))
        assert len(page["columns"]) == 300
        assert "c399" in [column["name"] for column in page["columns"]]
        assert "300 of 400 columns" in page["notes"][0]
        assert len(page["features"]) == 400
        linked = [f for f in page["features"] if f["column"] is not None]
        assert all(page["columns"][f["column"]]["name"] == f["name"] for f in linked)

    def test_long_text_is_kept_to_the_letter_while_it_fits(self, monkeypatch):
        texts = [f"{i} {'long ' * 100}" for i in range(5)]
        assert read_column("x", pd.Series(texts)).values.tolist() == texts
        monkeypatch.setattr("leafkernel.explorer._columns._MOST_CHARACTERS", 1000)
        cut = read_column("x", pd.Series(texts))
        assert cut.is_cut
        assert {len(text) for text in cut.values} == {200}


class TestNamesOfRows:
    @pytest.mark.parametrize(
        ("index", "name", "labels"),
        [
            (pd.RangeIndex(150), "row", None),
            (pd.Index(np.arange(150)), "row", None),
            (pd.RangeIndex(1, 151), "row", [str(i) for i in range(1, 151)]),
            (pd.Index([f"p{i}" for i in range(150)], name="patient"), "patient", "p{}"),
            (pd.MultiIndex.from_product([range(15), list("abcdefghij")]), "row", None),
            (pd.date_range("2024-02-28", periods=150), "row", None),
        ],
    )
    def test_labels_of_the_index(self, flowers, index, name, labels):
        prox, X, y = flowers
        frame = pd.DataFrame(X, index=index)
        found = unpack(build_report(prox, X, y, shown=frame, method="pca"))["id"]
        assert found["name"] == name
        assert found["positions"] is None  # they count the rows
        if isinstance(index, pd.MultiIndex):
            assert found["values"][:2] == ["0, a", "0, b"]
        elif isinstance(index, pd.DatetimeIndex):
            assert found["values"][:2] == ["2024-02-28", "2024-02-29"]
        elif isinstance(labels, str):
            assert found["values"] == [labels.format(i) for i in range(150)]
        else:
            assert found["values"] == labels

    def test_names_given_win(self, flowers):
        prox, X, y = flowers
        frame = pd.DataFrame(X, index=[f"p{i}" for i in range(150)])
        names = [f"q{i}" for i in range(150)]
        found = unpack(build_report(prox, X, y, shown=frame, ids=names, method="pca"))["id"]
        assert found["values"] == names
        lines = np.arange(150) * 2
        found = unpack(build_report(prox, X, y, shown=frame, positions=lines, method="pca"))["id"]
        assert found["values"] is None
        np.testing.assert_array_equal(found["positions"], lines)


class TestNewRows:
    """Rows that the forest was not trained on come after the others in every array."""

    @pytest.mark.parametrize("method", ["pca", "umap"])
    def test_they_have_predictions_neighbors_and_places(self, flowers, method):
        prox, X, labels = flowers
        X_new = X[::30] + 0.05
        page = unpack(build_report(prox, X, labels, X_new=X_new, method=method))
        assert (page["n"], page["n_new"]) == (155, 5)
        shares = page["probabilities"]["data"].reshape(155, 3)[150:]
        np.testing.assert_allclose(shares, prox.forest_.predict_proba(X_new), atol=1e-6)
        similarity, rows = prox.kneighbors(X_new, n_neighbors=10)
        known = np.where(similarity > 0, rows, -1)
        np.testing.assert_array_equal(page["neighbors"]["rows"].reshape(155, 10)[150:], known)
        assert (page["target"]["data"][150:] == 255).all()
        assert np.isnan(page["error"]["data"][150:]).all()
        np.testing.assert_allclose(page["columns"][0]["data"][150:], X_new[:, 0], rtol=1e-6)
        # Each lies among its neighbors.
        points = np.column_stack([page["embedding"]["x"], page["embedding"]["y"]])
        apart = np.linalg.norm(points[150:, None] - points[None, :150], axis=2)
        nearest = [apart[i, known[i][known[i] >= 0]].mean() for i in range(5)]
        assert (nearest < 0.5 * apart.mean(axis=1)).all()
        pair = explain_pair(prox, X_new[2], int(known[2, 0]))
        top = page["why"]["feature"].reshape(155, 10, 3)[152, 0, 0]
        assert top == pair.shares.argmax()
        assert page["why"]["trees"].reshape(155, 10)[152, 0] == len(pair.trees)

    def test_the_rest_of_the_page_is_the_same(self, flowers, page):
        prox, X, labels = flowers
        found = unpack(build_report(prox, X, labels, title="iris", X_new=X[:4], method="pca"))
        assert found["prototypes"] == page["prototypes"]
        assert found["score"] == page["score"]
        np.testing.assert_array_equal(found["outlier"]["data"][:150], page["outlier"]["data"])
        np.testing.assert_array_equal(found["embedding"]["x"][:150], page["embedding"]["x"])

    def test_regression_with_labels_categories_and_holes(self, table):
        X, y = table
        codes = X.assign(kind=X["kind"].cat.codes.astype(float)).fillna(-9.0)
        prox = ForestProximity(RandomForestRegressor(60, random_state=0)).fit(codes, y)
        shown_new = pd.DataFrame({"kind": ["a", "Aaa", None]}, index=["u", "v", "w"])
        page = unpack(
            build_report(
                prox,
                codes,
                y,
                shown=X,
                X_new=codes[:3],
                shown_new=shown_new,
                method="pca",
            )
        )
        size, kind, _ = page["columns"]
        # A category of new rows alone changes no name in the prototypes.
        without = unpack(build_report(prox, codes, y, shown=X, method="pca"))
        for mine, theirs in zip(page["prototypes"], without["prototypes"], strict=True):
            names = [
                {f["column"]: found["columns"][1]["categories"][f["value"]]}
                for found, prototype in ((page, mine), (without, theirs))
                for f in prototype["features"]
                if f["column"] == 1
            ]
            assert names[0] == names[1]
        assert np.isnan(size["data"][120:]).all()
        texts = [kind["categories"][c] if c < 255 else None for c in kind["data"][120:]]
        assert texts == ["a", "Aaa", None]
        assert page["id"]["values"] == [None] * 120 + ["u", "v", "w"]
        predicted = prox.forest_.predict(codes[:3])
        np.testing.assert_allclose(page["prediction"]["data"][120:], predicted, rtol=1e-5)
        assert np.isnan(page["target"]["data"][120:]).all()

    def test_refusals(self, flowers, monkeypatch):
        prox, X, labels = flowers
        frame = pd.DataFrame(X)
        with pytest.raises(ValueError, match="shown_new is missing"):
            build_report(prox, X, labels, shown=frame, X_new=X[:3])
        with pytest.raises(ValueError, match="shown_new has 2 rows"):
            build_report(prox, X, labels, shown=frame, X_new=X[:3], shown_new=frame[:2])
        with pytest.raises(ValueError, match="ids_new requires X_new"):
            build_report(prox, X, labels, ids_new=["a"])
        with pytest.raises(ValueError, match="X_new has no rows"):
            build_report(prox, X, labels, X_new=X[:0])
        monkeypatch.setattr(report, "MOST_ROWS", 151)
        with pytest.raises(ValueError, match="X_new has 3 rows"):
            build_report(prox, X, labels, X_new=X[:3])


class TestLinks:
    """Which column of the page is which feature of the forest."""

    def flags(self, page):
        links = [(f["name"], f["column"]) for f in page["features"]]
        return links, [column["feature"] for column in page["columns"]]

    def test_an_array_and_a_table_beside_it(self, iris):
        X, y = iris
        prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(X, y)
        shown = pd.DataFrame(X, columns=list("abcd"))
        links, flags = self.flags(unpack(build_report(prox, X, y, shown=shown, method="pca")))
        assert links == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]
        assert flags == [True] * 4
        shown["note"] = "n"  # now it is not known which of five the four are
        links, flags = self.flags(unpack(build_report(prox, X, y, shown=shown, method="pca")))
        assert [name for name, _ in links] == ["x0", "x1", "x2", "x3"]
        assert flags == [None] * 5

    def test_numbers_as_names(self, iris):
        X, y = iris
        prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(pd.DataFrame(X), y)
        links, flags = self.flags(unpack(build_report(prox, pd.DataFrame(X), y, method="pca")))
        assert links == [("0", 0), ("1", 1), ("2", 2), ("3", 3)]
        assert flags == [True] * 4

    def test_repeated_names(self, iris):
        X, y = iris
        frame = pd.DataFrame(X, columns=list("abcd"))
        prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(frame, y)
        shown = pd.concat([frame, frame[["a"]]], axis=1)
        links, flags = self.flags(unpack(build_report(prox, frame, y, shown=shown, method="pca")))
        assert links[0] == ("a", 0)
        assert flags == [True, True, True, True, False]

    def test_a_pipeline_that_makes_other_columns(self, table):
        X, y = table
        X = X.drop(columns="size")
        encode = make_column_transformer(
            (OneHotEncoder(), ["kind"]), remainder="passthrough", verbose_feature_names_out=False
        )
        forest = RandomForestRegressor(60, random_state=0)
        prox = ForestProximity(make_pipeline(encode, forest)).fit(X, y)
        links, flags = self.flags(unpack(build_report(prox, X, y, method="pca")))
        assert dict(links)["age"] == 1
        assert dict(links)["kind_a"] is None
        assert flags == [None, True]


class TestForests:
    def test_pipeline(self, iris):
        X, y = iris
        model = make_pipeline(StandardScaler(), RandomForestClassifier(60, random_state=0))
        page = unpack(build_report(ForestProximity(model).fit(X, y), X, y, method="pca"))
        np.testing.assert_allclose(page["columns"][0]["data"], X[:, 0], rtol=1e-6)
        assert page["features"][0]["importance"] > 0
        assert page["forest"] == "a random forest with 60 trees"

    def test_boosting(self, diabetes):
        X, y = diabetes
        model = LGBMRegressor(n_estimators=20, verbose=-1, random_state=0, n_jobs=1)
        prox = ForestProximity(model, "boosted").fit(X, y)
        page = unpack(build_report(prox, X, y, method="pca"))
        assert page["task"] == "regression"
        assert page["why"] is not None

    def test_leaves_alone(self, flowers):
        prox, X, labels = flowers
        leaves = prox.forest_.apply(X)
        raw = ForestProximity.from_leaves(leaves, y=labels)
        page = unpack(build_report(raw, leaves, labels, method="pca"))
        assert page["why"] is None
        assert page["columns"] == page["features"] == []
        with_table = build_report(raw, leaves, labels, shown=pd.DataFrame(X), method="pca")
        assert len(unpack(with_table)["columns"]) == 4

    def test_unsupervised(self, iris):
        X, y = iris
        prox = ForestProximity(RandomTreesEmbedding(30, random_state=0), "uniform").fit(X)
        assert unpack(build_report(prox, X, y, method="mds"))["task"] == "classification"


class TestMistakes:
    def test_refusals(self, flowers, monkeypatch):
        prox, X, labels = flowers
        with pytest.raises(
            ValueError, match="X has 149 samples, but the proximity was fitted on 150"
        ):
            build_report(prox, X[1:], labels[1:])
        with pytest.raises(ValueError, match="y has 149 rows"):
            build_report(prox, X, labels[1:])
        with pytest.raises(ValueError, match="shown has 3 rows"):
            build_report(prox, X, labels, shown=pd.DataFrame({"a": [1, 2, 3]}))
        without_y = ForestProximity(prox.forest_, "uniform").fit(X)
        with pytest.raises(ValueError, match=r"fitted without targets. Pass the"):
            build_report(without_y, X)
        with pytest.raises(ValueError, match=r"method must be one of .* Did you mean 'umap'"):
            build_report(prox, X, labels, method="unap")
        with pytest.raises(TypeError, match="fitted ForestProximity"):
            build_report(prox.forest_, X, labels)
        monkeypatch.setattr(report, "MOST_ROWS", 100)
        with pytest.raises(ValueError, match=r"at most 100. .* random sample"):
            build_report(prox, X, labels)

    def test_smallest(self):
        X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["a", "a", "b", "b"])
        prox = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(X, y)
        assert unpack(build_report(prox, X, y))["neighbors"]["k"] == 3
        few = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(X[1:3], y[1:3])
        with pytest.raises(ValueError, match="a page needs at least 3"):
            build_report(few, X[1:3], y[1:3])


@pytest.fixture(scope="module")
def hostile(iris):
    X, y = iris
    labels = np.array([HOSTILE, "b", "c"])[y]
    frame = pd.DataFrame(X, columns=[HOSTILE, "x", "y", "z"])
    prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(frame, labels)
    return build_report(
        prox,
        frame,
        labels,
        title=HOSTILE,
        target_name=HOSTILE,
        notes=[HOSTILE],
        ids=[HOSTILE] * 150,
        method="pca",
    )


class TestPage:
    def test_what_users_wrote_is_only_in_the_packed_data_and_escaped_in_the_title(self, hostile):
        text = hostile.html()
        assert HOSTILE not in text
        assert text.count("img src=x") == 2
        for tag in ("<title>", '<h1 id="title">'):
            assert f"{tag}&lt;/script&gt;&lt;img src=x onerror=" in text
        assert unpack(hostile)["target"]["categories"][0] == HOSTILE

    def test_only_our_two_scripts_may_run(self, hostile):
        text = hostile.html()
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert len(scripts) == 2
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
        for script in scripts:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert "default-src 'none'" in policy
        assert "{{" not in text.replace(scripts[0], "").replace(scripts[1], "").replace(
            "{{data}}", ""
        )

    def test_nothing_is_fetched(self, hostile):
        outside = hostile.html()
        for attribute in (r'\ssrc="?http', r'\shref="?http', "@import", r"url\(\s*['\"]?http"):
            assert not re.search(attribute, outside)

    def test_saved_at_once_or_not_at_all(self, hostile, tmp_path):
        path = hostile.save(tmp_path / "page.html")
        assert path.read_text(encoding="utf-8") == hostile.html()
        assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
        with pytest.raises(FileNotFoundError):
            hostile.save(tmp_path / "nowhere" / "page.html")

    def test_notebook(self, flowers):
        prox, X, labels = flowers
        found = prox.explore(X, labels, method="pca", title='a "title"')
        inline = found._repr_html_()
        assert inline.startswith('<iframe srcdoc="&lt;!doctype html')
        assert 'title="a &quot;title&quot;"' in inline
        assert "150 rows, out-of-bag accuracy" in repr(found)

    def test_the_same_page_every_time(self, flowers):
        prox, X, labels = flowers
        first, second = (build_report(prox, X, labels, method="pca") for _ in range(2))
        assert first.html() == second.html()


def test_gaps_between_groups_are_closed(rng):
    groups = rng.uniform(size=(3, 50, 2))
    points = np.concatenate([groups[0], groups[1] + [100, 0], groups[2] + [1e6, -1e6]])
    closed = close_gaps(points)
    assert np.ptp(closed, axis=0).max() < 4
    for axis in range(2):
        np.testing.assert_array_equal(np.argsort(closed[:, axis]), np.argsort(points[:, axis]))
    near = close_gaps(groups[0])
    np.testing.assert_allclose(near - near.min(axis=0), groups[0] - groups[0].min(axis=0))
    np.testing.assert_array_equal(close_gaps(np.zeros((5, 2))), np.zeros((5, 2)))


class CountingForest:
    """A custom forest that records the number of rows it routes."""

    def __init__(self, forest):
        self._forest, self.asked = forest, []

    def leaves(self, X):
        self.asked.append(len(X))
        return self._forest.apply(X)


def test_rows_of_a_page_are_routed_once(iris):
    X, y = iris
    forest = CountingForest(RandomForestClassifier(20, random_state=0).fit(X, y))
    prox = ForestProximity(forest, "kerf").fit(X, y)
    assert forest.asked == [150]
    build_report(prox, X, y, X_new=X[:7] + 0.01, method="pca")
    assert forest.asked.count(7) == 1
    assert forest.asked.count(150) == 1
