"""Rank training rows by their effect on a boosted model, with our methods and others.

Models are small and come from three libraries.
"""

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from leafkernel import ForestProximity
from leafkernel.tasks import AxilAttribution

RATE = 0.1


# Small trees, deep enough for interactions, with all rows in every tree. One thread is enough.
_TREES = {"max_depth": 3, "learning_rate": RATE}
_HIST = {"max_iter": 50, "max_bins": 63, "early_stopping": False, **_TREES}
_LIGHT = {"n_estimators": 50, "num_leaves": 8, "min_child_samples": 5, "max_bin": 63, **_TREES}
_LIGHT |= {"verbose": -1, "n_jobs": 1}
_XGB = {"n_estimators": 50, "max_bin": 64, "n_jobs": 1, **_TREES}
LIBRARIES = {
    "scikit-learn": (HistGradientBoostingClassifier, HistGradientBoostingRegressor, _HIST),
    "LightGBM": (LGBMClassifier, LGBMRegressor, _LIGHT),
    "XGBoost": (XGBClassifier, XGBRegressor, _XGB),
}
# The default L2 regularization, which is added to the sum of second derivatives of a leaf.
L2 = {"scikit-learn": 0.0, "LightGBM": 0.0, "XGBoost": 1.0}


def train(library, X, y, *, numeric):
    classifier, regressor, params = LIBRARIES[library]
    return (regressor if numeric else classifier)(**params).fit(X, y)


def raw_scores(model, X):
    """Return log-odds for classes, or predictions for numbers."""
    if isinstance(model, (LGBMClassifier, LGBMRegressor)):
        return model.predict(X, raw_score=True)
    if isinstance(model, (XGBClassifier, XGBRegressor)):
        return model.predict(X, output_margin=True).astype(np.float64)
    return getattr(model, "decision_function", model.predict)(X)


def derivatives(y, scores, *, numeric):
    """Return the first and second derivatives of squared or logistic loss."""
    if numeric:
        return scores - y, np.ones_like(scores)
    p = expit(scores)
    return p - y, p * (1 - p)


class BoostIn:
    """Influence of training rows as in Brophy, Hammoudeh and Lowd (JMLR 2023), from its formula.

    Training is replayed tree by tree. A leaf holds v = -rate * G / (H + l2), where G and H sum the
    derivatives of its rows. Its derivative with respect to the weight of row i, with the trees and
    all earlier scores fixed, is dv/dw_i = -(rate * g_i + v * h_i) / (H + l2). The influence of
    row i on row x is the sum over trees in which both share a leaf of dv/dw_i times the derivative
    of the loss of x at its score before the tree. A positive influence means that the row lowers
    the loss. With one output, there is no sum over classes.
    """

    def __init__(self, model, library, prox, X, y, *, numeric):
        self.numeric, self.base, self.prox = numeric, prox.base_score_, prox
        self.y, leaf = y, self._leaves(X)
        self.values = np.zeros(leaf.max() + 1)
        scores = np.full(len(y), self.base)
        weights, self.own = np.empty(leaf.shape), np.empty(leaf.shape)
        for t, at in enumerate(leaf.T):
            g, h = derivatives(y, scores, numeric=numeric)
            G, H = (np.bincount(at, d, len(self.values))[at] for d in (g, h))
            v = -RATE * G / (H + L2[library])
            weights[:, t] = -(RATE * g + v * h) / (H + L2[library])
            self.own[:, t] = g
            self.values[at] = v
            scores = scores + v
        off = np.abs(scores - raw_scores(model, X)).max()
        if off > 1e-4 * max(1.0, np.abs(scores).max()):
            raise RuntimeError(f"the replayed training of {library} is off by {off:.2g}")
        self.weights, self.leaf = weights, leaf
        self.map = self._map(leaf, weights)

    def _leaves(self, X):
        """Return the leaf of each row in each tree, in the order of the trees."""
        found = self.prox.query_map(X)
        found.sort_indices()
        return found.indices.reshape(found.shape[0], -1)

    def _map(self, leaf, values):
        """Return a sparse matrix with one row per sample and one column per leaf."""
        ends = np.arange(0, leaf.size + 1, leaf.shape[1])
        return sparse.csr_array(
            (values.ravel(), leaf.ravel(), ends), shape=(len(leaf), len(self.values))
        )

    def on_score(self, X):
        """Return how much each row raises the scores, shape (m, n)."""
        leaf = self._leaves(X)
        return (self._map(leaf, np.ones(leaf.shape)) @ self.map.T).toarray()

    def on_loss(self, X, y):
        """Return how much each row lowers the losses, shape (m, n)."""
        leaf = self._leaves(X)
        return -(self._map(leaf, self._loss_slopes(leaf, y)) @ self.map.T).toarray()

    def on_losses(self, X, y):
        """Return how much each row lowers the sum of all losses, shape (n,)."""
        leaf = self._leaves(X)
        return -(self.map @ self._map(leaf, self._loss_slopes(leaf, y)).sum(axis=0))

    def on_itself(self):
        """Return how much each row lowers its own loss, shape (n,)."""
        return -(self.own * self.weights).sum(axis=1)

    def _loss_slopes(self, leaf, y):
        """Return the derivative of the loss of each row before each tree, shape (m, T)."""
        added = self.values[leaf]
        scores = self.base + np.cumsum(added, axis=1) - added
        return derivatives(np.asarray(y)[:, None], scores, numeric=self.numeric)[0]


def fitted(model, X, y):
    """Return the proximities of a model: {scheme: proximity}."""
    first = ForestProximity(model, "gradient", dtype=np.float64, n_jobs=1).fit(X, y)
    return {"gradient": first} | {
        scheme: ForestProximity(model, scheme, dtype=np.float64, n_jobs=1).fit(X, y)
        for scheme in ("uniform", "boosted")
    }


def pushes(library, model, known, X_new, rng):
    """Return {method: effect of each training row on the scores of new rows, shape (m, n)}.

    Effects are signed: positive means toward the predicted class, or away from the mean. The rows
    with the largest effects are removed first.
    """
    X, y, numeric = known.X, known.y, known.numeric
    proxes = fitted(model, X, y)
    gradient = proxes["gradient"]
    scores = raw_scores(model, X_new)
    toward = np.where(scores - (gradient.base_score_ if numeric else 0.0) >= 0, 1.0, -1.0)[:, None]
    # A row raises the score if its label is 1 or its target is above the mean.
    side = (y - y.mean() if numeric else 2.0 * y - 1.0) * toward
    boostin = BoostIn(model, library, gradient, X, y, numeric=numeric)
    scaler = StandardScaler().fit(X)
    far = cdist(scaler.transform(X_new), scaler.transform(X))
    drawn = rng.random(side.shape)
    found = {"gradient": toward * gradient.proximity(X_new).toarray()}
    found["boostin_score"] = toward * boostin.on_score(X_new)
    if numeric:
        found["axil"] = AxilAttribution(gradient).weights(X_new) * side
    else:
        found["boostin"] = boostin.on_loss(X_new, (toward[:, 0] > 0).astype(float))
    for scheme in ("uniform", "boosted"):
        found[scheme] = proxes[scheme].proximity(X_new).toarray() * side
    found["features"] = np.where(side > 0, -far, -np.inf)
    found["random_side"] = np.where(side > 0, drawn, -1.0)
    found["random"] = rng.random(side.shape)
    return toward[:, 0], found
