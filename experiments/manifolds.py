"""Raw pixels against leaf coordinates: PCA, UMAP and PHATE in two dimensions.

    python experiments/manifolds.py --data DIR [--dataset fashion_mnist] [--quick]

DIR holds fashion_mnist.npz or sign_mnist.npz (arrays X, y, X_test, y_test); --quick takes
scikit-learn's digits instead. As in the paper: 50 principal components before UMAP and PHATE, 30
neighbours, "kerf" leaf coordinates of a default random forest; accuracy is that of k nearest
neighbours of the test samples among the training samples of the embedding, averaged over k = 5, 10
and 20. Every cell runs in a process of its own and is kept: a finished one is not computed again.
Writes a small CSV file to experiments/results/ and a figure to docs/images/.
"""

import argparse
import csv
import resource
import subprocess
import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from leafkernel import ForestProximity
from leafkernel.tasks import LeafEmbedding

mpl.use("agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
METHODS = ("pca", "umap", "phate")
CELLS = [(space, method) for space in ("raw", "leaf") for method in METHODS]
NAMES = {
    "fashion_mnist": [
        *("T-shirt", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "boot"),
    ],
    "sign_mnist": list("ABCDEFGHIK"),
    "digits": list("0123456789"),
}
FIELDS = ("dataset", "space", "method", "forest_s", "fit_s", "test_s", "accuracy", "peak_gb")


def load(name, data):
    """Return X, y, X_test, y_test; of SignMNIST the letters A to K."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:1400], y[:1400], X[1400:], y[1400:]
    with np.load(Path(data) / f"{name}.npz") as file:
        parts = [file[key] for key in ("X", "y", "X_test", "y_test")]
    X, y, X_test, y_test = parts
    if name == "sign_mnist":
        X, y, X_test, y_test = X[y <= 10], y[y <= 10], X_test[y_test <= 10], y_test[y_test <= 10]
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


def embed_raw(method, X, X_test):
    """Embed pixels; return coordinates of both parts and the seconds that each took."""
    begin = time.perf_counter()
    pca = PCA(2 if method == "pca" else 50, svd_solver="randomized", random_state=0).fit(X)
    scores = pca.transform(X)
    if method == "umap":
        import umap  # noqa: PLC0415

        model = umap.UMAP(n_neighbors=30, random_state=0)
    elif method == "phate":
        import phate  # noqa: PLC0415

        model = phate.PHATE(knn=30, n_pca=None, random_state=0, n_jobs=2, verbose=0)
    placed = scores if method == "pca" else model.fit_transform(scores)
    middle = time.perf_counter()
    scores = pca.transform(X_test)
    placed_test = scores if method == "pca" else model.transform(scores)
    return placed, placed_test, 0.0, middle - begin, time.perf_counter() - middle


def embed_leaves(method, X, y, X_test):
    """Embed leaf coordinates in the same way."""
    begin = time.perf_counter()
    forest = RandomForestClassifier(n_jobs=2, random_state=0).fit(X, y)
    grown = time.perf_counter()
    prox = ForestProximity(forest, "kerf", n_jobs=2)
    model = LeafEmbedding(prox, method=method, random_state=0).fit(X, y)
    middle = time.perf_counter()
    placed_test = model.transform(X_test)
    end = time.perf_counter()
    return model.embedding_, placed_test, grown - begin, middle - grown, end - middle


def accuracy(placed, y, placed_test, y_test):
    """Return the mean accuracy of nearest neighbours in the embedding, k = 5, 10, 20."""
    scores = [
        KNeighborsClassifier(k, n_jobs=2).fit(placed, y).score(placed_test, y_test)
        for k in (5, 10, 20)
    ]
    return float(np.mean(scores))


def run_cell(dataset, data, space, method, path):
    """Compute one cell and keep its coordinates and numbers."""
    X, y, X_test, y_test = load(dataset, data)
    raw = space == "raw"
    found = embed_raw(method, X, X_test) if raw else embed_leaves(method, X, y, X_test)
    placed, placed_test, forest_s, fit_s, test_s = found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    score = accuracy(placed, y, placed_test, y_test)
    np.savez_compressed(
        path,
        placed=placed.astype(np.float32),
        placed_test=placed_test.astype(np.float32),
        numbers=np.array([forest_s, fit_s, test_s, score, peak]),
    )


def medoid(points):
    """Return the point nearest to the middle of a class in the embedding."""
    return int(np.linalg.norm(points - np.median(points, axis=0), axis=1).argmin())


def draw(dataset, data, cells, path):
    """Draw every embedding: training samples pale, test samples on top, an image for each class."""
    X, y, _, y_test = load(dataset, data)
    names, classes = NAMES[dataset], np.unique(y)
    side = int(np.sqrt(X.shape[1]))
    colors = plt.get_cmap("tab10" if len(classes) <= 10 else "tab20").colors
    figure, axes = plt.subplots(2, 3, figsize=(15, 10.4), layout="constrained")
    order = np.random.default_rng(0).permutation(len(y))[:20_000]
    for ax, (space, method) in zip(axes.flat, CELLS, strict=True):
        with np.load(cells[space, method]) as cell:
            placed, placed_test = cell["placed"], cell["placed_test"]
            forest_s, fit_s, _, score, _ = cell["numbers"]
        size = float(np.clip(40_000 / len(y), 2, 14))
        code = np.searchsorted(classes, y)
        code_test = np.searchsorted(classes, y_test)
        shade = np.array(colors)
        ax.scatter(
            *placed[order].T, s=size, c=shade[code[order]], alpha=0.35, lw=0, rasterized=True
        )
        ax.scatter(
            *placed_test.T,
            s=1.6 * size,
            c=shade[code_test],
            alpha=0.7,
            lw=0,
            marker="^",
            rasterized=True,
        )
        low, high = np.quantile(placed, (0.002, 0.998), axis=0)
        pad = 0.08 * (high - low)
        ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
        for c in range(len(classes)):
            members = np.flatnonzero(code == c)
            middle = members[medoid(placed[members])]
            image = mpl.offsetbox.OffsetImage(
                X[middle].reshape(side, side), zoom=24 / side, cmap="gray_r"
            )
            box = mpl.offsetbox.AnnotationBbox(
                image,
                placed[middle],
                frameon=True,
                pad=0.1,
                bboxprops={"edgecolor": colors[c], "linewidth": 2},
            )
            ax.add_artist(box)
        title = {"raw": "pixels", "leaf": "leaf coordinates"}[space]
        took = f"{fit_s:.0f} s" + (f", after {forest_s:.0f} s for the forest" if forest_s else "")
        ax.set_title(f"{method.upper()} of {title}", fontsize=15, loc="left")
        ax.set_xlabel(f"test k-NN accuracy {score:.1%}; {took}", fontsize=12, loc="left")
        ax.set_xticks([])
        ax.set_yticks([])
    handles = [
        mpl.lines.Line2D(
            [],
            [],
            marker="o",
            ls="",
            ms=8,
            color=colors[c],
            label=names[int(label)] if dataset != "sign_mnist" else names[c],
        )
        for c, label in enumerate(classes)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(classes), fontsize=12, frameon=False
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset", choices=NAMES, default="fashion_mnist")
    parser.add_argument(
        "--quick", action="store_true", help="scikit-learn's digits, no data needed"
    )
    parser.add_argument("--cache", type=Path, default=HERE / "cache")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--figures", type=Path, default=HERE.parent / "docs" / "images")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    dataset = "digits" if args.quick else args.dataset
    if args.data is None and dataset != "digits":
        parser.error(f"{dataset} needs --data DIR; --quick needs none")
    args.cache.mkdir(parents=True, exist_ok=True)
    cells = {
        (space, method): args.cache / f"manifolds-{dataset}-{space}-{method}.npz"
        for space, method in CELLS
    }
    if args.cell:
        run_cell(dataset, args.data, *args.cell, cells[tuple(args.cell)])
        return
    rows = []
    for space, method in CELLS:
        if not cells[space, method].exists():
            command = [sys.executable, __file__, "--dataset", dataset, "--cache", args.cache]
            command += ["--data", args.data] if args.data else []
            command += ["--quick"] if args.quick else []
            subprocess.run([*map(str, command), "--cell", space, method], check=True)
        with np.load(cells[space, method]) as cell:
            forest_s, fit_s, test_s, score, peak = cell["numbers"]
        row = [forest_s, fit_s, test_s, score, peak]
        rows.append([dataset, space, method, *(f"{number:.4g}" for number in row)])
        print(f"{dataset}, {space} {method}: test k-NN {score:.4f}, {fit_s:.1f} s, {peak:.2f} GB")
    args.results.mkdir(parents=True, exist_ok=True)
    with (args.results / f"manifolds_{dataset}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([FIELDS, *rows])
    draw(dataset, args.data, cells, args.figures / f"manifolds-{dataset.replace('_', '-')}.png")


if __name__ == "__main__":
    main()
