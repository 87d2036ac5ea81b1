"""Choose the training and test rows of a cell."""

import numpy as np
from sklearn.datasets import make_classification

from experiments import datasets


def whole(name, options):
    """Return a data set. "synthetic" replaces the large ones in quick runs."""
    if name != "synthetic":
        return datasets.load(name, options.data)
    X, y = make_classification(
        12_000, 20, n_informative=8, n_classes=4, flip_y=0.1, random_state=options.seed
    )
    return datasets.Dataset(X.astype(np.float32), y)


def train_and_test(dataset, rows, repeat, options):
    """Return X, y with the requested number of training rows, and X_test, y_test."""
    seed = options.seed_of(repeat)
    X, y, X_test, y_test = datasets.split(whole(dataset, options), seed)
    return *datasets.draw(X, y, rows, seed), X_test, y_test
