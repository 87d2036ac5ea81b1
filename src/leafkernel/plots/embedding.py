"""Plot an embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel.plots._colors import Target, draw_legend, marker
from leafkernel.plots._style import (
    Array,
    check_axes,
    check_rows,
    check_same_length,
    is_rasterized,
    matplotlib,
    point_alpha,
    point_size,
    quiet,
    shuffled,
)

# Largest number of highlighted rows to label with their numbers.
_MOST_NUMBERED = 12


def plot_embedding(
    embedding: Any,
    y: Any = None,
    *,
    prototypes: Any = None,
    new: Any = None,
    y_new: Any = None,
    highlight: Any = None,
    components: tuple[int, int] = (0, 1),
    size: float | None = None,
    alpha: float | None = None,
    legend: bool = True,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot the coordinates of samples, colored by class or by number.

    Use it to draw the result of ``LeafEmbedding`` or ``LeafPCA``. Points are drawn in a random
    order, so that no class covers the others.

    Parameters
    ----------
    embedding : array-like of shape (n, k), or a fitted LeafEmbedding or LeafPCA
        Coordinates of the samples, with at least two columns.
    y : array-like of shape (n,), default=None
        Classes or numbers for the colors.
    prototypes : Prototypes, ClassPrototypes, dict or array-like of int, default=None
        Samples to draw larger, with a black edge.
    new : array-like of shape (m, k), default=None
        Coordinates of new samples, drawn as triangles.
    y_new : array-like of shape (m,), default=None
        Their classes or numbers.
    highlight : array-like of int or mask of shape (n,), default=None
        Samples to circle. Up to 12 samples are labeled with their row numbers.
    components : tuple of two int, default=(0, 1)
        The coordinates to draw.
    size, alpha : float, default=None
        Area of a point in points², and its opacity. By default, they depend on the number of points
        and the size of the Axes.
    legend : bool, default=True
        Whether to draw the legend or the color bar.
    title : str, default=None
        Title of the plot.
    ax : matplotlib Axes, default=None
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the plot. Its collections have the ``gid`` "samples", "new", "prototypes" and
        "highlight".

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from leafkernel.plots import plot_embedding
    >>> from leafkernel.tasks import LeafEmbedding
    >>> data = load_iris()
    >>> model = LeafEmbedding(random_state=0).fit(data.data, data.target)
    >>> ax = plot_embedding(model, data.target_names[data.target], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['setosa', 'versicolor', 'virginica']
    """
    points = _coordinates("embedding", embedding, components)
    others = None if new is None else _coordinates("new", new, components)
    n = len(points)
    if y_new is not None and (others is None or y is None):
        raise ValueError("y_new requires new and y. Pass all three.")
    target, target_new = _targets(y, y_new, n, 0 if others is None else len(others))
    ringed = None if prototypes is None else check_rows("prototypes", prototypes, n)
    circled = None if highlight is None else check_rows("highlight", highlight, n)

    ax = check_axes(ax)
    area = point_size(ax, n) if size is None else size
    colors = target.colors()
    order = shuffled(n)
    ax.scatter(
        *points[order].T, s=area, c=colors[order], linewidths=0, zorder=2, gid="samples",
        alpha=point_alpha(n) if alpha is None else alpha, rasterized=is_rasterized(n),
    )  # fmt: skip
    extra = []
    if others is not None:
        few = len(others) <= 500
        known = target_new is not None
        fill = target_new.colors() if target_new is not None else np.array(["0.15"] * len(others))
        order = shuffled(len(others))
        ax.scatter(
            *others[order].T, s=max(1.8 * area, 12.0), c=fill[order], marker="^", zorder=3,
            gid="new", linewidths=0.4 if few else 0.2, edgecolors="black" if known else "white",
            rasterized=is_rasterized(len(others)),
        )  # fmt: skip
        extra.append(marker("^", "0.6" if known else "0.15", "new samples", size=6, edge="black"))
    if ringed is not None:
        large = float(np.clip(4 * area, 36, 110))
        ax.scatter(
            *points[ringed].T, s=large, c=colors[ringed], zorder=4, gid="prototypes",
            edgecolors="black", linewidths=1.4,
        )  # fmt: skip
        extra.append(marker("o", "white", "prototypes", size=7, edge="black"))
    if circled is not None:
        large = float(np.clip(5 * area, 60, 150))
        ax.scatter(
            *points[circled].T, s=large, facecolors="none", edgecolors="black", linewidths=1.1,
            zorder=5, gid="highlight",
        )  # fmt: skip
        if len(circled) <= _MOST_NUMBERED:
            _write_numbers(ax, points, circled)
    first, second = components
    ax.set(xlabel=f"coordinate {first + 1}", ylabel=f"coordinate {second + 1}")
    ax.set(xticks=[], yticks=[], title=title)
    quiet(ax, "top", "right")
    if legend:
        draw_legend(ax, target.handles() + extra, n)
        if target.classes is None:
            target.colorbar(ax)
    return ax


def _coordinates(name: str, embedding: Any, components: tuple[int, int]) -> Array:
    points = np.asarray(getattr(embedding, "embedding_", embedding))
    if points.ndim != 2 or points.shape[1] < 2:
        raise ValueError(
            f"{name} must have at least two columns; got shape {points.shape}. For a single "
            "coordinate, draw a histogram."
        )
    if len(components) != 2 or not all(0 <= c < points.shape[1] for c in components):
        raise ValueError(
            f"components must be two of the {points.shape[1]} columns of {name}, counted from 0; "
            f"got {components}."
        )
    if points.dtype.kind not in "iuf" or not np.isfinite(points).all():
        raise ValueError(f"{name} must contain only finite numbers.")
    return points[:, list(components)].astype(float)


def _targets(y: Any, y_new: Any, n: int, m: int) -> tuple[Target, Target | None]:
    """Read both together, so that they have the same colors."""
    if y_new is None:
        return Target.of(y, n), None
    check_same_length("y", y, n, "samples")
    check_same_length("y_new", y_new, m, "new samples")
    both = Target.of(np.concatenate([np.asarray(y), np.asarray(y_new)]), n + m)
    label = str(getattr(y, "name", None) or "target")
    parts = (both.values[:n], both.values[n:])
    first, second = (Target(part, both.classes, label, both.low, both.high) for part in parts)
    return first, second


def _write_numbers(ax: Any, points: Array, rows: Array) -> None:
    halo = matplotlib("patheffects").withStroke(linewidth=2, foreground="white")
    for row in rows:
        ax.annotate(
            str(row), points[row], xytext=(8, 7), textcoords="offset points", fontsize=8, zorder=6,
            path_effects=[halo],
        )  # fmt: skip
