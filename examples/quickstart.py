"""
Which training rows made this prediction?
=========================================

A forest predicts the class of a new wine. With the scheme ``"gap"``, the proximities of the new
wine to the training wines are their exact shares in that prediction. The picture shows the
training wines with the largest shares, and the matrix of all shares.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity

COLORS = ("#4477aa", "#ee6677", "#228833")

# %%
# Train a forest and find the new wine that it is least sure of. A row of P times the targets is
# the forest's own prediction; for training rows, its own out-of-bag prediction.
data = load_wine()
names = data.target_names
X, X_new, y, y_new = train_test_split(data.data, data.target, test_size=0.25, random_state=4)
forest = RandomForestClassifier(500, oob_score=True, random_state=0).fit(X, y)
prox = ForestProximity(forest, weight_scheme="gap").fit(X, y)

shares = prox.weighted_average(np.eye(3)[y], X_new)
sample = int(np.argmin(shares.max(axis=1)))
similarity, neighbors = prox.kneighbors(X_new[[sample]], n_neighbors=5)
print(f"A new wine, the one of {len(X_new)} that the forest is least sure of:")
for name, ours, theirs in zip(
    names, shares[sample], forest.predict_proba(X_new)[sample], strict=True
):
    print(f"  {name}: {ours:5.1%} by proximity, {theirs:5.1%} by the forest itself")
print(f"  (it is in truth {names[y_new[sample]]})\n")
print("The training wines that weigh most in that prediction:")
print("   row  weight  class     alcohol  flavanoids  color  proline")
for row, weight in zip(neighbors[0], similarity[0], strict=True):
    wine = dict(zip(data.feature_names, X[row], strict=True))
    print(
        f"  {row:4d}  {weight:6.1%}  {names[y[row]]}   {wine['alcohol']:7.2f}  "
        f"{wine['flavanoids']:10.2f}  {wine['color_intensity']:5.2f}  {wine['proline']:7.0f}"
    )

oob = prox.weighted_average(np.eye(3)[y])
gap = np.abs(oob - forest.oob_decision_function_).max()
print(f"\nLargest difference to the forest's own out-of-bag prediction: {gap:.1e}")
print(f"\n{prox.forecast()}")

# %%
# Left: the wines in a plane. The star is the new wine, and lines lead to the training wines
# with the largest shares, of two classes. Right: all shares. Each row is a query, and each
# column a reference. The matrix is not symmetric, and its diagonal is zero: no row takes part
# in its own out-of-bag prediction.


def draw(forest, X, y, X_new, y_new, sample, neighbors, names):
    """Draw the wines by the leading eigenvectors of a kernel, and the matrix of shares."""
    kernel = ForestProximity(forest, weight_scheme="kerf").fit(X, y)
    values, vectors = eigsh(kernel.operator(), k=3, v0=np.ones(len(X), dtype=np.float32))
    # Rows sum to one, so the first eigenvector is constant. The Nyström formula places new rows.
    axes = (vectors / np.sqrt(values))[:, [1, 0]]
    points, points_new = kernel.operator() @ axes, kernel.operator(X_new) @ axes

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 5), width_ratios=(1.25, 1), layout="constrained"
    )
    for label, color in enumerate(COLORS):
        left.scatter(
            *points[y == label].T, s=22, c=color, alpha=0.75, linewidths=0, label=names[label]
        )
        left.scatter(*points_new[y_new == label].T, s=28, facecolors="none", edgecolors=color)
    star = points_new[sample]
    for row in neighbors:
        left.plot(*np.array([star, points[row]]).T, color="0.5", linewidth=0.8, zorder=0)
    left.scatter(*star, s=190, marker="*", c="k", zorder=3, label="the wine asked about")
    left.scatter([], [], s=28, facecolors="none", edgecolors="0.4", label="other new wines")
    left.set(title="Wines as the forest sees them", xticks=[], yticks=[])
    left.set_xlabel("lines lead to the training wines that weigh most in its prediction")
    left.legend(frameon=False, loc="best")

    order = np.argsort(y, kind="stable")
    gap = ForestProximity(forest, weight_scheme="gap").fit(X, y).proximity()
    image = right.imshow(gap.toarray()[np.ix_(order, order)] ** 0.5, cmap="magma_r", vmin=0)
    edges = np.searchsorted(y[order], [1, 2])
    for edge in edges:
        right.axhline(edge - 0.5, color="0.6", linewidth=0.8)
        right.axvline(edge - 0.5, color="0.6", linewidth=0.8)
    centers = (np.r_[0, edges] + np.r_[edges, len(y)]) / 2
    right.set_xticks(centers, names)
    right.set_yticks(centers, names, rotation=90, va="center")
    right.tick_params(length=0)
    right.set(title="RF-GAP proximities, ordered by class", xlabel="reference", ylabel="query")
    bar = figure.colorbar(image, ax=right, shrink=0.8)
    ticks = np.array([0, 0.01, 0.03, 0.06])
    bar.set_ticks(ticks**0.5, labels=[f"{tick:.0%}" for tick in ticks])
    bar.set_label("share of the prediction")
    plt.show()


draw(forest, X, y, X_new, y_new, sample, neighbors[0], names)
