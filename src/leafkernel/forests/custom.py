"""Adapter for any object that returns the leaf of each sample in each tree."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from leafkernel._validation import check_tree_weights, describe
from leafkernel.forests._base import Array, FittedForest, InBag, Unavailable
from leafkernel.forests._trees import offsets_of
from leafkernel.forests.leaves import check_in_bag_weights, check_leaves, number_leaves


class Forest(Protocol):
    """Protocol of a custom forest: an object with a method ``leaves(X)``.

    Use it for ensembles that leafkernel does not support. Optional methods make more schemes
    available:

    * ``in_bag(X, y)`` returns the in-bag weight of each training sample in each tree, shape (n, T),
      with 0 for out-of-bag. Required by "gap", "oob" and "oob_separable".
    * ``tree_weights()`` returns nonnegative weights of shape (T,). Required by "boosted".
    * ``path_features(tree, leaf)`` returns the features on the path to a leaf. Required by "ih".
    * ``fit(X, y)``, together with ``get_params`` as in scikit-learn's BaseEstimator. An unfitted
      object is then cloned and fitted. The names of fitted attributes must end in an underscore.

    Examples
    --------
    >>> import numpy as np
    >>> from leafkernel import ForestProximity
    >>> class Halves:
    ...     def leaves(self, X):
    ...         return (np.asarray(X) > 0).astype(int)  # each column is a tree with two leaves
    >>> X = [[-1.0, 2.0], [1.0, 3.0], [2.0, -1.0]]
    >>> ForestProximity(Halves(), "uniform").fit(X).proximity().toarray().tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """

    def leaves(self, X: Any) -> Any:
        """Return the leaf of each sample in each tree: nonnegative integers of shape (n, T)."""


class CustomForest(FittedForest):
    """Adapter for a :class:`Forest`. Its leaves are those that the training samples reach.

    Any other leaf is mapped to an extra, empty leaf of its tree, and matches no training sample.
    """

    learns_leaves = True

    def __init__(self, estimator: Forest) -> None:
        self.estimator = estimator
        self._ids: list[Array] = []

    def training_leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaves of the training samples, and store the list of leaves."""
        raw = check_leaves(self.estimator.leaves(X))
        self._n_features = int(np.shape(X)[1])
        self._ids = [np.unique(column) for column in raw.T]
        self.leaf_offsets = offsets_of([len(ids) + 1 for ids in self._ids])
        return number_leaves(raw, self._ids, self.leaf_offsets)

    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""
        raw = check_leaves(self.estimator.leaves(X), n_trees=len(self._ids))
        return number_leaves(raw, self._ids, self.leaf_offsets)

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of the training samples."""
        if X is None and hasattr(self.estimator, "in_bag"):
            raise ValueError(f"X is missing, but {self} needs it for the in-bag weights. Pass X.")
        return check_in_bag_weights(self._ask("in_bag", X, y), leaf.shape)

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the weight of each tree, shape (T,)."""
        return check_tree_weights(self._ask("tree_weights"), len(self._ids))

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features): the distinct features on the path to each leaf, ascending."""
        paths = []
        for t, ids in enumerate(self._ids):
            told = [self._ask("path_features", t, int(leaf)) for leaf in ids]
            paths += [self._check_path(path, t) for path in told]
            paths.append(np.zeros(0, dtype=np.int64))  # the empty leaf
        return offsets_of([len(path) for path in paths]), np.concatenate(paths)

    def _check_path(self, path: Any, tree: int) -> Array:
        features = np.unique(np.asarray(path))
        if features.size and (
            features.dtype.kind not in "iu" or features[0] < 0 or features[-1] >= self._n_features
        ):
            raise ValueError(
                f"path_features of {self} must return integers from 0 to {self._n_features - 1}; "
                f"got {features.tolist()} for a leaf of tree {tree}."
            )
        return features.astype(np.int64)

    def _ask(self, name: str, *args: Any) -> Any:
        method = getattr(self.estimator, name, None)
        if method is None:
            raise Unavailable(f"{self} has no method {name!r}; add one, or use 'kerf'")
        return method(*args)

    def __str__(self) -> str:
        return describe(self.estimator)
