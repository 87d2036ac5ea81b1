"""Retrace the training of CatBoost: its losses and leaf values.

Draws of samples affect only the splits. The leaf values use all samples. They take several steps if
``leaf_estimation_iterations`` is larger than 1. Checked in CatBoost 1.2.2 to 1.2.10.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.forests import _losses
from leafkernel.forests._base import Array, Outputs, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training, codes, numbers, targets, weights_of
from leafkernel.forests._links import Link
from leafkernel.forests._losses import Derivatives

_LINKS = {
    **dict.fromkeys(("RMSE", "MultiRMSE", "Huber"), Link("identity")),
    **dict.fromkeys(("Logloss", "CrossEntropy", "MultiClassOneVsAll"), Link("logistic")),
    **dict.fromkeys(("Poisson", "Tweedie"), Link("exp")),
    "MultiClass": Link("softmax"),
}
_CLASSES = ("Logloss", "MultiClass", "MultiClassOneVsAll")
_RANKING = ("YetiRank", "PairLogit", "Query", "StochasticRank", "LambdaMart")

# A relative change of the loss that CatBoost may round to 0, and the largest number of tries.
_UNCLEAR, _MOST_TRIES = 1e-3, 1100


def retraced_training(
    forest: BoostedTrees, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
) -> Training:
    """Return the information needed to retrace the training."""
    model = forest.estimator
    params: Mapping[str, Any] = model.get_all_params()
    name, options = _loss_of(params)
    derivatives = objective or _derivatives(forest, name, options)
    link = _LINKS.get(name) if objective is None else None
    if params.get("leaf_estimation_method", "Newton") not in ("Newton", "Gradient"):
        raise Unavailable(
            f"the leaf values of {forest} with leaf_estimation_method="
            f"{params['leaf_estimation_method']!r} are not sums over samples; train it with "
            "'Newton' or 'Gradient'"
        )
    values = forest.leaf_values()
    n_outputs = values.shape[1]
    coded, labels = _targets(forest, name, y, n_samples, n_outputs)
    weights = weights_of(sample_weight, n_samples)
    if name in _CLASSES:
        weights *= _class_weights(params, coded.astype(np.intp))
    weights = weights.astype(np.float32).astype(np.float64)
    base = np.ravel(np.asarray(model.get_scale_and_bias()[1], dtype=np.float64))
    base = np.repeat(base, n_outputs) if len(base) == 1 else base
    several = n_outputs > 1
    backtracks = params.get("leaf_estimation_backtracking", "No") != "No"
    l2 = float(params.get("l2_leaf_reg", 3.0)) * weights.sum() / n_samples
    return _CatBoostTraining(
        coded,
        weights,
        Outputs(base, np.full(len(forest.leaf_offsets) - 1, -1 if several else 0), labels, link),
        values if several else values[:, 0],
        1,
        derivatives,
        lambda tree, G, H, held: -1 / (H + l2),  # noqa: ARG005
        tolerance=2e-6,
        rate=float(params["learning_rate"]),
        l2=l2,
        steps=int(params.get("leaf_estimation_iterations", 1)),
        by_weight=params.get("leaf_estimation_method") == "Gradient",
        coupled=name == "MultiClass" and objective is None,
        loss=None if objective is not None or not backtracks else _losses_of(name, options),
    )


def _loss_of(params: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """Return the name of the loss and its options, for example from ``Huber:delta=1``."""
    name, _, rest = str(params.get("loss_function", "RMSE")).partition(":")
    found = re.findall(r"(\w+)=([-+.\de]+)(?:;|$)", rest)
    return name, {key: float(value) for key, value in found}


def _derivatives(forest: BoostedTrees, name: str, options: Mapping[str, float]) -> Derivatives:
    if name in ("Quantile", "MAE", "MAPE", "MultiQuantile", "LogLinQuantile"):
        raise Unavailable(
            f"the leaf values of {forest} with loss_function={name!r} are quantiles of residuals, "
            "not sums over samples; use 'boosted', or train with 'Huber' or 'RMSE'"
        )
    if name.startswith(_RANKING):
        raise Unavailable(
            f"the gradients of {forest} with loss_function={name!r} belong to groups of samples, "
            "not to single samples; use 'boosted'"
        )
    known: dict[str, Derivatives] = {
        "RMSE": _losses.squared,
        "MultiRMSE": _losses.squared,
        "Logloss": _losses.logistic,
        "CrossEntropy": _losses.logistic,
        "MultiClass": _losses.multinomial(),
        "MultiClassOneVsAll": _losses.one_against_all(_losses.logistic),
        "Poisson": _losses.poisson(),
        "Tweedie": _losses.tweedie(options.get("variance_power", 1.5)),
        "Huber": _losses.huber(options.get("delta", 1.0), 0.0),
    }
    if name not in known:
        raise Unavailable(
            f"the derivatives of loss_function={name!r} of {forest} are unknown; pass them with "
            "weight_scheme=Gradient(objective=function)"
        )
    return known[name]


def _losses_of(name: str, options: Mapping[str, float]) -> Callable[[Array, Array], Array] | None:
    """Return the loss of each sample, which decides whether a step is halved."""
    power, delta = options.get("variance_power", 1.5), options.get("delta", 1.0)

    def tweedie(y: Array, s: Array) -> Array:
        found: Array = np.exp((2 - power) * s) / (2 - power) - y * np.exp((1 - power) * s) / (
            1 - power
        )
        return found

    def huber(y: Array, s: Array) -> Array:
        r = np.abs(s - y)
        found: Array = np.where(r < delta, r**2 / 2, delta * (r - delta / 2))
        return found

    def logistic(y: Array, s: Array) -> Array:
        found: Array = np.logaddexp(0, s) - y * s
        return found

    def multinomial(y: Array, s: Array) -> Array:
        found: Array = np.logaddexp.reduce(s, axis=1) - s[np.arange(len(y)), y]
        return found

    return {
        "Logloss": logistic,
        "CrossEntropy": logistic,
        "MultiClass": multinomial,
        "MultiClassOneVsAll": lambda y, s: logistic(_losses.one_hot(y, s), s).mean(axis=1),
        "Poisson": lambda y, s: np.exp(s) - y * s,
        "Tweedie": tweedie,
        "Huber": huber,
        "RMSE": lambda y, s: (s - y) ** 2,
        "MultiRMSE": lambda y, s: ((s - y) ** 2).sum(axis=1),
    }.get(name)


def _targets(
    forest: BoostedTrees, name: str, y: Any, n_samples: int, n_outputs: int
) -> tuple[Array, Array]:
    """Return the targets in CatBoost's precision, and the labels of the outputs."""
    if name not in _CLASSES:
        found = numbers(y, n_samples).astype(np.float32)
        return found.astype(np.float64), np.arange(n_outputs)
    classes = np.asarray(forest.estimator.classes_)
    labels = targets(y, n_samples)
    if classes.dtype.kind in "US" and labels.dtype.kind not in "US":
        labels = labels.astype(str)
    coded = codes(labels, n_samples, classes)
    if n_outputs == 1:
        return coded.astype(np.float64), classes[1:]
    return coded, classes


