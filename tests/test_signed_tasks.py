"""Every task with a signed kernel: a meaningful result, or an error with an alternative."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from leafkernel import ForestProximity, plots, tasks
from leafkernel.schemes import Gradient

# Tasks that accept contributions.
EXACT = {"AxilAttribution", "explain_prediction", "plot_contributions"}
# Classes of results, which take no proximity.
RESULTS = {
    "Calibration",
    "ClassPrototypes",
    "LabelErrors",
    "LargestWeights",
    "PairExplanation",
    "Partings",
    "PredictionExplanation",
    "Prototypes",
    "ScoreExplanation",
}
CALLS = {
    "AxilAttribution": lambda f, prox, X, y: f(prox),
    "ForestKernel": lambda f, prox, X, y: f(prox)(X),
    "class_prototypes": lambda f, prox, X, y: f(prox, X, y > 0),
    "explain_pair": lambda f, prox, X, y: f(prox, 0, 1),
    "explain_prediction": lambda f, prox, X, y: f(prox, X[0]),
    "find_label_errors": lambda f, prox, X, y: f(prox, y > 0),
    "local_importance": lambda f, prox, X, y: f(prox, X[:2]),
    "medoids": lambda f, prox, X, y: f(prox, y > 0),
    "outlier_scores": lambda f, prox, X, y: f(prox, y > 0),
    "select_prototypes": lambda f, prox, X, y: f(prox, y > 0),
    "trust_scores": lambda f, prox, X, y: f(prox, X[:2], y=y > 0),
    "plot_contributions": lambda f, prox, X, y: f(prox, X[0]),
    "plot_neighbors": lambda f, prox, X, y: f(prox, X, row=0),
    "plot_proximity": lambda f, prox, X, y: f(prox),
}


@pytest.fixture(scope="module")
def fitted():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1).fit(X, y)
    return ForestProximity(model, "gradient").fit(X, y), X, y


def call(name, prox, X, y):
    what = getattr(tasks, name, None) or getattr(plots, name)
    if name in CALLS:
        return CALLS[name](what, prox, X, y)
    classes = "Classifier" in name
    return what(prox).fit(X, y > 0 if classes else y)


@pytest.mark.parametrize("name", sorted({*tasks.__all__} - RESULTS | {*CALLS}))
def test_signed_kernels(fitted, name):
    prox, X, y = fitted
    if name in EXACT:
        assert call(name, prox, X, y) is not None
        return
    with pytest.raises(ValueError, match=r"can be negative") as error:
        call(name, prox, X, y)
    assert str(error.value).startswith("weight_scheme=")
    assert f"cannot be used with {name}" in str(error.value)
    assert "reweigh('boosted')" in str(error.value)


@pytest.mark.parametrize(
    "name", [name for name in tasks.__all__ if isinstance(getattr(tasks, name), type)]
)
def test_unfitted_proximities_are_refused_before_they_are_fitted(fitted, name):
    _, X, y = fitted
    task = getattr(tasks, name)
    if not issubclass(task, BaseEstimator):
        return
    with pytest.raises(ValueError, match=f"cannot be used with {name}"):
        task("gradient").fit(X, y > 0)
    with pytest.raises(ValueError, match=f"cannot be used with {name}"):
        task(ForestProximity(None, Gradient())).fit(X, y > 0)


def test_the_alternative_works(fitted):
    prox, X, y = fitted
    assert tasks.medoids(prox.reweigh("boosted"), y > 0)
    assert len(tasks.outlier_scores(prox.reweigh("kerf"), y, X=X)) == len(X)
