"""Plot the most similar training samples of one sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel._row_labels import label_text, labels_at
from leafkernel._validation import check_count, check_length
from leafkernel.inside import Inside
from leafkernel.plots._colors import Target
from leafkernel.plots._columns import Column, Columns
from leafkernel.plots._style import (
    Array,
    check_axes,
    ink_on,
    matplotlib,
    number,
    panels,
    quiet,
    short,
)
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_similarity
from leafkernel.tasks._query import new_sample, training_row

# Larger differences, in standard deviations, have the same color.
_DEEPEST = 2.0
_OTHER_CATEGORY = "0.8"
# Longer column names are rotated.
_UPRIGHT = 7


def plot_neighbors(
    prox: ForestProximity,
    X: Any,
    y: Any = None,
    *,
    row: Any = None,
    x: Any = None,
    n_neighbors: int = 10,
    features: Any = None,
    n_features: int = 8,
    importance: Any = None,
    feature_names: Any = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot the most similar training samples of one sample, with their values.

    Use it to see why samples are similar. Bars are proximities, colored by the targets. The table
    shows the values of the neighbors. Its colors are differences from the sample in standard
    deviations of the training samples. Other categories are gray.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    X : {array-like, dataframe} of shape (n, n_features)
        The training samples.
    y : array-like of shape (n,), default=None
        Their classes or numbers, for the colors. By default, those that ``prox`` was fitted on.
    row : label, default=None
        A training sample: its label in the index of the training data frame, or its position.
    x : {array-like, dataframe} of shape (1, n_features) or (n_features,), default=None
        A new sample. Pass either ``x`` or ``row``.
    n_neighbors : int, default=10
        Largest number of neighbors. Samples with proximity 0 are omitted.
    features : list of str or int, default=None
        Columns to show. By default, the columns in which the neighbors are closer to the sample
        than other training samples are.
    n_features : int, default=8
        Number of columns to show if ``features`` is None.
    importance : array-like of shape (n_features,), default=None
        Importances of the columns. The most important columns are shown. Use for example
        ``leafkernel.tasks.local_importance(prox, x)[0]``.
    feature_names : list of str, default=None
        Names of the columns. By default, those of X.
    title : str, default=None
        Title of the plot.
    ax : matplotlib Axes, default=None
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the plot. Its ``child_axes`` are the bars and the table.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.plots import plot_neighbors
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> ax = plot_neighbors(prox, X, y, row=77, n_neighbors=5, ax=Figure().subplots())
    >>> bars, table = ax.child_axes
    >>> len(bars.patches)
    5
    """
    prox = check_similarity(
        prox, "plot_neighbors", "Use plot_contributions(prox, x), or prox.reweigh('boosted')."
    )
    check_length("X", X, prox.n_samples_fit_)
    if (x is None) == (row is None):
        given = "neither" if x is None else "both"
        raise ValueError(
            f"pass either x (a new sample) or row (a training sample); got {given} of them."
        )
    columns = Columns(X)
    columns.rename(feature_names)
    target = Target.of(prox.y_ if y is None else y, prox.n_samples_fit_, what="training samples")
    query = new_sample(prox, x, "x") if row is None else training_row(prox, row, "row")
    k = min(check_count("n_neighbors", n_neighbors), prox.n_samples_fit_ - (query.row is not None))
    inside = Inside.of(prox)
    similarity, near = (part[0] for part in inside.engine.nearest(query.product, k))
    near, similarity = near[similarity > 0], similarity[similarity > 0]
    if not len(near):
        raise ValueError(f"{query.label} has no proximity to any training sample.")
    sample = _sample_values(columns, X, x, query.row)
    n_features = check_count("n_features", n_features)
    shown = _choose(columns, sample, near, features, n_features, importance)

    width = 3.4 + 0.72 * len(shown)
    ax = check_axes(ax, (max(width, 6.4), 0.34 * len(near) + 2.3))
    part = max(0.25, 2.0 / (2.0 + 0.72 * len(shown)))
    bars, table = panels(ax, (part, 1 - part), space=0.02).ravel()
    _draw_bars(bars, target, near, similarity, predicts=inside.predicts)
    name = "new sample" if query.row is None else f"row {label_text(row)}"
    labels = labels_at(prox.index_, near)
    _draw_table(table, columns, shown, sample, near)
    bars.set_ylim(*table.get_ylim())
    bars.set_yticks(
        [-1, *range(len(near))],
        [name, *(_name(target, i, label) for i, label in zip(near, labels, strict=True))],
    )
    bars.get_yticklabels()[0].set_fontweight("bold")
    if target.classes is None:
        target.colorbar(ax)
    _difference_bar(ax, table)
    if title is not None:
        longest = max(len(label.get_text()) for label in table.get_xticklabels())
        ax.set_title(title, pad=16 if longest <= _UPRIGHT else 12 + 3.2 * longest)
    return ax


def _sample_values(columns: Columns, X: Any, x: Any, row: int | None) -> list[Any]:
    """Return the values of the sample, one for each column of X."""
    if row is not None:
        return [columns[j].values[row] for j in range(columns.shape[1])]
    if hasattr(x, "columns"):
        own = Columns(x)
        return [own[j].values[0] for j in range(own.shape[1])]
    values = np.asarray(x, dtype=None if hasattr(X, "dtype") else object).ravel()
    return list(values)


