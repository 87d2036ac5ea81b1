"""Contributions of training rows to the scores of a boosted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel.explorer._blob import Blob
from leafkernel.inside import Inside
from leafkernel.leaf_index import Samples
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._scores import Scores, explain_scores_of, is_boosted, toward_output

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# Largest number of contributions in memory, and in total. More would take too long for a page.
_MOST_PARTS = 1e8
_MOST_LOOKED_AT = 5e8
_ROWS_AT_ONCE = 1024
# The scheme of neighbors and maps if that of the proximity has negative weights.
_SIMILARITY = "kerf"


@dataclass(frozen=True)
class Contributions:
    """Scores of r rows, and the training rows with the largest contributions."""

    rows: npt.NDArray[np.int64]  # (r, 2k): k that push up, then k that push down; -1 for none
    adds: Doubles  # contributions of these rows (r, 2k)
    counts: npt.NDArray[np.int64]  # number of rows that push up and down (r, 2)
    totals: Doubles  # total contributions up and down (r, 2)
    outputs: npt.NDArray[np.int64]  # output of each score (r,)
    scores: Doubles  # (r,)
    predictions: Doubles | None  # (r,); None if the link is unknown
    labels: list[str]  # of all outputs
    base_scores: Doubles  # of all outputs
    base_predictions: Doubles | None  # of all outputs
    link: str | None

    @classmethod
    def of(cls, exact: ForestProximity, k: int, X: Samples | None) -> Contributions:
        """Return the contributions to the scores of training rows, or of new rows.

        With several classes, the score of the predicted class is explained.
        """
        scores = Scores(exact)
        leaf = Inside.of(exact).samples.leaf if X is None else X.leaf
        all_scores = scores.of_leaves(leaf)
        n = len(leaf)
        outputs = np.full(n, scores.output)
        if len(scores.labels) > 1:
            outputs = all_scores.argmax(axis=1)
        found = np.full((n, 2 * k), -1), np.zeros((n, 2 * k)), np.zeros((n, 2)), np.zeros((n, 2))
        for number in np.unique(outputs).tolist():
            of_output = np.flatnonzero(outputs == number)
            for places, block in _blocks(toward_output(exact, number), of_output, leaf):
                for all_rows, some in zip(found, _largest(block, k), strict=True):
                    all_rows[places] = some
        predictions = scores.predictions(all_scores)
        at = np.arange(n), outputs
        base_predictions = scores.predictions(scores.base_scores[None, :])
        return cls(
            found[0].astype(np.int64),
            found[1],
            found[2].astype(np.int64),
            found[3],
            outputs,
            all_scores[at],
            None if predictions is None else predictions[at],
            [str(label) for label in scores.labels.tolist()],
            scores.base_scores,
            None if base_predictions is None else base_predictions[0],
            None if scores.link is None else scores.link.name,
        )

    def followed_by(self, new: Contributions | None) -> Contributions:
        """Return these rows with the new rows appended."""
        if new is None:
            return self
        predictions = None
        if self.predictions is not None and new.predictions is not None:
            predictions = np.concatenate([self.predictions, new.predictions])
        names = ("rows", "adds", "counts", "totals", "outputs", "scores")
        both: Any = {
            name: np.concatenate([getattr(self, name), getattr(new, name)]) for name in names
        }
        return replace(self, predictions=predictions, **both)

    def describe(self, blob: Blob, *, has_classes: bool) -> dict[str, Any]:
        """Add the contributions to a blob, and return their header."""
        named = has_classes or len(self.labels) > 1
        base = self.base_predictions
        return {
            "k": self.rows.shape[1] // 2,
            "rows": blob.add(self.rows, "int32"),
            "adds": blob.add(self.adds, "float32"),
            "counts": blob.add(self.counts, "int32"),
            "totals": blob.add(self.totals, "float64"),
            "outputs": blob.add(self.outputs, "int32"),
            "scores": blob.add(self.scores, "float64"),
            "predictions": (
                None if self.predictions is None else blob.add(self.predictions, "float64")
            ),
            "labels": self.labels if named else None,
            "base_scores": self.base_scores.tolist(),
            "base_predictions": None if base is None else base.tolist(),
            "link": self.link,
        }


def with_similarities(prox: ForestProximity) -> ForestProximity:
    """Return a proximity for neighbors and maps, without negative entries."""
    if not prox.scheme_.signed:
        return prox
    return prox.reweigh(_SIMILARITY, diagonal="scheme", symmetrize=False)


def find_contributions(
    prox: ForestProximity, k: int, X: Samples | None, step: Callable[[str], None]
) -> tuple[Contributions | None, list[str]]:
    """Return the contributions to the scores of the training rows and the new rows.

    If they are not available for a boosted model, also return a note with the reason.
    """
    if not is_boosted(prox):
        return None, []
    step("computing contributions to scores")
    exact, refused = _exact(prox)
    if exact is None:
        return None, [
            "The page does not show the contributions of rows to the scores of the model, because "
            f"{refused}."
        ]
    found = Contributions.of(exact, k, None)
    return found.followed_by(None if X is None else Contributions.of(exact, k, X)), []


def _exact(prox: ForestProximity) -> tuple[ForestProximity | None, str]:
    """Return the contributions to the scores of a boosted model, or None and the reason."""
    n, n_trees = prox.n_samples_fit_, prox.n_trees_
    reason = "there are too many rows and trees"
    if n * n_trees > _MOST_PARTS:
        return None, reason
    try:
        exact = explain_scores_of(prox)
    except ValueError as error:
        return None, str(error.__cause__ or error).rstrip(".")
    if n**2 > _MOST_LOOKED_AT and exact.forecast().nonzeros > _MOST_LOOKED_AT:
        return None, reason
    return exact, ""


def _blocks(
    exact: ForestProximity, rows: npt.NDArray[np.int64], leaf: Array
) -> Iterator[tuple[Array, csr_array]]:
    """Yield the positions and the contributions of some rows, in blocks."""
    inside = Inside.of(exact)
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        places = rows[begin : begin + _ROWS_AT_ONCE]
        product = inside.kernel.product(Samples.unseen(leaf[places])).with_dtype(np.float64)
        yield places, inside.engine.rows(product, sort=False)


def _largest(block: csr_array, k: int) -> tuple[Array, Doubles, Array, Doubles]:
    """Return the k largest entries of each sign in each row, and the counts and sums."""
    m = block.shape[0]
    rows, adds = np.full((m, 2 * k), -1), np.zeros((m, 2 * k))
    counts, totals = np.zeros((m, 2), dtype=np.int64), np.zeros((m, 2))
    for i, (begin, end) in enumerate(zip(block.indptr[:-1], block.indptr[1:], strict=True)):
        data, columns = block.data[begin:end], block.indices[begin:end]
        for side, sign in enumerate((1.0, -1.0)):
            size = sign * data
            held = np.flatnonzero(size > 0)
            counts[i, side], totals[i, side] = len(held), data[held].sum()
            if len(held) > k:
                least = np.partition(size[held], len(held) - k)[len(held) - k]
                held = held[size[held] >= least]
            held = held[np.lexsort((columns[held], -size[held]))[:k]]  # ties by position
            places = slice(side * k, side * k + len(held))
            rows[i, places], adds[i, places] = columns[held], data[held]
    return rows, adds, counts, totals
