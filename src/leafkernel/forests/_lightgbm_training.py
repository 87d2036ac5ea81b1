"""Retrace the training of LightGBM: its losses, initial scores, leaf values and draws.

Draws are reproduced with LightGBM's own generator, a linear congruential one with a separate seed
for every 1024 samples. Checked in LightGBM 4.0.0 to 4.7.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.forests import _losses
from leafkernel.forests._base import Array, Outputs, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training, codes, newton, numbers, targets, weights_of
from leafkernel.forests._links import Link
from leafkernel.forests._losses import Derivatives
from leafkernel.forests._trees import TreeArrays, parents

# Number of samples per generator, and the generator: x <- _TIMES * x + _PLUS modulo 2^32.
_BLOCK, _TIMES, _PLUS = 1024, 214013, 2531011
_EPSILON = 1e-15
# Losses whose leaf values are refitted.
_REFITTED = {"regression_l1": "medians", "quantile": "quantiles", "mape": "weighted medians"}
_RANKING = ("lambdarank", "rank_xendcg")


@dataclass(frozen=True)
class Trained:
    """The training parameters in the text of a model."""

    forest: BoostedTrees
    objective: str
    params: Mapping[str, str]
    n_outputs: int
    shrinkage: Array
    trees: Sequence[TreeArrays]
    averages: bool

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a parameter as a number."""
        try:
            return float(self.params.get(name, default))
        except ValueError:
            return default


def retraced_training(
    trained: Trained, y: Any, sample_weight: Any, n_samples: int, objective: Derivatives | None
) -> Training:
    """Return the information needed to retrace the training."""
    forest, number = trained.forest, trained.number
    _refuse(trained)
    name = trained.objective.partition(" ")[0]
    coded, labels = _targets(trained, name, y, n_samples)
    weights = weights_of(sample_weight, n_samples)
    if getattr(forest.estimator, "class_weight", None) is not None:
        from sklearn.utils import compute_sample_weight  # noqa: PLC0415

        weights *= compute_sample_weight(forest.estimator.class_weight, targets(y, n_samples))
    weights = weights.astype(np.float32).astype(np.float64)
    derivatives = objective or _derivatives(trained, name)
    link = None if objective is not None else _link(trained, name)
    start = np.zeros(trained.n_outputs)
    if objective is None and number("boost_from_average", 1):
        start = _start(trained, name, coded, weights)
    whole = forest.leaf_values()
    ends = forest.leaf_offsets
    kind: type[Training] = Training
    more: dict[str, Any] = {}
    is_lost = np.arange(len(trained.trees)) < np.where(start.any(), trained.n_outputs, 0)
    if trained.params.get("boosting") == "dart":
        drops = _Drops.of(trained)
        kind, more = _DartTraining, {"drops": drops, "whole": whole, "ends": ends, "start": start}
        start = start * drops.scale[0]  # dropped and scaled together with the first trees
    values = whole.copy()
    for k in range(trained.n_outputs):  # the first trees include the initial scores
        values[ends[k] : ends[k + 1]] -= start[k]
    return kind(
        coded,
        weights[:, None] * _label_weights(trained, name, coded),
        Outputs(start, np.arange(len(trained.trees)) % trained.n_outputs, labels, link),
        values,
        trained.n_outputs,
        derivatives,
        _factor(trained, is_lost),
        drawn=_draws(trained, coded),
        tolerance=2e-6,
        derivative_precision=np.float32,
        **more,
    )


