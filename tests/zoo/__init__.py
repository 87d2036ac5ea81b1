"""Forests of every installed library, each with the results of its own library.

Nothing here uses leafkernel: leaves, draws and contributions come from the libraries' own methods,
for comparison with leafkernel.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec

# Old versions of these warn while they are imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for library in ("lightgbm", "xgboost", "catboost", "imblearn", "sksurv", "quantile_forest"):
        if find_spec(library):
            import_module(library)

from zoo.animal import SCHEMES, Animal, diabetes, iris, survival
from zoo.boosting import catboost, lightgbm, xgboost
from zoo.scikit_learn import SAMME, paths_of_members, scikit_learn, subclasses

__all__ = [
    "ANIMALS",
    "SAMME",
    "SCHEMES",
    "Animal",
    "diabetes",
    "iris",
    "paths_of_members",
    "survival",
]

ANIMALS = [*scikit_learn(), *subclasses(), *lightgbm(), *xgboost(), *catboost()]
