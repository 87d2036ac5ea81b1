"""Any object with a method ``leaves(X)`` is a forest."""

import numpy as np
import oracles
import pytest
import zoo
from numpy.testing import assert_allclose

from leafkernel import ForestProximity

pytestmark = pytest.mark.filterwarnings("ignore:.*training samples are in bag in every tree")


class Centers:
    """A small forest: a tree draws random centers, and a leaf is the region nearest to one."""

    def __init__(self, n_trees=15, n_leaves=6):
        self.n_trees, self.n_leaves = n_trees, n_leaves

    def get_params(self, *, deep=True):
        return {"n_trees": self.n_trees, "n_leaves": self.n_leaves}

    def fit(self, X, y=None):
        rng = np.random.default_rng(0)
        self.drawn_ = [
            rng.choice(len(X), self.n_leaves, replace=False) for _ in range(self.n_trees)
        ]
        self.centers_ = [np.asarray(X)[rows] for rows in self.drawn_]
        return self

    def leaves(self, X):
        gaps = [np.linalg.norm(np.asarray(X)[:, None] - c, axis=2) for c in self.centers_]
        return np.stack([gap.argmin(axis=1) * 10 for gap in gaps], axis=1)


class TellingCenters(Centers):
    def in_bag(self, X, y):
        return np.stack([np.isin(np.arange(len(X)), rows) for rows in self.drawn_], axis=1)

    def tree_weights(self):
        return np.arange(self.n_trees)

    def path_features(self, tree, leaf):
        return [tree % 3, leaf // 10 % 2, 0]


def test_a_forest_of_ones_own():
    X, y = zoo.iris()
    prox = ForestProximity(Centers(), "uniform", dtype=np.float64).fit(X, y)
    leaf = prox.forest_.leaves(X)
    assert_allclose(prox.proximity().toarray(), oracles.shares(leaf))
    assert_allclose(prox.proximity(X[:7]).toarray(), oracles.shares(leaf)[:7])
    again = ForestProximity(prox.forest_, "kerf").fit(X)  # fitted: used as it is
    assert again.forest_ is prox.forest_
    for scheme, lacks in (("gap", "in_bag"), ("boosted", "tree_weights"), ("ih", "path_features")):
        with pytest.raises(ValueError, match=f"Centers has no method '{lacks}'"):
            ForestProximity(Centers(), scheme).fit(X, y)


@pytest.mark.parametrize("scheme", zoo.SCHEMES)
def test_a_forest_of_ones_own_in_every_scheme(scheme):
    X, y = zoo.iris()
    prox = ForestProximity(TellingCenters(), scheme, dtype=np.float64).fit(X, y)
    model = prox.forest_
    leaf, in_bag = model.leaves(X), model.in_bag(X, y).astype(float)
    training = oracles.Side(leaf, in_bag, in_bag == 0)

    def path(t, i):
        return sorted(set(model.path_features(t, leaf[i, t])))

    if scheme == "ih":
        training.easiness = 1 - oracles.disagreeing_neighbors(X, y, leaf, path, 5, "all")
    expected = oracles.proximity(scheme, training, training, training, model.tree_weights())
    assert_allclose(prox.proximity().toarray(), expected, rtol=1e-9, atol=1e-12)


def test_leaves_that_training_never_saw_are_like_nothing():
    X, y = zoo.iris()
    prox = ForestProximity(Centers(), "uniform").fit(X, y)
    model = prox.forest_
    model.leaves = lambda X: np.full((len(X), 15), 999)
    assert prox.proximity(X[:3]).nnz == 0


def test_a_forest_of_ones_own_is_checked():
    X, y = zoo.iris()

    class ThreeRows:
        def leaves(self, X):
            return np.zeros((3, 2), dtype=int)

    with pytest.raises(ValueError, match="returned 3 rows, but X has 60 samples"):
        ForestProximity(ThreeRows(), "uniform").fit(X)

    class Lost(Centers):
        def path_features(self, tree, leaf):
            return [-1]

    with pytest.raises(ValueError, match="from 0 to 3"):
        ForestProximity(Lost(), "ih").fit(X, y)


def test_an_object_that_answers_to_any_name_is_no_forest():
    class Anything:
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    with pytest.raises(TypeError, match="forest must be a tree ensemble"):
        ForestProximity(Anything(), "uniform").fit([[1.0], [2.0]])
