"""Small problems for boosted models: random samples of real data sets, split at random.

Data sets come from scikit-learn, or from a folder as NAME.npz with arrays X and y. Missing data
sets are skipped.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split

# The number of rows to use, and the share of them that is held out.
MOST_ROWS, HELD_OUT = 600, 0.2


class Problem(NamedTuple):
    """Training rows, held-out rows, and whether targets are numbers (in standard deviations)."""

    X: np.ndarray
    y: np.ndarray
    X_held: np.ndarray
    y_held: np.ndarray
    numeric: bool


class Source(NamedTuple):
    """Where a data set comes from, which labels are class 1, and whether targets are numbers."""

    load: object  # a function of scikit-learn, or the name of a file
    positive: object = None
    numeric: bool = False


SOURCES = {
    "breast_cancer": Source(load_breast_cancer, [1]),
    "wine": Source(load_wine, [1]),
    "digits": Source(load_digits, [1, 3, 5, 7, 9]),
    "titanic": Source("small/titanic_891", [1]),
    "covtype": Source("covtype", [2]),
    "higgs_sample": Source("higgs_sas11k", [1]),
    "diabetes": Source(load_diabetes, numeric=True),
    "diamonds": Source("small/diamonds", numeric=True),
    "airquality": Source("small/airquality", numeric=True),
}
CLASSES = tuple(name for name, source in SOURCES.items() if not source.numeric)


def available(names, data):
    """Return the available data sets, and print which are missing."""
    found = []
    for name in names:
        load = SOURCES[name].load
        if callable(load) or (data is not None and (Path(data) / f"{load}.npz").exists()):
            found.append(name)
        else:
            print(f"left out: {name}, because there is no {load}.npz in {data or '--data DIR'}")
    return found


def load(name, data):
    """Return X without missing values, and y: 0 and 1, or numbers."""
    source = SOURCES[name]
    if callable(source.load):
        X, y = source.load(return_X_y=True)
    else:
        with np.load(Path(data) / f"{source.load}.npz", allow_pickle=False) as file:
            X, y = file["X"], file["y"]
    known = ~np.isnan(y.astype(np.float64))
    X, y = X[known], y[known]
    y = y.astype(np.float64) if source.numeric else np.isin(y, source.positive).astype(np.int64)
    return X, y


def problem(name, data, seed, most=MOST_ROWS):
    """Return a random sample of a data set, split at random."""
    X, y = load(name, data)
    rows = np.random.default_rng(seed).permutation(len(y))[:most]
    X, y, numeric = X[rows].astype(np.float64), y[rows], SOURCES[name].numeric
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    y = (y - y.mean()) / y.std() if numeric else y
    X, X_held, y, y_held = train_test_split(
        X, y, test_size=HELD_OUT, stratify=None if numeric else y, random_state=seed
    )
    return Problem(X, y, X_held, y_held, numeric)
