"""Plot prototypes of each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._validation import check_count
from leafkernel.plots._colors import Target
from leafkernel.plots._columns import Columns
from leafkernel.plots._style import (
    Array,
    check_axes,
    check_rows,
    check_same_length,
    inches,
    number,
    panels,
    quiet,
    short,
)
from leafkernel.tables._values import Floats
from leafkernel.tasks.prototypes import ClassPrototypes, Prototypes

_MOST_IMAGES = 12


def plot_prototypes(
    prototypes: Any,
    X: Any,
    y: Any = None,
    *,
    images: tuple[int, ...] | None = None,
    features: Any = None,
    n_features: int = 12,
    feature_names: Any = None,
    max_images: int = _MOST_IMAGES,
    cmap: Any = "gray_r",
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot the prototypes of each class as a card of values, or as images.

    Use it to show typical samples of each class. On a card, each feature has a line from its
    smallest to its largest value in the training samples. For ``class_prototypes``, the line shows
    the median and the quartiles. For ``select_prototypes``, it shows a dot for each prototype, and
    the value of the first one is printed. Images of selected prototypes come with the mean
    proximity of their class to the nearest prototype.

    Parameters
    ----------
    prototypes : ClassPrototypes, Prototypes, dict or array-like of int
        The result of ``class_prototypes``, ``select_prototypes`` or ``medoids``, or row numbers.
    X : {array-like, dataframe} of shape (n, n_features)
        The training samples.
    y : array-like of shape (n,), default=None
        Their classes. Used only if ``prototypes`` are row numbers.
    images : tuple of int, default=None
        Shape of a sample as an image, such as (28, 28), or (32, 32, 3) for color images.
    features : list of str or int, default=None
        Columns to show. By default, the columns in which the classes differ most.
    n_features : int, default=12
        Number of columns to show if ``features`` is None.
    feature_names : list of str, default=None
        Names of the columns. By default, those of X.
    max_images : int, default=12
        Largest number of images of a class.
    cmap : str or matplotlib Colormap, default="gray_r"
        Color map of gray-scale images.
    title : str, default=None
        Title of the plot.
    ax : matplotlib Axes, default=None
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the plot. Its ``child_axes`` are the cards, or the images row by row.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.plots import plot_prototypes
    >>> from leafkernel.tasks import class_prototypes
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "uniform").fit(X, y)
    >>> ax = plot_prototypes(class_prototypes(prox, X, y), X, ax=Figure().subplots())
    >>> len(ax.child_axes)
    3
    """
    classes, rows = _by_class(prototypes, X, y)
    if images is not None:
        drawn = _images(prototypes, X, rows, images, check_count("max_images", max_images))
        ax = _draw_images(drawn, classes, rows, prototypes, cmap, ax)
    else:
        columns = Columns(X)
        columns.rename(feature_names)
        if feature_names is None and isinstance(prototypes, ClassPrototypes):
            columns.rename(prototypes.feature_names)
        n_features = check_count("n_features", n_features)
        ax = _draw_cards(prototypes, columns, classes, rows, features, n_features, ax)
    if title is not None:
        ax.set_title(title, pad=22)
    return ax


