"""Compare methods to impute missing values, and write a table and a page.

    python benchmarks/imputation.py [--data-dir DIR] [--datasets iris wine] [--repeats 3]

Data sets come from scikit-learn, except airquality.csv, penguins.csv and titanic_891.csv, which
are read from DIR or DIR/small. With all data sets and three repeats, the script writes
benchmarks/imputation.csv and docs/imputation.md.
"""

import argparse
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity, LeafkernelWarning
from leafkernel.tasks.imputation import ProximityImputer

ROOT = Path(__file__).parent.parent
BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
FILES = {"airquality": "airquality.csv", "penguins": "penguins.csv", "titanic": "titanic_891.csv"}
CATEGORICAL = {"penguins": ["island", "sex"], "titanic": ["pclass", "sex", "embarked"]}
NUMERIC_TARGET = ("diabetes", "airquality")
MISSING = 0.2
MAX_ROWS = 400


def load(name, data_dir, rng):
    """Return a data frame of floats and categories, and targets, or None if the file is missing."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True, as_frame=True)
    else:
        folders = [] if data_dir is None else [data_dir, data_dir / "small"]
        found = [folder / FILES[name] for folder in folders if (folder / FILES[name]).exists()]
        if not found:
            return None
        table = pd.read_csv(found[0]).dropna(subset="target")
        X, y = table.drop(columns="target"), table["target"]
    rows = rng.permutation(len(X))[:MAX_ROWS]
    X, y = X.iloc[rows].reset_index(drop=True), y.iloc[rows].to_numpy()
    kinds = CATEGORICAL.get(name, [])
    return X.astype({c: "category" if c in kinds else float for c in X.columns}), y


def remove(X, mechanism, rng):
    """Return a mask of values to hide: a fifth of each column, at random or mostly large values."""
    chance = np.full(X.shape, MISSING)
    if mechanism == "MNAR":
        # From 0 for the smallest value (or first category) to 40% for the largest.
        ranks = np.column_stack(
            [pd.Series(codes(X[c])).rank(pct=True, na_option="keep") for c in X.columns]
        )
        chance = 2 * MISSING * np.nan_to_num(ranks)
    return (rng.random(X.shape) < chance) & X.notna().to_numpy()


def codes(column):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.where(column.cat.codes >= 0).to_numpy(dtype=float)
    return column.to_numpy(dtype=float)


class Encoded:
    """An imputer of numbers, applied to standardized columns and an indicator for each category.

    A missing category becomes the category with the largest imputed indicator. With
    ``use_target``, y is added as one or several columns, which are missing for new rows. With
    ``n_skipped=1``, the first category has no indicator. Otherwise the indicators would sum to one,
    and a linear model would only learn this.
    """

    def __init__(self, imputer, *, use_target=False, n_skipped=0):
        self.imputer = imputer
        self.use_target = use_target
        self.n_skipped = n_skipped

    def fit_transform(self, X, y):
        self.mean, self.sd = X.mean(numeric_only=True), X.std(numeric_only=True).replace(0, 1)
        target = pd.DataFrame({"target": y})
        if y.dtype.kind == "f":
            target = (target - target.mean()) / target.std()
        else:
            target = pd.get_dummies(target["target"], dtype=float).iloc[:, self.n_skipped :]
        self.target = target.to_numpy()
        return self.decode(X, self.imputer.fit_transform(self.encode(X, self.target)))

    def transform(self, X):
        nothing = np.full((len(X), self.target.shape[1]), np.nan)
        return self.decode(X, self.imputer.transform(self.encode(X, nothing)))

    def encode(self, X, target):
        blocks = []
        for c in X.columns:
            if c in self.mean:
                blocks.append(((X[c] - self.mean[c]) / self.sd[c]).to_numpy()[:, None])
            else:
                dummies = pd.get_dummies(X[c], dtype=float).iloc[:, self.n_skipped :]
                blocks.append(dummies.where(X[c].notna(), axis=0).to_numpy())
        self.widths = [block.shape[1] for block in blocks]
        return np.hstack(blocks + [target] * self.use_target)

    def decode(self, X, filled):
        result = X.copy()
        blocks = np.split(filled, np.cumsum(self.widths), axis=1)
        for c, block in zip(X.columns, blocks, strict=False):
            if c in self.mean:
                result[c] = X[c].fillna(pd.Series(block[:, 0] * self.sd[c] + self.mean[c]))
            else:
                rest = 1 - block.sum(axis=1, keepdims=True)
                weights = np.hstack([rest] * self.n_skipped + [block])
                guess = X[c].cat.categories[weights.argmax(axis=1)]
                result[c] = X[c].fillna(pd.Series(guess, index=X.index))
        return result


def forest(y, seed):
    kind = RandomForestRegressor if y.dtype.kind == "f" else RandomForestClassifier
    return kind(100, random_state=seed)


class WithoutTarget(ProximityImputer):
    def fit_transform(self, X, y):  # noqa: ARG002
        return super().fit_transform(X)


METHODS = (
    *("mean/mode", "kNN", "kNN, y", "iterative", "iterative, y"),
    *("default", "default, no y", "gap", "oob", "uniform"),
)


def make(method, y, seed):
    use_target = method.endswith(", y")
    if method == "mean/mode":
        return Encoded(SimpleImputer())
    if method.startswith("kNN"):
        return Encoded(KNNImputer(), use_target=use_target)
    if method.startswith("iterative"):
        imputer = IterativeImputer(max_iter=5, random_state=seed)
        return Encoded(imputer, use_target=use_target, n_skipped=1)
    if method.startswith("default"):
        kind = WithoutTarget if method.endswith("no y") else ProximityImputer
        return kind(random_state=seed)
    return ProximityImputer(ForestProximity(forest(y, seed), method))


def errors(X, filled, hidden):
    """Return the error of numbers in standard deviations, and the share of wrong categories."""
    numeric, wrong = [], []
    for k, c in enumerate(X.columns):
        where = hidden[:, k]
        if not where.any():
            continue
        if isinstance(X[c].dtype, pd.CategoricalDtype):
            wrong.append((X[c][where].astype(object) != filled[c][where].astype(object)).mean())
        else:
            difference = (filled[c] - X[c])[where]
            numeric.append(np.sqrt((difference**2).mean()) / X[c].std())
    return np.mean(numeric) if numeric else np.nan, np.mean(wrong) if wrong else np.nan


def one_run(name, X, y, mechanism, repeat):
    """Yield the results of each method on one split and one draw of missing values."""
    rng = np.random.default_rng([repeat, mechanism == "MNAR"])
    hidden = remove(X, mechanism, rng)
    holes = X.mask(hidden)
    train, new = train_test_split(np.arange(len(X)), test_size=0.3, random_state=repeat)
    part = [X.iloc[rows].reset_index(drop=True) for rows in (train, new)]
    gaps = [holes.iloc[rows].reset_index(drop=True) for rows in (train, new)]
    for method in METHODS:
        imputer = make(method, y, repeat)
        begin = time.perf_counter()
        filled = [imputer.fit_transform(gaps[0], y[train]), imputer.transform(gaps[1])]
        seconds = time.perf_counter() - begin
        numeric, wrong = zip(
            *(errors(part[k], filled[k], hidden[(train, new)[k]]) for k in range(2)), strict=True
        )
        arrays = [np.column_stack([codes(table[c]) for c in X.columns]) for table in filled]
        model = forest(y, repeat).set_params(n_estimators=50).fit(arrays[0], y[train])
        yield {
            "dataset": name,
            "mechanism": mechanism,
            "method": method,
            "nrmse_training": numeric[0],
            "nrmse_new": numeric[1],
            "wrong_training": wrong[0],
            "wrong_new": wrong[1],
            "score": model.score(arrays[1], y[new]),
            "seconds": seconds,
        }


def table(results, measure, best=min):
    """Return a Markdown table of means over the repeats, with the best of each row in bold."""
    wide = results.pivot_table(
        index=["dataset", "mechanism"], columns="method", values=measure, sort=False
    )[list(METHODS)]
    lines = [
        "| data | missing | " + " | ".join(METHODS) + " |",
        "| --- | --- |" + " --- |" * len(METHODS),
    ]
    for (name, mechanism), row in wide.iterrows():
        top = f"{best(row):.2f}"
        cells = [f"**{v:.2f}**" if f"{v:.2f}" == top else f"{v:.2f}" for v in row]
        lines.append(f"| {name} | {mechanism} | " + " | ".join(cells) + " |")
    ranks = wide.rank(axis=1, ascending=best is min)
    for mechanism, mean in ranks.groupby(level=1, sort=False).mean().iterrows():
        cells = " | ".join(f"*{v:.1f}*" for v in mean)
        lines.append(f"| *mean rank* | *{mechanism}* | {cells} |")
    return "\n".join(lines)


def write_page(results, seconds):
    times = results.groupby("method")["seconds"].mean()[list(METHODS)]
    page = PAGE.format(
        minutes=f"{seconds / 60:.1f}",
        versions=f"Python {platform.python_version()}, scikit-learn {sklearn.__version__}",
        training=table(results, "nrmse_training"),
        new=table(results, "nrmse_new"),
        wrong_training=table(results, "wrong_training"),
        wrong_new=table(results, "wrong_new"),
        score=table(results, "score", best=max),
        times="; ".join(f"{name} {value:.2f} s" for name, value in times.items()),
    )
    (ROOT / "docs" / "imputation.md").write_text(page, encoding="utf-8")


PAGE = """# Accuracy of imputation

