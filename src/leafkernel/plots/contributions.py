"""Plot the contributions of training rows to the score of a boosted model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from leafkernel._row_labels import label_text
from leafkernel._validation import check_count
from leafkernel.plots._style import check_axes, number, quiet, short
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_proximity
from leafkernel.tasks.explanation import explain_prediction
from leafkernel.tasks.score_explanation import ScoreExplanation

_UP, _DOWN = "#D55E00", "#0072B2"
# The side with the shorter bars has at least this share of the other side, for texts.
_LEAST_ROOM = 0.55
# The width of the number at the end of a bar, as a share of the total width of the bars.
_TEXT_ROOM = 0.15


def plot_contributions(
    prox: ForestProximity | ScoreExplanation,
    x: Any = None,
    *,
    row: Any = None,
    y: Any = None,
    n: int = 10,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Plot the training rows that push the score of a boosted model up and down.

    Use it to explain a prediction of a boosted model. Bars are contributions to the raw score. Bars
    to the right push the score up, and bars to the left push it down. The title shows the score,
    which is the base score plus the contributions of all rows, shown or not.

    Parameters
    ----------
    prox : ForestProximity or ScoreExplanation
        A proximity fitted with the scheme "gradient", or the result of
        ``leafkernel.tasks.explain_prediction`` for one.
    x : {array-like, dataframe} of shape (1, n_features) or (n_features,), default=None
        A new sample. Pass either ``x`` or ``row``.
    row : label, default=None
        A training sample: its label in the index of the training data frame, or its position.
    y : array-like of shape (n_samples,), default=None
        Targets of the training samples. By default, those that ``prox`` was fitted on.
    n : int, default=10
        Number of rows to draw in each direction.
    title : str, default=None
        Title of the plot. By default, it shows the sum that makes up the score.
    ax : matplotlib Axes, default=None
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib Axes
        The Axes with the plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.plots import plot_contributions
    >>> X, y = load_diabetes(return_X_y=True)
    >>> prox = ForestProximity(GradientBoostingRegressor(random_state=0), "gradient").fit(X, y)
    >>> ax = plot_contributions(prox, X[0], n=5, ax=Figure().subplots())
    >>> len(ax.patches)
    10
    """
    n = check_count("n", n)
    if isinstance(prox, ScoreExplanation):
        if x is not None or row is not None or y is not None:
            raise ValueError("x, row and y cannot be combined with a ScoreExplanation. Omit them.")
        found = prox
    else:
        _check_scheme(check_proximity(prox))
        explained = explain_prediction(prox, x, row=row, y=y, n=n)
        assert isinstance(explained, ScoreExplanation)
        found = explained
    adds = found.contributions
    up, down = np.flatnonzero(adds > 0)[:n], np.flatnonzero(adds < 0)[-n:]
    shown = np.r_[up, down]
    if not len(shown):
        raise ValueError(
            f"the score of {found.sample} has no contributions of training rows to draw."
        )
    ax = check_axes(ax, (7.2, 0.27 * len(shown) + 1.7))
    # Leave a gap between the two directions.
    places = np.arange(len(shown)) + np.r_[np.zeros(len(up)), np.full(len(down), 0.6)]
    ax.barh(places, adds[shown], color=np.where(adds[shown] > 0, _UP, _DOWN), height=0.74)
    _set_limits(ax, adds[shown])
    digits = int(np.clip(2 - np.floor(np.log10(np.abs(adds[shown]).max())), 0, 12))
    for place, value in zip(places, adds[shown], strict=True):
        side = "left" if value > 0 else "right"
        ax.annotate(
            _signed(value, digits), (value, place), (3 if value > 0 else -3, 0),
            textcoords="offset points", va="center", ha=side, fontsize=8, color="0.3",
        )  # fmt: skip
    for word, count, total in (
        ("up", found.n_up, found.up_total),
        ("down", found.n_down, found.down_total),
    ):
        if count:
            is_up = word == "up"
            rows = f"{count:,} rows push {word}" if count > 1 else f"1 row pushes {word}"
            ax.annotate(
                f"{rows}\n{_signed(total, digits)} in total",
                (0, places[: len(up)].mean() if is_up else places[len(up) :].mean()),
                (-10 if is_up else 10, 0), textcoords="offset points", va="center",
                ha="right" if is_up else "left", fontsize=9, color=_UP if is_up else _DOWN,
            )  # fmt: skip
    ax.axvline(0, color="0.35", linewidth=1)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    ax.set_yticks(places, [_name(found, i) for i in shown])
    ax.tick_params(axis="y", length=0)
    quiet(ax, "top", "right", "left")
    scale = "prediction" if found.link == "identity" else "raw score"
    ax.set_xlabel(f"contribution to the {scale}")
    if title is None:
        lines = [found.about(), _minus(found.sentence()), found.meaning()]
        ax.set_title("\n".join(line for line in lines if line), fontsize=10)
    else:
        ax.set_title(title)
    return ax


def _check_scheme(prox: ForestProximity) -> None:
    if prox.scheme_.name != "gradient":
        raise ValueError(
            f"weight_scheme={prox.scheme_.name!r} cannot be used with plot_contributions, because "
            "its proximities are similarities, not contributions to a score. Use 'gradient', for "
            "example prox.reweigh('gradient'), or plot_neighbors."
        )


def _set_limits(ax: Any, adds: Any) -> None:
    """Set the limits, with room for the numbers at the ends of bars and for the texts."""
    right, left = max(float(adds.max()), 0.0), max(float(-adds.min()), 0.0)
    room, text = _LEAST_ROOM * max(left, right), _TEXT_ROOM * (left + right)
    ax.set_xlim(-max(left + text, room), max(right + text, room))


def _signed(value: float, digits: int) -> str:
    return _minus(f"{value:+.{digits}f}")


def _minus(text: str) -> str:
    """Return a text with the minus sign that matplotlib uses on axes."""
    return re.sub(r"(?<=\s)-(?=[\s\d])|^-(?=\d)", "\N{MINUS SIGN}", text)


def _name(found: ScoreExplanation, place: int) -> str:
    target = found.targets[place]
    text = short(target, 16) if found.has_classes else number(float(target))
    return f"row {label_text(found.row_labels[place])}: {text}"
