"""Link functions: from the raw scores of boosted models to predictions."""

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
    """The function that turns the raw scores of a model into predictions.

    Attributes
    ----------
    name : {"identity", "exp", "square", "logistic", "softmax"}
        "identity" returns the score and "exp" its exponential. "square" returns the squared score
        with the sign of the score. "logistic" returns the probability
        1 / (1 + exp(-scale * score)) of one class. "softmax" returns the probabilities of all
        classes.
    scale : float
        Factor of the score in "logistic".

    Examples
    --------
    >>> from leafkernel.forests import Link
    >>> Link("logistic").predictions([[0.0]])
    array([[0.5]])
    """

    name: str
    scale: float = 1.0

    @classmethod
    def read(cls, text: str) -> Link:
        """Return the link for a text such as "logistic 2".

        Parameters
        ----------
        text : str
            The name of the link, optionally followed by a scale.

        Returns
        -------
        Link
            The link.
        """
        name, _, scale = text.partition(" ")
        if name not in _NAMES:
            raise ValueError(f"link={text!r} is unknown. Use one of {', '.join(_NAMES)}.")
        return cls(name, float(scale or 1))

    def __str__(self) -> str:
        return self.name if self.scale == 1 else f"{self.name} {self.scale!r}"

    @property
    def is_probability(self) -> bool:
        """Whether predictions are class probabilities."""
        return self.name in ("logistic", "softmax")

    def predictions(self, scores: npt.ArrayLike) -> Doubles:
        """Return the predictions for the scores of all outputs.

        Parameters
        ----------
        scores : array-like of shape (m, K)
            Raw scores.

        Returns
        -------
        ndarray of shape (m, K)
            The prediction of each output.
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
