"""
What does each weight scheme call similar?
==========================================

The color at each point of the plane is its proximity to one sample, the star. All panels use the
same random forest, except ``boosted``, which needs a boosted model. Each panel has its own color
scale, because the values of schemes differ in size.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.schemes import Collapsed, PathDecay

X, y = make_moons(200, noise=0.25, random_state=0)
# Flip five targets.
wrong = np.random.default_rng(1).choice(len(y), 5, replace=False)
y[wrong] = 1 - y[wrong]
forest = RandomForestClassifier(300, random_state=0).fit(X, y)
prox = ForestProximity(forest, "uniform").fit(X, y)

boosting = GradientBoostingClassifier(random_state=0).fit(X, y)

PANELS = {
    "uniform: shared leaves": prox,
    "kerf: small leaves count more": prox.reweigh("kerf"),
    "gap: weights of the prediction": prox.reweigh("gap"),
    "oob: shared out-of-bag leaves": prox.reweigh("oob"),
    "ih: the star counts by its neighbors": prox.reweigh("ih", X=X),
    "purity: pure leaves count more": prox.reweigh("purity"),
    "learned: good trees count more": prox.reweigh("learned"),
    "boosted: the first trees count more": ForestProximity(boosting, "boosted").fit(X, y),
    "pbk, λ = 1: nearby leaves count too": prox.reweigh(PathDecay(1.0)),
    "pbk, λ = 0.2": prox.reweigh(PathDecay(0.2)),
    "rpk: leaves and all nodes above": prox.reweigh("rpk"),
    "uniform, collapsed at depth 3": prox.reweigh(Collapsed("uniform", max_depth=3)),
}

# %%
# In the first seven panels, the proximity is 0 in more than half of the plane: these points share
# no leaf with the star. ``kerf`` and ``gap`` concentrate on the small leaves around the star.
# Trees of boosted models have few and large leaves, so every point shares some of them. ``pbk``
# and ``rpk`` compare whole paths. They are positive everywhere, so they also tell which of two
# distant points is more similar. Collapsed trees have fewer and larger leaves.
star = int(np.argmin(np.abs(X - [0.2, 0.75]).sum(axis=1)))
low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
axes = [np.linspace(low[d], high[d], 160) for d in (0, 1)]
grid = np.stack(np.meshgrid(*axes), axis=-1)
figure, panels = plt.subplots(3, 4, figsize=(14, 8.6), layout="constrained")
for ax, (title, other) in zip(panels.flat, PANELS.items(), strict=True):
    similarity = other.proximity_to([star], grid.reshape(-1, 2)).toarray().reshape(grid.shape[:2])
    print(f"{title:36s} positive at {np.mean(similarity > 0):.0%} of the points")
    image = ax.pcolormesh(*axes, similarity, cmap="magma_r", vmin=0, rasterized=True)
    figure.colorbar(image, ax=ax, shrink=0.62)
    for label, color in ((0, "#0072B2"), (1, "#E69F00")):
        ax.scatter(*X[y == label].T, s=9, color=color, edgecolors="white", linewidths=0.3)
    ax.scatter(*X[star], marker="*", s=190, color="white", edgecolors="black")
    ax.set_title(title, fontsize=10.5, loc="left")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal")
plt.show()
