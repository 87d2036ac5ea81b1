"""
Why are these two similar, and where do they part?
==================================================

:func:`~leafkernel.tasks.explain_pair` looks into the trees. It says which features keep two
samples in the same leaves, and at which splits they part. This example needs pandas.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity
from leafkernel.tasks import explain_pair, explain_prediction

NEW, MALIGNANT, BENIGN = "#222222", "#ee6677", "#4477aa"
N_FEATURES = 7

# %%
# Take a tumor that the forest calls malignant, but with some doubt. Compare it with the
# malignant and with the benign training tumor that have the largest shares in its prediction.
data = load_breast_cancer(as_frame=True)
labels = data.target_names[data.target]
X, X_new, y, _ = train_test_split(
    data.data.reset_index(drop=True), labels, test_size=0.25, random_state=0
)
forest = RandomForestClassifier(500, random_state=0).fit(X, y)
prox = ForestProximity(forest, weight_scheme="gap").fit(X, y)

chances = forest.predict_proba(X_new)[:, list(forest.classes_).index("malignant")]
tumor = X_new.iloc[[int(np.argmin(np.abs(chances - 0.85)))]]
print(explain_prediction(prox, tumor, n=5), end="\n\n")

# The malignant and the benign training row with the largest shares.
similarity = prox.proximity(tumor).toarray()[0]
like = int(np.argmax(np.where(y == "malignant", similarity, -1)))
unlike = int(np.argmax(np.where(y == "benign", similarity, -1)))
# Rows have the labels of the data frame.
names = X.index[like], X.index[unlike]
alike, apart = (explain_pair(prox, tumor, name) for name in names)
print(f"Why it is like row {names[0]}, which is malignant\n{alike}\n")
print(f"And like row {names[1]}, which is benign, or not\n{apart}\n")

# %%
# Above: the new tumor and the malignant one share a leaf in 336 of 500 trees, because of the
# features in the bars. They stay together while both values are in the yellow interval. Below:
# the new tumor and the benign one are in different leaves in 445 trees. Each line is a split
# where they part.


def draw(X, tumor, like, unlike):
    """Draw the deciding features of both pairs, and the values of both tumors."""
    _, axes = plt.subplots(
        2, 2, figsize=(12, 8), width_ratios=(1, 2), layout="constrained", sharey="row"
    )
    row, alike = like
    deciding = np.argsort(-alike.shares, kind="stable")[:N_FEATURES]
    bars, ranks = axes[0]
    bars.barh(range(N_FEATURES), 100 * alike.shares[deciding], color="0.72", height=0.62)
    title(
        bars, f"Why is a new tumor like this malignant one? Together in {len(alike.trees)}", alike
    )
    bars.set_xlabel("share of the decision, %")
    for place, f in enumerate(deciding):
        low, high = rank(X, f, alike.low[f]), rank(X, f, alike.high[f])
        ranks.barh(place, high - low, left=low, height=0.62, color="#ddcc77", alpha=0.75, zorder=1)
        write(ranks, low, place, alike.low[f], "right")
        write(ranks, high, place, alike.high[f], "left")
    mark(ranks, X, deciding, tumor, X.iloc[row], MALIGNANT, "the malignant training tumor")
    ranks.barh([0], [0], color="#ddcc77", label="while both are in here, they stay together")

    row, apart = unlike
    parting = np.argsort(-apart.parted_in, kind="stable")[:N_FEATURES]
    bars, cuts = axes[1]
    bars.barh(range(N_FEATURES), apart.parted_in[parting], color="0.72", height=0.62)
    n_apart = len(apart.partings.trees)
    title(bars, f"Where does it part from this benign one? Apart in {n_apart}", apart)
    bars.set_xlabel("trees in which they part here")
    for place, f in enumerate(parting):
        thresholds = apart.partings.thresholds[apart.partings.features == f]
        at = [rank(X, f, threshold) for threshold in thresholds]
        cuts.vlines(at, place - 0.31, place + 0.31, color="#aa3377", alpha=0.25, linewidth=1.5)
    mark(cuts, X, parting, tumor, X.iloc[row], BENIGN, "the benign training tumor")
    cuts.vlines([], 0, 0, color="#aa3377", label="a split at which they part, in one tree")

    for (bars, right), features in zip(axes, (deciding, parting), strict=True):
        bars.set_yticks(range(len(features)), [X.columns[f] for f in features])
        bars.invert_yaxis()
        bars.spines[["top", "right"]].set_visible(False)
        bars.tick_params(axis="y", length=0)
        right.set(xlim=(-0.02, 1.02))
        right.set_xticks([0, 0.25, 0.5, 0.75, 1], ["lowest", "25%", "median", "75%", "highest"])
        right.set_xlabel("values, by their rank among the training tumors")
        right.spines[["top", "right", "left"]].set_visible(False)
        right.tick_params(axis="y", length=0)
        right.legend(loc="lower left", bbox_to_anchor=(0.015, 0.02), edgecolor="0.85", framealpha=1)
    plt.show()


def title(axis, text, explained):
    """Write above both panels of a row."""
    text = f"{text} of {explained.n_trees} trees"
    axis.set_title(text, x=-0.46, ha="left", fontsize=13, fontweight="bold", pad=12)


def rank(X, feature, value):
    """Return the share of training tumors with a smaller value; ties count half."""
    column = np.sort(X.iloc[:, feature])
    return np.mean([np.searchsorted(column, value, side) for side in ("left", "right")]) / len(X)


def write(axis, at, place, end, side):
    """Write the end of an interval, if it is finite."""
    if np.isfinite(end):
        shift = -0.008 if side == "right" else 0.008
        axis.text(at + shift, place, f"{end:.4g}", va="center", ha=side, fontsize=8, color="0.35")


def mark(axis, X, features, new, known, color, name):
    """Show the values of both tumors."""
    places = np.arange(len(features))
    axis.hlines(places, 0, 1, color="0.9", linewidth=1, zorder=0)
    for row, marker, size, shade, label in (
        (known, "o", 62, color, name),
        (new, "*", 130, NEW, "the new tumor"),
    ):
        at = [rank(X, f, row.iloc[f]) for f in features]
        axis.scatter(
            at, places, s=size, marker=marker, color=shade, label=label, zorder=3,
            edgecolors="white", linewidths=0.7,
        )  # fmt: skip


draw(X, tumor.iloc[0], (like, alike), (unlike, apart))
