"""Prototypes: R's class centers, the greedy choice against a slow one, medoids, the classifier."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.tasks import (
    PrototypeClassifier,
    class_prototypes,
    medoids,
    select_prototypes,
)

SCHEMES = ["uniform", "kerf", "gap", "oob", "oob_separable"]


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def fitted(X, y, scheme, **params):
    forest = RandomForestClassifier(40, random_state=0)
    return ForestProximity(forest, scheme, dtype=np.float64, **params).fit(X, y)


def test_centers_equal_those_of_r(iris):
    """R draws one of the tied cases at random: its center is that of one of them."""
    with np.load(Path(__file__).parent / "data" / "r_iris.npz") as file:
        r = dict(file)
    rows = np.linspace(1, 150, 60).astype(int) - 1  # as R's seq gives and indexes them
    X, y = iris[0][rows], iris[1][rows]
    prox = ForestProximity.from_leaves(r["leaves"], dtype=np.float64)
    P = prox.proximity().toarray()
    k = np.bincount(y).min() - 1
    ours = class_prototypes(prox, X, y, n_neighbors=int(k))
    nearest = np.argsort(-P, axis=1, kind="stable")[:, :k]
    for c in range(3):
        of_class = y[nearest] == c
        counts = of_class.sum(axis=1)
        tied = np.flatnonzero(counts == counts.max())
        centers = [np.median(X[nearest[i][of_class[i]]], axis=0) for i in tied]
        assert np.abs(np.array(centers) - r["class_center"][c]).max(axis=1).min() < 1e-10
        assert ours.cases[c] in tied
        assert_allclose(ours.median[c], centers[list(tied).index(ours.cases[c])])


def test_quartiles_and_names(iris):
    X, y = iris
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    prox = fitted(X, y, "uniform")
    found = class_prototypes(prox, pd.DataFrame(X, columns=names), y, n_neighbors=20)
    for c in range(3):
        members = found.neighbors[c]
        assert (y[members] == c).all()
        assert found.cases[c] in members
        expected = np.quantile(X[members], [0.25, 0.5, 0.75], axis=0)
        assert_allclose([found.lower[c], found.median[c], found.upper[c]], expected)
    frame = found.to_frame()
    assert list(frame["feature"][:4]) == names
    assert len(frame) == 12
    alone = class_prototypes(prox, X, y, n_neighbors=1)
    assert_array_equal(alone.median, X[alone.cases])


def assert_greedy(P, y, found, k):
    """Evaluate every candidate at every choice: none would have gained more."""
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        chosen = found.rows[found.labels == label]
        assert len(chosen) == len(set(chosen.tolist())) == min(k, len(members))
        nearest = np.zeros(len(members))
        for row, gain in zip(chosen, found.gains[found.labels == label], strict=True):
            gains = np.maximum(P[np.ix_(members, members)] - nearest[:, None], 0).sum(axis=0)
            assert_allclose(gain, gains[members == row][0], atol=1e-12)
            assert_allclose(gain, gains.max(), atol=1e-12)
            nearest = np.maximum(nearest, P[members, row])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_lazy_choice_is_a_greedy_one(wine, scheme):
    X, y = wine
    prox = fitted(X, y, scheme)
    found = select_prototypes(prox, y, n_prototypes=6)
    P = prox.proximity().toarray()
    if scheme not in ("uniform", "oob"):  # no row represents itself more than others do
        np.fill_diagonal(P, 0)
    assert_greedy(P, y, found, 6)


@given(
    st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=25),
    st.integers(0, 9),
    st.integers(1, 6),
)
def test_lazy_choice_on_any_leaves(leaves, seed, k):
    y = np.random.default_rng(seed).integers(0, 3, len(leaves))
    prox = ForestProximity.from_leaves(leaves, dtype=np.float64)
    found = select_prototypes(prox, y, n_prototypes=k)
    assert_greedy(prox.proximity().toarray(), y, found, k)


@pytest.mark.parametrize("scheme", ["uniform", "gap", "kerf"])
def test_number_adapts_to_each_class(wine, scheme):
    X, y = wine
    found = select_prototypes(fitted(X, y, scheme), y, min_gain=0.04)
    counts = np.bincount(found.labels)
    assert len(set(counts.tolist())) > 1
    assert counts.max() < 40
    for c in range(3):
        gains = found.gains[found.labels == c]
        assert (gains[1:] >= 0.04 * np.cumsum(gains)[:-1]).all()
        assert (np.diff(gains) <= 1e-9).all()


def test_all_samples_cover_all(wine):
    X, y = wine
    everything = select_prototypes(fitted(X, y, "uniform"), y, n_prototypes=500)
    assert len(everything.rows) == len(y)
    assert_allclose(list(everything.coverage.values()), 1)


def test_neighbors_of_no_proximity_are_none():
    leaves = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [2, 2]])
    prox = ForestProximity.from_leaves(leaves)
    found = class_prototypes(prox, np.arange(5.0)[:, None], [0, 0, 1, 1, 1], n_neighbors=4)
    assert [sorted(rows.tolist()) for rows in found.neighbors] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("scheme", ["uniform", "gap", "oob"])
def test_medoids_are_what_a_class_is_most_similar_to(wine, scheme):
    X, y = wine
    prox = fitted(X, y, scheme)
    P = prox.proximity().toarray()
    names = np.array(["a", "b", "c"])[y]
    for c, (label, row) in enumerate(medoids(prox, names).items()):
        members = np.flatnonzero(y == c)
        assert label == "abc"[c]
        assert row == members[P[np.ix_(members, members)].sum(axis=0).argmax()]


def test_classifier_takes_the_nearest_prototype(wine):
    X, y = wine
    model = PrototypeClassifier(n_prototypes=3, random_state=0).fit(X[::2], y[::2])
    P = model.proximity_.proximity(X[1::2]).toarray()[:, model.prototypes_.rows]
    expected = model.prototypes_.labels[P.argmax(axis=1)]
    assert_array_equal(model.predict(X[1::2]), expected)
    assert model.score(X[1::2], y[1::2]) > 0.9


def test_a_sample_like_no_prototype_gets_the_commonest_class():
    leaves = [[0, 0], [0, 0], [1, 1]]
    prox = ForestProximity.from_leaves(leaves)
    model = PrototypeClassifier(prox).fit(leaves, ["b", "b", "a"])
    assert_array_equal(model.predict([[9, 9], [1, 1]]), ["b", "a"])


def test_errors(wine):
    X, y = wine
    prox = fitted(X, y, "uniform")
    with pytest.raises(ValueError, match="numeric features"):
        class_prototypes(prox, np.array([["red"]] * len(y)), y)
    with pytest.raises(ValueError, match="X has 5 rows, but there are 178"):
        class_prototypes(prox, X[:5], y)
    with pytest.raises(ValueError, match="min_gain must be a number between 0 and 1"):
        select_prototypes(prox, y, min_gain=2)
    with pytest.raises(TypeError, match="must be an integer"):
        select_prototypes(prox, y, n_prototypes=2.5)
