"""How CatBoost trains: its losses and leaf values.

Draws of samples decide on the splits alone: the values of leaves come from all samples. They take
several steps where ``leaf_estimation_iterations`` says so. Read on CatBoost 1.2.2 to 1.2.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.forests import _losses
from leafkernel.forests._base import Array, Outputs, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training, codes, numbers, targets, weights_of
from leafkernel.forests._losses import Derivatives

_CLASSES = ("Logloss", "MultiClass", "MultiClassOneVsAll")
_RANKING = ("YetiRank", "PairLogit", "QueryRMSE", "QuerySoftMax", "QueryCrossEntropy", "StochasticRank", "LambdaMart")


def retraced_training(
    forest: BoostedTrees, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
) -> Training:
    """Return how a model was trained on these samples."""
    model = forest.estimator
    params: Mapping[str, Any] = model.get_all_params()
    name, options = _loss_of(params)
    derivatives = objective or _derivatives(forest, name, options)
    if params.get("leaf_estimation_method", "Newton") not in ("Newton", "Gradient"):
        raise Unavailable(
            f"{forest} has leaf_estimation_method={params['leaf_estimation_method']!r}, whose leaf "
            "values are not sums over samples; train it with 'Newton' or 'Gradient'"
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
    l2 = float(params.get("l2_leaf_reg", 3.0)) * weights.sum() / n_samples
    return _CatBoostTraining(
        coded,
        weights,
        Outputs(base, np.full(len(forest.leaf_offsets) - 1, -1 if several else 0), labels),
        values if several else values[:, 0],
        1,
        derivatives,
        lambda tree, G, H, held: -1 / (H + l2),  # noqa: ARG005
        tolerance=2e-6,
        rate=float(params["learning_rate"]),
        l2=l2,
        steps=int(params.get("leaf_estimation_iterations", 1)),
        by_weight=params.get("leaf_estimation_method") == "Gradient",
        coupled=name == "MultiClass",
    )


def _loss_of(params: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """Return the name of the loss and its options: ``Huber:delta=1``."""
    name, _, rest = str(params.get("loss_function", "RMSE")).partition(":")
    pairs = (pair.partition("=") for pair in rest.split(";") if pair)
    options = {}
    for key, _, value in pairs:
        try:
            options[key] = float(value)
        except ValueError:
            continue
    return name, options


def _derivatives(forest: BoostedTrees, name: str, options: Mapping[str, float]) -> Derivatives:
    if name in ("Quantile", "MAE", "MAPE", "MultiQuantile", "LogLinQuantile"):
        raise Unavailable(
            f"{forest} has loss_function={name!r}, which puts quantiles of residuals into its "
            "leaves; these are not sums over samples. Use 'boosted', or train with 'Huber' or 'RMSE'"
        )
    if name.startswith(_RANKING):
        raise Unavailable(
            f"{forest} has loss_function={name!r}, whose gradients belong to the samples of a "
            "query together; use 'boosted'"
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
            f"{forest} has loss_function={name!r}, whose derivatives are not known; pass them with "
            "weight_scheme=Gradient(objective=function)"
        )
    return known[name]


def _targets(
    forest: BoostedTrees, name: str, y: Any, n_samples: int, n_outputs: int
) -> tuple[Array, Array]:
    """Return the targets in CatBoost's own precision, and the names of the outputs."""
    if name not in _CLASSES:
        found = numbers(y, n_samples).astype(np.float32)
        return found.astype(np.float64), np.arange(n_outputs)
    classes = np.asarray(forest.estimator.classes_)
    labels = targets(y, n_samples)
    if classes.dtype.kind in "US" and labels.dtype.kind not in "US":
        labels = labels.astype(str)
    found = codes(labels, n_samples, classes)
    if n_outputs == 1:
        return found.astype(np.float64), classes[1:]
    return found, classes


def _class_weights(params: Mapping[str, Any], coded: Array) -> Array:
    of_classes = params.get("class_weights") or []
    if isinstance(of_classes, Mapping):
        of_classes = list(of_classes.values())
    if len(of_classes):
        found: Array = np.asarray(of_classes, dtype=np.float64)[coded]
        return found
    return np.ones(len(coded))


@dataclass
class _CatBoostTraining(Training):
    """Leaves that take several steps, or steps for all classes together."""

    rate: float = 0.03
    l2: float = 3.0
    steps: int = 1
    by_weight: bool = False
    coupled: bool = False

    def parts(
        self, tree: int, leaf: Array, held: Array, scores: Array
    ) -> tuple[Array, Array | float]:
        """Return the part of each sample in the value of its leaf."""
        total = np.zeros((len(leaf), 1 if held.ndim == 1 else held.shape[1]))
        for step in range(self.steps):
            if step:
                at = self._sums(leaf, total, len(held))
                self.begin(step, scores + at[leaf])
            total += self._step(tree, leaf, held, scores)
        total *= self.rate
        return (total if held.ndim == 2 else total[:, 0]), 0.0

    def _step(self, tree: int, leaf: Array, held: Array, scores: Array) -> Array:
        if self.coupled and not self.by_weight:
            return self._coupled_step(leaf, len(held), scores)
        if self.by_weight:
            self.h = np.broadcast_to(self.weights[:, None], self.g.shape)
        found = super().parts(tree, leaf, held, scores)[0]
        return found if found.ndim == 2 else found[:, None]

    def _coupled_step(self, leaf: Array, n_leaves: int, scores: Array) -> Array:
        """Return parts in Newton steps with the second derivatives of all pairs of classes."""
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