`ProximityImputer` trains a forest for each column with missing values. The forest predicts the
column from the other columns and the targets. Missing values become averages of the present values,
weighted by the proximities of this forest. If you pass a forest, `ProximityImputer` works like R's
`rfImpute`: one forest predicts the targets, and its proximities fill all columns. This page
compares both with scikit-learn's imputers.

In short: on training rows, the default and `IterativeImputer` with the targets are the two most
accurate methods. On new rows, several methods have similar errors. The default accepts tables with
numbers and categories without any encoding. It is also the slowest.

![Handwritten digits with a patch hidden, and filled in three ways](images/imputation.png)

*A patch of each digit is hidden. It is filled with the column means, by nearest neighbors (a little
better here), and by RF-GAP proximities of one forest. Errors are in gray levels, from 0 to 16. The
script is `examples/plot_imputation.py`.*

This command creates the page:

```sh
python benchmarks/imputation.py --data-dir DIR
```

which took {minutes} minutes on one core of a busy machine ({versions});
`benchmarks/imputation.csv` contains the means.

**Method.** There are seven data sets with at most 400 rows each. A fifth of the values in each
column is removed: completely at random (MCAR), or not at random (MNAR). With MNAR, the probability
that a value is missing increases with the rank of the value, from 0 to 40%. 70% of the rows are
training rows. The others are new rows, whose targets are hidden. The tables show means of three
repeats. The best method of each row is bold. The last rows are the mean ranks of the ten methods; 1
is best.

