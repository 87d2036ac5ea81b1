"""Plot the proximity matrix as a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._validation import check_choice, check_count
from leafkernel.inside import Inside
from leafkernel.plots._colors import Target, draw_legend
from leafkernel.plots._ordering import Rows, bin_edges, by_class, coordinates, seriate
from leafkernel.plots._style import Array, check_axes, inches, matplotlib, number, quiet, short
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_similarity

# Largest memory of sums, in bytes.
_AT_ONCE = 64_000_000
# The upper quantile of the colors. Otherwise a diagonal of ones would make all others pale.
_BRIGHTEST = 0.995
# The width of a letter and the height of a line, in inches.
_LETTER, _LINE = 0.1, 0.24


def plot_proximity(
    prox: ForestProximity,
    y: Any = None,
    *,
    order: Any = None,
    n_bins: int = 400,
    norm: Any = None,
    cmap: Any = "magma_r",
    colorbar: bool = True,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot the proximities of all training samples as a heat map.

    Use it to see classes and clusters in the proximities. Samples are ordered so that similar ones
    are adjacent. For more than ``n_bins`` samples, adjacent samples are combined into bins, and the
    plot shows means over pairs of bins. The full matrix is never built.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    y : array-like of shape (n,), default=None
        Classes or numbers of the training samples.
    order : {"class", "cluster"} or array-like of int of shape (n,), default=None
        The order of the samples. "class" sorts by class and by similarity within each class, or by
        value for numbers. "cluster" sorts by similarity only, and shows y in a strip. An array has
        the row numbers in the order to draw. By default, "class" if y is given, else "cluster".
    n_bins : int, default=400
        Approximate number of bins. Bins do not cross classes, and small classes get enough bins to
        be visible.
    norm : matplotlib Normalize, default=None
        Normalization of the colors. By default, the square root, because most proximities are near
        zero, up to the 0.995 quantile.
    cmap : str or matplotlib Colormap, default="magma_r"
        Color map.
    colorbar : bool, default=True
        Whether to draw the color bar.
    title : str, default=None
        Title of the plot.
    ax : matplotlib Axes, default=None
        Axes to draw on, preferably of a figure with ``layout="compressed"``, which suits square
        plots. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the plot. ``ax.images[0]`` has the proximities or their means.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.plots import plot_proximity
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "kerf").fit(X, y)
    >>> ax = plot_proximity(prox, y, n_bins=60, ax=Figure().subplots())
    >>> ax.images[0].get_array().shape
    (60, 60)
    """
    prox = check_similarity(prox, "plot_proximity")
    n = prox.n_samples_fit_
    n_bins = check_count("n_bins", n_bins)
    target = Target.of(y, n, what="training samples")
    if order is None:
        order = "cluster" if y is None else "class"
    rows = _order(prox, target, order)
    is_by_number = isinstance(order, str) and order == "class" and target.classes is None
    groups, labels = _groups(target, rows)
    edges = bin_edges(groups, n_bins)
    means = block_means(prox, rows, edges)

    ax = check_axes(ax, (6.6, 5.6), "compressed")
    norm, is_clipped = _norm(norm, means)
    image = ax.imshow(
        means, cmap=cmap, norm=norm, interpolation="nearest" if len(means) < 200 else None
    )
    quiet(ax, "top", "right", "bottom", "left")
    ax.set(xticks=[], yticks=[], title=title)
    symmetric = Inside.of(prox).is_symmetric
    ax.set_xlabel("training samples" if symmetric else "as reference")
    ax.set_ylabel("training samples" if symmetric else "as query")
    if is_by_number:
        _mark_numbers(ax, target, rows, edges)
    elif labels:
        _mark_classes(ax, labels, np.searchsorted(edges, np.append(0, groups.cumsum())))
    elif target.label:
        _strip(ax, target, rows, edges)
    if colorbar:
        label = "proximity" if len(means) == n else "mean proximity"
        _colorbar(ax, image, label, is_clipped=is_clipped)
    return ax


