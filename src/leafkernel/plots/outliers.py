"""Plot outlier scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._validation import check_count
from leafkernel.plots._colors import Target
from leafkernel.plots._style import (
    SEED,
    Array,
    check_axes,
    check_rows,
    check_same_length,
    is_rasterized,
    number,
    point_alpha,
    point_size,
    quiet,
    short,
    shuffled,
)

# The scale is logarithmic if the largest score exceeds the threshold, or the median of the
# scores, by these factors.
_FAR = 6.0
_FAR_FROM_MEDIAN = 20.0


def plot_outliers(
    scores: Any,
    y: Any = None,
    *,
    threshold: float | None = 10.0,
    names: Any = None,
    n_labels: int = 5,
    highlight: Any = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot outlier scores by class, and label the samples with the highest scores.

    Use it to see how many samples have unusual scores, and which. There is a strip of points for
    each class. It is wide where many samples have similar scores. If the largest score is more than
    six times the threshold, the scale is logarithmic above the threshold. Without a threshold, the
    scale is logarithmic if all scores are positive and the largest is far above the median.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores, higher for outliers, for example from ``leafkernel.tasks.outlier_scores``.
    y : array-like of shape (n,), default=None
        Classes of the samples. Numbers are drawn on the horizontal axis instead.
    threshold : float, default=10.0
        Score of the horizontal line. Samples above it are drawn larger. None for no line.
    names : array-like of shape (n,), default=None
        Names of the samples. By default, their row numbers.
    n_labels : int, default=5
        Number of samples to label.
    highlight : array-like of int or mask of shape (n,), default=None
        Samples to circle.
    title : str, default=None
        Title of the plot.
    ax : matplotlib Axes, default=None
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the plot. Its collections have the ``gid`` "samples", "outliers" and
        "highlight".

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.plots import plot_outliers
    >>> from leafkernel.tasks import outlier_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "oob").fit(X, y)
    >>> ax = plot_outliers(outlier_scores(prox, y), y, n_labels=3, ax=Figure().subplots())
    >>> len(ax.texts)
    3
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError("scores must be finite numbers, one for each sample.")
    n = len(values)
    target = Target.of(y, n, what="scores")
    if names is not None:
        check_same_length("names", names, n, "scores")
        names = np.asarray(names)
    n_labels = min(check_count("n_labels", n_labels, at_least=0), n)
    circled = None if highlight is None else check_rows("highlight", highlight, n)

    is_strips = target.classes is not None
    ax = check_axes(ax, (float(np.clip(1.1 * target.n_classes + 3, 5.5, 14)), 4.8))
    across = _jittered(values, target) if is_strips else target.values
    area, colors = point_size(ax, n), target.colors()
    out = np.zeros(n, dtype=bool) if threshold is None else values > threshold
    order = shuffled(n)
    inside, outside = order[~out[order]], order[out[order]]
    ax.scatter(
        across[inside], values[inside], s=area, c=colors[inside], linewidths=0, gid="samples",
        alpha=point_alpha(n), rasterized=is_rasterized(n),
    )  # fmt: skip
    ax.scatter(
        across[outside], values[outside], s=max(1.4 * area, 9), c=colors[outside], gid="outliers",
        linewidths=0, zorder=3, rasterized=is_rasterized(len(outside)),
    )  # fmt: skip
    if circled is not None:
        ax.scatter(
            across[circled], values[circled], s=float(np.clip(4 * area, 60, 120)), zorder=4,
            facecolors="none", edgecolors="black", linewidths=1.0, gid="highlight",
        )  # fmt: skip
    _draw_scale(ax, values, threshold)
    _draw_classes(ax, target)
    ax.set(ylabel="outlier score", title=title)
    quiet(ax, "top", "right")
    top = np.argsort(-values, kind="stable")[:n_labels]
    _write_names(ax, across, values, top, names, is_strips=is_strips)
    return ax


def _jittered(values: Array, target: Target) -> Array:
    """Return horizontal positions: the class, with jitter that depends on the density of scores."""
    aside = np.random.default_rng(SEED).uniform(-1, 1, len(values))
    across = target.values.astype(float)
    for c in range(target.n_classes):
        members = np.flatnonzero(target.values == c)
        scaled = np.arcsinh(values[members])  # approximates linear and logarithmic scales
        n_bins = int(np.clip(len(members) ** 0.5, 5, 60))
        counts, edges = np.histogram(scaled, n_bins)
        smooth = np.convolve(counts, [0.25, 0.5, 0.25], "same")
        frequency = np.interp(scaled, (edges[1:] + edges[:-1]) / 2, smooth / smooth.max())
        across[members] += 0.36 * aside[members] * np.maximum(frequency, 0.06)
    return across


def _draw_scale(ax: Any, values: Array, threshold: float | None) -> None:
    low, high = float(values.min()), float(values.max())
    if threshold is None:
        if low > 0 and high > _FAR_FROM_MEDIAN * float(np.median(values)):
            ax.set_yscale("log")
            ax.set_ylim(low / 1.3, high * 1.5)
            ax.yaxis.set_major_formatter(lambda value, _: number(value))
            return
    else:
        ax.axhline(threshold, color="0.35", linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        high = max(high, threshold)
    if threshold is not None and 0 < _FAR * threshold < high:
        ax.set_yscale("symlog", linthresh=threshold, linscale=1.5)
        beyond = [threshold * 10**k for k in range(8) if threshold * 10**k < 2 * high]
        between = [3 * tick for tick in beyond if 3 * tick < high]
        ticks = sorted([0.0, threshold / 2, *beyond, *between])
        ax.set_yticks(ticks, [number(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(low - 0.1 * threshold, 1.6 * high)
    else:
        margin = 0.06 * (high - low) or 1.0
        ax.set_ylim(low - margin, high + 1.5 * margin)


def _draw_classes(ax: Any, target: Target) -> None:
    if target.classes is None:
        ax.set_xlabel(target.label)
        return
    if not target.label:
        ax.set_xticks([0], [f"{len(target.values):,} samples"])
    else:
        names = [short(label, 18) for label in target.classes]
        crowded = len(names) * max(len(name) for name in names) > 70
        turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        ax.set_xticks(range(len(names)), names, **turn)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.6, target.n_classes - 0.4)


def _write_names(
    ax: Any, across: Array, values: Array, rows: Array, names: Any, *, is_strips: bool
) -> None:
    """Write the names of samples to their right, without overlaps within a class."""
    if not len(rows):
        return
    line = 11.0 * ax.figure.dpi / 72  # pixels
    points = ax.transData.transform(np.column_stack([across[rows], values[rows]]))
    groups = np.round(across[rows]) if is_strips else np.zeros(len(rows))
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        members = members[np.argsort(points[members, 1])]
        height = -np.inf
        for i in members:
            height = max(points[i, 1], height + line)
            shift = (height - points[i, 1]) * 72 / ax.figure.dpi
            name = rows[i] if names is None else names[rows[i]]
            ax.annotate(
                short(name), (across[rows[i]], values[rows[i]]), xytext=(9, shift),
                textcoords="offset points", va="center", fontsize=8, zorder=5,
                arrowprops=_LEADER if shift > 3 else None,
            )  # fmt: skip


_LEADER = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
