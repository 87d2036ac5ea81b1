"""The experiments on contributions of training rows: peers by definition, tables, tiny runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

from experiments import (  # noqa: E402
    cells,
    cost,
    influence,
    influence_page,
    intervals,
    mislabeled,
    page,
    problems,
    removal,
)

pytestmark = pytest.mark.experiments


@pytest.fixture
def options(tmp_path):
    folders = {key: tmp_path / key for key in ("cache", "results", "figures")}
    return cells.Options(quick=True, **folders)


@pytest.mark.parametrize("name", ["removal", "mislabeled", "cost"])
def test_a_tiny_run(name, options):
    experiment = {"removal": removal, "mislabeled": mislabeled, "cost": cost}[name]
    assert cells.run(name, experiment, options)
    rows = cells.read_csv(options.results / f"{name}.csv")
    for make, of in influence_page.TABLES.values():
        if of == name:
            assert "gradient" in make(rows)


def one_leaf_step(y, scores, weights, *, numeric, l2):
    g, h = influence.derivatives(y, scores, numeric=numeric)
    return -influence.RATE * (weights @ g) / (weights @ h + l2)


@pytest.mark.parametrize("library", influence.LIBRARIES)
@pytest.mark.parametrize("name", ["wine", "diabetes"])
def test_boostin_is_the_derivative_of_leaf_values(name, library):
    """Leaf by leaf, by finite differences of the weight of one row."""
    known = problems.problem(name, None, 0, most=80)
    X, y, numeric = known.X, known.y, known.numeric
    model = influence.train(library, X, y, numeric=numeric)
    prox = influence.fitted(model, X, y)["gradient"]
    found = influence.BoostIn(model, library, prox, X, y, numeric=numeric)
    expected, own, scores = np.zeros((4, len(y))), np.zeros(len(y)), np.full(len(y), found.base)
    on_loss = np.zeros((4, len(y)))
    for at in found.leaf.T:
        slopes = influence.derivatives(y, scores, numeric=numeric)[0]
        added = np.zeros(len(y))
        for leaf in np.unique(at):
            rows = np.flatnonzero(at == leaf)
            args = {"numeric": numeric, "l2": influence.L2[library]}
            for i in range(len(rows)):
                step = np.zeros(len(rows))
                step[i] = 1e-6
                more, less = (
                    one_leaf_step(y[rows], scores[rows], 1 + sign * step, **args)
                    for sign in (1, -1)
                )
                slope = (more - less) / 2e-6
                queries = rows[rows < 4]
                expected[queries, rows[i]] += slope
                on_loss[queries, rows[i]] -= slope * slopes[queries]
                own[rows[i]] -= slope * slopes[rows[i]]
            added[rows] = one_leaf_step(y[rows], scores[rows], np.ones(len(rows)), **args)
        scores = scores + added
    assert_allclose(found.on_score(X[:4]), expected, atol=1e-6)
    assert_allclose(found.on_loss(X[:4], y[:4]), on_loss, atol=1e-6)
    assert_allclose(found.on_losses(X[:4], y[:4]), on_loss.sum(axis=0), atol=1e-6)
    assert_allclose(found.on_itself(), own, atol=1e-6)


def test_pushes_point_where_the_score_points():
    known = problems.problem("wine", None, 0)
    model = influence.train("LightGBM", known.X, known.y, numeric=False)
    queries = known.X_held[:5]
    scores = influence.raw_scores(model, queries)
    toward, found = influence.pushes("LightGBM", model, known, queries, np.random.default_rng(0))
    assert np.array_equal(toward, np.sign(scores))
    base = influence.fitted(model, known.X, known.y)["gradient"].base_score_
    assert_allclose(found["gradient"].sum(axis=1), toward * (scores - base), atol=1e-6)
    first = np.argsort(-found["features"], axis=1)[:, 0]
    assert np.array_equal(known.y[first], (toward > 0).astype(int))


def test_missing_data_sets_are_left_out(tmp_path, capsys):
    assert problems.available(["wine", "titanic"], tmp_path) == ["wine"]
    assert "left out: titanic, because there is no small/titanic_891.npz" in capsys.readouterr().out


def test_a_tenth_of_the_labels_is_flipped():
    y = np.arange(100) % 2
    changed, flipped = mislabeled.flip(y, np.random.default_rng(0))
    assert flipped.sum() == 10
    assert np.array_equal(changed != y, flipped)


def test_intervals_ranks_and_counts():
    rows = [
        {"dataset": data, "library": "a", "seed": seed, "method": method, "fall": fall}
        for data, gain in (("one", 1.0), ("two", -1.0), ("three", 0.0))
        for seed, noise in enumerate((-0.1, 0.0, 0.1))
        for method, fall in (("ours", 2 + gain + noise * (gain == 0)), ("theirs", 2.0))
    ]
    assert intervals.versus(rows, "fall", "ours", "theirs") == (1, 1, 1)
    assert intervals.ranks(rows, "fall") == pytest.approx({"ours": 1.5, "theirs": 1.5})
    mean, half = intervals.interval([1.0, 2.0, 3.0])
    assert (mean, half) == pytest.approx((2.0, 4.302653 / np.sqrt(3)))


def test_numbers_in_the_words_of_the_page():
    """The summary of docs/influence.md quotes the tables: read it again after new results."""
    told = " ".join(page.text("influence.md").split())
    rows = cells.read_csv(cells.HERE / "results" / "removal.csv")
    pairs = intervals.groups(rows)
    others = {row["method"] for row in rows} - {"gradient"}
    worse = [
        intervals.versus([row for row in rows if row["share"] == share], "fall", "gradient", other)[
            2
        ]
        for share in removal.SHARES
        for other in others
    ]
    assert not any(worse)
    assert f"on any of {len(pairs)} pairs" in told
    classes = [row for row in rows if row["dataset"] in problems.CLASSES and row["share"] == 0.05]
    for words, method in (
        ("scores fall by {:.2f}", "gradient"),
        ("against {:.2f} for BoostIn", "boostin"),
        ("{:.2f} for `uniform`", "uniform"),
        ("{:.2f} for random rows", "random"),
    ):
        found = [row for row in classes if row["method"] == method]
        assert words.format(intervals.over_seeds(found, "fall")[0]) in told
    rows = cells.read_csv(cells.HERE / "results" / "mislabeled.csv")
    for words, method in (
        ("self-contribution finds {:.0%}", "gradient_self"),
        ("held-out errors find {:.0%}", "gradient_held_noisy"),
        ("to {:.0%}. The loss", "gradient_held_clean"),
        ("loss of the model finds {:.0%}", "loss"),
        ("self-influence {:.0%}", "boostin_self"),
        ("on a random forest {:.0%}", "errors_gap"),
    ):
        found = [row for row in rows if row["method"] == method]
        assert words.format(intervals.over_seeds(found, "found")[0]) in told
