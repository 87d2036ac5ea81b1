"""Plot imputed values against observed and true values."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafkernel.plots._columns import Column, Columns
from leafkernel.plots._style import (
    Array,
    check_axes,
    ink_on,
    is_rasterized,
    panels,
    point_alpha,
    point_size,
    quiet,
    short,
)

OBSERVED, IMPUTED, TRUTH = "0.65", "#D55E00", "#0072B2"
# Largest number of categories for writing counts into the table.
_MOST_WRITTEN = 10


def plot_imputation(
    X_missing: Any,
    X_imputed: Any,
    *,
    column: Any,
    X_true: Any = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot the imputed values of a column against the observed values, and the true values.

    Use it to check an imputation. If you hide known values and impute them, pass the complete data
    as ``X_true`` to see the errors.

    Parameters
    ----------
    X_missing : {array-like, dataframe} of shape (n, n_features)
        The samples with missing values.
    X_imputed : {array-like, dataframe} of shape (n, n_features)
        The same samples after imputation.
    column : int or str
        The column, by position or by name.
    X_true : {array-like, dataframe} of shape (n, n_features), default=None
        The same samples with their true values, if known.
    title : str, default=None
        Title of the plot.
    ax : matplotlib Axes, default=None
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the distributions. With ``X_true``, its ``child_axes`` are the distributions
        and a plot of imputed against true values.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from leafkernel.plots import plot_imputation
    >>> from leafkernel.tasks import ProximityImputer
    >>> X, y = load_iris(return_X_y=True)
    >>> holes = X.copy()
    >>> holes[::5, 2] = np.nan
    >>> filled = ProximityImputer(random_state=0).fit_transform(holes, y)
    >>> ax = plot_imputation(holes, filled, column=2, X_true=X, ax=Figure().subplots())
    >>> len(ax.child_axes)
    2
    """
    before = _read("X_missing", X_missing, None, column)
    after = _read("X_imputed", X_imputed, X_missing, column)
    truth = None if X_true is None else _read("X_true", X_true, X_missing, column)
    holes = before.missing
    if not holes.any():
        raise ValueError(f"column {before.name!r} of X_missing has no missing values to compare.")
    if holes.all():
        raise ValueError(f"column {before.name!r} of X_missing has only missing values.")
    if after.missing[holes].any():
        raise ValueError(f"column {before.name!r} of X_imputed still has missing values.")
    observed, imputed = before.values[~holes], after.values[holes]
    true = None if truth is None else truth.values[holes]
    if truth is not None and truth.missing[holes].any():
        known = ~truth.missing[holes]
        imputed, true = imputed[known], truth.values[holes][known]

    ax = check_axes(ax, (5.6, 4.2) if true is None else (10.0, 4.2))
    left, right = ax, None
    if true is not None:
        left, right = panels(ax, (1.15, 1), space=0.14).ravel()
    if before.is_category:
        _draw_shares(left, observed, imputed, true)
    else:
        _draw_distributions(left, observed, imputed, true)
    left.set_xlabel(before.name)
    left.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, fontsize=9,
        handlelength=1.4, columnspacing=1.2, borderaxespad=0.2,
    )  # fmt: skip
    quiet(left, "top", "right")
    if right is not None and true is not None:
        if before.is_category:
            _draw_confusion(right, imputed, true, before.name)
        else:
            _draw_agreement(right, imputed, true, float(np.median(observed)), before.name)
    if title is not None:
        ax.set_title(title, pad=26)
    return ax


def _read(name: str, X: Any, like: Any, column: Any) -> Column:
    columns = Columns(X, name)
    j = columns.positions([column], "column")[0]
    if like is not None and columns.shape != Columns(like).shape:
        raise ValueError(
            f"{name} has shape {columns.shape}, but X_missing has shape {Columns(like).shape}. "
            "Pass the same samples in the same order."
        )
    return columns[j]