def _refuse(trained: Trained) -> None:
    forest, params = trained.forest, trained.params
    name = trained.objective.partition(" ")[0]
    if trained.averages:
        raise Unavailable(
            f"{forest} has boosting_type='rf', which averages its trees; use 'kerf', or train a "
            "RandomForest of scikit-learn and use 'gap'"
        )
    if name in _REFITTED:
        raise Unavailable(
            f"the leaf values of {forest} with objective={name!r} are {_REFITTED[name]} of "
            "residuals, not sums over samples; use 'boosted', or train with 'huber' or 'fair'"
        )
    if name in _RANKING:
        raise Unavailable(
            f"the gradients of {forest} with objective={name!r} belong to pairs of samples, not to "
            "single samples; use 'boosted'"
        )
    for option in ("path_smooth", "use_quantized_grad"):
        if trained.number(option):
            raise Unavailable(
                f"the leaf values of {forest} with {option}={params[option]} do not follow from "
                f"the gradients of their own samples; use 'boosted', or train it without {option}"
            )


def _targets(trained: Trained, name: str, y: Any, n_samples: int) -> tuple[Array, Array]:
    """Return the targets in LightGBM's precision, and the labels of the outputs."""
    classes = getattr(trained.forest.estimator, "classes_", None)
    several = np.arange(trained.n_outputs)
    if classes is None:
        found = numbers(y, n_samples)
        binary = name == "binary"
        coded = (found > 0).astype(np.float64) if binary else found.astype(np.float32)
        if name == "regression" and "sqrt" in trained.objective.split():
            coded = np.sign(coded) * np.sqrt(np.abs(coded))
        return coded.astype(np.float64), several + binary
    found = codes(y, n_samples, np.asarray(classes)).astype(np.float64)
    return found, np.asarray(classes)[1:] if trained.n_outputs == 1 else np.asarray(classes)


def _derivatives(trained: Trained, name: str) -> Derivatives:
    number, n_outputs = trained.number, trained.n_outputs
    sigmoid = number("sigmoid", 1.0)
    binary = _losses.logistic if sigmoid == 1 else _losses.scaled_logistic(sigmoid)
    known: dict[str, Callable[[], Derivatives]] = {
        "regression": lambda: _losses.squared,
        "huber": lambda: _losses.huber(number("alpha", 0.9)),
        "fair": lambda: _losses.fair(number("fair_c", 1.0)),
        "poisson": lambda: _losses.poisson(number("poisson_max_delta_step", 0.7)),
        "gamma": lambda: _losses.gamma,
        "tweedie": lambda: _losses.tweedie(number("tweedie_variance_power", 1.5)),
        "binary": lambda: binary,
        "multiclass": lambda: _losses.multinomial(n_outputs / (n_outputs - 1)),
        "multiclassova": lambda: _losses.one_against_all(binary),
        "cross_entropy": lambda: _losses.logistic,
    }
    if name not in known:
        raise Unavailable(
            f"the derivatives of objective={name or 'None'!r} of {trained.forest} are unknown; "
            "pass them with weight_scheme=Gradient(objective=function)"
        )
    return known[name]()


def _link(trained: Trained, name: str) -> Link | None:
    """Return the function from scores to predictions."""
    if name in ("regression", "huber", "fair"):
        is_root = name == "regression" and "sqrt" in trained.objective.split()
        return Link("square" if is_root else "identity")
    if name in ("binary", "multiclassova"):
        return Link("logistic", trained.number("sigmoid", 1.0))
    if name in ("poisson", "gamma", "tweedie"):
        return Link("exp")
    return {"cross_entropy": Link("logistic"), "multiclass": Link("softmax")}.get(name)


def _start(trained: Trained, name: str, y: Array, weights: Array) -> Array:
    """Return the initial scores, which LightGBM adds to the leaf values of the first trees."""
    total = weights.sum()
    if name in ("multiclass", "multiclassova"):
        share = np.bincount(y.astype(np.intp), weights, trained.n_outputs) / total
        share = np.maximum(share, _EPSILON)
        start = np.log(share)
        if name == "multiclassova":
            share = np.minimum(share, 1 - _EPSILON)
            start = np.log(share / (1 - share)) / trained.number("sigmoid", 1.0)
        return _not_tiny(start)
    mean = float((y * weights).sum() / total)
    if name in ("binary", "cross_entropy"):
        mean = min(max(mean, _EPSILON), 1 - _EPSILON)
        mean = np.log(mean / (1 - mean))
        if name == "binary":
            mean /= trained.number("sigmoid", 1.0)
    elif name in ("poisson", "gamma", "tweedie"):
        mean = np.log(mean) if mean > 0 else -np.inf
    return _not_tiny(np.array([mean]))


