"""Pages of boosted models: contributions of training rows, in the data and in a browser."""

import numpy as np
import pandas as pd
import pytest
from page_reader import Reader
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_explorer import unpack

from leafkernel import ForestProximity
from leafkernel.explorer import _contributions, build_report
from leafkernel.schemes import Gradient
from leafkernel.tasks import explain_prediction

SMALL = {"n_estimators": 8, "random_state": 0}


def check_rows(header, prox, X, X_new, model):
    """Compare the contributions of a page with explanations, row by row."""
    found, k = header["contributions"], header["contributions"]["k"]
    rows, adds = (found[name].reshape(-1, 2, k) for name in ("rows", "adds"))
    counts, totals = (found[name].reshape(-1, 2) for name in ("counts", "totals"))
    everyone = np.concatenate([X, X_new])
    assert len(rows) == len(everyone)
    for i in [0, 7, len(X) - 1, len(X), len(everyone) - 1]:
        output = found["outputs"][i]
        exact = prox
        if len(found["base_scores"]) > 1:
            predicted = model.predict(everyone[i : i + 1])[0]
            assert found["labels"][output] == predicted
            exact = prox.reweigh(Gradient(predicted), diagonal="scheme")
        asked = {"row": i} if i < len(X) else {"x": everyone[i]}
        why = explain_prediction(exact, n=k, **asked)
        assert counts[i].tolist() == [why.n_up, why.n_down]
        np.testing.assert_allclose(totals[i], [why.up_total, why.down_total], rtol=1e-9)
        np.testing.assert_allclose(found["scores"][i], why.score, rtol=1e-9)
        np.testing.assert_allclose(found["predictions"][i], why.prediction, rtol=1e-9)
        np.testing.assert_allclose(found["base_scores"][output], why.base_score)
        np.testing.assert_allclose(found["base_predictions"][output], why.base_prediction)
        up, down = (why.contributions > 0), (why.contributions < 0)
        for side, held in enumerate([np.flatnonzero(up), np.flatnonzero(down)[::-1]]):
            n = len(held)
            np.testing.assert_allclose(adds[i, side, :n], why.contributions[held], rtol=1e-5)
            assert (rows[i, side, n:] == -1).all()
            assert set(rows[i, side, :n]) == set(why.rows[held].tolist())


@pytest.mark.parametrize("scheme", ["kerf", "gradient"])
@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_contributions_are_those_of_the_explanations(diabetes, kind, scheme):
    X, y = diabetes
    if kind != "numbers":
        edges = [120] if kind == "two" else [100, 200]
        y = np.array(["low", "middle", "high"])[np.digitize(y, edges)]
    known = {"numbers": GradientBoostingRegressor}
    model = known.get(kind, GradientBoostingClassifier)(**SMALL).fit(X[:150], y[:150])
    exact = Gradient("low" if kind == "three" else None)
    prox = ForestProximity(model, exact, dtype="float64").fit(X[:150], y[:150])
    shown = prox if scheme == "gradient" else prox.reweigh("kerf", diagonal="zero")
    header = unpack(build_report(shown, X[:150], X_new=X[150:], method="pca", n_neighbors=4))
    assert header["scheme"] == "kerf"
    assert header["notes"] == []
    assert (
        header["contributions"]["link"]
        == {
            "numbers": "identity",
            "two": "logistic",
            "three": "softmax",
        }[kind]
    )
    assert (
        header["contributions"]["labels"]
        == {
            "numbers": None,
            "two": ["middle"],
            "three": ["high", "low", "middle"],
        }[kind]
    )
    check_rows(header, prox, X[:150], X[150:], model)


def test_models_in_pipelines(diabetes):
    X, y = diabetes
    model = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=5))
    prox = ForestProximity(model.fit(X, y), "boosted").fit(X, y)
    found = unpack(build_report(prox, X, method="pca"))["contributions"]
    np.testing.assert_allclose(found["predictions"], model.predict(X), rtol=1e-6)


def test_reasons_why_there_are_none(diabetes, monkeypatch):
    X, y = diabetes
    model = HistGradientBoostingRegressor(loss="absolute_error", max_iter=5).fit(X, y)
    header = unpack(build_report(ForestProximity(model, "kerf").fit(X, y), X, method="pca"))
    assert header["contributions"] is None
    assert "are medians of residuals, not sums over samples" in header["notes"][0]
    forest = ForestProximity(RandomForestRegressor(30, random_state=0)).fit(X, y)
    header = unpack(build_report(forest, X, method="pca"))
    assert header["contributions"] is None
    assert header["notes"] == []
    monkeypatch.setattr(_contributions, "_MOST_PARTS", 10)
    model = GradientBoostingRegressor(**SMALL).fit(X, y)
    header = unpack(build_report(ForestProximity(model, "kerf").fit(X, y), X, method="pca"))
    assert header["contributions"] is None
    assert "too many rows" in header["notes"][0]


@pytest.mark.browser
def test_the_page_shows_the_score(browser, diabetes, tmp_path):
    X, y = diabetes
    table = pd.DataFrame(X[:, :4], columns=list("abcd"))
    labels = np.where(y > 120, "<b>high</b>", "low")
    model = GradientBoostingClassifier(**SMALL).fit(table, labels)
    prox = ForestProximity(model, "gradient").fit(table, labels)
    report = prox.explore(table, title="Scores", method="pca", n_neighbors=3)
    path = report.save(tmp_path / "scores.html")
    reading = Reader(browser, path)
    for row in (0, 5):
        reading.page.evaluate(f"window.leafkernel.select({row})")
        why = explain_prediction(prox, row=row, n=3)
        sentence = reading.page.inner_text("#score").replace("\N{MINUS SIGN}", "-")
        assert sentence == f"Class low: {why.sentence()}."
        meaning = reading.page.inner_text("#score-meaning")
        assert meaning.startswith("Probability of low: ")
        up = reading.page.locator("#push-up > li")
        down = reading.page.locator("#push-down > li")
        assert [up.nth(i).get_attribute("data-row") for i in range(3)] == [
            str(i) for i in why.rows[why.contributions > 0]
        ]
        assert [down.nth(i).get_attribute("data-row") for i in range(3)] == [
            str(i) for i in why.rows[why.contributions < 0][::-1]
        ]
        text = down.nth(0).locator(".value").inner_text().replace("\N{MINUS SIGN}", "-")
        assert float(text) == pytest.approx(why.contributions[-1], rel=0.01)
    # On to a row that pushes up.
    up.nth(1).locator("button").click()
    assert reading.state()["row"] == why.rows[1]
    assert reading.complaints == []
    reading.close()
