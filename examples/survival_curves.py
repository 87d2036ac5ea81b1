"""
How long will this patient live?
================================

RF-GAP weights from a survival forest say how much each training patient counts for a new one. A
Kaplan-Meier estimate with these weights is nearly the forest's own curve. This example needs
scikit-survival.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sksurv.datasets import load_veterans_lung_cancer
from sksurv.ensemble import RandomSurvivalForest
from sksurv.preprocessing import OneHotEncoder

from leafkernel import ForestProximity

COLORS = ("#4477aa", "#ee6677")


def kaplan_meier(time, event, weights):
    """Return the times of deaths, and the weighted share of patients who survive each."""
    at = np.unique(time[event & (weights > 0)])
    at_risk = np.array([weights[time >= t].sum() for t in at])
    dying = np.array([weights[(time == t) & event].sum() for t in at])
    return at, np.cumprod(1 - dying / at_risk)


# %%
# Left: the survival curves of two patients; the forest's own curves are dotted and mostly
# hidden. Right: the training patients behind each curve.
table, y = load_veterans_lung_cancer()
X = OneHotEncoder().fit_transform(table)
X, X_new, y, _ = train_test_split(X, y, test_size=0.25, random_state=0)
event, time = y["Status"], y["Survival_in_days"]
forest = RandomSurvivalForest(500, min_samples_leaf=8, random_state=0).fit(X, y)
prox = ForestProximity(forest, "gap").fit(X, y)
P = prox.proximity(X_new).toarray()

score = X_new["Karnofsky_score"].to_numpy()
chosen = {"frail": int(score.argmin()), "fit": int(score.argmax())}
figure, (curves, lives) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, i), color in zip(chosen.items(), COLORS, strict=True):
    label = f"{name}: Karnofsky score {score[i]:.0f}"
    at, share = kaplan_meier(time, event, P[i])
    curves.step(at, share, where="post", color=color, label=label)
    own = forest.predict_survival_function(X_new.iloc[[i]])[0]
    curves.step(own.x, own.y, where="post", color=color, linestyle=":", alpha=0.8)
    lives.scatter(time, P[i], s=18, color=color, alpha=0.7, label=label, linewidth=0)
    half = at[np.argmax(share <= 0.5)] if (share <= 0.5).any() else np.inf
    print(f"{label}: half of those alike are dead after {half:.0f} days")
    for j in np.argsort(-P[i])[:3]:
        fate = "died" if event[j] else "was last seen alive"
        print(f"    counts {P[i, j]:.1%}: {fate} after {time[j]:.0f} days")
curves.set(xlabel="days", ylabel="share alive", ylim=(0, 1), title="weighted Kaplan-Meier")
curves.plot([], [], color="gray", linestyle=":", label="the forest's own")
curves.legend(frameon=False)
lives.set(xlabel="survival of the training patient, days", ylabel="weight", title="whose lives")
for ax in (curves, lives):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
