"""Colors of samples, and legends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.plots._style import Array, check_same_length, matplotlib, short

# The palette of Okabe and Ito with gray instead of black, the most visible on white first.
OKABE_ITO = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#56B4E9", "#CC79A7", "#999999", "#F0E442"),
)
# Whole numbers with more different values are not classes.
MOST_CLASSES = 20
# A legend with more entries is placed outside, because it would hide points.
_INSIDE = 6
# A legend with more entries is omitted, because it would be longer than the plot.
_MOST_ENTRIES = 60
_ENTRIES_A_COLUMN = 20
_MANY_POINTS = 2000


@dataclass(frozen=True)
class Target:
    """Classes or numbers of samples, and their colors.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Class codes or numbers.
    classes : ndarray of shape (k,) or None
        The sorted classes; None for numbers.
    label : str
        Name for the legend.
    low, high : float
        Range of the numbers.
    """

    values: Array
    classes: Array | None
    label: str
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, y: Any, n_samples: int, *, name: str = "y", what: str = "samples") -> Target:
        """Read y. If it is None, all samples have the same class."""
        if y is None:
            return cls(np.zeros(n_samples, dtype=np.intp), np.array(["samples"]), "")
        label = str(getattr(y, "name", None) or "target")
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values.ravel()
        if values.ndim != 1:
            raise ValueError(
                f"{name} must have one value for each sample; got shape {values.shape}."
            )
        check_same_length(name, values, n_samples, what)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} has NaN or infinity. Leave out these samples.")
        if _are_numbers(values):
            return cls(values.astype(float), None, label, float(values.min()), float(values.max()))
        try:
            classes, codes = np.unique(values, return_inverse=True)
        except TypeError as error:
            raise TypeError(
                f"{name} has labels that cannot be sorted ({error}). Convert them to text."
            ) from error
        return cls(codes.astype(np.intp), classes, label)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def palette(self) -> Array:
        """Colors of the classes, shape (k, 4)."""
        colors, maps = matplotlib("colors"), matplotlib("cm")
        k = self.n_classes
        if not self.label:
            return np.asarray(colors.to_rgba_array(["#4a6274"]))
        if k <= len(OKABE_ITO):
            return np.asarray(colors.to_rgba_array(OKABE_ITO[:k]))
        if k <= MOST_CLASSES:  # tab20 has pairs of colors; use the ten dark ones first
            pairs = colors.to_rgba_array(maps.ScalarMappable(cmap="tab20").cmap.colors)
            return np.concatenate([pairs[::2], pairs[1::2]])[:k]
        return np.asarray(maps.ScalarMappable(cmap="turbo").cmap(np.linspace(0.03, 0.97, k)))

    def mappable(self) -> Any:
        """Return a mappable from numbers to colors."""
        norm = matplotlib("colors").Normalize(self.low, self.high)
        return matplotlib("cm").ScalarMappable(norm, "viridis")

    def colors(self) -> Array:
        """Return the color of each sample, shape (n, 4)."""
        if self.classes is None:
            return np.asarray(self.mappable().to_rgba(self.values))
        return np.asarray(self.palette[self.values])

    def handles(self) -> list[Any]:
        """Return a legend entry for each class."""
        if self.classes is None or not self.label:
            return []
        return [
            marker("o", color, short(label), size=6)
            for label, color in zip(self.classes, self.palette, strict=True)
        ]

    def colorbar(self, ax: Any) -> None:
        """Draw a color bar of numbers beside an Axes."""
        bar = ax.figure.colorbar(self.mappable(), ax=ax, label=self.label, aspect=30, pad=0.02)
        bar.outline.set_visible(False)


def _are_numbers(values: Array) -> bool:
    if values.dtype.kind not in "iuf" or not len(values):
        return False
    whole = values.dtype.kind != "f" or bool((values == np.round(values)).all())
    return not whole or len(np.unique(values)) > MOST_CLASSES


def marker(shape: str, color: Any, label: str, *, size: float, edge: Any = "none") -> Any:
    """Return a legend entry."""
    line = matplotlib("lines").Line2D
    return line(
        [], [], linestyle="", marker=shape, color=color, label=label, markersize=size,
        markeredgecolor=edge,
    )  # fmt: skip


def draw_legend(ax: Any, handles: list[Any], n_points: int, *, above: bool = False) -> None:
    """Draw a legend: inside of the plot if there are few points and entries, else outside."""
    if not handles or len(handles) > _MOST_ENTRIES:
        return
    options: dict[str, Any] = {"frameon": False, "handletextpad": 0.3}
    if above:
        options |= {"ncols": 4, "fontsize": "small", "columnspacing": 1.0, "borderaxespad": 0.2}
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1.0), **options)
        return
    if len(handles) <= _INSIDE and n_points <= _MANY_POINTS:
        ax.legend(handles=handles, loc="best", **options)
        return
    columns = -(-len(handles) // _ENTRIES_A_COLUMN)
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2,
        ncols=columns, fontsize="small" if len(handles) > len(OKABE_ITO) else None, **options,
    )  # fmt: skip
