"""Exact contributions of training samples to the scores of a boosted model."""

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
    r"""Contributions of training samples to the raw score of a gradient-boosted model.

    .. math:: q_t(x) = 1, \qquad
              w_t(x) = v_\ell \frac{c\,g}{G_\ell} = \frac{-\eta\, c\, g}{H_\ell + \lambda}

    g is the derivative of the loss at the score of x before tree t, and c is the weight of x. G and
    H are the sums of the weighted first and second derivatives over the leaf ℓ of x, and v is the
    value of that leaf. η is the learning rate and λ the L2 term.

    **Rows of P sum to the raw score minus the base score**, for training samples and for new data.
    A row shows which training samples increased the score and which decreased it.
    ``ForestProximity.base_score_`` is the base score.

    Proximities are signed contributions, not similarities. The matrix is not symmetric. Needs
    gradients: pass the targets and sample weights that the model was trained on to ``fit``. The
    gradients are computed from the model's scores. If they do not reproduce the leaf values of the
    model, an error is raised.

    Parameters
    ----------
    output : object, default=None
        The output to explain. For models with one score per class, the label of a class. For
        regression with several targets, the index of the output. None selects the only output. A
        binary model has one output, the score of its second class.
    objective : callable, default=None
        A function ``objective(y, scores)`` that returns the first and second derivatives of the
        loss with respect to the raw scores, without sample weights. Required for models that were
        trained with a custom objective. y contains the targets, or class indices in sorted order.
        Scores and derivatives have shape (n,), or (n, K) for several outputs.

    Notes
    -----
    The derivative of a sample depends on all earlier trees. A contribution is not the change of the
    score if the sample were removed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from leafkernel import ForestProximity
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> prox = ForestProximity(model, "gradient", dtype="float64").fit(X, y)
    >>> scores = prox.base_score_ + prox.weighted_sums(np.ones(len(y)), X)
    >>> bool(np.allclose(scores, model.predict(X)))
    True
    """

    output: Any = None
    objective: Callable[[Array, Array], tuple[Array, Array]] | None = None

    name = "gradient"
    needs = frozenset({"gradients"})
    signed = True
    symmetric = False

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are 1."""
        return Weighting()

    def reference(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the reference weights, shape (n, T)."""
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
            Statistics of the leaves and trees.

        Returns
        -------
        float
            The base score of the output.
        """
        return float(forest.base_scores[self.output_number(forest)])

    def output_number(self, forest: ForestStats) -> int:
        """Return the index of the output to explain.

        Parameters
        ----------
        forest : ForestStats
            Statistics of the leaves and trees.

        Returns
        -------
        int
            Index among the outputs of the model.
        """
        labels = forest.output_labels
        if self.output is None:
            if len(labels) == 1:
                return 0
            raise ValueError(
                f"The model has several outputs: {labels.tolist()}. Choose one, for example "
                f"weight_scheme=leafkernel.schemes.Gradient(output={labels.tolist()[0]!r})."
            )
        found = np.flatnonzero([label == self.output for label in labels.tolist()])
        if len(found) != 1:
            raise ValueError(
                f"output={self.output!r} is not an output of the model. Use one of "
                f"{labels.tolist()}."
                + (" A binary model has one output: its second class." * (len(labels) == 1))
            )
        return int(found[0])
