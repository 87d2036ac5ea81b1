"""First and second derivatives of the losses of boosting libraries.

Each function takes targets y and raw scores s, and returns the derivatives with respect to s,
without sample weights. Arrays have shape (n,). For losses with several outputs, the scores and both
results have shape (n, K), and y contains class indices. Some libraries use a bound or a multiple of
the second derivative; the ``factor`` parameters below account for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Derivatives of a loss, given targets and raw scores.
Derivatives = Callable[[Array, Array], tuple[Array, Array]]


def expit(s: Array) -> Array:
    """Return 1 / (1 + exp(-s)) in the precision of s, without overflow."""
    small = np.exp(-np.abs(s))
    one = s.dtype.type(1)
    found: Array = np.where(s >= 0, one / (one + small), small / (one + small))
    return found


def softmax(s: Array) -> Array:
    """Return class probabilities, shape (n, K)."""
    powers = np.exp(s - s.max(axis=1, keepdims=True))
    shares: Array = powers / powers.sum(axis=1, keepdims=True)
    return shares


def one_hot(y: Array, scores: Array) -> Array:
    """Return class indicators with the shape and type of the scores."""
    found: Array = (y[:, None] == np.arange(scores.shape[1])).astype(scores.dtype)
    return found


def squared(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of half the squared error, for one or several outputs."""
    return s - y, np.ones_like(s)


def logistic(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of the cross entropy of y in [0, 1]."""
    small = np.exp(-np.abs(s))
    p = np.where(s >= 0, 1, small) / (1 + small)
    return p - y, small / (1 + small) ** 2


def scaled_logistic(sigmoid: float) -> Derivatives:
    """Return the derivatives of the cross entropy with the probability expit(sigmoid * s)."""

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        g, h = logistic(y, sigmoid * s)
        return sigmoid * g, sigmoid**2 * h

    return derivatives


def multinomial(factor: float = 1.0) -> Derivatives:
    """Return the derivatives of the cross entropy of several classes.

    The diagonal of the second derivative is multiplied by a factor, because libraries use bounds:
    ``K / (K - 1)`` in scikit-learn's GradientBoosting and LightGBM, and 2 in XGBoost.
    """

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        p = softmax(s)
        return p - one_hot(y, s), s.dtype.type(factor) * p * (1 - p)

    return derivatives


def one_against_all(binary: Derivatives) -> Derivatives:
    """Return the derivatives of one binary loss for each class."""

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        return binary(one_hot(y, s), s)

    return derivatives


def exponential(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of AdaBoost's loss of y in {0, 1}: exp(-s) if y = 1, else exp(s)."""
    h = np.exp(np.where(y > 0, -s, s))
    return np.where(y > 0, -h, h), h


def poisson(max_delta_step: float = 0.0) -> Derivatives:
    """Return the derivatives of the Poisson deviance with a log link.

    The second derivative is multiplied by exp(max_delta_step).
    """

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        mean = np.exp(s)
        return mean - y, np.exp(s + s.dtype.type(max_delta_step))

    return derivatives


def gamma(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of the gamma deviance with a log link."""
    h = y * np.exp(-s)
    return 1 - h, h


def tweedie(power: float) -> Derivatives:
    """Return the derivatives of the Tweedie deviance with a log link, 1 < power < 2."""

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        below, above = s.dtype.type(1 - power), s.dtype.type(2 - power)
        a, b = y * np.exp(below * s), np.exp(above * s)
        return b - a, above * b - below * a

    return derivatives


def huber(delta: float, outside: float = 1.0) -> Derivatives:
    """Return the derivatives of Huber's loss: squared error with gradients clipped at delta.

    ``outside`` is the second derivative of clipped samples.
    """

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        r = s - y
        return np.clip(r, -delta, delta), np.where(np.abs(r) <= delta, 1.0, outside)

    return derivatives


def pseudo_huber(slope: float) -> Derivatives:
    """Return the derivatives of a smooth variant of Huber's loss."""

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        r = s - y
        root = np.sqrt(1 + (r / slope) ** 2)
        return r / root, 1 / root**3

    return derivatives


def fair(c: float) -> Derivatives:
    """Return the derivatives of the Fair loss."""

    def derivatives(y: Array, s: Array) -> tuple[Array, Array]:
        r = s - y
        size = np.abs(r) + c
        return c * r / size, (c / size) ** 2

    return derivatives


def squared_log(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of half the squared error of log(1 + s)."""
    s = np.maximum(s, s.dtype.type(-1 + 1e-6))
    r = np.log1p(s) - np.log1p(y)
    return r / (s + 1), np.maximum((1 - r) / (s + 1) ** 2, s.dtype.type(1e-6))


def hinge(y: Array, s: Array) -> tuple[Array, Array]:
    """Return the derivatives of the hinge loss of y in {0, 1}.

    The second derivative is 1 where the loss is not zero.
    """
    sign = 2 * y - 1
    inside = sign * s < 1
    return np.where(inside, -sign, 0), np.where(inside, 1.0, np.finfo(np.float32).tiny)
