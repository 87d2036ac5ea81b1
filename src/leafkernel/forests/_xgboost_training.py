"""Retrace the training of XGBoost: its losses, base scores, leaf values and draws.

Scores and derivatives are rounded to float32, as in XGBoost. The draw of each tree is seeded by one
number of a Mersenne Twister, which other parts of the library also use. The next numbers are
therefore tried until the leaf values match. Checked in XGBoost 2.0.0 to 3.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.forests import _losses
from leafkernel.forests._base import Array, Outputs, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training, codes, newton, numbers, targets, weights_of
from leafkernel.forests._links import Link
from leafkernel.forests._losses import Derivatives

# The generator of the draws: x <- _TIMES * x modulo 2^63.
_TIMES, _MODULUS = 16807, 1 << 63
# Largest count of numbers that other parts of the library may take between two trees.
_MOST_SKIPPED = 128
_EPSILON = float(np.finfo(np.float32).eps)
_REFITTED = {"reg:absoluteerror": "medians", "reg:quantileerror": "quantiles"}
_LINKS = {
    **dict.fromkeys(
        ("reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror"),
        Link("identity"),
    ),
    **dict.fromkeys(("reg:logistic", "binary:logistic", "binary:logitraw"), Link("logistic")),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), Link("exp")),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), Link("softmax")),
}
_WEIGH_POSITIVE = (
    "binary:logistic",
    "binary:logitraw",
    "reg:logistic",
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:gamma",
)


@dataclass(frozen=True)
class Trained:
    """The training parameters of a model."""

    forest: BoostedTrees
    #: The "learner" of the JSON format: objective, base score, classes.
    learner: Mapping[str, Any]
    #: Training parameters. They are lost if the model is written to a file.
    config: Mapping[str, Any]
    #: The output that each tree adds to.
    tree_info: Array
    n_parallel: int
    is_dart: bool
    #: Approximate raw scores before the first tree.
    start: Array

    @property
    def objective(self) -> str:
        """Name of the loss."""
        return str(self.learner["objective"]["name"])

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a parameter of the trees."""
        booster = self.config.get("learner", {}).get("gradient_booster", {})
        booster = booster.get("gbtree", booster)
        params = booster.get("tree_train_param", {})
        if not params:  # older versions store them here
            updater = booster.get("updater", {})
            for part in updater.values() if isinstance(updater, dict) else updater:
                params = part.get("train_param", params)
        return float(params.get(name, default))

    def of_objective(self, part: str, name: str, default: float) -> float:
        """Return a parameter of the loss."""
        return float(self.learner["objective"].get(part, {}).get(name, default))


def retraced_training(
    trained: Trained, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
) -> Training:
    """Return the information needed to retrace the training."""
    forest, name = trained.forest, trained.objective
    values = forest.leaf_values()
    _refuse(trained, objective)
    base = _base_scores(trained)
    n_outputs = len(base)
    coded, labels = _targets(trained, y, n_samples, n_outputs)
    derivatives = objective or _derivatives(trained)
    link = _LINKS.get(name) if objective is None else None
    weights = weights_of(sample_weight, n_samples).astype(np.float32)
    positive = trained.of_objective("reg_loss_param", "scale_pos_weight", 1.0)
    if objective is None and name in _WEIGH_POSITIVE and positive != 1:
        weights = np.where(coded == 1, np.float32(positive) * weights, weights)
    size = np.ones(n_samples)
    if not name.startswith(("binary", "multi")):
        size += np.abs(coded).reshape(n_samples, -1).max(axis=1)
    of_tree = np.full(len(trained.tree_info), -1) if values.ndim == 2 else trained.tree_info
    return _FloatTraining(
        coded.astype(np.float32) if coded.dtype.kind == "f" else coded,
        weights,
        Outputs(base.astype(np.float64), of_tree.astype(np.int64), labels, link),
        values,
        (1 if values.ndim == 2 else n_outputs) * trained.n_parallel,
        derivatives,
        _factor(trained),
        tolerance=2e-6,
        noise=8 * _EPSILON * weights * size,
        precision=np.float32,
        derivative_precision=np.float32,
        subsample=float(np.float32(trained.number("subsample", 1.0))),
        seed=int(trained.config.get("learner", {}).get("generic_param", {}).get("seed", 0)),
        forest=forest,
    )


