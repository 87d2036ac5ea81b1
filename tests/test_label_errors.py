"""Labels that were flipped on purpose are found, and the estimates hold on average."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

from leafkernel import ForestProximity
from leafkernel.tasks import find_label_errors

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}


def flipped(load, seed=0, share=0.1):
    X, y = load(return_X_y=True)
    X, y = X[:600], y[:600].copy()
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), int(share * len(y)), replace=False)
    n_classes = y.max() + 1
    y[rows] = (y[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
    return X, y, np.isin(np.arange(len(y)), rows)


@pytest.mark.parametrize("scheme", ["gap", "uniform", "kerf", "oob", "oob_separable", "ih"])
@pytest.mark.parametrize("name", ["wine", "breast cancer"])
def test_every_scheme_ranks_as_well_as_the_forest(name, scheme):
    X, y, wrong = flipped(DATA[name])
    forest = RandomForestClassifier(100, oob_score=True, random_state=0).fit(X, y)
    found = find_label_errors(ForestProximity(forest, scheme).fit(X, y), y)
    of_forest = 1 - forest.oob_decision_function_[np.arange(len(y)), y]
    assert roc_auc_score(wrong, found.scores) > roc_auc_score(wrong, of_forest) - 0.02
    if scheme == "gap":
        assert_allclose(found.scores, of_forest, atol=1e-6)


@pytest.mark.parametrize("scheme", ["gap", "uniform", "kerf", "oob", "ih"])
@pytest.mark.parametrize("diagonal", ["scheme", "one"])
def test_scores_are_shares_of_the_other_rows(scheme, diagonal):
    """No row supports its own label."""
    X, y, _ = flipped(load_iris)
    forest = RandomForestClassifier(60, random_state=0)
    prox = ForestProximity(forest, scheme, diagonal=diagonal, dtype=np.float64).fit(X, y)
    P = prox.proximity().toarray()
    np.fill_diagonal(P, 0)
    same = y[:, None] == y[None]
    expected = 1 - (P * same).sum(axis=1) / P.sum(axis=1)
    assert_allclose(find_label_errors(prox, y).scores, expected, atol=1e-9)


def test_the_estimate_of_false_discoveries_holds_on_average():
    stated, true = [], []
    for load in DATA.values():
        for seed in range(3):
            X, y, wrong = flipped(load, seed)
            forest = RandomForestClassifier(100, random_state=seed)
            found = find_label_errors(ForestProximity(forest).fit(X, y), y)
            stated.append(found.false_discovery_rate)
            true.append(1 - wrong[found.rows].mean())
            assert found.false_discovery_rate <= 0.3
            assert 0.3 * wrong.sum() < found.expected_errors < 2 * wrong.sum()
    assert abs(np.mean(stated) - np.mean(true)) < 0.1


def test_what_is_reported():
    X, y, wrong = flipped(load_wine)
    names = np.array(["red", "rose", "white"])[y]
    prox = ForestProximity(RandomForestClassifier(200, random_state=0)).fit(X, names)
    found = find_label_errors(prox, names)
    assert wrong[found.rows].sum() > 0.9 * wrong.sum()
    assert (np.diff(found.scores[found.rows]) <= 0).all()
    assert found.scores[found.rows].min() == found.threshold
    assert ((found.probabilities >= 0) & (found.probabilities <= 1)).all()
    assert (found.labels != found.suggested).all()
    table = found.to_frame()
    assert table.index.tolist() == found.rows.tolist()
    assert table["label"].tolist() == names[found.rows].tolist()
    assert "labels look wrong. About" in str(found)
    assert f"row {found.rows[0]}: label {found.labels[0]}, but " in str(found)
    fewer = find_label_errors(prox, names, false_discovery_rate=0.05)
    assert len(fewer.rows) < len(found.rows)


def test_labels_that_similar_rows_support_are_not_reported():
    """Regression test: it reported labels that nearly all similar rows support, to reach a rate."""
    X, y, wrong = flipped(load_breast_cancer)
    prox = ForestProximity(RandomForestClassifier(100, random_state=0)).fit(X, y)
    found = find_label_errors(prox, false_discovery_rate=0.6)
    assert (found.scores[found.rows] > 0.5).all()
    assert wrong[found.rows].mean() > 0.5


def test_clean_labels_and_models_without_draws():
    X, y = load_iris(return_X_y=True)
    prox = ForestProximity(GradientBoostingClassifier(n_estimators=10, random_state=0), "uniform")
    found = find_label_errors(prox.fit(X, y), y, false_discovery_rate=0.01)
    assert len(found.rows) < 8
    assert str(find_label_errors(prox, y > 0, false_discovery_rate=1e-9)) == (
        "None of the 150 labels looks wrong."
    )


def test_errors(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), "kerf").fit(X, y)
    with pytest.raises(ValueError, match="false_discovery_rate must be a number between 0 and 1"):
        find_label_errors(prox, y, false_discovery_rate=2)
    with pytest.raises(ValueError, match="at least two classes"):
        find_label_errors(prox, np.zeros(150, dtype=int))
    with pytest.raises(ValueError, match="y has 3 rows"):
        find_label_errors(prox, y[:3])
