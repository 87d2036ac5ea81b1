"""Retrace the training of scikit-learn's boosted trees.

This uses private attributes of GradientBoosting and HistGradientBoosting (losses, seeds and draws),
checked in scikit-learn 1.4.0 to 1.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble._gradient_boosting import _random_sample_mask
from sklearn.model_selection import train_test_split
from sklearn.utils.stats import _weighted_percentile

from leafkernel.forests import _losses
from leafkernel.forests._base import Array, Outputs, Unavailable
from leafkernel.forests._boosting import BoostedTrees
from leafkernel.forests._gradients import Training, codes, numbers, weights_of
from leafkernel.forests._links import Link
from leafkernel.forests._losses import Derivatives

# Each tree of GradientBoosting takes one number below this limit from the generator of the draws.
_RAND_R_MAX = 2147483647


def sklearn_targets(model: Any, y: Any, n_samples: int) -> tuple[Array, Array]:
    """Return the targets in the form of the losses, and the labels of the outputs."""
    if not is_classifier(model):
        return numbers(y, n_samples), np.arange(1)
    classes = np.asarray(model.classes_)
    found = codes(y, n_samples, classes)
    return found, classes[1:] if len(classes) == 2 else classes


def sklearn_loss(forest: BoostedTrees, loss: Any, objective: Derivatives | None) -> Derivatives:
    """Return the derivatives of a loss of scikit-learn."""
    if objective is not None:
        return objective
    name = type(loss).__name__
    if name in ("AbsoluteError", "PinballLoss"):
        what = "medians" if name == "AbsoluteError" else "quantiles"
        raise Unavailable(
            f"the leaf values of {forest} are {what} of residuals, not sums over samples; use "
            "'boosted', or train with another loss, such as 'huber' of GradientBoosting"
        )
    known: dict[str, Derivatives] = {
        "HalfSquaredError": _losses.squared,
        "HalfBinomialLoss": _losses.logistic,
        "HalfMultinomialLoss": _losses.multinomial(),
        "ExponentialLoss": _losses.exponential,
        "HalfPoissonLoss": _losses.poisson(),
        "HalfGammaLoss": _losses.gamma,
        "HuberLoss": _losses.huber(np.inf),  # clipped in each leaf by _HuberTraining
    }
    if name not in known:
        raise Unavailable(
            f"the derivatives of {name}, the loss of {forest}, are unknown; pass them with "
            "Gradient(objective=...)"
        )
    return known[name]


def sklearn_link(loss: Any, objective: Derivatives | None) -> Link | None:
    """Return the function from scores to predictions."""
    known = {
        "HalfSquaredError": Link("identity"),
        "HuberLoss": Link("identity"),
        "HalfBinomialLoss": Link("logistic"),
        "ExponentialLoss": Link("logistic", 2.0),
        "HalfMultinomialLoss": Link("softmax"),
        "HalfPoissonLoss": Link("exp"),
        "HalfGammaLoss": Link("exp"),
    }
    return None if objective is not None else known.get(type(loss).__name__)


def _from_gradients(loss: Any, factor: float) -> Derivatives:
    """Return the derivatives of a classification loss as GradientBoosting computes them.

    The second derivative is computed from the first, so both have the same rounding. For large
    scores the rounding matters, so the first is computed by the library itself.
    """

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        g = loss.gradient(y_true=y.astype(np.float64), raw_prediction=s)
        p = (y if s.ndim == 1 else _losses.one_hot(y, s)) + g
        return g, factor * p * (1 - p)

    return derivatives


def training_rows(n_samples: int, y: Array, model: Any, held_out: Any, seed: Any) -> Array:
    """Return the rows that were not held out for early stopping, in the order of the training."""
    stratify = y if is_classifier(model) else None
    rows: Array = train_test_split(
        np.arange(n_samples), test_size=held_out, stratify=stratify, random_state=seed
    )[0]
    return rows


def gradient_boosting(
    forest: BoostedTrees,
    y: Any,
    sample_weight: Any,
    n_samples: int,
    objective: Derivatives | None,
) -> Training:
    """Return the information needed to retrace the training of GradientBoosting."""
    model = forest.estimator
    if type(model._loss).__module__.partition(".")[0] != "sklearn":
        raise Unavailable(
            f"{forest} has the custom loss {type(model._loss).__name__}, which is not supported; "
            "use 'boosted'"
        )
    coded, labels = sklearn_targets(model, y, n_samples)
    weights = weights_of(sample_weight, n_samples)
    rows = np.arange(n_samples)
    if model.n_iter_no_change is not None:
        seed = _seed(forest, "n_iter_no_change")
        rows = training_rows(n_samples, coded, model, model.validation_fraction, seed)
        weights[np.setdiff1d(np.arange(n_samples), rows)] = 0
    base = _base_scores(forest)
    derivatives = sklearn_loss(forest, model._loss, objective)
    if objective is None and is_classifier(model) and model.loss != "exponential":
        factor = len(base) / (len(base) - 1) if len(base) > 1 else 1.0
        derivatives = _from_gradients(model._loss, factor)
    link = sklearn_link(model._loss, objective)
    rate = float(model.learning_rate)
    kind: type[Training] = Training
    more: dict[str, Any] = {}
    if type(model._loss).__name__ == "HuberLoss":
        kind, more = _HuberTraining, {"rate": rate, "quantile": float(model._loss.quantile)}
    return kind(
        coded,
        weights,
        Outputs(base, np.arange(len(forest.leaf_offsets) - 1) % len(base), labels, link),
        forest.leaf_values(),
        len(base),
        derivatives,
        lambda tree, G, H, held: np.where(H < 1e-150, 0, -rate / H),  # noqa: ARG005
        drawn=_draws(forest, rows, n_samples, len(base)) if model.subsample < 1 else None,
        **more,
    )


def _base_scores(forest: BoostedTrees) -> Array:
    """Return the base scores, which are the same for all samples."""
    model = forest.estimator
    n_outputs = model.estimators_.shape[1]
    if isinstance(model.init_, str):  # "zero"
        return np.zeros(n_outputs)
    if not isinstance(model.init_, (DummyClassifier, DummyRegressor)):
        raise Unavailable(
            f"{forest} with init={model.init_!r} has a different initial score for each sample; "
            "use init='zero' or None"
        )
    found = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))
    return np.asarray(found, dtype=np.float64).ravel()


def _seed(forest: BoostedTrees, option: str) -> int:
    seed = forest.estimator.random_state
    if not isinstance(seed, Integral):
        raise Unavailable(
            f"{forest} with {option} does not store the samples that each tree was trained on, and "
            f"random_state={seed} cannot reproduce them; train it with an integer random_state"
        )
    return int(seed)


def _draws(
    forest: BoostedTrees, rows: Array, n_samples: int, n_outputs: int
) -> Callable[[int, Array, Array], Array]:
    """Return a function that reproduces the draws of subsample in each round."""
    generator = np.random.RandomState(_seed(forest, f"subsample={forest.estimator.subsample}"))
    n_drawn = max(1, int(forest.estimator.subsample * len(rows)))

    def draw(number: int, g: Array, h: Array) -> Array:  # noqa: ARG001
        drawn = np.zeros(n_samples)
        drawn[rows] = _random_sample_mask(len(rows), n_drawn, generator)
        for _ in range(n_outputs):
            generator.randint(0, _RAND_R_MAX)
        return drawn

    return draw


@dataclass
class _HuberTraining(Training):
    """Leaves with means of residuals, clipped at a distance from their median.

    The distance is a quantile of all absolute residuals in the round.
    """

    quantile: float = 0.9

    def begin(self, number: int, scores: Array) -> None:
        """Compute the residuals and the distance."""
        super().begin(number, scores)
        self._residual = self.y - scores[:, 0]
        trained = self.weights > 0
        size = np.abs(self._residual[trained])
        self._delta = float(_weighted_percentile(size, self.weights[trained], 100 * self.quantile))

    def parts(
        self, tree: int, leaf: Array, held: Array, scores: Array
    ) -> tuple[Array, Array | float]:
        """Return the contribution of each sample to the value of its leaf."""
        weights, n_leaves = self.h[:, 0], len(held)
        order = np.argsort(leaf, kind="stable")
        order = order[weights[order] > 0]
        middle = np.zeros(n_leaves)
        first = np.searchsorted(leaf[order], np.arange(n_leaves + 1))
        for i in range(n_leaves):
            members = order[first[i] : first[i + 1]]
            if len(members):
                middle[i] = _weighted_percentile(self._residual[members], weights[members], 50)
        total = np.bincount(leaf, weights, n_leaves)
        low, high = middle - self._delta, middle + self._delta
        clipped = np.clip(self._residual, low[leaf], high[leaf])
        shares: Array = self.rate * weights / np.where(total > 0, total, 1)[leaf] * clipped
        return shares, 0.0
