"""Retrace the training of a boosted model to find which training samples made its leaf values.

A leaf of gradient boosting has the value v = -eta * G / (H + lambda), where G and H sum the
derivatives of the loss over its training samples, at the scores before its tree. Each sample
therefore contributes -eta * c * g / (H + lambda) to v. Starting from the base score, the code here
computes these contributions round by round from the model's own leaf values. It checks that the
contributions in each leaf sum to its value. If they do not, the model was trained on other samples
or in an unsupported way, and an error is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.forests._base import LeafAverages, Outputs, Unavailable
from leafkernel.forests._losses import Derivatives, squared

Array = npt.NDArray[Any]

# Number of trees whose leaf ids are transposed at once, so that whole cache lines are used.
_TREES_AT_ONCE = 16
# Contributions below the first value relative to the largest of their tree, or below the second
# absolute value, are set to 0. Otherwise they would exceed the range of the weights.
_NEGLIGIBLE, _TINY = 1e-30, 1e-150


@dataclass
class Training:
    """The information needed to retrace the training of a model.

    Attributes
    ----------
    y : ndarray of shape (n,) or (n, K)
        Targets, or class indices.
    weights : ndarray of shape (n,) or (n, K)
        Weight of each sample's derivatives; 0 for samples that were held out.
    outputs : Outputs
        The base scores, and the output of each tree.
    values : ndarray of shape (L,) or (L, K)
        Value that each leaf adds to the score.
    per_round : int
        Number of trees that use the same derivatives.
    derivatives : callable
        Derivatives of the loss: (y, scores) -> (g, h).
    factor : callable
        (tree, G, H, held) -> the ratio of the value of each leaf to G, shape (leaves,). ``held``
        contains the values in the model, for parameters that the model does not store.
    drawn : callable or None
        (round, g, h) -> the weight of each sample in the draw, shape (n,). None if all samples are
        used.
    tolerance : float
        Largest allowed difference between a leaf value and the sum of its contributions, relative
        to the sum of their magnitudes.
    noise : ndarray of shape (n,), optional
        Rounding error of each sample's derivatives, for libraries that compute in float32.
    precision : type
        Type of the scores in the library.
    derivative_precision : type
        Type of the derivatives in the library.
    rate : float
        Learning rate, if the factor does not include it.
    kept : list of ndarray or None
        If a list, the factors of each tree are appended to it.
    """

    y: Array
    weights: Array
    outputs: Outputs
    values: Array
    per_round: int
    derivatives: Derivatives
    factor: Callable[[int, Array, Array, Array], Array]
    drawn: Callable[[int, Array, Array], Array | None] | None = None
    tolerance: float = 1e-9
    noise: Array | None = None
    precision: type = np.float64
    derivative_precision: type = np.float64
    rate: float = 1.0
    kept: list[Array] | None = None

    def scores_before(self, number: int, scores: Array, leaf: Array) -> Array:
        """Return the scores that a round was trained on, given the scores of all earlier trees."""
        return scores

    def begin(self, number: int, scores: Array) -> None:
        """Compute the derivatives for one round, given the scores before it."""
        shaped = scores[:, 0] if scores.shape[1] == 1 else scores
        with np.errstate(all="ignore"):
            g, h = self.derivatives(self.y, shaped)
        g, h = (np.asarray(d).reshape(scores.shape) for d in (g, h))
        if not (np.isfinite(g).all() and np.isfinite(h).all()):
            raise Unavailable(
                f"the derivatives of the loss are not finite before round {number}; if you passed "
                "an objective, check it"
            )
        weights: Array = self.weights.reshape(len(scores), -1).astype(self.derivative_precision)
        self.g = (weights * g).astype(self.derivative_precision)
        self.h = (weights * h).astype(self.derivative_precision)
        drawn = None if self.drawn is None else self.drawn(number, self.g, self.h)
        if drawn is not None:
            self.g, self.h = self.g * drawn[:, None], self.h * drawn[:, None]

    def parts(
        self, tree: int, leaf: Array, held: Array, scores: Array
    ) -> tuple[Array, Array | float]:
        """Return the contribution of each sample to its leaf value, and the error of each leaf.

        Contributions have shape (n,), or (n, K) if leaves have a value for each output.
        """
        output, n_leaves = self.outputs.of_tree[tree], len(held)
        columns = range(self.g.shape[1]) if output < 0 else [output]
        found, room = [], np.zeros((n_leaves, len(columns)))
        for i, k in enumerate(columns):
            g, h = (d[:, k].astype(np.float64) for d in (self.g, self.h))
            G, H = (np.bincount(leaf, d, n_leaves) for d in (g, h))
            with np.errstate(all="ignore"):
                factor = self.factor(tree, G, H, held[:, k] if output < 0 else held)
            factor = np.nan_to_num(factor, nan=0.0, posinf=0.0, neginf=0.0)
            found.append(factor[leaf] * g)
            if self.kept is not None:
                self._keep(factor, self.factor(tree, 1e6 * G, H, 1e6 * held))
            if self.noise is not None:
                noise = np.bincount(leaf, self.noise, n_leaves)
                room[:, i] = noise * np.abs(factor) * (1 + np.abs(factor * G))
        return (np.stack(found, axis=1), room) if output < 0 else (found[0], room[:, 0])

    def _keep(self, factor: Array, of_more: Array) -> None:
        """Store the factors of a tree, which must not depend on the targets."""
        with np.errstate(invalid="ignore"):
            same = np.abs(of_more - factor) <= 1e-6 * np.abs(factor)
        if not (same | (factor == 0)).all():
            raise Unavailable(
                "the leaf values of the model are not proportional to the residuals; train it "
                "without L1 regularization and without max_delta_step"
            )
        assert self.kept is not None
        self.kept.append(-self.rate * factor)


def averages(training: Training, leaf: Array, leaf_offsets: Array, name: str) -> LeafAverages:
    """Return a model with squared loss as averages of residuals over leaves, or raise an error."""
    base = float(training.outputs.base_scores[0])
    if training.derivatives is not squared or len(training.outputs.base_scores) > 1:
        raise Unavailable(f"{name} was not trained with squared loss on a single target")
    if training.drawn is not None or getattr(training, "subsample", 1.0) < 1:
        raise Unavailable(f"{name} was trained with subsampling; train it without subsampling")
    if getattr(training, "steps", 1) > 1:
        raise Unavailable(
            f"{name} computed its leaf values in several iterations; train it with "
            "leaf_estimation_iterations=1"
        )
    weights = training.weights.reshape(len(leaf)).astype(np.float64)
    y = training.y.astype(np.float64)
    mean = float(np.average(y, weights=weights))
    if abs(base - mean) > 1e-5 * max(float(np.std(y)), abs(mean) * 0.1):
        raise Unavailable(
            f"{name} starts from the base score {base:.6g}, not from the mean of the targets, "
            f"{mean:.6g}; train it with the mean as base score"
        )
    training.kept = []
    retrace(training, leaf, leaf_offsets, name)
    return LeafAverages(np.concatenate(training.kept), weights, y, base, training.values)


def retrace(training: Training, leaf: Array, leaf_offsets: Array, name: str) -> Array:
    """Return the contribution of each sample to the value of its leaf in each tree.

    Parameters
    ----------
    training : Training
        The training of the model.
    leaf : ndarray of shape (n, T)
        Global leaf ids of the training samples.
    leaf_offsets : ndarray of shape (T + 1,)
        First leaf of each tree.
    name : str
        Name of the model for messages.

    Returns
    -------
    ndarray of float64 of shape (n, T), or (n, T, K) if leaves have a value for each output
        The contributions. They sum to the value of each leaf.
    """
    n_samples, n_trees = leaf.shape
    values, outputs = training.values, training.outputs
    scores: Array = np.tile(outputs.base_scores.astype(training.precision), (n_samples, 1))
    found = np.empty((n_samples, n_trees, *values.shape[1:]))
    step = training.per_round * max(1, _TREES_AT_ONCE // training.per_round)
    buffer = np.empty((min(step, n_trees), n_samples, *values.shape[1:]))
    for first in range(0, n_trees, step):
        block = slice(first, min(first + step, n_trees))
        local = np.subtract(
            leaf[:, block].T, leaf_offsets[:-1][block, None], dtype=np.intp, order="C"
        )
        parts = buffer[: len(local)]
        for i, leaves in enumerate(local):
            tree = first + i
            if tree % training.per_round == 0:
                number = tree // training.per_round
                training.begin(number, training.scores_before(number, scores, leaf))
                before = scores.copy() if training.per_round > 1 else scores
            held = values[leaf_offsets[tree] : leaf_offsets[tree + 1]]
            part, room = training.parts(tree, leaves, held, before)
            parts[i] = _settle(part, leaves, held, (training.tolerance, room), tree, name)
            output = outputs.of_tree[tree]
            into = slice(None) if output < 0 else output
            scores[:, into] += held[leaves].astype(training.precision)
        found[:, block] = np.moveaxis(parts, 0, 1)
    return found


def _settle(
    part: Array,
    leaf: Array,
    held: Array,
    allowed: tuple[float, Array | float],
    tree: int,
    name: str,
) -> Array:
    """Return contributions that sum to the leaf values, or raise an error if they differ.

    Small differences are rounding errors of the library. They are distributed in proportion to the
    magnitudes of the contributions, which is stable even if the contributions nearly cancel.
    """
    tolerance, room = allowed
    if part.ndim == 2:
        rooms = np.broadcast_to(room, held.shape)
        columns = [
            _settle(part[:, k], leaf, held[:, k], (tolerance, rooms[:, k]), tree, name)
            for k in range(part.shape[1])
        ]
        return np.stack(columns, axis=1)
    size = np.abs(part)
    total, most = (np.bincount(leaf, of, len(held)) for of in (part, size))
    left = held - total
    reached = np.bincount(leaf, minlength=len(held)) > 0
    if len(held) == 1 and held[0] == 0:  # a tree without splits that adds nothing
        return np.zeros_like(part)
    enough = tolerance * (most + 1e-4 * np.abs(held)) + room
    wrong = (np.abs(left) > enough) & (reached | (held != 0))
    if wrong.any():
        raise mismatch(held, total, wrong, reached, tree, name)
    spread = np.divide(left, most, out=np.zeros_like(left), where=most > 0)
    settled: Array = part + spread[leaf] * size
    settled[size < max(_NEGLIGIBLE * float(np.max(size, initial=0)), _TINY)] = 0
    return settled


def mismatch(
    held: Array, total: Array, wrong: Array, reached: Array, tree: int, name: str
) -> Unavailable:
    """Return the error for leaf values that do not follow from the training samples."""
    at = int(np.flatnonzero(wrong)[np.argmax(np.abs(held - total)[wrong])])
    found = f"the data give {total[at]:.6g}" if reached[at] else "no sample reaches it"
    return Unavailable(
        f"the data do not reproduce the leaf values of {name}: leaf {at} of tree {tree} has the "
        f"value {held[at]:.6g}, but {found} ({int(wrong.sum())} of {len(held)} leaves of the tree "
        "differ). Pass the X, y and sample_weight that the model was trained on, in the same "
        "order. If they are the same, the model was trained with an unsupported option: an initial "
        "score or margin for each row, a custom objective (pass Gradient(objective=...)), or an "
        "option that changes leaf values, such as monotonic constraints"
    )


def newton(G: Array, H: Array, l1: float = 0.0, l2: float = 0.0, most: float = 0.0) -> Array:
    """Return the ratio of a regularized Newton step to G.

    Parameters
    ----------
    G, H : ndarray of shape (leaves,)
        Sums of the first and second derivatives.
    l1, l2 : float
        L1 and L2 penalties.
    most : float
        Largest step; 0 for no limit.
    """
    kept = np.maximum(np.abs(G) - l1, 0) / np.abs(G) if l1 else 1.0
    factor: Array = -kept / (H + l2)
    if most > 0:
        factor = factor * np.minimum(1, most / np.abs(factor * G))
    return factor


def targets(y: Any, n_samples: int) -> Array:
    """Return the targets of the training samples as an array, shape (n,) or (n, K)."""
    if y is None:
        raise Unavailable("y is missing, and gradients depend on the targets; pass y to fit")
    found = np.asarray(y)
    return found.reshape(n_samples) if found.size == n_samples else found


def numbers(y: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Return numeric targets."""
    try:
        return targets(y, n_samples).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise Unavailable(
            f"y contains non-numeric values ({error}); pass the y that the model was trained on"
        ) from error


def codes(y: Any, n_samples: int, classes: Array) -> npt.NDArray[np.intp]:
    """Return the index of each sample's class among the sorted classes of a model."""
    labels = targets(y, n_samples)
    found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = classes.astype(object)[found] != labels.astype(object)
    if np.any(unknown):
        raise Unavailable(
            f"y contains {labels[unknown].tolist()[0]!r}, which is not a class of the model; its "
            f"classes are {classes.tolist()}"
        )
    return np.asarray(found, dtype=np.intp)


def weights_of(sample_weight: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Return the weights of the training samples; ones by default."""
    if sample_weight is None:
        return np.ones(n_samples)
    return np.array(np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), (n_samples,)))
