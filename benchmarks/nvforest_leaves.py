"""Compare the leaves that nvForest finds with those of each library.

    python -m venv nvforest && nvforest/bin/pip install nvforest-cu13 scikit-learn lightgbm xgboost
    nvforest/bin/python benchmarks/nvforest_leaves.py --data-dir DIR

nvForest finds leaves on the processor here, so no GPU is needed. It numbers leaves in its own way.
A sample counts as wrong in a tree if most samples of its leaf are in another leaf of nvForest.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import nvforest
import xgboost
from sklearn.ensemble import RandomForestClassifier


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of Treelite, about its version
    data, rng = np.load(options.data_dir / "covtype.npz"), np.random.default_rng(0)
    order = rng.permutation(len(data["y"]))[: options.rows]
    X, y = data["X"][order].astype(np.float32), data["y"][order] == 2
    # Values that float32 cannot represent.
    inputs = {"float32": X, "float64": X + rng.normal(scale=1e-9, size=X.shape)}
    print("nvForest", nvforest.__version__)
    print(f"{'model':10} {'precision':10} {'X':8} wrong, of {len(X) * 20:,}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (leaves, load) in models(X, inputs["float64"], y, Path(folder)).items():
            for precision in ("single", "double"):
                model = load(device="cpu", precision=precision)
                for kind, values in inputs.items():
                    wrong = n_wrong(leaves(values), np.asarray(model.apply(values)))
                    print(f"{name:10} {precision:10} {kind:8} {wrong:,}")


def models(X, exact, y, folder):
    """Return functions that find the leaves of samples, and that load a model into nvForest."""
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    boosted = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(exact, y).booster_
    boosted.save_model(folder / "lightgbm.txt")
    gradient = xgboost.XGBClassifier(n_estimators=20).fit(X, y)
    gradient.save_model(folder / "xgboost.ubj")

    def load(path, kind):
        return lambda **params: nvforest.load_model(str(folder / path), model_type=kind, **params)

    return {
        "sklearn": (forest.apply, lambda **params: nvforest.load_from_sklearn(forest, **params)),
        "lightgbm": (
            lambda values: boosted.predict(values, pred_leaf=True),
            load("lightgbm.txt", "lightgbm"),
        ),
        "xgboost": (gradient.apply, load("xgboost.ubj", "xgboost_ubj")),
    }


def n_wrong(expected, found):
    """Return the number of samples, over all trees, that are in another leaf."""
    wrong = 0
    for mine, theirs in zip(expected.T, found.T, strict=True):
        leaves, counts = np.unique(np.stack([mine, theirs]), axis=1, return_counts=True)
        largest = np.zeros(int(mine.max()) + 1, np.int64)
        np.maximum.at(largest, leaves[0].astype(np.int64), counts)
        wrong += len(mine) - largest.sum()
    return int(wrong)


if __name__ == "__main__":
    main()
