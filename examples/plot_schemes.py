"""
What does each weight scheme call similar?
==========================================

The color at each point of the plane is its proximity to one sample, the star. All panels use the
same forest. Each panel has its own color scale, because the values of schemes differ in size.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.schemes import Collapsed, PathDecay

X, y = make_moons(200, noise=0.25, random_state=0)
# Five targets are wrong.
wrong = np.random.default_rng(1).choice(len(y), 5, replace=False)
y[wrong] = 1 - y[wrong]
forest = RandomForestClassifier(300, random_state=0).fit(X, y)
prox = ForestProximity(forest, "uniform").fit(X, y)

SCHEMES = {
    "uniform: shared leaves": "uniform",
    "kerf: small leaves count more": "kerf",
    "gap: weights of the prediction": "gap",
    "purity: pure leaves count more": "purity",
    "pbk, λ = 1: near leaves count, too": PathDecay(1.0),
    "pbk, λ = 0.2": PathDecay(0.2),
    "rpk: leaves and all nodes above": "rpk",
    "uniform, collapsed at depth 3": Collapsed("uniform", max_depth=3),
}

# %%
# Schemes of leaves give the proximity 0 to more than half of the plane: these points share no leaf
# with the star. ``kerf`` and ``gap`` concentrate on the small leaves around the star. ``pbk`` and
# ``rpk`` compare whole paths. They are positive everywhere, so they also tell which of two distant
# points is more similar. Collapsed trees have fewer and larger leaves.
star = int(np.argmin(np.abs(X - [0.2, 0.75]).sum(axis=1)))
low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
axes = [np.linspace(low[d], high[d], 160) for d in (0, 1)]
grid = np.stack(np.meshgrid(*axes), axis=-1)
figure, panels = plt.subplots(2, 4, figsize=(14, 6.4), layout="constrained")
for ax, (title, scheme) in zip(panels.flat, SCHEMES.items(), strict=True):
    other = prox.reweigh(scheme)
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
