"""Means and spreads of repeated measurements, and tables of them."""

from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    mean: float
    sd: float
    count: int

    def __str__(self):
        return f"{self.mean:.3f} ± {self.sd:.3f}" if self.count > 1 else f"{self.mean:.3f}"


def means(rows, keys, value):
    """Return {the values of `keys`: mean and sample standard deviation of `value`}."""
    groups = {}
    for row in rows:
        if row.get(value) not in (None, "") and np.isfinite(row[value]):
            groups.setdefault(tuple(row[key] for key in keys), []).append(row[value])
    return {
        group: Spread(float(np.mean(found)), float(np.std(found, ddof=len(found) > 1)), len(found))
        for group, found in groups.items()
    }


def farthest(found, one, other):
    """Return the largest difference of two predictors' means. `found` has keys (..., predictor)."""
    return max(
        abs(spread.mean - found[(*where, other)].mean)
        for (*where, predictor), spread in found.items()
        if predictor == one
    )


def markdown(header, lines):
    """Return a Markdown table with the first column left-aligned and the others right-aligned."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [header, rule, *lines])


def spread(rows, column, value, keys=("dataset", "rows")):
    """Return a table with one line per value of `keys` and one column per value of `column`."""
    found = means(rows, (*keys, column), value)
    names = list(dict.fromkeys(key[-1] for key in found))
    lines = dict.fromkeys(key[:-1] for key in found)
    return markdown(
        [*keys, *names],
        [
            [*(f"{k:,}" if isinstance(k, int) else k for k in line)]
            + [str(found.get((*line, name), "")) for name in names]
            for line in lines
        ],
    )


def seconds(number):
    return f"{number:.1f} s" if number < 10 else f"{number:.0f} s"


def slope(sizes, values):
    """Return the slope of a line fitted to the points on logarithmic axes."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