- *default* is `ProximityImputer()`, with the targets of the training rows. *default, no y* is the
  same without targets.
- `gap`, `oob` and `uniform` are `ProximityImputer(ForestProximity(forest, scheme))`: one forest of
  100 trees for the targets, as in `rfImpute`.
- *kNN* (`KNNImputer()`) and *iterative* (`IterativeImputer(max_iter=5)`, Bayesian ridge
  regression) get standardized columns and an indicator for each category. They do not use the
  targets.
- *kNN, y* and *iterative, y* also get the targets as columns, which are missing for new rows. The
  default uses the targets too, so compare it with these two.
- Nothing was tuned for these data sets.

## Numbers, training rows

Root mean squared error of the removed values, in standard deviations of the column, averaged over
columns. Filling with the mean gives about 1.

{training}

## Numbers, new rows

{new}

## Categories: share of wrong values

Training rows:

{wrong_training}

New rows:

{wrong_new}

## Accuracy of a forest trained on the imputed rows

A forest of 50 trees was trained on the imputed training rows. The table shows its accuracy on the
new rows, or R² for diabetes and airquality. Differences of 0.02 are not significant.

{score}

## When to use it

- **Linear relations.** If columns depend linearly on each other, use a linear regression
  (*iterative*). It is the best method on diabetes and on breast cancer, where ten quantities are
  each measured in three ways.
- **One forest for the targets** (`gap`, `oob`, `uniform`) is faster, but usually less accurate. It
  uses a column only if it helps to predict the targets. Its trees also split on values that were
  filled in an earlier iteration. This confirms these values: a missing category often stays the
  most frequent category.
- **Values that are not missing at random.** All methods have larger errors on numbers. An average
  is never larger than the largest present value. A regression can extrapolate.
- **Before a supervised model.** With y, training rows are filled differently from new rows, because
  the targets of new rows are unknown. The differences in accuracy are small. The mean does well,
  because a forest can recognize the filled values. If you only need good predictions, impute
  without y.
- **Whole numbers.** Columns of an integer type are filled with whole numbers and stay integers.
  pandas converts integer columns with missing values to floats, so float columns of a data frame in
  which all present values are whole numbers are filled with whole numbers too. The command
  `leafkernel impute` treats all columns in this way.
- **Time.** The default trains a forest for each column in each iteration. Mean time of the fit and
  the imputation of new rows, over all data sets:
  {times}.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with the three .csv files")
    parser.add_argument("--datasets", nargs="+", default=[*BUNDLED, *FILES])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    # Rows without proximity get the median. This is part of the comparison.
    warnings.simplefilter("ignore", LeafkernelWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    begin = time.perf_counter()
    runs = []
    for name in arguments.datasets:
        data = load(name, arguments.data_dir, np.random.default_rng(0))
        if data is None:
            print(f"{name} is left out, because --data-dir has no {FILES[name]}")
            continue
        X, y = data
        y = y.astype(float) if name in NUMERIC_TARGET else np.unique(y, return_inverse=True)[1]
        for mechanism in ("MCAR", "MNAR"):
            for repeat in range(arguments.repeats):
                runs.extend(one_run(name, X, y, mechanism, repeat))
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    results = pd.DataFrame(runs)
    mean = results.groupby(["dataset", "mechanism", "method"], sort=False).mean()
    print(mean.round(3).to_string())
    complete = set(results["dataset"]) == {*BUNDLED, *FILES} and arguments.repeats == 3
    if not complete:
        print("Nothing was written, because this needs all data sets and three repeats.")
        return
    mean.round(4).to_csv(ROOT / "benchmarks" / "imputation.csv")
    write_page(results, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