def _class_weights(params: Mapping[str, Any], coded: Array) -> Array:
    of_classes = params.get("class_weights") or []
    if isinstance(of_classes, Mapping):
        of_classes = list(of_classes.values())
    if of_classes:
        found: Array = np.asarray(of_classes, dtype=np.float64)[coded]
        return found
    return np.ones(len(coded))


@dataclass(frozen=True)
class _Place:
    """A tree, and the samples in its leaves."""

    tree: int
    leaf: Array
    held: Array
    scores: Array


@dataclass
class _CatBoostTraining(Training):
    """Leaves with several steps, or with joint steps for all classes."""

    l2: float = 3.0
    steps: int = 1
    by_weight: bool = False
    coupled: bool = False
    loss: Callable[[Array, Array], Array] | None = None

    def parts(
        self, tree: int, leaf: Array, held: Array, scores: Array
    ) -> tuple[Array, Array | float]:
        """Return the contribution of each sample to the value of its leaf."""
        none = np.zeros((len(leaf), 1 if held.ndim == 1 else held.shape[1]))
        if self.steps == 1:
            found = self.rate * self._step(tree, leaf, held, scores)
        else:
            self._tries = _MOST_TRIES
            self._nearest, self._off = none, np.inf
            walked = self._walk(_Place(tree, leaf, held, scores), none, 0)
            found = self._nearest if walked is None else walked
        return (found if held.ndim == 2 else found[:, 0]), 0.0

    def _walk(self, place: _Place, total: Array, number: int) -> Array | None:
        """Return contributions that sum to the leaf values, following CatBoost's steps.

        A step that does not lower the loss is halved, which also counts as a step. CatBoost rounds
        the loss, so both alternatives are tried if it hardly changes.
        """
        values = place.held.reshape(len(place.held), -1)
        added = self._sums(place.leaf, total, len(values))
        size = self._sums(place.leaf, np.abs(total), len(values))
        off = float(np.max(np.abs(values - self.rate * added) - self.tolerance * self.rate * size))
        if number and off < self._off:
            self._nearest, self._off = self.rate * total, off
        if number and off <= 0:
            return self.rate * total
        if number >= self.steps or self._tries <= 0:
            return None
        self._tries -= 1
        at = place.scores + added[place.leaf]
        self.begin(number, at)
        step = self._step(place.tree, place.leaf, place.held, at)
        before = self._loss(at)
        for halved in range(self.steps - number):
            tried = total + 0.5**halved * step
            moved = self._sums(place.leaf, tried, len(values))
            after = self._loss(place.scores + moved[place.leaf])
            if not after > before + _UNCLEAR * abs(before):
                found = self._walk(place, tried, number + halved + 1)
                if found is not None or after < before - _UNCLEAR * abs(before):
                    return found
        return None

    def _loss(self, scores: Array) -> float:
        """Return the mean loss at some scores, or 0 if the loss is unknown."""
        if self.loss is None:
            return 0.0
        shaped = scores[:, 0] if scores.shape[1] == 1 else scores
        return float(np.average(self.loss(self.y, shaped), weights=self.weights))

    def _step(self, tree: int, leaf: Array, held: Array, scores: Array) -> Array:
        if self.coupled and not self.by_weight:
            return self._coupled_step(leaf, len(held), scores)
        if self.by_weight:
            self.h = np.broadcast_to(self.weights[:, None], self.g.shape)
        found = super().parts(tree, leaf, held, scores)[0]
        return found if found.ndim == 2 else found[:, None]

    def _coupled_step(self, leaf: Array, n_leaves: int, scores: Array) -> Array:
        """Return contributions in Newton steps with the full Hessian over the classes."""
        p = self.g / np.where(self.weights > 0, self.weights, 1)[:, None]
        p = p + _losses.one_hot(self.y, p)
        n_outputs = p.shape[1]
        H = np.zeros((n_leaves, n_outputs, n_outputs))
        for a in range(n_outputs):
            for b in range(n_outputs):
                each = p[:, a] * ((a == b) - p[:, b]) * self.weights
                H[:, a, b] = np.bincount(leaf, each, n_leaves)
        diagonal = np.einsum("laa->la", H)
        least = np.maximum(diagonal.max(axis=1), self.l2) * float(np.finfo(np.float32).eps)
        diagonal += np.maximum(self.l2, least)[:, None]
        inverse = np.linalg.inv(H + 1e-300 * np.eye(n_outputs))
        found: Array = -np.einsum("nab,nb->na", inverse[leaf], self.g)
        return found

    @staticmethod
    def _sums(leaf: Array, parts: Array, n_leaves: int) -> Array:
        return np.stack([np.bincount(leaf, column, n_leaves) for column in parts.T], axis=1)