def _refuse(trained: Trained, objective: Derivatives | None) -> None:
    forest, name = trained.forest, trained.objective
    if trained.is_dart:
        raise Unavailable(
            f"{forest} has booster='dart' and does not store which trees were dropped in training; "
            "use 'boosted', or train it with 'gbtree'"
        )
    if name in _REFITTED and objective is None:
        raise Unavailable(
            f"the leaf values of {forest} with objective={name!r} are {_REFITTED[name]} of "
            "residuals, not sums over samples; use 'boosted', or train with 'reg:pseudohubererror'"
        )
    if name.startswith("rank:"):
        raise Unavailable(
            f"the gradients of {forest} with objective={name!r} belong to pairs of samples, not to "
            "single samples; use 'boosted'"
        )
    methods = trained.config.get("learner", {}).get("gradient_booster", {})
    if "gradient_based" in str(methods) and trained.number("subsample", 1.0) < 1:
        raise Unavailable(
            f"{forest} has sampling_method='gradient_based', whose draws cannot be reproduced; use "
            "'boosted', or train it with 'uniform'"
        )


def _base_scores(trained: Trained) -> Array:
    """Return the raw scores before the first tree, in float32.

    The link function of the stored base score depends on the loss and on the version of XGBoost.
    The link is chosen that comes closest to the score of a row minus its leaf values.
    """
    params = trained.learner["learner_model_param"]
    told = str(params["base_score"]).strip("[]")
    base = np.array([float(part) for part in told.split(",")], dtype=np.float32)
    n_outputs = max(1, int(params["num_class"]), int(params.get("num_target", 1)))
    base = np.repeat(base, n_outputs) if len(base) == 1 else base
    one = np.float32(1)
    with np.errstate(all="ignore"):
        links = [base, -np.log(one / base - one), np.log(base)]
    off = [np.abs(linked - trained.start).max() for linked in links]
    nearest: Array = links[int(np.nanargmin(off))]
    return nearest


def _targets(trained: Trained, y: Any, n_samples: int, n_outputs: int) -> tuple[Array, Array]:
    classes = getattr(trained.forest.estimator, "classes_", None)
    binary = trained.objective.startswith("binary")
    if classes is None or len(np.asarray(classes)) == 0:
        found = numbers(y, n_samples)
        if trained.objective.startswith("multi"):
            return found.astype(np.intp), np.arange(n_outputs)
        return found, np.arange(n_outputs) + binary
    coded, classes = _named_codes(y, n_samples, np.asarray(classes))
    if n_outputs == 1:
        return coded.astype(np.float64), classes[1:]
    return coded, classes


def _named_codes(y: Any, n_samples: int, classes: Array) -> tuple[Array, Array]:
    """Return class indices and class names. XGBoost itself accepts only indices."""
    try:
        return codes(y, n_samples, classes), classes
    except Unavailable:
        names, coded = np.unique(targets(y, n_samples), return_inverse=True)
        if not np.array_equal(classes, np.arange(len(names))):
            raise
    # Assume codes in sorted order. With another order, the check of the leaf values fails.
    return coded.reshape(n_samples).astype(np.intp), names


