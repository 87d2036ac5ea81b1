"""
Which similarity should I take?
===============================

One forest gives several similarities. This example draws all pairs of wines under three weight
schemes. See :doc:`/start` for when to use which.
"""

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

# %%
# All three pictures show the wines in the same order: by class, and within a class along the
# first principal component of the leaves.
wine = load_wine()
X, y = wine.data, wine.target_names[wine.target]
forest = RandomForestClassifier(500, random_state=0).fit(X, y)

first = LeafPCA(forest, n_components=1, random_state=0).fit_transform(X, y)[:, 0]
order = np.lexsort([first, y])

# %%
# ``"uniform"`` makes large dark blocks. ``"kerf"`` lets leaves with many samples count less.
# ``"gap"`` is the share of each wine in the prediction of another one, so it is not symmetric
# and its diagonal is zero.


# "compressed" keeps square pictures close together.
figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="compressed")
for ax, (scheme, meaning) in zip(axes, SCHEMES.items(), strict=True):
    prox = ForestProximity(forest, scheme).fit(X, y)
    P = prox.proximity()
    same = y[:, None] == y
    share = P.multiply(same).sum() / P.sum()
    print(f"{scheme:8s} {P.nnz / P.shape[0]:5.1f} nonzeros a row, {share:.1%} of it in class")
    plot_proximity(prox, y, order=order, title=meaning, ax=ax)
plt.show()
