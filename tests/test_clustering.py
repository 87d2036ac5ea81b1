"""Clusters from a forest's similarity, and of new samples."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import adjusted_rand_score

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.tasks import ProximityHDBSCAN, ProximityKMedoids, ProximitySpectralClustering

GROUPS = [
    ProximityKMedoids(n_clusters=3, random_state=0),
    ProximitySpectralClustering(n_clusters=3, random_state=0),
    ProximityHDBSCAN(min_cluster_size=15, random_state=0),
]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("model", GROUPS, ids=lambda model: type(model).__name__)
def test_classes_that_the_forest_knows_are_found(wine, model):
    X, y = wine
    model.fit(X[:120], y[:120])
    assert adjusted_rand_score(y[:120], model.labels_) > 0.8
    assert adjusted_rand_score(y[120:], model.predict(X[120:])) > 0.8


def test_medoids_can_be_moved_no_more(wine):
    X, y = wine
    prox = ForestProximity(RandomForestClassifier(40, random_state=0), "uniform").fit(X, y)
    model = ProximityKMedoids(prox, n_clusters=6).fit(X, y)
    P = prox.proximity().toarray()
    assert_array_equal(model.labels_[model.medoids_], np.arange(6))
    near = P[:, model.medoids_]
    clear = near.max(axis=1) > 0
    clear[model.medoids_] = False
    assert_array_equal(model.labels_[clear], near.argmax(axis=1)[clear])
    for c, medoid in enumerate(model.medoids_):
        members = np.flatnonzero(model.labels_ == c)
        sums = P[np.ix_(members, members)].sum(axis=0)
        assert np.isclose(sums[members.tolist().index(medoid)], sums.max())


def test_samples_without_a_medoid_follow_their_like():
    # 3 is like 2 alone, which is like the medoid 1.
    leaves = [[0, 0, 0], [0, 0, 1], [0, 1, 1], [2, 1, 2], [5, 5, 5], [5, 5, 6]]
    model = ProximityKMedoids(ForestProximity.from_leaves(leaves), n_clusters=2).fit(leaves)
    assert len(set(model.labels_[:4])) == 1
    assert model.labels_[4] == model.labels_[5] != model.labels_[0]
    assert_array_equal(model.predict([[9, 9, 9], [5, 9, 9]]), [-1, model.labels_[4]])


def test_samples_like_none_go_to_the_largest_cluster():
    leaves = [[0, 0], [0, 0], [0, 1], [5, 5], [7, 7], [8, 8]]
    prox = ForestProximity.from_leaves(leaves)
    with pytest.warns(LeafkernelWarning, match="2 of 6 samples have no proximity to any"):
        model = ProximityKMedoids(prox, n_clusters=2).fit(leaves)
    assert (model.labels_ == model.labels_[0]).sum() == 5


def test_noise_and_groups_far_apart():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 30)
    leaves = np.column_stack([groups * 10 + rng.integers(0, 2, 60) for _ in range(20)])
    stray = np.arange(100, 120)[None] + 0 * leaves[:1]
    leaves = np.vstack([leaves, stray])
    model = ProximityHDBSCAN(ForestProximity.from_leaves(leaves), min_cluster_size=8)
    model.fit(leaves)
    assert model.labels_[-1] == -1
    assert adjusted_rand_score(groups, model.labels_[:60]) == 1
    assert_array_equal(model.predict(leaves[[0, 59]]), model.labels_[[0, 59]])
    assert_array_equal(model.predict(np.full((1, 20), 999)), [-1])


def test_errors(wine):
    X, y = wine
    with pytest.raises(
        ValueError, match="n_clusters=500 is too large: there are only n_samples=178"
    ):
        ProximityKMedoids(n_clusters=500, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="min_cluster_size must be at least 2"):
        ProximityHDBSCAN(min_cluster_size=1, random_state=0).fit(X, y)