def _not_tiny(start: Array) -> Array:
    return np.where(np.abs(start) > _EPSILON, start, 0.0)


def _label_weights(trained: Trained, name: str, y: Array) -> Array:
    """Return the weights of positive and negative samples, shape (n, 1) or (n, K)."""
    if name not in ("binary", "multiclassova"):
        return np.ones((len(y), 1))
    positive = y[:, None] == (np.arange(trained.n_outputs) if name == "multiclassova" else 1)
    of_positive, of_negative = np.ones(positive.shape[1]), np.ones(positive.shape[1])
    if trained.number("is_unbalance"):
        n_positive = positive.sum(axis=0)
        n_negative = len(y) - n_positive
        both = (n_positive > 0) & (n_negative > 0)
        more = both & (n_positive > n_negative)
        of_negative = np.where(more, n_positive / np.maximum(n_negative, 1), 1.0)
        of_positive = np.where(both & ~more, n_negative / np.maximum(n_positive, 1), 1.0)
    of_positive = of_positive * trained.number("scale_pos_weight", 1.0)
    return np.where(positive, of_positive, of_negative)


def _factor(trained: Trained, is_lost: Array) -> Callable[[int, Array, Array, Array], Array]:
    """Return the function that turns sums of gradients into leaf values."""
    number = trained.number
    l1, l2, most = number("lambda_l1"), number("lambda_l2"), number("max_delta_step")
    rate = number("learning_rate", 0.1)

    def factor(tree: int, G: Array, H: Array, held: Array) -> Array:
        unit = newton(G, H, l1, l2, most)
        by_category = _after_categories(trained.trees[tree])
        if by_category.any():  # these use another penalty, except for one-vs-rest splits
            other = newton(G, H, l1, l2 + number("cat_l2", 10.0), most)
            scale = _rate(tree, held[~by_category], (unit * G)[~by_category])
            nearer = np.abs(scale * other * G - held) < np.abs(scale * unit * G - held)
            unit = np.where(by_category & nearer, other, unit)
        return _rate(tree, held, unit * G) * unit

    def _rate(tree: int, held: Array, step: Array) -> float:
        known = rate if is_lost[tree] else trained.shrinkage[tree]
        inner = np.isfinite(step) & (step != 0)
        if not inner.any():
            return float(known)
        found = float(np.median(held[inner] / step[inner]))
        # The model stores six digits of the rate, and none if the leaves include an initial score.
        return found if is_lost[tree] or abs(found - known) <= 1e-5 * known else float(known)

    return factor


def _after_categories(tree: TreeArrays) -> Array:
    """Return which leaves are children of a categorical split."""
    if not tree.categories:
        return np.zeros(int((tree.children_left < 0).sum()), dtype=bool)
    above = parents(tree)[tree.children_left < 0]
    return np.isin(above, list(tree.categories))


