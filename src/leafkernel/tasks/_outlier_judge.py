"""Breiman's outlier scores, which are high for samples similar to few others of their class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._targets import indicators
from leafkernel.tasks._base import (
    Array,
)

Blocks = Iterator[tuple[slice, Any]]

# Breiman's rule of thumb: "generally, if the measure is greater than 10, the case should be
# carefully inspected".
DESERVES_A_LOOK = 10.0

# For normal data, the standard deviation is the median absolute deviation times this factor.
_NORMAL_MAD = 1.4826
# The same factor for the mean absolute deviation, which is used if the median is zero.
_NORMAL_MEAN_AD = 1.2533
# Relative tolerance for equal raw measures in single precision.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Convention:
    """The definition of an outlier score.

    Attributes
    ----------
    scale_rows : bool
        Whether each row of proximities is divided by its maximum.
    spread_factor : float
        Factor of the median absolute deviation.
    absolute : bool
        Whether scores are absolute deviations from the median.
    standardize : bool
        Whether scores are standardized within each class.
    """

    scale_rows: bool = False
    spread_factor: float = _NORMAL_MAD
    absolute: bool = False
    standardize: bool = True


CONVENTIONS = {
    "breiman": Convention(),
    "rfgap": Convention(scale_rows=True, spread_factor=1.0, absolute=True),
    "raw": Convention(standardize=False),
}


class Judge:
    """Scores samples against the training samples of a class.

    Parameters
    ----------
    blocks : callable
        Returns the proximities of samples, or of the training samples if it gets None.
    codes : ndarray of int of shape (n,)
        Classes of the training samples.
    convention : str
        Name of the score.
    bounded : bool
        Whether scores above 10 continue on a logarithmic scale. The raw measure has no upper bound
        if the diagonal is zero.
    as_new : bool
        Whether to compare each training sample with the class of its largest total proximity, like
        a new sample, instead of its own class.
    """

    def __init__(
        self,
        blocks: Callable[..., Blocks],
        codes: Array,
        convention: str,
        *,
        bounded: bool = False,
        as_new: bool = False,
    ) -> None:
        self.blocks = blocks
        self.codes = codes
        self.n_classes = int(codes.max()) + 1
        self.rule = CONVENTIONS[convention]
        self.bounded = bounded
        sums, self.own = self._sums(None, None if as_new else codes)
        positive = sums[sums > 0]
        self.least = min(1.0, float(positive.min()) / 2) if len(positive) else 1.0
        self.raw = self._raw(sums)
        self.scales = [_scale_of(self.raw[self.own == c]) for c in range(self.n_classes)]
        if as_new:
            # A training sample can be similar to one sample fewer than a new sample.
            sizes = np.bincount(codes)
            self.scales = [
                (center, max(spread, center / size))
                for (center, spread), size in zip(self.scales, sizes, strict=True)
            ]

    def of_training(self) -> npt.NDArray[np.float64]:
        return self._standardize(self.raw, self.own)

    def of_unseen(self, X: Any) -> npt.NDArray[np.float64]:
        sums, codes = self._sums(X, None)
        return self._standardize(self._raw(sums), codes)

    def _sums(
        self, X: Any, row_codes: Array | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
        """Return the sums of squares for the class of each row, or for its most similar class."""
        sums, codes = [np.zeros(0)], [np.zeros(0, dtype=np.intp)]
        table = indicators(self.codes, self.n_classes)
        for rows, block in self.blocks(X):
            own = (block @ table).argmax(axis=1) if row_codes is None else row_codes[rows]
            codes.append(own)
            sums.append(self._square_sums(block, own))
        return np.concatenate(sums), np.concatenate(codes)

    def _raw(self, sums: Array) -> npt.NDArray[np.float64]:
        return np.asarray(len(self.codes) / np.where(sums > 0, sums, self.least))

    def _square_sums(self, block: Any, row_codes: Array) -> npt.NDArray[np.float64]:
        """Return the sum of the squares of each row's proximities to its own class."""
        squares = np.square(block.data, dtype=np.float64)
        if self.n_classes > 1:
            sizes = np.diff(block.indptr)
            squares *= self.codes[block.indices] == np.repeat(row_codes, sizes)
        sums = _by_row(np.add, squares, block.indptr)
        if self.rule.scale_rows:
            largest = _by_row(np.maximum, block.data, block.indptr).astype(np.float64)
            sums /= np.where(largest > 0, largest, 1.0) ** 2
        return sums

    def _standardize(self, raw: Array, codes: Array) -> npt.NDArray[np.float64]:
        if not self.rule.standardize:
            return raw
        centers = np.array([center for center, _ in self.scales])[codes]
        spreads = np.array([spread for _, spread in self.scales])[codes]
        spreads = spreads * self.rule.spread_factor
        score: Array = (raw - centers) / np.where(spreads > 0, spreads, 1.0)
        if self.rule.absolute:
            return np.abs(score)
        return slow_down(score) if self.bounded else score


def match(scores: Array, measured: Array, known: Array) -> npt.NDArray[np.float64]:
    """Map scores to another scale: each quantile of ``measured`` to that of ``known``.

    Both are sorted and have the same length. Beyond their ends, differences are preserved.
    """
    inside = np.clip(scores, measured[0], measured[-1])
    values, begins, counts = np.unique(measured, return_index=True, return_counts=True)
    means = np.add.reduceat(known, begins) / counts  # of equal scores
    return np.asarray(np.interp(inside, values, means) + (scores - inside))


def slow_down(scores: Array) -> npt.NDArray[np.float64]:
    """Map scores above 10 to a logarithmic scale: 100 becomes 20, 1000 becomes 30."""
    high = np.maximum(scores, DESERVES_A_LOOK)
    return np.where(
        scores > DESERVES_A_LOOK,
        DESERVES_A_LOOK * (1 + np.log10(high / DESERVES_A_LOOK)),
        scores,
    )


def _scale_of(raw: Array) -> tuple[float, float]:
    """Return the median and the median absolute deviation of a class.

    If the latter is zero, the mean absolute deviation is used.
    """
    if not len(raw):
        return 0.0, 0.0
    center = float(np.median(raw))
    off = np.abs(raw - center)
    spread = float(np.median(off))
    if spread <= _ROUNDING * center:
        spread = float(off.mean()) * _NORMAL_MEAN_AD / _NORMAL_MAD
    return center, spread if spread > _ROUNDING * center else 0.0


def _by_row(reduce: np.ufunc, values: Array, indptr: Array) -> npt.NDArray[Any]:
    """Reduce the entries of each row; 0 for empty rows."""
    out: Array = np.zeros(len(indptr) - 1, dtype=values.dtype)
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        out[filled] = reduce.reduceat(values, indptr[filled])
    return out
