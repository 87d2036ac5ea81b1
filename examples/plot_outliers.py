"""Flip the labels of a few digits, and find them again by their outlier scores.

python examples/plot_outliers.py [--out docs/images/outliers.png]
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.plots import plot_outliers
from leafkernel.tasks import outlier_scores

N_FLIPPED, N_SHOWN = 20, 30


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", default="docs/images/outliers.png", help="where to save the picture"
    )
    out = Path(parser.parse_args().out)

    digits = load_digits()
    X, truth = digits.data, digits.target
    rng = np.random.default_rng(0)
    flipped = rng.choice(len(X), N_FLIPPED, replace=False)
    y = truth.copy()
    y[flipped] = (truth[flipped] + rng.integers(1, 10, N_FLIPPED)) % 10

    # Out of bag: a tree that was trained on a wrong label would put it among its class.
    forest = RandomForestClassifier(300, random_state=0, n_jobs=-1).fit(X, y)
    prox = ForestProximity(forest, "oob").fit(X, y)
    print(f"{N_FLIPPED} of {len(X):,} labels are wrong on purpose. Of the {N_SHOWN} highest scores")
    for convention in ("breiman", "raw"):
        scores = outlier_scores(prox, y, convention=convention)
        ranked = np.argsort(-scores)
        found = np.isin(ranked[:N_SHOWN], flipped).sum()
        print(f"  by the convention {convention!r} {found} are such")
    # "breiman" asks what is odd for its class, and odd are many zeros; "raw" is the same for all.

    draw(X, y, truth, scores, flipped, ranked[:N_SHOWN], out)
    print(f"Picture saved to {out}")


def draw(X, y, truth, scores, flipped, top, out):
    """Scores by class with the wrong labels circled, beside the images that score highest."""
    figure = plt.figure(figsize=(13, 5.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    labels = np.array([f"{label}" for label in y])
    ax = left.subplots()
    plot_outliers(scores, labels, threshold=None, highlight=flipped, n_labels=0, ax=ax)
    ax.set(xlabel="digit, as labeled", ylabel="outlier score, raw")
    ax.scatter(
        [], [], s=60, facecolors="none", edgecolors="black", label="label flipped on purpose"
    )
    ax.axhline(scores[top[-1]], color="0.35", linestyle="--", linewidth=0.9, label="shown at right")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)

    right.suptitle(f"The {len(top)} highest scores; framed, the labels that were flipped")
    for row, panel in zip(top, right.subplots(5, 6).flat, strict=True):
        panel.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
        wrong = row in flipped
        color = "#D55E00" if wrong else "0.2"
        text = f"“{y[row]}” was {truth[row]}" if wrong else f"“{y[row]}”"
        panel.set_title(text, fontsize=9, color=color, pad=3)
        panel.set(xticks=[], yticks=[])
        for spine in panel.spines.values():
            spine.set(color=color if wrong else "0.8", linewidth=2 if wrong else 0.8)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)


if __name__ == "__main__":
    main()