@dataclass(frozen=True)
class _Drops:
    """The rounds that each round of dart drops, and the resulting scale of each round.

    Attributes
    ----------
    of_round : list of list of int
        The rounds that each round was trained without.
    by : list of float
        Factor of the dropped rounds after each round.
    scale : ndarray of shape (n_rounds,)
        Final factor of each round.
    """

    of_round: list[list[int]]
    by: list[float]
    scale: Array

    @classmethod
    def of(cls, trained: Trained) -> _Drops:
        """Reproduce the drops."""
        number = trained.number
        n_rounds = len(trained.trees) // trained.n_outputs
        rate, most = number("learning_rate", 0.1), int(number("max_drop", 50))
        is_uniform, as_xgboost = number("uniform_drop"), number("xgboost_dart_mode")
        state = int(number("drop_seed", 4)) % 2**32

        def draw() -> float:
            nonlocal state
            state = (_TIMES * state + _PLUS) % 2**32
            return (state >> 16 & 0x7FFF) / 32768

        scale, weights = np.ones(n_rounds), np.zeros(n_rounds)
        total = 0.0
        of_round: list[list[int]] = []
        by: list[float] = []
        for t in range(n_rounds):
            dropped: list[int] = []
            if draw() >= number("skip_drop", 0.5) and t:
                share, average = number("drop_rate", 0.1), total / t
                if most > 0:
                    share = min(share, most / t if is_uniform else most / average / total)
                for s in range(t):
                    if draw() < (share if is_uniform else share * weights[s] / average):
                        dropped.append(s)
                        if len(dropped) >= most:
                            break
            k = len(dropped)
            more = k + (rate if as_xgboost else 1)
            kept = k / more if k else 1.0
            # LightGBM subtracts this amount, although it is inexact with xgboost_dart_mode.
            total -= float(weights[dropped].sum()) / more
            scale[dropped] *= kept
            weights[dropped] *= kept
            weights[t] = rate / more if k else rate
            total += weights[t]
            of_round.append(dropped)
            by.append(kept)
        return cls(of_round, by, scale)


@dataclass
class _DartTraining(Training):
    """A training in which each round ignores some of the rounds before it."""

    drops: _Drops | None = None
    whole: Array | None = None
    ends: Array | None = None
    start: Array | None = None

    def scores_before(self, number: int, scores: Array, leaf: Array) -> Array:
        """Return the scores without the dropped rounds."""
        assert self.drops is not None
        assert self.start is not None
        if number == 0:
            self._scale = np.ones(len(self.drops.scale))
            self._left = np.tile(self.start, (len(leaf), 1))
            return self._left
        last = self.drops.of_round[number - 1]
        if number == 1:  # from now on, the first trees include the initial score
            self._left = np.zeros_like(self._left)
        self._scale[last] *= self.drops.by[number - 1]
        for s in (*last, number - 1):
            self._left += self._scale[s] * self._of_round(s, leaf)
        for s in self.drops.of_round[number]:
            self._left -= self._scale[s] * self._of_round(s, leaf)
        return self._left

    def _of_round(self, number: int, leaf: Array) -> Array:
        """Return the values that a round added when it was trained, shape (n, K)."""
        assert self.drops is not None
        assert self.whole is not None
        trees = slice(number * self.per_round, (number + 1) * self.per_round)
        found: Array = self.whole[leaf[:, trees]] / self.drops.scale[number]
        return found


class _Generators:
    """The random number generators of LightGBM: one for every block of samples."""

    def __init__(self, seed: int, n_samples: int) -> None:
        n_blocks = -(-n_samples // _BLOCK)
        self._n_samples = n_samples
        self._state = (seed + np.arange(n_blocks)).astype(np.uint32)
        times, plus = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.uint32)
        a, c = 1, 0
        for i in range(_BLOCK):  # the state after i + 1 steps is times * x + plus
            a, c = a * _TIMES % 2**32, (c * _TIMES + _PLUS) % 2**32
            times[i], plus[i] = a, c
        self._times, self._plus = times, plus

    def look(self) -> Array:
        """Return the next numbers in [0, 1), shape (blocks, 1024), without advancing."""
        state = self._state[:, None] * self._times + self._plus
        found: Array = (state >> np.uint32(16) & np.uint32(0x7FFF)) / np.float32(32768)
        return found

    def skip(self, counts: Array) -> None:
        """Advance each block by a number of steps."""
        some = counts > 0
        at = np.maximum(counts, 1) - 1
        self._state = np.where(some, self._state * self._times[at] + self._plus[at], self._state)

    def take(self) -> Array:
        """Draw a number for each sample, shape (n,)."""
        found: Array = self.look().ravel()[: self._n_samples]
        left = self._n_samples - _BLOCK * np.arange(len(self._state))
        self.skip(np.minimum(left, _BLOCK))
        return found


