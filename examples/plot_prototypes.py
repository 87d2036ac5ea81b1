"""
Which digits stand for all others?
==================================

:class:`~leafkernel.tasks.PrototypeClassifier` chooses images that other images of their class are
similar to, and classifies new images by the most similar prototype.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity
from leafkernel.plots import plot_prototypes
from leafkernel.tasks import PrototypeClassifier

NUMBERS = (1, 2, 3, 5, 8, 12, 20)
GAINS = (0.1, 0.05, 0.03, 0.02, 0.01)
SHOWN = 0.03
SAME, OWN = "#0072B2", "#D55E00"

# %%
# ``n_prototypes`` gives each class the same number of prototypes. ``min_gain`` gives each class
# as many as bring a gain.
digits = load_digits()
X, X_new, y, y_new = train_test_split(digits.data, digits.target, random_state=0)
forest = RandomForestClassifier(200, random_state=0).fit(X, y)
prox = ForestProximity(forest, "uniform").fit(X, y)


def accuracy(**options):
    model = PrototypeClassifier(prox, **options).fit(X, y)
    return model, len(model.prototypes_.rows), model.score(X_new, y_new)


same = np.array([accuracy(n_prototypes=n)[1:] for n in NUMBERS])
own = np.array([accuracy(min_gain=gain)[1:] for gain in GAINS])
model, n_shown, right = accuracy(min_gain=SHOWN)
chosen = model.prototypes_
for label in np.unique(y):
    rows = chosen.rows[chosen.labels == label]
    print(f"digit {label}: {len(rows):2d} prototypes, mean proximity {chosen.coverage[label]:.2f}")
print(f"{n_shown} of {len(X):,} digits get {right:.1%} of the new ones right,")
print(f"the whole forest {forest.score(X_new, y_new):.1%}")

# %%
# 46 images classify about 96% of the new digits correctly; the whole forest gets 98%. The 0 has
# one prototype and the 8 has nine: digits that are written in many ways get more.


def draw_accuracy(ax, same, own, n_shown, best):
    """Draw the accuracy against the number of prototypes, for both ways to choose it."""
    ax.axhline(best, color="0.5", linestyle="--", linewidth=1)
    ax.text(same[0, 0], best - 0.001, "the whole forest", color="0.35", va="top")
    ax.plot(*same.T, "o-", color=SAME, label="the same number for each digit")
    ax.plot(*own.T, "s-", color=OWN, label="as many as bring a gain")
    at = int(np.flatnonzero(own[:, 0] == n_shown)[0])
    ax.annotate(
        "shown at left", own[at], xytext=(30, -45), textcoords="offset points", color=OWN,
        arrowprops={"arrowstyle": "->", "color": OWN},
    )  # fmt: skip
    ax.set_xscale("log")
    ticks = [10, 20, 50, 100, 200, 400]
    ax.set_xticks(ticks, ticks)
    ax.minorticks_off()
    ax.set(xlabel="prototypes in all", ylabel="new digits right, by the nearest prototype")
    ax.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1, decimals=0))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")


figure = plt.figure(figsize=(13, 6.2), layout="constrained")
left, right_half = figure.subfigures(1, 2, width_ratios=(1.35, 1))
ax = plot_prototypes(chosen, X, images=(8, 8), max_images=14, ax=left.subplots())
ax.set_title(f"{n_shown} prototypes: more for digits of many kinds", pad=10)
draw_accuracy(right_half.subplots(), same, own, n_shown, forest.score(X_new, y_new))
plt.show()
