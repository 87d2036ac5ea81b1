"""AXIL weights: predictions of a boosted regressor as weighted sums of training targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from leafkernel._validation import check_count, check_values
from leafkernel.forests import Unavailable
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_proximity, targets_of

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# Size of a block of rows of the matrix: about 64 MB.
_NUMBERS_AT_ONCE = 1 << 23
# Tolerance for G @ y, relative to the spread of y, because libraries round to float32.
_CLOSE = 1e-4


@dataclass(frozen=True)
class LargestWeights:
    """The training samples with the largest weights, returned by ``AxilAttribution.largest``.

    Attributes
    ----------
    up_weights, down_weights : ndarray of shape (m, k)
        The k largest and the k smallest weights of each prediction, the most extreme first.
    up_rows, down_rows : ndarray of shape (m, k)
        Labels of these training samples in the index of the training data frame, or their
        positions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import AxilAttribution
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> axil = AxilAttribution(ForestProximity(model, "gradient").fit(X, y))
    >>> largest = axil.largest(X[:2], n_rows=3)
    >>> largest.up_weights.shape, largest.up_rows.shape
    ((2, 3), (2, 3))
    """

    up_weights: Doubles
    up_rows: Array
    down_weights: Doubles
    down_rows: Array


class AxilAttribution:
    r"""Write the predictions of a boosted regressor as weighted sums of the training targets.

    Use it to see how much each training target contributes to a prediction. With squared loss and
    fixed trees, the prediction of a boosted model is linear in the training targets:
    :math:`\hat y(x) = \sum_i G(x, i)\, y_i`. The weights can be negative, and they sum to one.

    The scheme "gradient" attributes a prediction to the residuals of training samples. AXIL weights
    trace these residuals back through all earlier trees to the targets.

    The matrix G is not stored. A product with G or its transpose takes one pass over the trees, in
    time proportional to the number of samples times the number of trees.

    Parameters
    ----------
    prox : ForestProximity
        A proximity with any scheme, fitted on the samples, targets and sample weights that its
        model was trained on. The model must be a boosted regressor of scikit-learn, LightGBM,
        XGBoost or CatBoost with squared loss. It must start from the mean of the targets and use
        all samples in each tree.

    Attributes
    ----------
    prox : ForestProximity
        A copy of the fitted proximity.
    shape : tuple of int
        (n, n), the shape of G for the training samples.

    References
    ----------
    P. Geertsema, H. Lu, "Instance-based explanations for gradient boosting machine predictions with
    AXIL weights" (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import AxilAttribution
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(random_state=0).fit(X, y)
    >>> axil = AxilAttribution(ForestProximity(model, "gradient").fit(X, y))
    >>> bool(np.allclose(axil.operator(X[:5]) @ y, model.predict(X[:5])))
    True
    >>> float(axil.weights(X[:1]).sum().round(6))
    1.0
    """

    def __init__(self, prox: ForestProximity) -> None:
        self.prox = check_proximity(prox)
        inside = Inside.of(self.prox)
        inside.require_in_memory("AxilAttribution", "fit on data in memory")
        leaf, y = inside.samples.leaf, targets_of(self.prox, None)
        try:
            found = inside.forest.leaf_averages(y, inside.sample_weight, leaf)
        except Unavailable as error:
            raise ValueError(
                "AxilAttribution requires squared loss, a start from the mean of the targets, and "
                f"all samples in each tree, but {error}. Or use the scheme 'gradient'."
            ) from error
        self._rates, self._weights = found.rates, found.weights
        self._share = found.weights / found.weights.sum()
        self._offsets = inside.stats.leaf_offsets
        self._local = np.ascontiguousarray((leaf - self._offsets[:-1]).T)
        self.shape = (len(leaf), len(leaf))
        self._check(found.y, found.base_score, found.values)

    def operator(self, X: Any = None) -> LinearOperator:
        """Return G as a linear operator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples. By default, the training samples.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator of shape (m, n)
            ``A @ v`` are the predictions for X of a model with the same trees and the targets v.
            ``A.T`` is the transpose.
        """
        local = self._route(X)
        shape = (local.shape[1], self.shape[1])

        def back(u: Array) -> Doubles:
            return self._transposed(local, np.asarray(u, dtype=np.float64).reshape(-1, 1))[:, 0]

        return LinearOperator(
            shape,
            matvec=lambda v: self._apply(local, np.ravel(v)),
            rmatvec=back,
            rmatmat=lambda u: self._transposed(local, np.asarray(u, dtype=np.float64)),
            dtype=np.float64,
        )

    def weights(self, X: Any = None) -> Doubles:
        """Return the weight of each training target in each prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples. By default, the training samples.

        Returns
        -------
        ndarray of shape (m, n)
            Rows of G. Each row sums to one, and its product with the targets is the prediction.
        """
        local = self._route(X)
        found = np.empty((local.shape[1], self.shape[1]))
        for rows, block in self._blocks(local):
            found[rows] = block
        return found

    def largest(self, X: Any = None, n_rows: int = 10) -> LargestWeights:
        """Return the training samples with the largest and the smallest weights.

        Only a block of rows of G is kept in memory.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples. By default, the training samples.
        n_rows : int, default=10
            Number of training samples to return for each sign.

        Returns
        -------
        LargestWeights
            Weights and labels of these samples. Ties are broken by position.
        """
        k = check_count("n_rows", n_rows)
        if k > self.shape[1]:
            raise ValueError(
                f"n_rows={k} is too large: there are only {self.shape[1]} training samples. Use a "
                "smaller value."
            )
        local = self._route(X)
        parts = []
        for _, block in self._blocks(local):
            up = np.argsort(-block, axis=1, kind="stable")[:, :k]
            down = np.argsort(block, axis=1, kind="stable")[:, :k]
            ends = (np.take_along_axis(block, at, axis=1) for at in (up, down))
            parts.append((*ends, up, down))
        up_weights, down_weights, up, down = (np.concatenate(of) for of in zip(*parts, strict=True))
        labels = np.asarray(self.prox.index_)
        return LargestWeights(up_weights, labels[up], down_weights, labels[down])

    def _route(self, X: Any) -> Array:
        """Return the leaves of samples within each tree, shape (T, m)."""
        if X is None:
            return self._local
        leaf = Inside.of(self.prox).route(X).leaf
        return np.ascontiguousarray((leaf - self._offsets[:-1]).T)

    def _blocks(self, local: Array) -> Any:
        step = max(1, _NUMBERS_AT_ONCE // self.shape[1])
        for begin in range(0, local.shape[1], step):
            rows = slice(begin, min(begin + step, local.shape[1]))
            yield rows, self._transposed(local[:, rows], np.eye(rows.stop - begin)).T

    def _leaf_values(self, v: Array) -> Doubles:
        """Return the leaf values of a model with the same trees and targets v, shape (L,)."""
        values = np.empty(len(self._rates))
        residual = v - self._share @ v
        for t, leaf in enumerate(self._local):
            of_tree = slice(self._offsets[t], self._offsets[t + 1])
            sums = np.bincount(leaf, self._weights * residual, of_tree.stop - of_tree.start)
            values[of_tree] = self._rates[of_tree] * sums
            residual -= values[of_tree][leaf]
        return values

    def _apply(self, local: Array, v: Array) -> Doubles:
        v = check_values(v, self.shape[1]).astype(np.float64)
        values = self._leaf_values(v)
        found = np.full(local.shape[1], self._share @ v)
        for t, leaf in enumerate(local):
            found += values[self._offsets[t] + leaf]
        return found

    def _transposed(self, local: Array, u: Doubles) -> Doubles:
        """Return Gᵀ u for columns u, shape (n, c), in one pass over the trees.

        Let S_t average over the leaves of tree t, and let e_t be the weights of the queries on the
        residuals of tree t. From the last tree to the first, z <- (I - S_t)ᵀ z + e_t.
        """
        z = np.zeros((self.shape[1], u.shape[1]))
        for t in range(len(self._local) - 1, -1, -1):
            leaf, rates = self._local[t], self._rates[self._offsets[t] : self._offsets[t + 1]]
            taken = _sums(local[t], u, len(rates)) - _sums(leaf, z, len(rates))
            z += self._weights[:, None] * (rates[:, None] * taken)[leaf]
        total: Doubles = u.sum(axis=0)
        found: Doubles = z + self._share[:, None] * (total - z.sum(axis=0))
        return found

    def _check(self, y: Array, base: float, values: Array) -> None:
        """Raise an error if the weights do not reproduce the predictions of the model."""
        found = self._apply(self._local, y)
        own = np.full(self.shape[1], base)
        for t, leaf in enumerate(self._local):
            own += values[self._offsets[t] + leaf]
        off = float(np.abs(found - own).max())
        if off > _CLOSE * max(float(np.std(y)), 1e-300):
            raise ValueError(
                f"the weights do not reproduce the predictions of {Inside.of(self.prox).forest}: "
                f"they differ by up to {off:.3g}. This kind of training is not supported. Use the "
                "scheme 'gradient' instead."
            )


def _sums(leaf: Array, columns: Doubles, n_leaves: int) -> Doubles:
    """Return sums of rows over leaves, shape (n_leaves, c)."""
    found: Doubles = np.empty((n_leaves, columns.shape[1]))
    for k in range(columns.shape[1]):
        found[:, k] = np.bincount(leaf, columns[:, k], n_leaves)
    return found