def _draws(trained: Trained, y: Array) -> Callable[[int, Array, Array], Array | None] | None:
    """Return a function that reproduces the draw of each round, or None if all samples are used."""
    number = trained.number
    n_samples, seed = len(y), int(number("bagging_seed", 3))
    goss = "goss" in (trained.params.get("data_sample_strategy"), trained.params.get("boosting"))
    every, fraction = int(number("bagging_freq")), number("bagging_fraction", 1.0)
    of_sides = number("neg_bagging_fraction", 1.0), number("pos_bagging_fraction", 1.0)
    balanced = min(of_sides) < 1 and trained.objective.startswith("binary") and y.any()
    if goss:
        return _goss(trained, n_samples, seed)
    if every <= 0 or not (fraction < 1 or balanced):
        return None
    generators = _Generators(seed, n_samples)
    limit = np.array(of_sides)[(y > 0).astype(int)] if balanced else fraction
    drawn: list[Array] = []

    def draw(round_: int, g: Array, h: Array) -> Array:  # noqa: ARG001
        if round_ % every == 0:
            drawn[:] = [(generators.take() < limit).astype(np.float64)]
        return drawn[0]

    return draw


def _goss(
    trained: Trained, n_samples: int, seed: int
) -> Callable[[int, Array, Array], Array | None]:
    """Return a function that reproduces GOSS: keep large gradients, sample small ones.

    Each thread draws for its own slice of the samples, so the draws depend on the number of
    threads.
    """
    number = trained.number
    generators = _Generators(seed, n_samples)
    first = int(1 / number("learning_rate", 0.1))
    threads = int(number("num_threads"))
    n_slices = min(threads if threads > 0 else os.cpu_count() or 1, -(-n_samples // _BLOCK))
    size = n_samples
    if n_slices > 1:
        each = -(-n_samples // n_slices)
        size = -(-each // _BLOCK) * _BLOCK
    rates = number("top_rate", 0.2), number("other_rate", 0.1)

    def draw(round_: int, g: Array, h: Array) -> Array | None:
        if round_ < first:
            return None
        importance = np.zeros(n_samples, np.float32)
        for k in range(g.shape[1]):
            importance += np.abs(g[:, k] * h[:, k])
        drawn = np.zeros(n_samples)
        ahead = generators.look()
        taken = np.zeros(len(ahead), dtype=np.intp)
        for begin in range(0, n_samples, size):
            rows = slice(begin, min(begin + size, n_samples))
            _draw_slice(importance[rows], begin, rates, ahead, taken, drawn[rows])
        generators.skip(taken)
        return drawn

    return draw


def _draw_slice(
    importance: Array,
    begin: int,
    rates: tuple[float, float],
    ahead: Array,
    taken: Array,
    out: Array,
) -> None:
    """Draw one slice of samples, and count the numbers taken from each block."""
    n = len(importance)
    n_top, n_other = max(1, int(n * rates[0])), int(n * rates[1])
    threshold = np.partition(importance, n - n_top)[n - n_top]
    top = importance >= threshold
    out[top] = 1
    multiply = np.float32(n - n_top) / np.float32(n_other)
    before = np.cumsum(top) - top  # number of large gradients before each sample
    sampled = 0
    for i in np.flatnonzero(~top).tolist():
        block = (begin + i) // _BLOCK
        number = ahead[block, taken[block]]
        taken[block] += 1
        if number < (n_other - sampled) / ((n - i) - (n_top - int(before[i]))):
            out[i] = multiply
            sampled += 1
