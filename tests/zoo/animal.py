"""The interface of each kind of forest, and the training data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_iris

SCHEMES = ("uniform", "kerf", "gap", "oob", "oob_separable", "boosted", "ih")
NO_DRAWS = "has none|is one tree|does not store"
ALL_ALIKE = "averages its trees|is one tree"
NO_LABELS = "needs class labels"
Array = np.ndarray


def iris():
    """60 flowers, 20 of each kind."""
    X, y = load_iris(return_X_y=True)
    rows = np.concatenate([np.arange(k, k + 20) for k in (0, 50, 100)])
    return X[rows], y[rows]


def two_kinds():
    X, y = iris()
    return X[20:], y[20:] - 1


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:60], y[:60]


def survival():
    from sksurv.util import Surv

    X, y = diabetes()
    return X, Surv.from_arrays(np.arange(60) % 3 > 0, y)


def ranking():
    X, y = iris()
    return X, y, {"group": [30, 30]}


@dataclass(frozen=True)
class Animal:
    """A kind of forest.

    `leaves(model, X)` are ids of any kind, shape (n, T); `in_bag(model, n)` the weights that its
    trees were trained with, or None; `adds(model, X)` the contribution of each tree, shape
    (n, T) or (n, T, n_outputs), or None if trees are averaged; `paths(model, X)(t, i)` the
    features on the path of sample i in tree t.
    """

    name: str
    make: Callable[[], Any]
    data: Callable[[], tuple]
    leaves: Callable[[Any, Array], Array]
    in_bag: Callable[[Any, int], Array] | None = None
    adds: Callable[[Any, Array], Array] | None = None
    paths: Callable[[Any, Array], Callable] | None = None
    tree_weights: Callable[[Any], Array] | None = None
    seen: Callable[[Any, Array], Array] = lambda model, X: X
    labels: bool = True
    library: str = "scikit-learn"

    def fitted(self):
        X, y, *more = self.data()
        return fit(self.make(), X, y, **(more[0] if more else {})), X, y

    def weights(self, model, X):
        """The weight of each tree in the model, or None."""
        if self.tree_weights is not None:
            return self.tree_weights(model)
        if self.adds is None:
            return None
        adds = self.adds(model, X)
        return adds.reshape(*adds.shape[:2], -1).var(axis=0).sum(axis=1)

    def refusal(self, scheme):
        """The error message if a scheme is not supported, or None."""
        if scheme in ("gap", "oob", "oob_separable") and self.in_bag is None:
            return NO_DRAWS
        if scheme == "boosted" and self.adds is None and self.tree_weights is None:
            return ALL_ALIKE
        if scheme == "ih" and not self.labels:
            return NO_LABELS
        return None


def fit(model, X, y, **more):
    return model.fit(X, y, **more) if hasattr(model, "fit") else model(X, y)


def climb(parents, features):
    """The features above a node: parents and features are dictionaries by node."""

    def above(node):
        found = set()
        while isinstance(parents.get(node), (int, str)):  # pandas uses NaN for missing values
            node = parents[node]
            found.add(int(features[node]))
        return sorted(found)

    return above
