"""Routes samples through trees by their reported splits, one at a time."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from leafkernel import ForestProximity

SCHEMES = ["gap", "uniform", "kerf", "oob", "oob_separable"]


def small(kind=RandomForestRegressor, scheme="gap", n_trees=12, **settings):
    X, y = load_diabetes(return_X_y=True)
    forest = kind(n_trees, max_leaf_nodes=12, random_state=0)
    return ForestProximity(forest, scheme, dtype=np.float64, **settings).fit(X[:90], y[:90])


def walk(tree, x):
    """The nodes from the root to the leaf of one sample, by the reported splits."""
    node, path = 0, [0]
    while tree.children_left[node] >= 0:
        value = float(x[tree.feature[node]])
        missing_left = tree.missing_go_to_left[node]
        to_left = missing_left if np.isnan(value) else value <= tree.threshold[node]
        node = tree.children_left[node] if to_left else tree.children_right[node]
        path.append(int(node))
    return path
