"""Compute the numbers that are quoted only in the text of the page.

python -m experiments.asides DIR
"""

import sys

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier

from experiments import cells, datasets, manifolds, scaling
from leafkernel import ForestProximity
from leafkernel.tasks import LeafPCA


def growth():
    """Print slopes of kernel size, and of time on the sizes that forestgeom ran too."""
    rows = cells.read_csv(cells.HERE / "results" / "scaling.csv")
    plain = [row for row in rows if all(row[key] == scaling.PLAIN[key] for key in scaling.PLAIN)]
    kernels = [row for row in plain if row["what"] == "kernel" and row["seconds"] != ""]
    both = {(row["dataset"], row["scheme"], row["rows"], row["library"]) for row in kernels}
    shared = [
        row for row in kernels if (row["dataset"], row["scheme"], row["rows"], "forestgeom") in both
    ]
    for curve, slope in scaling.slopes(shared).items():
        print(f"slope of time on shared sizes: {curve[0]}, {curve[1]}, {curve[-1]}: {slope:.2f}")
    for curve, slope in scaling.slopes(kernels, "numbers").items():
        print(f"slope of the kernel's numbers: {curve[0]}, {curve[1]}, {curve[-1]}: {slope:.2f}")


def large_leaves(data):
    """Print leaf sizes of a forest on Covertype with min_samples_leaf=20."""
    X, y, _, _ = datasets.split(datasets.load("covtype", data), 0)
    X, y = datasets.draw(X, y, 16_384, 0)
    leaves = (
        RandomForestClassifier(min_samples_leaf=20, random_state=0, n_jobs=2).fit(X, y).apply(X)
    )
    sizes = [np.unique(column, return_counts=True)[1] for column in leaves.T]
    largest = [size.max() for size in sizes]
    print(f"rows in a leaf: median {np.median(np.concatenate(sizes)):.0f}, ", end="")
    print(f"largest of a tree {np.mean(largest):,.0f} on average and {max(largest):,} in one")


def twins(data):
    """Print the share of Airlines rows that have the same features as another row."""
    X, y, *_ = datasets.load("airlines", data)
    few, _ = datasets.draw(X, y, 16_384, 0)
    for rows in (few, X):
        _, which, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        which = which.ravel()
        print(f"{len(rows):,} rows: {np.mean(count[which] > 1):.0%} share their features")
    late = np.bincount(which, y)
    print(f"with one of the other class: {np.mean(((late > 0) & (late < count))[which]):.0%}")


def before_the_plane(data):
    """Print the accuracy on SignMNIST A-K of the forest, and in 50 principal components."""
    X, y, X_test, y_test = manifolds.load("sign_mnist_ak", cells.Options(data=data))
    forest = RandomForestClassifier(random_state=0, n_jobs=2).fit(X, y)
    print(f"the forest: {forest.score(X_test, y_test):.1%}")
    leaf = LeafPCA(ForestProximity(forest, "kerf", n_jobs=2), random_state=0).fit(X, y)
    pixels = PCA(50, svd_solver="randomized", random_state=0).fit(X)
    for space, placed, model in (
        ("leaf coordinates", leaf.embedding_, leaf),
        ("pixels", pixels.transform(X), pixels),
    ):
        found = manifolds.accuracies(placed, y, model.transform(X_test), y_test)
        print(f"in 50 components of {space}: {found['accuracy']:.1%}")


if __name__ == "__main__":
    growth()
    for measure in (large_leaves, twins, before_the_plane):
        measure(sys.argv[1])