def block_means(prox: ForestProximity, rows: Rows, edges: Rows) -> Array:
    """Return the mean proximity of each pair of bins, shape (b, b), without building P."""
    n, n_bins = len(rows), len(edges) - 1
    sizes = np.diff(edges)
    bin_of = np.empty(n, dtype=np.intp)
    bin_of[rows] = np.repeat(np.arange(n_bins), sizes)
    means = np.empty((n_bins, n_bins))
    width = max(1, min(n_bins, _AT_ONCE // (8 * n)))
    for start in range(0, n_bins, width):
        columns = np.arange(start, min(start + width, n_bins))
        shares = (bin_of[:, None] == columns) / sizes[columns]
        sums = prox.weighted_sums(shares)[rows]
        means[:, columns] = np.add.reduceat(sums, edges[:-1], axis=0) / sizes[:, None]
    return means


def _order(prox: ForestProximity, target: Target, order: Any) -> Rows:
    if not isinstance(order, str):
        rows = np.asarray(order)
        if not np.array_equal(np.sort(rows), np.arange(prox.n_samples_fit_)):
            raise ValueError(
                f"order must be 'class', 'cluster', or an array with each of the row numbers 0 to "
                f"{prox.n_samples_fit_ - 1} once."
            )
        return rows.astype(np.int64)
    check_choice("order", order, ("class", "cluster"))
    if order == "cluster":
        return seriate(coordinates(prox))
    if not target.label:
        raise ValueError("order='class' requires y. Pass y, or use order='cluster'.")
    if target.classes is None:
        return np.argsort(target.values, kind="stable")
    return by_class(coordinates(prox), target.values)


def _groups(target: Target, rows: Rows) -> tuple[Rows, list[str]]:
    """Return the sizes and names of the classes; a single unnamed group if they are mixed."""
    if target.classes is not None and target.label:
        codes = target.values[rows]
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        if len(starts) == target.n_classes:
            names = [short(label, 16) for label in target.classes[codes[starts]]]
            return np.diff(np.append(starts, len(rows))), names
    return np.array([len(rows)]), []


def _norm(norm: Any, means: Array) -> tuple[Any, bool]:
    """Return the norm, and whether its maximum is below the largest mean."""
    if norm is None:
        largest = float(means.max())
        top = float(np.quantile(means, _BRIGHTEST)) or largest
        # A slightly larger range is better than clipped colors.
        top = largest if largest < 1.5 * top else top
        norm = matplotlib("colors").PowerNorm(0.5, vmin=0, vmax=top or 1.0, clip=True)
    else:
        norm.autoscale_None(means)
    return norm, bool(means.max() > norm.vmax)


def _mark_classes(ax: Any, names: list[str], edges: Rows) -> None:
    """Draw lines between classes, and write their names."""
    for edge in edges[1:-1]:
        ax.axhline(edge - 0.5, color="0.55", linewidth=0.7)
        ax.axvline(edge - 0.5, color="0.55", linewidth=0.7)
    centers = (edges[:-1] + edges[1:] - 1) / 2
    width, height = (side / edges[-1] for side in inches(ax))
    fits = bool((np.diff(edges) * width > _LETTER * max(len(name) for name in names)).all())
    ax.set_yticks(_spread(centers, _LINE / height), names)
    if fits:
        ax.set_xticks(centers, names)
    else:
        ax.set_xticks(_spread(centers, _LINE / width), names, rotation=90)
    ax.tick_params(length=0)


def _spread(places: Array, least: float) -> Array:
    """Return positions, moved slightly so that they are at least ``least`` apart."""
    moved: Array = np.array(places, dtype=float)
    for _ in range(200):
        lack = least - np.diff(moved)
        if (lack <= 1e-6 * least).all():
            break
        push = np.maximum(lack, 0) / 2
        moved[:-1] -= push
        moved[1:] += push
    return moved


def _mark_numbers(ax: Any, target: Target, rows: Rows, edges: Rows) -> None:
    """Write the numbers of some bins on the axes."""
    at = np.linspace(0, len(edges) - 2, 5).round().astype(int)
    labels = [number(target.values[rows[edges[i]]]) for i in at]
    ax.set_xticks(at, labels)
    ax.set_yticks(at, labels)
    ax.set_xlabel(f"{ax.get_xlabel()}, by {target.label}")
    ax.set_ylabel(f"{ax.get_ylabel()}, by {target.label}")
    ax.tick_params(length=3, color="0.55")


def _strip(ax: Any, target: Target, rows: Rows, edges: Rows) -> None:
    """Show y beside the matrix, with the mean color of each bin."""
    colors = np.add.reduceat(target.colors()[rows], edges[:-1], axis=0)
    colors = (colors / np.diff(edges)[:, None])[:, None, :3].clip(0, 1)
    left = ax.inset_axes([-0.045, 0, 0.03, 1])
    left.imshow(colors, aspect="auto", interpolation="nearest")
    below = ax.inset_axes([0, -0.045, 1, 0.03])
    below.imshow(colors.swapaxes(0, 1), aspect="auto", interpolation="nearest")
    for strip in (left, below):
        strip.set(xticks=[], yticks=[])
        quiet(strip, "top", "right", "bottom", "left")
    room = 0.045 * 72 * inches(ax)[0] + 4
    ax.xaxis.labelpad = ax.yaxis.labelpad = room
    if target.classes is None:
        target.colorbar(ax)
    else:
        draw_legend(ax, target.handles(), len(rows), above=True)


def _colorbar(ax: Any, image: Any, label: str, *, is_clipped: bool) -> None:
    # An inset has the height of the matrix, which is square.
    room = ax.inset_axes([1.03, 0.04, 0.04, 0.92])
    bar = ax.figure.colorbar(
        image, cax=room, label=label, extend="max" if is_clipped else "neither"
    )
    norm = image.norm
    # Ticks are evenly spaced on the color bar, then rounded.
    ticks = np.asarray(norm.inverse(np.linspace(0, 1, 6)), dtype=float)
    ticks = np.unique([float(f"{tick:.1g}") for tick in ticks])
    ticks = ticks[(ticks >= norm.vmin) & (ticks <= norm.vmax)]
    bar.set_ticks(ticks, labels=[number(tick) for tick in ticks])
    bar.minorticks_off()
    bar.outline.set_visible(False)
