"""Hypothesis strategies for whole data sets and forests, corner cases included."""

import warnings
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)


@dataclass
class Case:
    """A fitted forest with its training data and some new samples."""

    forest: object
    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray

    def __repr__(self):
        return f"Case({self.forest}, X={self.X.shape}, y={self.y.tolist()})"


def _data(draw, *, classes):
    n_samples = draw(st.integers(1, 25))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    # Few distinct values: ties, duplicate rows, and leaves with many samples.
    X = rng.integers(0, draw(st.sampled_from([2, 5, 50])), size=(n_samples, 3)).astype(float)
    n_classes = draw(st.sampled_from([1, 2, 3, 20]))  # 1: constant y
    y = rng.integers(0, n_classes, n_samples) if classes else rng.normal(size=n_samples)
    if not classes and n_classes == 1:
        y = np.zeros(n_samples)
    return X, y, rng.integers(0, 6, size=(5, 3)).astype(float), seed


@st.composite
def bootstrapped(draw, *, classes=None):
    """A forest with bootstrap: few trees, so that some rows are in bag in all of them."""
    classes = draw(st.booleans()) if classes is None else classes
    X, y, X_new, seed = _data(draw, classes=classes)
    kinds = (
        [RandomForestClassifier, ExtraTreesClassifier]
        if classes
        else [RandomForestRegressor, ExtraTreesRegressor]
    )
    forest = draw(st.sampled_from(kinds))(
        n_estimators=draw(st.sampled_from([1, 2, 7, 70])),
        max_depth=draw(st.sampled_from([None, 1, 3])),
        min_samples_leaf=draw(st.sampled_from([1, 4, 30])),  # 30: trees of a single leaf
        max_samples=draw(st.sampled_from([None, 1, 0.5])),
        bootstrap=True,
        random_state=seed,
    )
    with warnings.catch_warnings():  # scikit-learn warns of very small bootstraps
        warnings.simplefilter("ignore", UserWarning)
        forest.fit(X, y)
    return Case(forest, X, y, X_new)


@st.composite
def boosted(draw):
    X, y, X_new, seed = _data(draw, classes=False)
    forest = GradientBoostingRegressor(
        n_estimators=draw(st.integers(1, 6)),
        max_depth=draw(st.sampled_from([1, 3])),
        random_state=seed,
    )
    return Case(forest.fit(X, y), X, y, X_new)


@st.composite
def on_some_features(draw):
    """An ensemble whose trees may see few features, or a single feature."""
    X, y, X_new, seed = _data(draw, classes=False)
    columns = draw(st.integers(1, 3))
    kind = draw(st.sampled_from([BaggingClassifier, BaggingRegressor, IsolationForest, None]))
    if kind is None:
        forest = AdaBoostRegressor(n_estimators=4, random_state=seed)
    else:
        share = draw(st.sampled_from([1, 0.5, 1.0]))
        forest = kind(n_estimators=4, max_features=share, random_state=seed)
    y = (y > 0).astype(int) if kind is BaggingClassifier else y
    return Case(forest.fit(X[:, :columns], y), X[:, :columns], y, X_new[:, :columns])
