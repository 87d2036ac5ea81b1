"""Adapter for leaf ids from other sources, such as R, Spark or a database."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from leafkernel._optional import in_main_memory
from leafkernel._validation import check_tree_weights, refuse_masked
from leafkernel.forests._base import Array, FittedForest, InBag, Unavailable
from leafkernel.forests._trees import offsets_of
from leafkernel.weighting import leaf_id_type


class RawLeaves(BaseEstimator):
    """Stand-in for a forest whose features are the leaf ids of samples, one column per tree.

    :meth:`leafkernel.ForestProximity.from_leaves` creates it for you.

    Parameters
    ----------
    in_bag : array-like of shape (n, T), default=None
        In-bag weight of each training sample in each tree; 0 means out-of-bag.
    tree_weights : array-like of shape (T,), default=None
        Weight of each tree.

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.forests import RawLeaves
    >>> prox = ForestProximity(RawLeaves(), "uniform").fit([[1, 4], [1, 5], [2, 5]])
    >>> prox.n_trees_
    2
    """

    def __init__(self, in_bag: Any = None, tree_weights: Any = None) -> None:
        self.in_bag = in_bag
        self.tree_weights = tree_weights

    def fit(self, X: npt.ArrayLike, y: Any = None) -> RawLeaves:
        """Store the leaf ids of each tree.

        Parameters
        ----------
        X : array-like of int of shape (n, T)
            Leaf ids of the training samples.
        y : ignored

        Returns
        -------
        RawLeaves
            The fitted object itself.
        """
        leaves = check_leaves(X)
        self.n_features_in_ = leaves.shape[1]
        self.leaf_ids_ = [np.unique(column) for column in leaves.T]
        return self


class RawLeavesForest(FittedForest):
    """Adapter for a fitted :class:`RawLeaves`.

    An id that no training sample has in a tree is mapped to an extra, empty leaf of that tree, and
    matches no training sample.
    """

    learns_leaves = True

    def __init__(self, estimator: RawLeaves) -> None:
        self.estimator = estimator
        # Copied, so that fitting the estimator again has no effect here.
        self._ids = [np.array(ids) for ids in estimator.leaf_ids_]
        self.leaf_offsets = offsets_of([len(ids) + 1 for ids in self._ids])

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return global leaf ids, shape (n, T)."""
        raw = check_leaves(X, n_trees=len(self._ids))
        return number_leaves(raw, self._ids, self.leaf_offsets)

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights passed by the user."""
        if self.estimator.in_bag is None:
            raise Unavailable("from_leaves got none; pass in_bag=... or use 'kerf'")
        return check_in_bag_weights(self.estimator.in_bag, leaf.shape)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the tree weights passed by the user."""
        if self.estimator.tree_weights is None:
            raise Unavailable("from_leaves got none; pass tree_weights=... or use 'uniform'")
        return check_tree_weights(self.estimator.tree_weights, len(self._ids))

    def path_features(self) -> tuple[Array, Array]:
        """Raise an error: leaf ids contain no paths."""
        raise Unavailable("leaf ids contain no paths; use 'kerf'")

    def __str__(self) -> str:
        return "from_leaves"


def number_leaves(raw: Array, known_ids: list[Array], leaf_offsets: Array) -> Array:
    """Return global leaf ids. Unknown ids are mapped to the last leaf of their tree."""
    leaf = np.empty(raw.shape, dtype=leaf_id_type(int(leaf_offsets[-1])))
    for t, ids in enumerate(known_ids):
        place = np.searchsorted(ids, raw[:, t])
        known = ids[np.minimum(place, len(ids) - 1)] == raw[:, t]
        leaf[:, t] = leaf_offsets[t] + np.where(known, place, len(ids))
    return leaf


def check_in_bag_weights(in_bag: Any, shape: tuple[int, ...]) -> InBag:
    """Return a validated copy of in-bag weights."""
    refuse_masked("in_bag", in_bag)
    weights = np.array(in_bag)
    if weights.dtype.kind not in "buif":
        raise TypeError(f"in_bag must be numeric; got dtype {weights.dtype}.")
    if weights.shape != shape:
        raise ValueError(
            f"in_bag has shape {weights.shape}, but leaves has shape {shape}. Pass one weight for "
            "each sample and tree."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("in_bag must be finite and nonnegative.")
    if weights.dtype.kind == "b":  # booleans are counts of 0 and 1
        weights = weights.astype(np.uint8)
    return InBag(weights, weights == 0)


def check_leaves(leaves: Any, *, n_trees: int | None = None) -> npt.NDArray[np.int64]:
    """Return validated leaf ids as int64.

    Parameters
    ----------
    leaves : array-like of int of shape (n, T)
        Leaf ids.
    n_trees : int, default=None
        Expected number of columns.

    Returns
    -------
    ndarray of int64 of shape (n, T)
        The leaf ids.

    Examples
    --------
    >>> from leafkernel.forests import check_leaves
    >>> check_leaves([[0.0, 1.0], [1.0, 1.0]]).tolist()
    [[0, 1], [1, 1]]
    """
    if issparse(leaves):
        raise TypeError("leaves must be a dense array; got a sparse matrix. Use leaves.toarray().")
    refuse_masked("leaves", leaves)
    array = np.asarray(in_main_memory(leaves))
    if array.ndim != 2:
        raise ValueError(
            f"leaves must have shape (n_samples, n_trees); got an array of shape {array.shape}."
        )
    if 0 in array.shape:
        raise ValueError(
            f"leaves is empty: its shape is {array.shape}. Pass at least one sample and one tree."
        )
    if n_trees is not None and array.shape[1] != n_trees:
        raise ValueError(
            f"leaves has {array.shape[1]} columns, but there are {n_trees} trees. Pass one column "
            "for each tree."
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or (array != np.floor(array)).any():
            raise ValueError("leaves must be integers; found fractions, NaN or infinity.")
    elif array.dtype.kind not in "iu":
        raise TypeError(f"leaves must be integers; got dtype {array.dtype}.")
    # Floats from this limit on cannot represent every integer.
    limit = 2 ** (np.finfo(array.dtype).nmant + 1) if array.dtype.kind == "f" else 2**63
    if int(array.max()) >= min(limit, 2**63):
        raise ValueError(
            f"leaves contains the id {int(array.max())}, but ids of dtype {array.dtype} must be "
            f"below {min(limit, 2**63)}. Pass integers, or number the leaves of each tree from 0."
        )
    if (array < 0).any():
        raise ValueError(f"leaves must be nonnegative; found {array.min()}.")
    return array.astype(np.int64, copy=False)