def _derivatives(trained: Trained) -> Derivatives:
    name, of = trained.objective, trained.of_objective
    step = of("poisson_regression_param", "max_delta_step", 0.7)
    power = of("tweedie_regression_param", "tweedie_variance_power", 1.5)
    slope = of("pseudo_huber_param", "huber_slope", 1.0)
    known: dict[str, Derivatives] = {
        "reg:squarederror": _losses.squared,
        "reg:linear": _losses.squared,
        "reg:logistic": _logistic,
        "binary:logistic": _logistic,
        "binary:logitraw": _logistic,
        "binary:hinge": _losses.hinge,
        "reg:squaredlogerror": _losses.squared_log,
        "reg:pseudohubererror": _losses.pseudo_huber(slope),
        "count:poisson": _losses.poisson(step),
        "reg:gamma": _losses.gamma,
        "reg:tweedie": _losses.tweedie(power),
        "multi:softprob": _losses.multinomial(2.0),
        "multi:softmax": _losses.multinomial(2.0),
    }
    if name not in known:
        raise Unavailable(
            f"the derivatives of objective={name!r} of {trained.forest} are unknown; pass them "
            "with weight_scheme=Gradient(objective=function)"
        )
    return known[name]


def _logistic(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of the cross entropy, rounded as in XGBoost for large scores."""
    p = _losses.expit(s)
    return p - y, np.maximum(p * (1 - p), np.float32(1e-16))


def _factor(trained: Trained) -> Callable[[int, Array, Array, Array], Array]:
    """Return the function that turns sums of gradients into leaf values."""
    l1, l2 = trained.number("reg_alpha"), trained.number("reg_lambda", 1.0)
    most, least = trained.number("max_delta_step"), trained.number("min_child_weight", 1.0)
    rate = trained.number("learning_rate", 0.3) / trained.n_parallel

    def factor(tree: int, G: Array, H: Array, held: Array) -> Array:  # noqa: ARG001
        # In leaves with several outputs, an output below min_child_weight gets 0.
        unit = np.where((held == 0) & (least > H), 0, newton(G, H, l1, l2, most))
        # The model does not store the rates of a schedule, so estimate the rate.
        step = unit * G
        clear = np.isfinite(step) & (np.abs(step) > 1e-3 * np.max(np.abs(step), initial=0))
        found = float(np.median(held[clear] / step[clear])) if clear.any() else rate
        return (rate if abs(found - rate) <= 1e-3 * rate else found) * unit

    return factor


@dataclass
class _FloatTraining(Training):
    """A training in float32, with a draw of samples for each tree."""

    subsample: float = 1.0
    seed: int = 0
    forest: Any = None

    def __post_init__(self) -> None:
        if self.subsample < 1:
            n = len(self.y)
            self._stream = np.random.RandomState(self.seed)._bit_generator
            self._powers = np.multiply.accumulate(np.full(n, _TIMES, dtype=np.uint64))

    def parts(
        self, tree: int, leaf: Array, held: Array, scores: Array
    ) -> tuple[Array, Array | float]:
        """Return the contribution of each sample to its leaf value, and the error of each leaf."""
        if self.subsample >= 1:
            return super().parts(tree, leaf, held, scores)
        all_of = self.g, self.h
        n_leaves = len(held)
        try:
            for _ in range(_MOST_SKIPPED):
                drawn = self._draw(int(self._stream.random_raw()))
                self.g, self.h = (of * drawn[:, None] for of in all_of)
                part, room = super().parts(tree, leaf, held, scores)
                sums = [np.bincount(leaf, of, n_leaves) for of in (part, np.abs(part))]
                if (np.abs(held - sums[0]) <= self.tolerance * sums[1] + room).all():
                    return part, room
        finally:
            self.g, self.h = all_of
        raise Unavailable(
            f"{self.forest} has subsample={self.subsample:.3g}, and the draw of tree {tree} cannot "
            f"be reproduced with the seed {self.seed}. Pass the X, y and sample_weight that it was "
            "trained on, in the same order, and the model itself, not one loaded from a file; or "
            "train it without subsample"
        )

    def _draw(self, seed: int) -> Array:
        """Return which samples a tree drew, given the first number of its generator."""
        state = (self._powers * np.uint64(seed)) % np.uint64(_MODULUS)
        drawn: Array = (state.astype(np.float64) - 1) / float(_MODULUS) < self.subsample
        return drawn