def _draw_distributions(ax: Any, observed: Array, imputed: Array, true: Array | None) -> None:
    """Draw normalized histograms with the same bins."""
    everything = np.concatenate([observed, imputed] + ([] if true is None else [true]))
    n_bins = int(np.clip(2 * len(observed) ** (1 / 3), 8, 60))
    edges = np.histogram_bin_edges(everything, n_bins)
    line: dict[str, Any] = {"histtype": "step", "linewidth": 1.8}
    kinds = [
        (f"observed ({len(observed):,})", observed, {"color": OBSERVED}),
        (f"imputed ({len(imputed):,})", imputed, {**line, "color": IMPUTED}),
    ]
    if true is not None:
        kinds.append(("true values", true, {**line, "color": TRUTH, "linestyle": "--"}))
    for label, values, options in kinds:
        weights = np.full(len(values), 1 / len(values))
        ax.hist(values.astype(float), edges, weights=weights, label=label, **options)
    ax.set_ylabel("share of values")


def _draw_shares(ax: Any, observed: Array, imputed: Array, true: Array | None) -> None:
    """Draw bars with the shares of categories."""
    names = _categories(observed, imputed, true)
    kinds = [
        (f"observed ({len(observed):,})", observed, OBSERVED),
        (f"imputed ({len(imputed):,})", imputed, IMPUTED),
    ]
    if true is not None:
        kinds.append(("true values", true, TRUTH))
    width = 0.8 / len(kinds)
    for i, (label, values, color) in enumerate(kinds):
        shares = [float((values == name).mean()) for name in names]
        at = np.arange(len(names)) + (i - (len(kinds) - 1) / 2) * width
        ax.bar(at, shares, 0.92 * width, color=color, label=label)
    crowded = sum(len(str(name)) for name in names) > 45
    turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(range(len(names)), [short(name, 16) for name in names], **turn)
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel("share of values")


def _categories(*parts: Array | None) -> list[Any]:
    found = dict.fromkeys(value for part in parts if part is not None for value in part)
    return sorted(found, key=lambda value: (type(value).__name__, value))


def _draw_agreement(ax: Any, imputed: Array, true: Array, median: float, name: str) -> None:
    """Draw imputed against true numbers, with the mean absolute error."""
    ends = [min(imputed.min(), true.min()), max(imputed.max(), true.max())]
    ax.plot(ends, ends, color="0.6", linewidth=1, zorder=1)
    n = len(true)
    ax.scatter(
        true, imputed, s=point_size(ax, n), alpha=point_alpha(n), color=IMPUTED, linewidths=0,
        rasterized=is_rasterized(n),
    )  # fmt: skip
    error = float(np.abs(imputed - true).mean())
    plain = float(np.abs(median - true).mean())
    text = f"mean absolute error {error:.3g}"
    if plain > 0:
        text += f"\n{error / plain:.0%} of the error of the median"
    ax.text(0.03, 0.97, text, transform=ax.transAxes, va="top", fontsize=9, color="0.25")
    ax.set(xlabel=f"true {name}", ylabel=f"imputed {name}")
    quiet(ax, "top", "right")


def _draw_confusion(ax: Any, imputed: Array, true: Array, name: str) -> None:
    """Draw a confusion matrix of true and imputed categories."""
    names = _categories(imputed, true)
    counts = np.array([[np.sum((true == t) & (imputed == i)) for i in names] for t in names])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap="Oranges", vmin=0, vmax=1, aspect="auto")
    if len(names) <= _MOST_WRITTEN:
        painted = image.to_rgba(shares)
        for i, j in np.ndindex(counts.shape):
            ax.text(
                j, i, f"{counts[i, j]:,}", ha="center", va="center", fontsize=9,
                color=ink_on(painted[i, j]),
            )  # fmt: skip
    labels = [short(value, 12) for value in names]
    long = sum(len(label) for label in labels) > 40
    ax.set_xticks(range(len(names)), labels, rotation=40 if long else 0)
    ax.set_yticks(range(len(names)), labels)
    ax.tick_params(length=0)
    right = float((imputed == true).mean())
    ax.set(xlabel=f"imputed {name}  ({right:.0%} correct)", ylabel=f"true {name}")
    quiet(ax, "top", "right", "bottom", "left")