def _by_class(prototypes: Any, X: Any, y: Any) -> tuple[Array, list[Array]]:
    """Return the classes, and the rows of the prototypes of each."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    rows = check_rows("prototypes", prototypes, n)
    if isinstance(prototypes, ClassPrototypes):
        labels = prototypes.classes
    elif isinstance(prototypes, Prototypes):
        labels = prototypes.labels
    elif isinstance(prototypes, dict):
        labels = np.array(list(prototypes))
    elif y is None:
        labels = np.full(len(rows), "prototypes")
    else:
        check_same_length("y", y, n, "training samples")
        labels = np.asarray(y)[rows]
    if not len(rows):
        raise ValueError("prototypes is empty, so there is nothing to draw.")
    classes = np.unique(labels)
    return classes, [rows[labels == label] for label in classes]


def _images(
    prototypes: Any, X: Any, rows: list[Array], shape: tuple[int, ...], most: int
) -> list[Array]:
    """Return the images of each class, shape (k, height, width) or (k, height, width, 3)."""
    table = np.asarray(X)
    if int(np.prod(shape)) != table.shape[1]:
        raise ValueError(
            f"images={shape} requires {int(np.prod(shape))} columns, but X has {table.shape[1]}."
        )
    if isinstance(prototypes, ClassPrototypes):
        return [middle.reshape(1, *shape) for middle in prototypes.median]
    return [table[some[:most]].reshape(-1, *shape) for some in rows]


def _draw_images(
    drawn: list[Array], classes: Array, rows: list[Array], prototypes: Any, cmap: Any, ax: Any
) -> Any:
    n_columns = max(len(images) for images in drawn)
    ax = check_axes(ax, (0.8 * n_columns + 1.6, 0.88 * len(classes)))
    # Limit the width, so that images are close to each other.
    width, height = inches(ax)
    shape = drawn[0].shape
    needed = 1.15 * n_columns * height / len(classes) * shape[2] / shape[1]
    filled = min(1.0, needed / width)
    grid = panels(ax, np.ones(n_columns), np.ones(len(classes)), space=0.01, filled=filled)
    low = min(float(images.min()) for images in drawn)
    high = max(float(images.max()) for images in drawn)
    coverage = getattr(prototypes, "coverage", {})
    for line, images, label, some in zip(grid, drawn, classes, rows, strict=True):
        for panel in line:
            panel.set_axis_off()
        for panel, image in zip(line, images, strict=False):
            scaled = image if image.ndim == 2 else (image - low) / ((high - low) or 1)
            panel.imshow(scaled, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
        text = short(label, 18)
        known = coverage.get(label)
        if known is not None:
            text = f"{text}\nproximity {known:.2f}"
        line[0].text(
            -0.12, 0.5, text, transform=line[0].transAxes, ha="right", va="center", fontsize=9
        )
        if len(some) > len(images) and not isinstance(prototypes, ClassPrototypes):
            line[-1].text(
                1.1, 0.5, f"+ {len(some) - len(images)}", transform=line[-1].transAxes,
                va="center", fontsize=9, color="0.4",
            )  # fmt: skip
    return ax


def _draw_cards(
    prototypes: Any,
    columns: Columns,
    classes: Array,
    rows: list[Array],
    features: Any,
    n_features: int,
    ax: Any,
) -> Any:
    table = _numbers(columns)
    if isinstance(prototypes, ClassPrototypes):
        middles = prototypes.median
        spans = [np.stack(pair) for pair in zip(prototypes.lower, prototypes.upper, strict=True)]
    else:
        middles = np.stack([table[some[0]] for some in rows])
        spans = [np.stack([table[some].min(0), table[some].max(0)]) for some in rows]
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    size = np.where(high > low, high - low, 1.0)
    if features is None:
        parted = (np.nanmax(middles, axis=0) - np.nanmin(middles, axis=0)) / size
        shown = np.argsort(-parted, kind="stable")[:n_features]
    else:
        shown = np.array(columns.positions(features))

    ax = check_axes(ax, (2.1 * len(classes) + 2, 0.36 * len(shown) + 1.2))
    cards = panels(ax, np.ones(len(classes)), space=0.06).ravel()
    places = np.arange(len(shown))
    palette = Target.of(classes.astype(str), len(classes)).colors()
    for c, (card, label, color) in enumerate(zip(cards, classes, palette, strict=True)):
        card.hlines(places, 0, 1, color="0.88", linewidth=1.2, zorder=1)
        ends = ((spans[c] - low) / size)[:, shown]
        card.hlines(places, *ends, color=color, linewidth=5, alpha=0.45, zorder=2)
        if not isinstance(prototypes, ClassPrototypes):
            for row in rows[c][1:]:
                dots = ((table[row] - low) / size)[shown]
                card.scatter(dots, places, s=12, color=color, zorder=3, linewidths=0)
        at = ((middles[c] - low) / size)[shown]
        card.scatter(at, places, s=38, color=color, zorder=4, edgecolors="black", linewidths=0.8)
        for place, j in enumerate(shown):
            card.text(1.03, place, number(middles[c, j]), va="center", fontsize=8, color="0.25")
        card.set(xlim=(-0.04, 1.28), ylim=(len(shown) - 0.4, -0.6), title=short(label, 20))
        card.set_xticks([0, 1], ["min", "max"], fontsize=8, color="0.45")
        card.set_yticks(places, [short(columns.names[j]) for j in shown] if c == 0 else [])
        card.tick_params(length=0)
        quiet(card, "top", "right", "bottom", "left")
    return ax


def _numbers(columns: Columns) -> Floats:
    table = np.empty(columns.shape)
    for j in range(columns.shape[1]):
        column = columns[j]
        if column.is_category:
            raise ValueError(
                f"X must have only numeric columns, but column {column.name!r} has categories. "
                "Pass only the numeric columns."
            )
        table[:, j] = column.values
    return table
