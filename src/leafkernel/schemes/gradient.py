"""The exact contributions of training samples to the scores of a boosted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.schemes._base import Weights, WeightScheme
from leafkernel.weighting import Weighting


@dataclass(frozen=True)
class Gradient(WeightScheme):
    r"""The raw score of a gradient-boosted model, as a signed sum over its training samples.

    .. math:: q_t(x) = 1, \qquad
              w_t(x) = v_\ell \frac{c\,g}{G_\ell} = \frac{-\eta\, c\, g}{H_\ell + \lambda}

    g is the derivative of the loss at the score of x before tree t, c the weight of x, G and H the
    sums of the weighted first and second derivatives over the leaf ℓ of x, v the value of that
    leaf, η the learning rate and λ the L2 term. **Rows of P sum to the raw score minus the base
    score**, for training samples and new ones: a row says which training samples pushed the score
    up and which pushed it down. ``ForestProximity.base_score_`` is the base score.

    Weights are negative where a sample pulled the score down, so proximities are contributions,
    not similarities. Not symmetric. Needs gradients: the targets and sample weights that the model
    was trained on. They are computed from the model's own scores, and refused where they do not
    give the values of its leaves.

    Parameters
    ----------
    output : object, default=None
        The output to explain: the label of a class for models with a score for each class, the
        number of the output for regression with several targets. None takes the only output.
        A binary model has one output, the score of its second class.
    objective : callable, default=None
        ``objective(y, scores)``, which returns the first and second derivatives of the loss with
        respect to the raw scores, without sample weights. For models that were trained with an
        objective of your own. y holds the targets, or numbers of classes in sorted order; scores
        and derivatives have shape (n,), or (n, K) for several outputs.

    Notes
    -----
    The derivative of a sample depends on all earlier trees. A contribution says through which
    residual a sample acts, not how the score would change without it.
    """

    output: Any = None
    objective: Callable[[Array, Array], tuple[Array, Array]] | None = None

    name = "gradient"
    needs = frozenset({"gradients"})
    signed = True
    symmetric = False

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return q."""
        return Weighting()

    def reference(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return w, shape (n, T)."""
        number, parts = self.output_number(forest), samples.contributions
        if parts.ndim == 3:
            return parts[:, :, number]
        if len(forest.base_scores) == 1:
            return parts
        return np.where(forest.tree_outputs == number, parts, 0.0)

    def base_score(self, forest: ForestStats) -> float:
        """Return the raw score before the first tree.

        Parameters
        ----------
        forest : ForestStats
            What the training samples say of leaves and trees.

        Returns
        -------
        float
            The base score of the output.
        """
        return float(forest.base_scores[self.output_number(forest)])

    def output_number(self, forest: ForestStats) -> int:
        """Return the number of the output to explain.

        Parameters
        ----------
        forest : ForestStats
            What the training samples say of leaves and trees.

        Returns
        -------
        int
            Its place among the outputs of the model.
        """
        labels = forest.output_labels
        if self.output is None:
            if len(labels) == 1:
                return 0
            raise ValueError(
                f"output=None, but the model has a score for each of {labels.tolist()}; choose one "
                f"with weight_scheme=Gradient(output={labels.tolist()[0]!r})."
            )
        found = np.flatnonzero([label == self.output for label in labels.tolist()])
        if len(found) != 1:
            raise ValueError(
                f"output={self.output!r} is not an output of the model; its outputs are "
                f"{labels.tolist()}."
                + (" A binary model has one score, that of its second class." * (len(labels) == 1))
            )
        return int(found[0])