def _choose(
    columns: Columns,
    sample: list[Any],
    near: Array,
    features: Any,
    n_features: int,
    importance: Any,
) -> list[int]:
    """Return the columns to show."""
    if features is not None:
        return columns.positions(features)
    if importance is not None:
        ranks = -np.asarray(importance, dtype=float).ravel()
        if len(ranks) != columns.shape[1]:
            raise ValueError(
                f"importance has {len(ranks)} entries, but X has {columns.shape[1]} columns."
            )
    else:
        gains = [_gain(columns[j], sample[j], near) for j in range(columns.shape[1])]
        ranks = -np.array(gains)
    order = np.argsort(ranks, kind="stable")
    return [int(j) for j in order[:n_features]]


def _gain(column: Column, own: Any, near: Array) -> float:
    """Return how much closer neighbors are to the sample than all training samples, on average.

    Distances are in standard deviations, or shares of other categories. The mean distance of all
    samples is limited to one standard deviation. Otherwise features would rank high in which the
    sample is extreme but its neighbors are not. Returns -inf for constant or missing values.
    """
    rows = near[~column.missing[near]]
    if column.is_constant or _is_nan(own) or not len(rows):
        return -np.inf
    present = column.values[~column.missing]
    if column.is_category:
        return float((present != own).mean() - (column.values[rows] != own).mean())
    far, close = np.abs(present - own).mean(), np.abs(column.values[rows] - own).mean()
    return min(float(far) / column.spread, 1.0) - float(close) / column.spread


def _is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))


def _name(target: Target, row: int, label: Any) -> str:
    if not target.label:
        return f"row {label_text(label)}"
    if target.classes is None:
        return f"row {label_text(label)}: {number(float(target.values[row]))}"
    return f"row {label_text(label)}: {short(target.classes[target.values[row]], 16)}"


def _draw_bars(ax: Any, target: Target, near: Array, similarity: Array, *, predicts: bool) -> None:
    ax.barh(range(len(near)), similarity, color=target.colors()[near], height=0.72)
    for place, value in enumerate(similarity):
        text = f" {value:.1%}" if predicts else f" {value:.2g}"
        ax.text(value, place, text, va="center", fontsize=8, color="0.3")
    ax.set_xlim(0, 1.32 * float(similarity.max()))
    ax.set_xticks([])
    ax.set_xlabel("share of the prediction" if predicts else "proximity")
    ax.tick_params(axis="y", length=0)
    quiet(ax, "top", "right", "bottom")
    ax.spines["left"].set_color("0.7")


def _draw_table(
    ax: Any, columns: Columns, shown: list[int], sample: list[Any], near: Array
) -> None:
    """Write the values of the sample and its neighbors, colored by the difference."""
    cells = np.full((len(near) + 1, len(shown)), np.nan)
    texts = []
    for place, j in enumerate(shown):
        column, own = columns[j], sample[j]
        values = [own, *column.values[near]]
        texts.append([_text(column, value) for value in values])
        if column.is_category:
            continue  # other categories are drawn in gray below
        cells[0, place] = 0.0
        if not _is_nan(own):
            cells[1:, place] = (column.values[near].astype(float) - own) / column.spread
    image = ax.imshow(
        cells, cmap=_diverging(), vmin=-_DEEPEST, vmax=_DEEPEST, aspect="auto",
        extent=(-0.5, len(shown) - 0.5, len(near) - 0.5, -1.5),
    )  # fmt: skip
    painted = image.to_rgba(image.get_array())
    for place, written in enumerate(texts):
        for line, text in enumerate(written):
            color = ink_on(painted[line, place])
            if columns[shown[place]].is_category:
                same = text == written[0]
                painted_cell = "white" if same else _OTHER_CATEGORY
                ax.add_patch(_cell(place, line - 1, painted_cell))
                color = "black"
            weight = "bold" if line == 0 else "normal"
            ax.text(
                place, line - 1, text, ha="center", va="center", fontsize=8, color=color,
                fontweight=weight,
            )  # fmt: skip
    ax.axhline(-0.5, color="0.35", linewidth=1)
    ax.xaxis.tick_top()
    labels = [short(columns.names[j], 26) for j in shown]
    fits = max(len(label) for label in labels) <= _UPRIGHT
    turn = {} if fits else {"rotation": 38, "ha": "left", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(shown)), labels, fontsize=9, **turn)
    ax.set_yticks([])
    ax.tick_params(length=0)
    quiet(ax, "top", "right", "bottom", "left")


def _text(column: Column, value: Any) -> str:
    if _is_nan(value):
        return "-"
    return short(value, 10) if column.is_category else number(float(value))


def _cell(column: int, line: int, color: str) -> Any:
    box = matplotlib("patches").Rectangle
    return box((column - 0.5, line - 0.5), 1, 1, facecolor=color, edgecolor="none")


def _diverging() -> Any:
    colors = matplotlib("colors")
    ends = ("#2166ac", "#92c5de", "#ffffff", "#f4a582", "#b2182b")
    found = colors.LinearSegmentedColormap.from_list("difference", ends)
    return found.with_extremes(bad="0.93")


def _difference_bar(ax: Any, table: Any) -> None:
    bar = ax.figure.colorbar(
        table.images[0], ax=ax, location="bottom", shrink=0.45, aspect=30, pad=0.02,
        anchor=(1.0, 1.0), label="standard deviations from the sample",
    )  # fmt: skip
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["≤ -2", "-1", "0", "1", "≥ 2"])
    bar.ax.tick_params(length=0, labelsize=8)
    bar.outline.set_visible(False)
