"""Outlier scores: R's numbers, slow formulas, planted outliers, new samples."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import ForestProximity
from leafkernel.inside import Inside
from leafkernel.tasks import ProximityOutlierDetector, outlier_scores


@pytest.fixture(scope="module")
def r():
    """Results of R's randomForest on 60 rows of iris, made by data/r_iris.R."""
    with np.load(Path(__file__).parent / "data" / "r_iris.npz") as file:
        return dict(file)


def slow_scores(P, y, convention):
    """The formulas, sample by sample."""
    n = len(y)
    if convention == "rfgap":
        P = P / np.where(P.max(axis=1) > 0, P.max(axis=1), 1)[:, None]
    totals = [sum(P[i, j] ** 2 for j in range(n) if y[j] == y[i]) for i in range(n)]
    least = min([1.0, *(total / 2 for total in totals if total > 0)])
    raw = np.array([n / (total if total > 0 else least) for total in totals])
    if convention == "raw":
        return raw
    scores = np.empty(n)
    for label in np.unique(y):
        of_class = raw[y == label]
        off = of_class - np.median(of_class)
        mad = np.median(np.abs(off))
        if mad < 1e-9:
            mad = np.abs(off).mean() * 1.2533 / 1.4826
        mad = mad if mad > 1e-9 else 1.0
        scores[y == label] = np.abs(off) / mad if convention == "rfgap" else off / (1.4826 * mad)
    return scores


@pytest.mark.parametrize(("scheme", "name"), [("uniform", "original"), ("oob", "oob")])
def test_equal_to_r(r, scheme, name):
    y = np.repeat([0, 1, 2], 20)
    prox = ForestProximity.from_leaves(
        r["leaves"], in_bag=r["in_bag"], weight_scheme=scheme, diagonal="one", dtype=np.float64
    )
    theirs = r[f"outlier_{name}"]
    found = outlier_scores(prox, y)
    defined = np.isfinite(theirs)  # R divides by a MAD of zero if all samples of a class are equal
    assert defined.sum() >= 40
    assert_allclose(found[defined], theirs[defined], rtol=0, atol=1e-10)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("convention", ["breiman", "rfgap", "raw"])
@pytest.mark.parametrize("scheme", ["gap", "oob", "uniform", "kerf"])
def test_streamed_scores_equal_the_formulas(iris, scheme, convention):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(40, random_state=0), scheme, dtype=np.float64)
    prox.fit(X, y)
    P = prox.proximity().toarray()
    if scheme == "kerf":  # a row alone in its leaves is most similar to itself
        np.fill_diagonal(P, 0)
    expected = slow_scores(P, y, convention)
    if scheme in ("gap", "kerf") and convention == "breiman":  # nothing else bounds them
        expected = [10 * (1 + np.log10(s / 10)) if s > 10 else s for s in expected]
    close = {"rtol": 1e-9, "atol": 1e-9}
    assert_allclose(outlier_scores(prox, y, convention=convention), expected, **close)
    for diagonal in ("one", "zero"):
        other = ForestProximity(prox.forest_, scheme, dtype=np.float64, diagonal=diagonal)
        found = outlier_scores(other.fit(X, y), y, convention=convention)
        assert_allclose(found, expected, **close)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=25),
    st.integers(0, 9),
    st.sampled_from(["breiman", "rfgap", "raw"]),
)
def test_any_leaves_and_classes(leaves, seed, convention):
    y = np.random.default_rng(seed).integers(0, 3, len(leaves))
    prox = ForestProximity.from_leaves(leaves, dtype=np.float64)
    expected = slow_scores(prox.proximity().toarray(), y, convention)
    found = outlier_scores(prox, y, convention=convention)
    assert np.isfinite(found).all()
    # Raw measures that differ by rounding alone are one, and have no spread.
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_without_classes_all_are_compared_with_all(diabetes):
    X, y = diabetes
    prox = ForestProximity(RandomForestRegressor(30, random_state=0), "oob", dtype=np.float64)
    prox.fit(X, y)
    expected = slow_scores(prox.proximity().toarray(), np.zeros(len(y)), "breiman")
    assert_allclose(outlier_scores(prox, convention="breiman"), expected)
    assert_allclose(outlier_scores(prox, np.zeros(len(y), dtype=str)), expected)
    without_y = ForestProximity.from_leaves(Inside.of(prox).samples.leaf, dtype=np.float64)
    expected = slow_scores(without_y.proximity().toarray(), np.zeros(len(y)), "breiman")
    assert_allclose(outlier_scores(without_y), expected, atol=1e-9)
    names = np.where(y > 140, "high", "low")
    by_name = slow_scores(prox.proximity().toarray(), names, "breiman")
    assert_allclose(outlier_scores(prox, names), by_name)


