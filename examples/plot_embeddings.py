"""
How does the forest see my data?
================================

:class:`~leafkernel.tasks.LeafEmbedding` places handwritten digits in a plane by several methods,
and places new digits (triangles) with the same fitted model. UMAP needs the extra
``leafkernel[embedding]`` and is left out without it.
"""

from importlib.util import find_spec

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from leafkernel import ForestProximity
from leafkernel.plots import plot_embedding
from leafkernel.tasks import LeafEmbedding, medoids

# Under "kerf", large leaves count less. Under "uniform", distances are 1 - p.
METHODS = {
    "Leaf PCA": ("kerf", {"method": "pca"}),
    "Classical scaling": ("uniform", {"method": "mds"}),
    "Spectral": ("uniform", {"method": "spectral"}),
    "PHATE": (
        "uniform",
        {"method": "phate", "source": "kernel", "parameters": {"n_landmarks": 200}},
    ),
    "UMAP": ("uniform", {"method": "umap", "source": "kernel"}),
}
if find_spec("umap") is None:
    del METHODS["UMAP"]

# %%
# The schemes ``"kerf"`` and ``"uniform"`` share one forest. :func:`~leafkernel.tasks.medoids`
# finds a typical image of each digit.
digits = load_digits()
X, X_new, y, y_new = train_test_split(digits.data, digits.target, random_state=0)
forest = RandomForestClassifier(200, random_state=0).fit(X, y)
kernels = {scheme: ForestProximity(forest, scheme).fit(X, y) for scheme in ("kerf", "uniform")}
typical = medoids(kernels["uniform"], y)
print(f"The forest itself gets {forest.score(X_new, y_new):.1%} of the new digits right.")

# %%
# The titles say how many new digits are classified correctly by their ten nearest neighbors in
# the plane: from 60% with classical scaling to 96% with UMAP. The forest itself gets 98%.
# Linear methods lose much in two dimensions.


def color_of(digit):
    return mpl.colormaps["tab10"](digit)


def beside(ax, points):
    """Return places for images near points, in fractions of the Axes, without overlap."""
    ax.margins(0.15)
    ax.autoscale_view()
    at = ax.transAxes.inverted().transform(ax.transData.transform(points))
    away = at - np.median(at, axis=0)
    at = at + 0.09 * away / np.linalg.norm(away, axis=1, keepdims=True)
    others = ~np.eye(len(at), dtype=bool)
    for _ in range(200):
        gap = at[:, None] - at
        distance = np.linalg.norm(gap, axis=2)[..., None] + 1e-9
        at = at + (gap / distance * np.maximum(0.115 - distance, 0) / 3).sum(
            axis=1, where=others[..., None]
        )
    return at


def draw_digit(ax, pixels, point, color, at=None, zoom=1.6):
    """Put the image of a digit at, or beside, a point, in a frame of its color."""
    image = OffsetImage(pixels.reshape(8, 8), cmap="gray_r", zoom=zoom, interpolation="nearest")
    options = {"pad": 0.1, "bboxprops": {"edgecolor": color, "linewidth": 1.8}, "zorder": 6}
    if at is None:
        box = AnnotationBbox(image, point, xycoords="axes fraction", **options)
    else:
        line = {"arrowstyle": "-", "color": color, "linewidth": 1.2, "shrinkB": 0}
        options |= {"xybox": at, "boxcoords": "axes fraction", "arrowprops": line}
        box = AnnotationBbox(image, point, **options)
    ax.add_artist(box)


def explain(ax, X, typical, accuracy):
    """Draw the legend: the medoid of each digit, and an explanation."""
    for digit, row in typical.items():
        at = (0.14 + 0.18 * (digit % 5), 0.78 - 0.2 * (digit // 5))
        draw_digit(ax, X[row], at, color_of(digit), zoom=3.4)
    text = (
        "Framed: the medoid of each digit, the image to which\n"
        "all images of that digit are most similar in total.\n\n"
        "Dots: the digits that the forest was trained on.\n"
        "Triangles: new digits, placed by the same model.\n\n"
        "In the titles: how many new digits are right by their\n"
        "10 nearest neighbors in the plane. The forest itself,\n"
        f"with all its leaves, gets {accuracy:.0%} right."
    )
    ax.text(0.04, 0.44, text, transform=ax.transAxes, va="top", fontsize=11, linespacing=1.35)


figure, axes = plt.subplots(2, 3, figsize=(13, 8.4), layout="constrained")
for ax, (name, (scheme, options)) in zip(axes.flat, METHODS.items(), strict=False):
    model = LeafEmbedding(kernels[scheme], random_state=0, **options).fit(X, y)
    points_new = model.transform(X_new)
    neighbors = KNeighborsClassifier(10).fit(model.embedding_, y)
    right = neighbors.score(points_new, y_new)
    print(f"{name}: 10 nearest neighbors in the plane get {right:.1%} right")
    plot_embedding(model, y, new=points_new, y_new=y_new, legend=False, ax=ax)
    ax.set_title(f"{name}: {right:.0%} of new digits right", fontsize=12)
    ax.set_axis_off()
    rows = list(typical.values())
    for row, at in zip(rows, beside(ax, model.embedding_[rows]), strict=True):
        draw_digit(ax, X[row], model.embedding_[row], color_of(y[row]), at)
for ax in axes.flat[len(METHODS) :]:
    ax.set_axis_off()
explain(axes.flat[len(METHODS)], X, typical, forest.score(X_new, y_new))
plt.show()
