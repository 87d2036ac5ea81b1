"""Leaf ids from anywhere: R, Spark, a database, another language."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from leafkernel._validation import check_tree_weights, refuse_masked
from leafkernel.forests._base import Array, FittedForest, InBag, Unavailable
from leafkernel.forests._trees import offsets_of
from leafkernel.weighting import leaf_id_type


class RawLeaves(BaseEstimator):
    """A stand-in for a forest whose "features" are the leaf ids of samples, one column a tree.

    :meth:`leafkernel.ForestProximity.from_leaves` makes one for you.

    Parameters
    ----------
    in_bag : array-like of shape (n, T), default=None
        Weight with which each tree was trained on each training sample, 0 for out of bag.
    tree_weights : array-like of shape (T,), default=None
        Weight of each tree in its ensemble.
    """

    def __init__(self, in_bag: Any = None, tree_weights: Any = None) -> None:
        self.in_bag = in_bag
        self.tree_weights = tree_weights

    def fit(self, X: npt.ArrayLike, y: Any = None) -> RawLeaves:
        """Learn which leaf ids there are.

        Parameters
        ----------
        X : array-like of int of shape (n, T)
            Leaf ids of the training samples.
        y : ignored

        Returns
        -------
        RawLeaves
            Itself, fitted.
        """
        leaves = check_leaves(X)
        self.n_features_in_ = leaves.shape[1]
        self.leaf_ids_ = [np.unique(column) for column in leaves.T]
        return self


class RawLeavesForest(FittedForest):
    """The leaves of a fitted :class:`RawLeaves`.

    An id that no training sample has in a tree gets that tree's last leaf, which is empty: it
    collides with no training sample.
    """

    learns_leaves = True

    def __init__(self, estimator: RawLeaves) -> None:
        self.estimator = estimator
        # A copy, so that fitting the estimator again elsewhere changes nothing.
        self._ids = [np.array(ids) for ids in estimator.leaf_ids_]
        self.leaf_offsets = offsets_of([len(ids) + 1 for ids in self._ids])

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return global leaf ids, shape (n, T)."""
        raw = check_leaves(X, n_trees=len(self._ids))
        return number_leaves(raw, self._ids, self.leaf_offsets)

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights that were given."""
        if self.estimator.in_bag is None:
            raise Unavailable("from_leaves was given none; pass in_bag=... or use 'kerf'")
        return check_in_bag_weights(self.estimator.in_bag, leaf.shape)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the tree weights that were given."""
        if self.estimator.tree_weights is None:
            raise Unavailable("from_leaves was given none; pass tree_weights=... or use 'uniform'")
        return check_tree_weights(self.estimator.tree_weights, len(self._ids))

    def path_features(self) -> tuple[Array, Array]:
        """Refuse: leaf ids do not tell how they were reached."""
        raise Unavailable("leaf ids alone do not tell the paths of their trees; use 'kerf'")

    def __str__(self) -> str:
        return "from_leaves"


def number_leaves(raw: Array, known_ids: list[Array], leaf_offsets: Array) -> Array:
    """Return global leaf ids for ids as they came; those not known get the last of their tree."""
    leaf = np.empty(raw.shape, dtype=leaf_id_type(int(leaf_offsets[-1])))
    for t, ids in enumerate(known_ids):
        place = np.searchsorted(ids, raw[:, t])
        known = ids[np.minimum(place, len(ids) - 1)] == raw[:, t]
        leaf[:, t] = leaf_offsets[t] + np.where(known, place, len(ids))
    return leaf


def check_in_bag_weights(in_bag: Any, shape: tuple[int, ...]) -> InBag:
    """Return a copy of in-bag weights as they were given, or say what is wrong with them."""
    refuse_masked("in_bag", in_bag)
    weights = np.array(in_bag)
    if weights.dtype.kind not in "buif":
        raise TypeError(f"in_bag must be numeric; got dtype {weights.dtype}.")
    if weights.shape != shape:
        raise ValueError(
            f"in_bag has shape {weights.shape}, but leaves has {shape}; give one weight for each "
            "sample and tree."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("in_bag must be finite and nonnegative.")
    if weights.dtype.kind == "b":  # drawn or not: counts like any other
        weights = weights.astype(np.uint8)
    return InBag(weights, weights == 0)


def check_leaves(leaves: Any, *, n_trees: int | None = None) -> npt.NDArray[np.int64]:
    """Return leaf ids as int64 of shape (n, T), or say what is wrong with them."""
    if issparse(leaves):
        raise TypeError("leaves is a sparse matrix, but every entry is a leaf id; give it dense.")
    refuse_masked("leaves", leaves)
    array = np.asarray(leaves)
    if array.ndim != 2:
        raise ValueError(
            f"leaves must have shape (n_samples, n_trees); got an array of shape {array.shape}."
        )
    if 0 in array.shape:
        raise ValueError(f"leaves is empty: found shape {array.shape}, need at least (1, 1).")
    if n_trees is not None and array.shape[1] != n_trees:
        raise ValueError(
            f"leaves has {array.shape[1]} columns, but the kernel has {n_trees} trees; give the "
            "leaf of each sample in every tree."
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or (array != np.floor(array)).any():
            raise ValueError("leaves must be whole numbers; found fractions, NaN or infinity.")
    elif array.dtype.kind not in "iu":
        raise TypeError(f"leaves must be integers; got dtype {array.dtype}.")
    # From this number on, neighboring whole numbers are the same float.
    limit = 2 ** (np.finfo(array.dtype).nmant + 1) if array.dtype.kind == "f" else 2**63
    if int(array.max()) >= min(limit, 2**63):
        raise ValueError(
            f"leaves holds the id {int(array.max())}, but ids of type {array.dtype} run together "
            f"from {min(limit, 2**63)} on; give integers, or number the leaves of each tree from 0."
        )
    if (array < 0).any():
        raise ValueError(f"leaves must be nonnegative; found {array.min()}.")
    return array.astype(np.int64, copy=False)