def slow_residuals(P, y, mean):
    """The smaller distance from the weighted mean and median, on a robust scale."""
    medians, order = [], np.argsort(y)
    for row in P:
        share = np.cumsum(row[order]) / row.sum()
        medians.append(y[order][np.searchsorted(share, 0.5 - 1e-7)])
    off = np.minimum(np.abs(y - mean), np.abs(y - medians))
    scores = 10 / 3.5 * off / (1.4826 * np.median(off))
    return np.where(scores > 10, 10 * (1 + np.log10(np.maximum(scores, 10) / 10)), scores)


def test_scores_of_numbers_are_robust_standard_scores(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X, y)
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    expected = slow_residuals(prox.proximity().toarray(), y, forest.oob_prediction_)
    assert_allclose(outlier_scores(prox), expected)
    assert_allclose(outlier_scores(prox, y, convention="residual"), expected)
    for scheme in ("uniform", "kerf"):
        prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
        P = prox.proximity().toarray()
        np.fill_diagonal(P, 0)
        assert_allclose(outlier_scores(prox), slow_residuals(P, y, P @ y / P.sum(axis=1)))


@pytest.mark.parametrize("scheme", ["gap", "oob", "uniform", "kerf"])
def test_one_wrong_target_does_not_spoil_its_neighbors(diabetes, scheme):
    """One target times 1e6 scored 26 million, and two correct rows nearby 13 and 7 million."""
    X, y = (part.copy() for part in diabetes)
    y[7] *= 1e6
    prox = ForestProximity(RandomForestRegressor(60, random_state=0), scheme).fit(X, y)
    scores = outlier_scores(prox)
    assert scores.argmax() == 7
    assert 10 < scores[7] < 100
    assert (np.delete(scores, 7) > 10).mean() < 0.05


@pytest.mark.parametrize("scheme", ["gap", "oob", "uniform", "kerf"])
@pytest.mark.parametrize("kind", ["target", "features", "both"])
def test_absurd_rows_are_outliers_in_regression(diabetes, scheme, kind):
    """Compared by proximity alone they are found by chance: AUC 0.49 for targets, 0.3 for X."""
    X, y = (part.copy() for part in diabetes)
    absurd = np.random.default_rng(0).choice(len(y), 20, replace=False)
    if kind != "features":
        y[absurd] += 300
    if kind != "target":
        X[absurd] *= 10
    prox = ForestProximity(RandomForestRegressor(60, random_state=0), scheme).fit(X, y)
    scores = outlier_scores(prox, X=X)
    assert roc_auc_score(np.isin(np.arange(len(y)), absurd), scores) > 0.95
    detector = ProximityOutlierDetector(prox, contamination=20 / len(y), random_state=0).fit(X)
    assert_allclose(detector.outlier_scores_, scores)
    assert np.isin(np.flatnonzero(detector.fit_predict(X) == -1), absurd).mean() > 0.7


def test_new_rows_are_judged_by_their_features_in_regression(diabetes):
    X, y = diabetes
    shares = []
    for seed in range(4):
        train, test, y_train, _ = train_test_split(X, y, test_size=0.4, random_state=seed)
        detector = ProximityOutlierDetector(contamination=0.05, random_state=seed)
        detector.fit(train, y_train)
        shares.append((detector.predict(test) == -1).mean())
    assert 0.02 < np.mean(shares) < 0.08
    assert (detector.predict(10 * test[:20]) == -1).all()


def test_features_in_any_form(diabetes):
    X, y = (part[:200].copy() for part in diabetes)
    X[3] *= 30
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(10)]).assign(word="same")
    columns = make_column_transformer((StandardScaler(), frame.columns[:10]), remainder="drop")
    piped = make_pipeline(columns, RandomForestRegressor(20, random_state=0))
    gaps = np.where(np.arange(10) == np.arange(200)[:, None] % 17, np.nan, X)
    leaves = ForestProximity.from_leaves(np.arange(400).reshape(200, 2) % 7, y=y)
    for model, table, finds in [
        (piped, frame, True),
        (HistGradientBoostingRegressor(max_iter=5), gaps, True),
        (RandomForestRegressor(20, random_state=0), csr_array(X), True),
        (leaves.forest_, Inside.of(leaves).samples.leaf, False),
    ]:
        prox = ForestProximity(model, "uniform").fit(table, y)
        assert (outlier_scores(prox, X=table).argmax() == 3) == finds
        detector = ProximityOutlierDetector(prox).fit(table, y)
        assert detector.predict(table[3:4])[0] == (-1 if finds else 1)


