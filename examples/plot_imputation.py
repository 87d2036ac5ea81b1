"""
Can similar rows fill in missing values?
========================================

Each image of a digit has lost a patch of 4 × 4 pixels. A forest that learned to tell the digits
apart says which images are similar, and the pixels of similar images, weighted by proximity, fill
the patch. :class:`~leafkernel.tasks.ProximityImputer` has an error of 3.68 shades of 16. The
column mean has 5.10, and scikit-learn's ``KNNImputer``, which suits pixels well, has 3.53.
:doc:`/imputation` has a comparison on seven data sets.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import KNNImputer, SimpleImputer

from leafkernel import ForestProximity
from leafkernel.tasks import ProximityImputer

SIDE, PATCH = 8, 4

# %%
# Hide the patches and fill them in three ways.
X, y = load_digits(return_X_y=True)
corners = np.random.default_rng(0).integers(0, SIDE - PATCH + 1, size=(len(X), 2))
hidden = np.zeros((len(X), SIDE, SIDE), dtype=bool)
for image, (row, column) in zip(hidden, corners, strict=True):
    image[row : row + PATCH, column : column + PATCH] = True
hidden = hidden.reshape(X.shape)
holes = np.where(hidden, np.nan, X)


def rf_gap():
    forest = RandomForestClassifier(200, random_state=0)
    return ProximityImputer(ForestProximity(forest, "gap"), max_iter=5)


pictures = {"what is left": holes}
for name, imputer in (
    ("mean", SimpleImputer()),
    ("kNN", KNNImputer()),
    ("RF-GAP", rf_gap()),
):
    filled = imputer.fit_transform(holes, y)
    error = np.sqrt(((filled - X)[hidden] ** 2).mean())
    print(f"{name:7s} error {error:.2f} of 16 shades")
    pictures[f"{name}\n(error {error:.2f})"] = filled
print(f"RF-GAP: mean change in each iteration, in sd: {imputer.changes_.round(3)}")
pictures["the truth"] = X

# %%
# Show the image of each digit that lost the most ink.


def draw(pictures, shown, hidden):
    """Draw a row of images for each imputer, with a frame around the hidden patch."""
    figure, axes = plt.subplots(
        len(pictures),
        len(shown),
        figsize=(10.5, 5.6),
        gridspec_kw={"wspace": 0.06, "hspace": 0.06},
    )
    ink = mpl.colormaps["Greys"].with_extremes(bad="#f6d9a8")
    for (name, images), row in zip(pictures.items(), axes, strict=True):
        for k, axis in zip(shown, row, strict=True):
            axis.imshow(images[k].reshape(SIDE, SIDE), cmap=ink, vmin=0, vmax=16)
            corner = np.argwhere(hidden[k].reshape(SIDE, SIDE))[0][::-1] - 0.5
            axis.add_patch(
                plt.Rectangle(corner, PATCH, PATCH, fill=False, color="#d95f02", linewidth=1.4)
            )
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_color("0.8")
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=11, labelpad=8)
    figure.subplots_adjust(left=0.125, right=0.995, bottom=0.01, top=0.99)
    plt.show()


# For each digit: among its first hundred images, the one that lost the most ink.
ink = np.where(hidden, X, 0).sum(axis=1)
shown = []
for digit in range(10):
    rows = np.flatnonzero(y == digit)[:100]
    shown.append(rows[ink[rows].argmax()])
draw(pictures, shown, hidden)
