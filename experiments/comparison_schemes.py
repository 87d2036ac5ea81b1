"""The ensembles and the weight schemes of the comparison.

To add a scheme, add a line to `SCHEMES` and run the experiment again. Stored cells of other schemes
are kept.
"""

from collections.abc import Callable
from typing import NamedTuple

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel.schemes import Collapsed, PathDecay

# The smallest leaves of collapsed trees.
LARGER_LEAVES = 5
FORESTS, BOOSTED = ("RF", "ET"), ("XGB",)
ENSEMBLES = (*FORESTS, *BOOSTED)


class Scheme(NamedTuple):
    """How to make a scheme, the ensembles it supports, and whether it needs classes.

    Signed weights are contributions to a score and not similarities: they only predict.
    """

    make: Callable
    ensembles: tuple = ENSEMBLES
    needs_classes: bool = False
    signed: bool = False


SCHEMES = {
    "uniform": Scheme(lambda: "uniform"),
    "kerf": Scheme(lambda: "kerf"),
    "gap": Scheme(lambda: "gap", FORESTS),
    "oob": Scheme(lambda: "oob", FORESTS),
    "oob_separable": Scheme(lambda: "oob_separable", FORESTS),
    "boosted": Scheme(lambda: "boosted", BOOSTED),
    "ih": Scheme(lambda: "ih", needs_classes=True),
    "gradient": Scheme(lambda: "gradient", BOOSTED, signed=True),
    "purity": Scheme(lambda: "purity"),
    "learned": Scheme(lambda: "learned"),
    "pbk": Scheme(lambda: "pbk"),
    "pbk_slow": Scheme(lambda: PathDecay(0.25)),
    "rpk": Scheme(lambda: "rpk"),
    "collapsed_uniform": Scheme(lambda: Collapsed("uniform", min_samples=LARGER_LEAVES)),
    "collapsed_kerf": Scheme(lambda: Collapsed("kerf", min_samples=LARGER_LEAVES)),
    "collapsed_gap": Scheme(lambda: Collapsed("gap", min_samples=LARGER_LEAVES), FORESTS),
}
# Baselines: the prediction of the ensemble, and the Euclidean distance of standardized features.
MODEL, FEATURES = "model", "features"
LABELS = {MODEL: "the ensemble itself", FEATURES: "Euclidean distance"}
# The ensemble of a cell that needs none.
NONE = "none"


def label(method):
    """Return the name of a scheme as `weight_scheme` takes it, or a baseline in words."""
    return LABELS.get(method, method)


def schemes_of(ensemble, *, numeric):
    """Return the names of the schemes that support an ensemble and a kind of targets."""
    return [
        name
        for name, scheme in SCHEMES.items()
        if ensemble in scheme.ensembles and not (numeric and scheme.needs_classes)
    ]


def train(ensemble, X, y, seed, *, numeric, n_trees=100):
    """Return a fitted ensemble (with trees for each class, if boosted), or None for `NONE`."""
    return None if ensemble == NONE else make(ensemble, seed, n_trees, numeric=numeric).fit(X, y)


def make(ensemble, seed, n_trees, *, numeric):
    """Return an ensemble with default settings, but with bootstrap samples for extra trees."""
    if ensemble == "XGB":
        import xgboost  # noqa: PLC0415

        kind = xgboost.XGBRegressor if numeric else xgboost.XGBClassifier
        return kind(n_estimators=n_trees, n_jobs=1, random_state=seed)
    kinds = {
        "RF": (RandomForestClassifier, RandomForestRegressor),
        "ET": (ExtraTreesClassifier, ExtraTreesRegressor),
    }
    options = {"n_estimators": n_trees, "bootstrap": True, "oob_score": True, "random_state": seed}
    return kinds[ensemble][int(numeric)](**options)
