"""The present values of a table, and their averages weighted by proximity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from leafkernel.proximity import ForestProximity

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
CategoryRule = Literal["total", "mean"]

# Largest memory of the columns that are summed at once and of their sums.
_BLOCK_BYTES = 2**28


@dataclass(frozen=True)
class Known:
    """The present values of the training samples, and their averages.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Numbers and category codes; NaN if missing.
    n_categories : list of int
        Number of categories of each column; 0 for numbers.
    start : ndarray of shape (d,)
        Median of numbers, or mode of categories.
    scale : ndarray of shape (d,)
        Standard deviation of numbers; 1 for constant columns and for categories.
    rule : {"total", "mean"}
        How to choose a category.
    """

    values: Floats
    n_categories: list[int]
    start: Floats
    scale: Floats
    rule: CategoryRule

    @classmethod
    def of(cls, values: Floats, n_categories: list[int], rule: CategoryRule) -> Known:
        """Compute the start values and the scale of changes."""
        start, scale = np.empty(len(n_categories)), np.ones(len(n_categories))
        for j, n in enumerate(n_categories):
            present = values[~np.isnan(values[:, j]), j]
            start[j] = np.bincount(present.astype(np.intp)).argmax() if n else np.median(present)
            deviation = 0.0 if n else present.std()
            scale[j] = deviation if deviation > 0 else 1.0
        return cls(values, n_categories, start, scale, rule)

    def averages(
        self, proximity: ForestProximity, columns: npt.NDArray[np.intp], X: Floats | None = None
    ) -> Floats:
        """Return averages of columns weighted by proximity, shape (m, c); NaN without weight.

        A column of numbers needs two sums: the total weight of present values, then their weighted
        sum. A category needs one sum, its total weight. So ``mass`` has the total weight of
        numbers, or the largest weight of a category so far.
        """
        n_rows = len(self.values) if X is None else len(X)
        found = np.full((n_rows, len(columns)), np.nan)
        mass = np.zeros((n_rows, len(columns)))
        parts = [
            (c, part) for c, j in enumerate(columns) for part in range(self.n_categories[j] or 2)
        ]
        width = max(1, _BLOCK_BYTES // (8 * (n_rows + len(self.values))))
        for batch in _batches(parts, width):
            block = np.column_stack([self._part(columns[c], part) for c, part in batch])
            sums = proximity.weighted_sums(block, X)
            for (c, part), total in zip(batch, sums.T, strict=True):
                if self.n_categories[columns[c]]:
                    heavier = total > mass[:, c]
                    found[heavier, c] = part
                    mass[heavier, c] = total[heavier]
                elif part == 0:
                    mass[:, c] = total
                else:
                    some = mass[:, c] > 0
                    found[some, c] = self.start[columns[c]] + total[some] / mass[some, c]
        return found

    def change(self, old: Floats, new: Floats, gaps: Mask, columns: npt.NDArray[np.intp]) -> float:
        """Return the mean change of the filled values."""
        if not gaps.any():
            return 0.0
        is_category = np.array(self.n_categories)[columns] > 0
        difference = np.abs(new - old) / self.scale[columns]
        difference = np.where(is_category, difference > 0, difference)
        return float(difference[gaps].mean())

    def _part(self, j: int, part: int) -> Floats:
        """Return the values (n,) to sum for one part of column j."""
        values = self.values[:, j]
        present = ~np.isnan(values)
        if self.n_categories[j]:
            indicator: Floats = (values == part).astype(np.float64)
            if self.rule == "mean":
                indicator /= indicator.sum()
            return indicator
        if part == 0:
            return present.astype(np.float64)
        # Subtract the median, so that large numbers with a small spread keep their precision.
        return np.where(present, values - self.start[j], 0.0)


def _batches(parts: list[tuple[int, int]], width: int) -> Iterator[list[tuple[int, int]]]:
    for begin in range(0, len(parts), width):
        yield parts[begin : begin + width]
