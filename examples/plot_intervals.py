"""
How far off can a prediction be?
================================

Intervals from the targets of similar samples are wide where the noise is large. Plain quantiles
cover less than they claim. :class:`~leafkernel.tasks.ProximityRegressor` calibrates them on the
training samples, out of bag. No samples have to be held out for this.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from leafkernel import ForestProximity
from leafkernel.tasks import ProximityRegressor

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SHOWN = 0.9
PLAIN, CALIBRATED, POINTS = "#E69F00", "#0072B2", "0.35"


def sample(n, rng):
    """Return data with skewed noise that grows along x, and three irrelevant columns."""
    x = rng.uniform(0, 10, n)
    noise = (0.2 + 0.12 * x) * (rng.gamma(2, 1, n) - 2)
    return np.column_stack([x, rng.normal(size=(n, 3))]), np.sin(x) + 0.3 * x + noise


def covers(interval, y):
    return np.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))


# %%
# The noise grows along x. Compare plain quantiles with calibrated intervals for several
# coverages.
rng = np.random.default_rng(0)
X, y = sample(1500, rng)
X_new, y_new = sample(4000, rng)
forest = RandomForestRegressor(300, min_samples_leaf=2, random_state=0).fit(X, y)
prox = ForestProximity(forest, "gap").fit(X, y)

covered, widths = [], []
for coverage in COVERAGES:
    model = ProximityRegressor(prox).fit(X, y)
    tail = (1 - coverage) / 2
    plain = model.predict_quantiles(X_new, (tail, 1 - tail))
    # Calibrated on the training samples, out of bag: no samples have to be held out.
    calibrated = model.predict_interval(X_new, coverage=coverage)
    if coverage == SHOWN:
        shown = plain, calibrated
    covered.append([covers(interval, y_new) for interval in (plain, calibrated)])
    widths.append([np.diff(interval).mean() for interval in (plain, calibrated)])
    print(
        f"asked for {coverage:.0%}: plain intervals cover {covered[-1][0]:.1%} of new samples, "
        f"calibrated {covered[-1][1]:.1%}; mean widths {widths[-1][0]:.2f}, {widths[-1][1]:.2f}"
    )

# %%
# The calibrated intervals cover nearly the share of new samples that was asked for.


def draw_intervals(ax, x, y, plain, calibrated):
    """Draw some new samples with both intervals."""
    some = np.argsort(x)[::40]
    ax.vlines(
        x[some], *plain[some].T, color=PLAIN, linewidth=4, alpha=0.45, label="plain quantiles"
    )
    ends = {"marker": "_", "s": 42, "color": CALIBRATED, "linewidths": 1.8}
    ax.scatter(x[some], calibrated[some, 0], label="calibrated: from here to here", **ends)
    ax.scatter(x[some], calibrated[some, 1], **ends)
    inside = (calibrated[:, 0] <= y) & (y <= calibrated[:, 1])
    dots = {"s": 16, "zorder": 3}
    ax.scatter(x[some], y[some], color=POINTS, label="new sample", **dots)
    out = some[~inside[some]]
    ax.scatter(x[out], y[out], color="#D55E00", label="not covered", **dots)
    ax.set(xlabel="x, the one column that matters", ylabel="y")
    ax.set_title(f"{SHOWN:.0%} intervals of {len(some)} new samples")
    ax.legend(frameon=False, loc="upper left")


def draw_coverage(ax, covered, n):
    """Draw the measured coverage against the requested one, with two standard errors."""
    asked = np.array(COVERAGES)
    ax.axline((0.5, 0.5), slope=1, color="0.6", linewidth=1, label="as asked for")
    for column, color, label in ((0, PLAIN, "plain quantiles"), (1, CALIBRATED, "calibrated")):
        found = covered[:, column]
        error = 2 * np.sqrt(found * (1 - found) / n)
        ax.errorbar(asked, found, error, fmt="o-", color=color, label=label, capsize=3)
    ax.set(xlabel="coverage asked for", ylabel=f"share of {n:,} new samples covered")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(mpl.ticker.PercentFormatter(1, decimals=0))
    ax.set_title("Do they cover what they claim?")
    ax.legend(frameon=False, loc="upper left")


figure, (left, right) = plt.subplots(
    1, 2, figsize=(13, 5), width_ratios=(1.5, 1), layout="constrained"
)
draw_intervals(left, X_new[:, 0], y_new, *shown)
draw_coverage(right, np.array(covered), len(y_new))
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
