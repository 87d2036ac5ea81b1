"""The interface of the adapters: :class:`FittedForest` and its return values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import is_regressor

from leafkernel.forests._links import Link
from leafkernel.forests._trees import Tree
from leafkernel.tree_nodes import TreeNodes

if TYPE_CHECKING:
    from leafkernel.forests._routing import RouteTable

Array = npt.NDArray[Any]


class Unavailable(ValueError):  # noqa: N818 - it names a state of the forest
    """Error for information that a forest does not have.

    The message completes the sentence "weight_scheme=... needs ..., but ...". It gives the reason
    and a remedy.
    """


def numbered_names(n_features: int) -> Array:
    """Return default names for columns, as scikit-learn does: x0, x1, ..."""
    return np.array([f"x{i}" for i in range(n_features)], dtype=object)


def with_own_names(estimator: Any) -> Any:
    """Return a shallow copy of an estimator with its own copy of the feature names."""
    own = copy(estimator)
    if hasattr(own, "feature_names_in_"):
        own.feature_names_in_ = np.array(own.feature_names_in_)
    return own


@dataclass(frozen=True)
class InBag:
    """In-bag weights and out-of-bag flags of the training samples.

    Attributes
    ----------
    weights : ndarray of shape (n, T)
        c_t(x): the in-bag weight of sample x in tree t. Integers if the weights are bootstrap
        counts, otherwise float64.
    is_oob : ndarray of bool of shape (n, T)
        Whether sample x is out-of-bag in tree t.
    """

    weights: Array
    is_oob: Array


@dataclass(frozen=True)
class Outputs:
    """The outputs of a boosted model.

    Attributes
    ----------
    base_scores : ndarray of float64 of shape (K,)
        Raw score of each output before the first tree.
    of_tree : ndarray of int64 of shape (T,)
        Output that each tree adds to, or -1 if its leaves have a value for each output.
    labels : ndarray of shape (K,)
        Label of each output: a class, or the index of the output.
    link : Link or None
        The function from scores to predictions, or None if it is unknown.
    """

    base_scores: npt.NDArray[np.float64]
    of_tree: npt.NDArray[np.int64]
    labels: Array
    link: Link | None = None


@dataclass(frozen=True)
class LeafAverages:
    """A model with squared loss, expressed by averages of residuals over leaves.

    In each leaf l, tree t adds ``rates[l] * (weights * r).sum()`` to the scores, where r are the
    residuals and the sum is over the training samples in the leaf.

    Attributes
    ----------
    rates : ndarray of float64 of shape (L,)
        The learning rate, divided by the weight of the samples in the leaf plus the L2 term.
    weights : ndarray of float64 of shape (n,)
        Weight of each training sample.
    y : ndarray of float64 of shape (n,)
        Targets.
    base_score : float
        Score before the first tree: the weighted mean of the targets.
    values : ndarray of float64 of shape (L,)
        Value that each leaf adds to the score.
    """

    rates: Array
    weights: Array
    y: Array
    base_score: float
    values: Array


class FittedForest(ABC):
    """Base class of the adapters: a fitted tree ensemble, seen through its leaves.

    Leaf ids are global: the leaves of tree t are numbered from ``leaf_offsets[t]`` to
    ``leaf_offsets[t + 1] - 1``.
    """

    #: The fitted model of the original library.
    estimator: Any

    #: First leaf id of each tree, followed by the number of leaves; int64, shape (T + 1,).
    leaf_offsets: npt.NDArray[np.int64]

    #: Outputs of a boosted model. Set by :meth:`contributions`.
    outputs: Outputs | None = None

    #: Whether the set of leaves is learned from the training samples.
    learns_leaves: bool = False

    @abstractmethod
    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""

    def packed(self, X: Any) -> tuple[RouteTable, Any] | None:
        """Return packed trees and X as float32, if they lead to exactly the same leaves.

        An engine can then route the samples on its device.
        """
        return None

    def for_workers(self) -> FittedForest:
        """Return a smaller copy that can still route samples and recover in-bag weights."""
        return self

    def training_leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaves of the training samples, shape (n, T).

        Forests without a fixed list of leaves learn it here.
        """
        return self.leaves(X, n_threads=n_threads)

    def features(self, X: Any) -> Array:
        """Return the samples as numbers, with the columns used by :meth:`path_features`."""
        try:
            # Copied because X may change while the scheme still uses the values.
            return np.array(X.toarray() if issparse(X) else X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise Unavailable(f"X contains non-numeric values ({error}); use 'kerf'") from error

    def predicts_numbers(self) -> bool:
        """Return whether the forest is known to be a regressor."""
        try:
            return bool(is_regressor(self.estimator))
        except (AttributeError, TypeError):  # not a scikit-learn estimator
            return False

    def is_boosted(self) -> bool:
        """Return whether the score of the model is the sum of its leaf values."""
        return False

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of the training samples."""
        raise Unavailable(f"{self} does not provide them")

    def in_bag_of_trees(
        self, trees: slice, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
    ) -> InBag:
        """Return the in-bag weights of all training samples in some trees, without X.

        This is used if the training samples are distributed.
        """
        leaf = np.broadcast_to(0, (n_samples, len(self.leaf_offsets) - 1))
        whole = self.in_bag(None, y, sample_weight, leaf, n_threads=n_threads)
        return InBag(whole.weights[:, trees], whole.is_oob[:, trees])

    def check_in_bag(  # noqa: B027 - most forests cannot check
        self, masses: Array, *, n_threads: int = 1
    ) -> None:
        """Raise an error if the in-bag weights in each leaf do not match the fitted trees."""

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return the weight of each tree, shape (T,), given the number of samples in each leaf."""
        raise Unavailable(f"{self} has no tree weights")

    def contributions(
        self, y: Any, sample_weight: Any, leaf: Array, *, objective: Any = None
    ) -> Array:
        """Return the contribution of each training sample to the value of its leaf in each tree.

        The result has shape (n, T), or (n, T, K) if leaves have a value for each output. For models
        with a custom loss, the objective returns its derivatives. This method sets ``outputs``.
        """
        raise Unavailable(
            f"{self} is not a gradient-boosted model. Use 'gap' for a random forest, or 'kerf'"
        )

    def leaf_averages(self, y: Any, sample_weight: Any, leaf: Array) -> LeafAverages:
        """Return a model with squared loss as averages of residuals over its leaves."""
        raise Unavailable(
            f"{self} is not a gradient-boosted model; use the scheme 'gap' for a random forest"
        )

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features): the distinct features on the path to each leaf, ascending."""
        nodes = self.nodes()
        return nodes.features_on_paths(nodes.of_leaf)

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits. Leaves are numbered as in :meth:`leaves`."""
        raise Unavailable(
            f"{self} does not provide them. Pass a model of scikit-learn, LightGBM, XGBoost or "
            "CatBoost as the forest"
        )

    def nodes(self) -> TreeNodes:
        """Return the nodes of all trees, depth first."""
        return TreeNodes.of(self.trees())

    def feature_names(self, names: Array) -> Array:
        """Return the names of the columns that the trees split on, given the names of X."""
        return names

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories behind the integer codes of each categorical feature."""
        return {}

    @abstractmethod
    def __str__(self) -> str:
        """Return the name of the forest for messages."""