def test_many_rows_are_compared_with_some(monkeypatch, diabetes):
    X, y = (part.copy() for part in diabetes)
    X[:5] *= 10
    monkeypatch.setattr("leafkernel.tasks._outlying_numbers._MOST_COMPARED", 50)
    prox = ForestProximity(RandomForestRegressor(60, random_state=0)).fit(X, y)
    assert roc_auc_score(np.arange(len(y)) < 5, outlier_scores(prox, X=X)) > 0.97


def test_no_score_runs_away():
    """Regression test: a row without similar rows in its class scored 461,684 (limit 10)."""
    leaves = np.zeros((60, 100), dtype=int)
    leaves[0, 1:] = 1
    leaves[30:40, 1:] = 1
    in_bag = np.random.default_rng(0).integers(0, 2, leaves.shape)
    prox = ForestProximity.from_leaves(leaves, in_bag=in_bag, weight_scheme="gap")
    y = np.where(np.arange(60) < 30, "a", "b")
    scores = outlier_scores(prox, y)
    assert scores[0] == scores.max() > 10
    assert scores.max() < 100


def test_wrong_labels_are_found(iris):
    X, y = iris
    flipped = y.copy()
    wrong = [5, 25, 140]
    flipped[wrong] = [2, 1, 0]
    detector = ProximityOutlierDetector(contamination=0.04, random_state=0)
    labels = detector.fit_predict(X, flipped)
    assert set(wrong) <= set(np.flatnonzero(labels == -1))
    assert (labels == -1).sum() == 6


def test_a_sample_like_none_of_its_class_is_the_largest_outlier():
    leaves = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [5, 5], [5, 5], [5, 6]])
    y = [0, 0, 0, 0, 1, 1, 0]
    prox = ForestProximity.from_leaves(leaves, weight_scheme="kerf", diagonal="zero")
    raw = outlier_scores(prox, y, convention="raw")
    assert raw.argmax() == 6


@pytest.mark.parametrize("scheme", ["uniform", "kerf", "oob_separable", "ih", "gap", "oob"])
def test_flipped_labels_are_outliers_under_every_scheme(scheme):
    """Under "kerf" they were the least of all: AUC 0.03, because each was alone with itself."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    flipped = rng.choice(len(y), 50, replace=False)
    y[flipped] = 1 - y[flipped]
    prox = ForestProximity(RandomForestClassifier(60, random_state=0), scheme).fit(X, y)
    is_flipped = np.isin(np.arange(len(y)), flipped)
    assert roc_auc_score(is_flipped, outlier_scores(prox, y)) > 0.65


@pytest.mark.parametrize("scheme", ["oob", "uniform", "gap", "kerf"])
def test_as_many_new_samples_are_outliers_as_was_asked(scheme):
    """New samples were compared with training samples that have themselves: 20% at 5%."""
    shares = []
    for seed in range(4):
        X, y = load_digits(return_X_y=True)
        train, test, y_train, _ = train_test_split(X, y, train_size=500, random_state=seed)
        forest = RandomForestClassifier(60, random_state=seed)
        detector = ProximityOutlierDetector(ForestProximity(forest, scheme), contamination=0.05)
        shares.append((detector.fit(train, y_train).predict(test[:600]) == -1).mean())
    assert 0.03 < np.mean(shares) < 0.08


def test_scores_of_new_samples_do_not_depend_on_the_others(iris):
    X, y = iris
    detector = ProximityOutlierDetector(random_state=0).fit(X, y)
    new = X[::3] + 0.05
    together = detector.score_samples(new)
    assert_allclose([detector.score_samples(x[None])[0] for x in new], together)
    odd = np.array([[4.3, 4.4, 6.9, 0.1]])
    assert detector.score_samples(odd) < np.median(together)


def test_unsupervised():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 3)), [[9, 9, -9]]])
    detector = ProximityOutlierDetector(random_state=0).fit(X)
    assert detector.score_samples().argmin() == 200
    assert detector.offset_ == -10


def test_errors(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), "uniform").fit(X, y)
    with pytest.raises(ValueError, match="Did you mean 'breiman'"):
        outlier_scores(prox, y, convention="briman")
    with pytest.raises(ValueError, match="y has 3 rows, but there are 150"):
        outlier_scores(prox, y[:3])
    with pytest.raises(ValueError, match="contamination must be 'auto' or a share"):
        ProximityOutlierDetector(prox, contamination=3).fit(X, y)
