"""Compare PCA, UMAP and PHATE of pixels and of leaf coordinates (figures of the paper).

As in the paper: 50 principal components before UMAP and PHATE, 30 neighbors, "kerf" leaf
coordinates of a default random forest. Accuracy is that of the nearest training samples of a test
sample in the plane, the mean of k = 5, 10 and 20.
"""

import time
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from experiments import cells as frame
from experiments import datasets, manifold_figure, memory, table
from leafkernel import ForestProximity
from leafkernel.tasks import LeafEmbedding

DATASETS = ("fashion_mnist", "sign_mnist_ak")
SPACES = ("raw", "leaf")
METHODS = ("pca", "umap", "phate")
NEIGHBORS = (5, 10, 20)
# PHATE warns that its last step may have stopped early, even with verbose=0.
QUIET = {"verbose": -1}


def cells(options):
    return [
        {"dataset": name, "space": space, "method": method}
        for name in (("digits",) if options.quick else options.chosen(DATASETS))
        for space in SPACES
        for method in METHODS
    ]


def load(name, options):
    """Return X, y, X_test, y_test, with fewer training samples in a quick run."""
    X, y, X_test, y_test = datasets.split(datasets.load(name, options.data), options.seed)
    X, y = datasets.draw(X, y, 700, options.seed) if options.quick else (X, y)
    return X, y, X_test, y_test


def compute(cell, path, options):
    # A quick cell shares its process with earlier cells.
    memory.reset_peak()
    X, y, X_test, y_test = load(cell["dataset"], options)
    embed = embed_pixels if cell["space"] == "raw" else embed_leaves
    placed, placed_test, times = embed(cell["method"], X, y, X_test, options)
    peak = memory.peak() / 1e9
    placed, placed_test = placed.astype(np.float32), placed_test.astype(np.float32)
    np.savez_compressed(path.with_suffix(".npz"), placed=placed, placed_test=placed_test)
    return [{**times, **accuracies(placed, y, placed_test, y_test), "peak_gb": peak}]


def embed_pixels(method, X, y, X_test, options):
    """Embed pixels. Return the coordinates of both parts and the seconds of each step."""
    model = library(method, options)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        # Hide the developer warnings of UMAP, PHATE and numba, as LeafEmbedding does.
        warnings.simplefilter("ignore")
        n_components = 50 if model else 2
        pca = PCA(n_components, svd_solver="randomized", random_state=options.seed).fit(X)
        placed = model.fit_transform(pca.transform(X)) if model else pca.transform(X)
        fitted = time.perf_counter()
        placed_test = pca.transform(X_test)
        placed_test = model.transform(placed_test) if model else placed_test
    return placed, placed_test, seconds(begin, begin, fitted, time.perf_counter())


def library(method, options):
    """Return the model that follows the PCA, with the paper's parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "umap":
            import umap  # noqa: PLC0415

            return umap.UMAP(n_neighbors=30, random_state=options.seed, n_jobs=1)
        if method == "phate":
            import phate  # noqa: PLC0415

            return phate.PHATE(
                knn=30, n_pca=None, random_state=options.seed, n_jobs=options.n_jobs, **QUIET
            )
    return None


def embed_leaves(method, X, y, X_test, options):
    """Embed leaf coordinates in the same way."""
    library(method, options)  # import before the clock starts, as above
    begin = time.perf_counter()
    forest = RandomForestClassifier(random_state=options.seed, n_jobs=options.n_jobs).fit(X, y)
    grown = time.perf_counter()
    prox = ForestProximity(forest, "kerf", n_jobs=options.n_jobs)
    more = QUIET if method == "phate" else {}
    model = LeafEmbedding(prox, method=method, parameters=more, random_state=options.seed).fit(X, y)
    fitted = time.perf_counter()
    placed_test = model.transform(X_test)
    return model.embedding_, placed_test, seconds(begin, grown, fitted, time.perf_counter())


def seconds(begin, grown, fitted, end):
    return {"forest_s": grown - begin, "fit_s": fitted - grown, "test_s": end - fitted}


def accuracies(placed, y, placed_test, y_test):
    """Return nearest-neighbor accuracies of the test samples and of the training samples."""
    classes, codes = np.unique(y, return_inverse=True)
    index = NearestNeighbors(n_neighbors=max(NEIGHBORS)).fit(placed)
    near = codes[index.kneighbors(placed_test, return_distance=False)]
    found = {
        f"accuracy_{k}": float(np.mean(classes[vote(near[:, :k])] == y_test)) for k in NEIGHBORS
    }
    # Without arguments, it returns the neighbors of its own samples, excluding each sample itself.
    near = codes[index.kneighbors(n_neighbors=10, return_distance=False)]
    mean = float(np.mean(list(found.values())))
    return {**found, "accuracy": mean, "train_accuracy": float(np.mean(vote(near) == codes))}


def vote(near):
    """Return the most common class of each row. Ties go to the lowest class, as in scikit-learn."""
    return np.stack([(near == c).sum(axis=1) for c in range(near.max() + 1)]).argmax(axis=0)


def draw(rows, folder, options):
    """Print the table, and draw a figure for each data set."""
    print(table.spread(rows, "method", "accuracy", keys=("dataset", "space")))
    for name in dict.fromkeys(row["dataset"] for row in rows):
        X, y, _, y_test = load(name, options)
        panels = []
        for row in rows:
            if row["dataset"] == name:
                cell = {key: row[key] for key in ("dataset", "space", "method")}
                with np.load(folder / f"{frame.label(cell)}.npz") as file:
                    panels.append((row, file["placed"], file["placed_test"]))
        figure = manifold_figure.draw(name, panels, X, y, y_test)
        path = options.figures / f"manifolds-{name.replace('_', '-')}.png"
        manifold_figure.save(figure, path)


def claims(rows, options):
    """Yield the claims against PCA of pixels. UMAP and PHATE of pixels are sometimes better."""
    found = {(row["dataset"], row["space"], row["method"]): row["accuracy"] for row in rows}
    for (name, space, method), leaf in found.items():
        if space == "leaf":
            raw = found[name, "raw", "pca"]
            told = f"{method} of leaf coordinates ({leaf:.1%}) is above PCA of pixels ({raw:.1%})"
            yield f"{name}: test k-NN accuracy with {told}", leaf > raw
