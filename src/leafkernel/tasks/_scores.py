"""The raw scores of a boosted model and their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.forests import Link
from leafkernel.inside import Inside
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.proximity import ForestProximity
from leafkernel.schemes import Gradient
from leafkernel.tasks._query import new_sample, training_row

Doubles = npt.NDArray[np.float64]


class Scores:
    """The raw scores of a boosted model, and the predictions that they lead to.

    Parameters
    ----------
    prox : ForestProximity
        Fitted with the scheme "gradient".

    Attributes
    ----------
    base_scores : ndarray of float64 of shape (K,)
        Raw score of each output before the first tree.
    labels : ndarray of shape (K,)
        The class of each output, or its number.
    output : int
        Number of the output that ``prox`` explains.
    link : Link or None
        The link from scores to predictions; None if unknown.
    """

    def __init__(self, prox: ForestProximity) -> None:
        inside = Inside.of(prox)
        scheme, stats = inside.scheme, inside.stats
        assert isinstance(scheme, Gradient)
        self.base_scores: Doubles = np.asarray(stats.base_scores, dtype=np.float64)
        self.labels = stats.output_labels
        self.output = scheme.output_number(stats)
        text = "" if stats.link_of_outputs is None else str(stats.link_of_outputs[0])
        self.link = Link.read(text) if text else None
        self._stats = stats
        self._samples = inside.samples

    def of_leaves(self, leaf: Array) -> Doubles:
        """Return the raw scores of all outputs from the leaves of samples, shape (m, K)."""
        stats, n_outputs = self._stats, len(self.base_scores)
        values = stats.once("gradient leaf values", lambda: _leaf_values(self._samples, stats))
        found = np.tile(self.base_scores, (len(leaf), 1))
        if values.ndim == 2:
            for column in leaf.T:
                found += values[column]
            return found
        of_tree = stats.tree_outputs if n_outputs > 1 else np.zeros(stats.n_trees, dtype=np.intp)
        for column, output in zip(leaf.T, of_tree.tolist(), strict=True):
            found[:, output] += values[column]
        return found

    def predictions(self, scores: npt.ArrayLike) -> Doubles | None:
        """Return the predictions for scores, both of shape (m, K); None if unknown."""
        return None if self.link is None else self.link.predictions(scores)


def is_exact(prox: Any) -> bool:
    """Return whether the rows of P sum to the raw score minus the base score."""
    inside = Inside.of(prox)
    whole = inside.kernel.own_diagonal is None and not inside.kernel.symmetrize
    return whole and isinstance(inside.scheme, Gradient)


def _leaf_values(samples: Samples, stats: ForestStats) -> Doubles:
    """Return the contribution of each leaf to the score, shape (L,) or (L, K)."""
    parts = samples.contributions
    values: Doubles = np.zeros((stats.n_leaves, *parts.shape[2:]))
    for t in range(stats.n_trees):
        of_tree = slice(stats.leaf_offsets[t], stats.leaf_offsets[t + 1])
        leaf = samples.leaf[:, t] - stats.leaf_offsets[t]
        n_leaves = of_tree.stop - of_tree.start
        if parts.ndim == 2:
            values[of_tree] = np.bincount(leaf, parts[:, t], n_leaves)
        else:
            for k in range(parts.shape[2]):
                values[of_tree, k] = np.bincount(leaf, parts[:, t, k], n_leaves)
    return values


class _FirstOutput(Gradient):
    """The scheme "gradient" for the first output of a model, whatever its name."""

    def output_number(self, forest: ForestStats) -> int:
        return 0


def explain_scores_of(prox: ForestProximity) -> ForestProximity:
    """Return the contributions to the score of the same model, or to its first output.

    Raises ValueError if the model is not boosted or not supported.
    """
    inside = Inside.of(prox)
    if isinstance(inside.scheme, Gradient):
        return prox if is_exact(prox) else prox.reweigh(diagonal="scheme", symmetrize=False)
    return prox.reweigh(_FirstOutput(), diagonal="scheme", symmetrize=False)


def is_boosted(prox: ForestProximity) -> bool:
    """Return whether a model is boosted, so that its trees add up to a score."""
    return Inside.of(prox).forest.is_boosted()


def predicted_output(prox: ForestProximity, x: Any = None, row: int | None = None) -> int:
    """Return the number of the output with the largest score, which is the predicted class."""
    query = new_sample(prox, x, "x") if row is None else training_row(prox, row, "row")
    return int(Scores(prox).of_leaves(query.leaf[None, :])[0].argmax())


def toward_output(prox: ForestProximity, number: int) -> ForestProximity:
    """Return the contributions to another output of the same model."""
    inside = Inside.of(prox)
    scheme = inside.scheme
    assert isinstance(scheme, Gradient)
    if scheme.output_number(inside.stats) == number:
        return prox
    label = inside.stats.output_labels.tolist()[number]
    return prox.reweigh(Gradient(label, scheme.objective))
