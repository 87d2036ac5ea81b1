"""
Which labels are wrong?
=======================

20 labels of handwritten digits are flipped on purpose. :func:`~leafkernel.tasks.outlier_scores`
finds 19 of them among its 30 highest scores. To get a list of suspicious labels with a false
discovery rate, use :func:`~leafkernel.tasks.find_label_errors`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.plots import plot_outliers
from leafkernel.tasks import outlier_scores

N_FLIPPED, N_SHOWN = 20, 30

# %%
# The scheme ``"oob"`` compares samples only in trees that were trained on neither. A tree that
# was trained on a wrong label would put the sample among the wrong class. The convention
# ``"breiman"`` scales the scores within each class; ``"raw"`` uses one scale for all.
digits = load_digits()
X, truth = digits.data, digits.target
rng = np.random.default_rng(0)
flipped = rng.choice(len(X), N_FLIPPED, replace=False)
y = truth.copy()
y[flipped] = (truth[flipped] + rng.integers(1, 10, N_FLIPPED)) % 10

forest = RandomForestClassifier(300, random_state=0).fit(X, y)
prox = ForestProximity(forest, "oob").fit(X, y)
print(f"{N_FLIPPED} of {len(X):,} labels are wrong on purpose. Among the {N_SHOWN} highest")
for convention in ("breiman", "raw"):
    scores = outlier_scores(prox, y, convention=convention)
    ranked = np.argsort(-scores)
    found = np.isin(ranked[:N_SHOWN], flipped).sum()
    print(f"  scores, the convention {convention!r} finds {found} of them")

# %%
# Left: the scores by class, with the flipped labels circled. One flipped label, an image
# labeled 9, stays below the line. Right: the 30 highest scores. Eleven of these labels are
# correct, but the images are unusual.


def draw(X, y, truth, scores, flipped, top):
    """Draw the scores by class, and the images with the highest scores."""
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
    plt.show()


draw(X, y, truth, scores, flipped, ranked[:N_SHOWN])
