"""Helpers for all plots: axes, panels, point sizes and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._optional import require
from leafkernel._validation import check_row_numbers

Array = npt.NDArray[Any]

# More points than this are rasterized in vector graphics.
_RASTERIZE = 5000
# The seed of random orders and positions.
SEED = 0


def matplotlib(name: str) -> Any:
    """Return a module of matplotlib, or raise an error with the command to install it."""
    return require(f"matplotlib.{name}", extra="plot")


def check_axes(
    ax: Any, figsize: tuple[float, float] = (6.4, 4.8), layout: str = "constrained"
) -> Any:
    """Return ``ax``, or the Axes of a new figure if it is None."""
    if ax is None:
        return matplotlib("pyplot").subplots(figsize=figsize, layout=layout)[1]
    if not hasattr(ax, "inset_axes"):
        raise TypeError(
            f"ax must be a matplotlib Axes; got {type(ax).__name__}. Pass one Axes of an array, or "
            "omit ax."
        )
    return ax


def panels(
    ax: Any, widths: Any, heights: Any = (1.0,), *, space: float = 0.03, filled: float = 1.0
) -> Array:
    """Divide an Axes into a grid of child panels, shape (rows, columns).

    They fill the height of the Axes, and the share ``filled`` of its width from the left.
    """
    ax.set_axis_off()
    columns, rows = _cut(widths, space), _cut(heights, space)
    return np.array(
        [
            [
                ax.inset_axes([filled * left, 1 - top - height, filled * width, height])
                for left, width in columns
            ]
            for top, height in rows
        ]
    )


def _cut(parts: Any, space: float) -> list[tuple[float, float]]:
    """Return the start and the length of parts with the given proportions, within 0 and 1."""
    sizes = np.asarray(parts, dtype=float)
    sizes = sizes / sizes.sum() * (1 - space * (len(sizes) - 1))
    starts = np.append(0, np.cumsum(sizes + space)[:-1])
    return list(zip(starts.tolist(), sizes.tolist(), strict=True))


def quiet(ax: Any, *spines: str) -> None:
    """Hide some spines."""
    ax.spines[list(spines)].set_visible(False)


def inches(ax: Any) -> tuple[float, float]:
    """Return the width and the height of an Axes in inches."""
    dpi = ax.figure.dpi
    box = ax.get_window_extent()
    return box.width / dpi, box.height / dpi


def point_size(ax: Any, n_points: int) -> float:
    """Return an area in points² that suits the number of points."""
    width, height = inches(ax)
    room = float(np.clip(width * height / 24, 0.15, 2))
    return float(np.clip(34 * room * (150 / max(n_points, 1)) ** 0.5, 0.8, 36))


def point_alpha(n_points: int) -> float:
    """Return an opacity that suits the number of points."""
    return float(np.clip(0.85 * (500 / max(n_points, 1)) ** 0.2, 0.25, 0.85))


def is_rasterized(n_points: int) -> bool:
    """Return whether to rasterize this number of points."""
    return n_points > _RASTERIZE


def shuffled(n_points: int) -> npt.NDArray[np.int64]:
    """Return a random order for drawing points, so that no class covers the others."""
    return np.random.default_rng(SEED).permutation(n_points)


def check_rows(name: str, rows: Any, n_samples: int) -> npt.NDArray[np.int64]:
    """Return row numbers from row numbers, a mask, prototypes or medoids."""
    for attribute in ("rows", "cases"):
        rows = getattr(rows, attribute, rows)
    if isinstance(rows, dict):
        rows = list(rows.values())
    array = np.atleast_1d(np.asarray(rows))
    if array.dtype == bool:
        if array.shape != (n_samples,):
            raise ValueError(
                f"{name} is a mask of shape {array.shape}, but there are {n_samples} samples."
            )
        array = np.flatnonzero(array)
    return check_row_numbers(name, array, n_samples)


def check_same_length(name: str, values: Any, n_samples: int, what: str) -> None:
    """Raise an error unless there is one entry for each sample."""
    found = values.shape[0] if hasattr(values, "shape") and values.shape else len(values)
    if found != n_samples:
        raise ValueError(f"{name} has {found} entries, but there are {n_samples} {what}.")


def short(value: Any, most: int = 28) -> str:
    """Return a label, truncated if it is too long."""
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def number(value: float) -> str:
    """Return a number as text with few digits."""
    if not np.isfinite(value):
        return "-"
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e")
    digits = 3 if abs(value) < 100 else len(str(int(abs(value))))
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


def ink_on(color: Any) -> str:
    """Return black or white, depending on which is readable on a color."""
    red, green, blue = color[:3]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
