"""See the same forest through three similarities: all pairs of wines, ordered by class.

python examples/plot_heatmap.py [--out docs/images/heatmap.png]
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.plots import plot_proximity
from leafkernel.tasks import LeafPCA

SCHEMES = {
    "uniform": "“uniform”: in how many trees both\nare in the same leaf",
    "kerf": "“kerf”: the same, crowded leaves\ncount less",
    "gap": "“gap”: what each wine counts for\nthe prediction of another",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", default="docs/images/heatmap.png", help="where to save the picture"
    )
    out = Path(parser.parse_args().out)

    wine = load_wine()
    X, y = wine.data, wine.target_names[wine.target]
    forest = RandomForestClassifier(500, random_state=0, n_jobs=-1).fit(X, y)

    # One order for all: by class, and in it along the first principal component of the leaves.
    first = LeafPCA(forest, n_components=1, random_state=0).fit_transform(X, y)[:, 0]
    order = np.lexsort([first, y])
    # "compressed" keeps square pictures close together.
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="compressed")
    for ax, (scheme, meaning) in zip(axes, SCHEMES.items(), strict=True):
        prox = ForestProximity(forest, scheme).fit(X, y)
        P = prox.proximity()
        same = y[:, None] == y
        share = P.multiply(same).sum() / P.sum()
        print(f"{scheme:8s} {P.nnz / P.shape[0]:5.1f} nonzeros a row, {share:.1%} of it in class")
        plot_proximity(prox, y, order=order, title=meaning, ax=ax)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    print(f"Picture saved to {out}")


if __name__ == "__main__":
    main()
