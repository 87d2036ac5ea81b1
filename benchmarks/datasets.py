"""Data and fitted forests for the benchmarks, cached on disk."""

from pathlib import Path

import joblib
import numpy as np
from sklearn.datasets import fetch_covtype, load_iris
from sklearn.ensemble import RandomForestClassifier


def load(name, data_dir):
    """Return X as float32 and y, in a fixed random order."""
    if name == "iris":
        X, y = load_iris(return_X_y=True)
    elif name == "higgs-like":
        X, y = higgs_like(1_000_000)
    elif data_dir is not None:
        with np.load(Path(data_dir) / f"{name}.npz") as data:
            X, y = data["X"], data["y"]
    elif name == "covtype":
        X, y = fetch_covtype(return_X_y=True)
    else:
        raise SystemExit(f"{name} needs --data-dir with {name}.npz (arrays X and y)")
    order = np.random.default_rng(0).permutation(len(y))
    return np.ascontiguousarray(X[order], dtype=np.float32), y[order]


def higgs_like(n_rows, seed=0):
    """Return 28 columns and two classes: skewed columns, and functions of them.

    The data resemble HIGGS in size and difficulty: a forest grown on 60,000 rows is right for two
    rows in three.
    """
    rng = np.random.default_rng(seed)
    raw = rng.gamma(2.0, 0.5, size=(n_rows, 21)).astype(np.float32)
    raw[:, ::4] = rng.normal(size=raw[:, ::4].shape)
    pairs = np.stack([raw[:, i] * raw[:, 20 - i] for i in range(7)], axis=1)
    derived = np.sqrt(np.abs(pairs) + 0.1).astype(np.float32)
    score = derived @ np.linspace(0.2, 1.0, 7) + 0.4 * raw[:, 1] - 0.3 * raw[:, 2] * raw[:, 5]
    noisy = score + rng.normal(scale=1.5 * score.std(), size=n_rows)
    return np.hstack([raw, derived]), (noisy > np.median(noisy)).astype(np.int64)


def fitted(name, rows, params, *, data_dir, cache, n_jobs):
    """Return the path of a fitted forest, stored with its training rows."""
    label = "-".join([name, str(rows), *(f"{k}={v}" for k, v in sorted(params.items()))])
    path = Path(cache) / f"{label}.joblib"
    if not path.exists():
        X, y = load(name, data_dir)
        X, y = X[:rows], y[:rows]
        forest = RandomForestClassifier(random_state=0, n_jobs=n_jobs, **params).fit(X, y)
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump((forest, X, y), path)
    return path
