"""Means over seeds with 95% intervals, and how often one method is better than another."""

import numpy as np
from scipy.stats import rankdata, t


def by_seed(rows, value):
    """Return {seed: mean of `value`}."""
    found = {}
    for row in rows:
        found.setdefault(row["seed"], []).append(row[value])
    return {seed: float(np.mean(values)) for seed, values in found.items()}


def interval(values):
    """Return the mean and half the width of its 95% interval (Student's t)."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return float(values.mean()), 0.0
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half)


def over_seeds(rows, value):
    return interval(list(by_seed(rows, value).values()))


def groups(rows, keys=("dataset", "library")):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def versus(rows, value, one, other):
    """Count the data sets x libraries in which `one` is better, not different and worse.

    Better and worse mean that the 95% interval of the paired difference does not contain zero.
    """
    count = [0, 0, 0]
    for found in groups(rows).values():
        ours, theirs = (
            by_seed([row for row in found if row["method"] == method], value)
            for method in (one, other)
        )
        if not ours or not theirs:
            continue
        mean, half = interval([ours[seed] - theirs[seed] for seed in ours])
        count[1 if abs(mean) <= half else 0 if mean > 0 else 2] += 1
    return tuple(count)


def ranks(rows, value):
    """Return the mean rank of each method over data sets x libraries; 1 is best."""
    found = {}
    for of_group in groups(rows).values():
        methods = groups(of_group, ("method",))
        means = {method: over_seeds(its, value)[0] for (method,), its in methods.items()}
        for method, rank in zip(means, rankdata([-mean for mean in means.values()]), strict=True):
            found.setdefault(method, []).append(rank)
    return {method: float(np.mean(values)) for method, values in found.items()}
