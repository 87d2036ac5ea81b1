"""What the raw scores of boosted models mean: probabilities, or numbers on the scale of y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.forests._losses import expit, softmax

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

_NAMES = ("identity", "exp", "square", "logistic", "softmax")


@dataclass(frozen=True)
class Link:
    """How a model turns its raw scores into predictions.

    Attributes
    ----------
    name : {"identity", "exp", "square", "logistic", "softmax"}
        "identity" predicts the score, "exp" its exponential, "square" its square with the sign of
        the score, "logistic" the probability 1 / (1 + exp(-scale * score)) of one class, "softmax"
        the probabilities of all classes.
    scale : float
        The factor of the score in "logistic".
    """

    name: str
    scale: float = 1.0

    @classmethod
    def read(cls, text: str) -> Link:
        """Return the link that a text stands for, such as "logistic 2"."""
        name, _, scale = text.partition(" ")
        if name not in _NAMES:
            raise ValueError(f"unknown link {text!r}; known are {', '.join(_NAMES)}.")
        return cls(name, float(scale or 1))

    def __str__(self) -> str:
        return self.name if self.scale == 1 else f"{self.name} {self.scale!r}"

    @property
    def is_probability(self) -> bool:
        """Whether predictions are probabilities of classes."""
        return self.name in ("logistic", "softmax")

    def predictions(self, scores: npt.ArrayLike) -> Doubles:
        """Return predictions for the scores of all outputs.

        Parameters
        ----------
        scores : array-like of shape (m, K)
            Raw scores.

        Returns
        -------
        ndarray of shape (m, K)
            A prediction for each output.
        """
        s = np.asarray(scores, dtype=np.float64)
        if self.name == "identity":
            return s
        if self.name == "square":
            return np.sign(s) * s**2
        if self.name == "logistic":
            return np.asarray(expit(self.scale * s), dtype=np.float64)
        if self.name == "softmax":
            return np.asarray(softmax(s), dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.exp(s)
