"""What leafkernel asks of a tree ensemble, whoever grew it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import is_regressor

from leafkernel.forests._links import Link
from leafkernel.forests._trees import Tree

Array = npt.NDArray[Any]


class Unavailable(ValueError):  # noqa: N818 - it names a state of the forest
    """A forest does not have what a scheme needs; the message says why and what to do."""


def numbered_names(n_features: int) -> Array:
    """Return names for columns that have none: x0, x1, ..., as scikit-learn does."""
    return np.array([f"x{i}" for i in range(n_features)], dtype=object)


def with_own_names(estimator: Any) -> Any:
    """Return a shallow copy of an estimator with a copy of the names of its columns."""
    own = copy(estimator)
    if hasattr(own, "feature_names_in_"):
        own.feature_names_in_ = np.array(own.feature_names_in_)
    return own


@dataclass(frozen=True)
class InBag:
    """How each tree was trained on each sample.

    Attributes
    ----------
    weights : ndarray of shape (n, T)
        c_t(x): the weight with which tree t was trained on sample x. Integers where they are plain
        bootstrap counts, else float64.
    is_oob : ndarray of bool of shape (n, T)
        Whether tree t never drew sample x.
    """

    weights: Array
    is_oob: Array


@dataclass(frozen=True)
class Outputs:
    """What a boosted model adds up to.

    Attributes
    ----------
    base_scores : ndarray of float64 of shape (K,)
        Raw score of each output before the first tree.
    of_tree : ndarray of int64 of shape (T,)
        Output that each tree adds to. -1 where its leaves have a value for each output.
    labels : ndarray of shape (K,)
        Name of each output: the class that it speaks for, or its number.
    link : Link or None
        How the model turns scores into predictions; None where that is not known.
    """

    base_scores: npt.NDArray[np.float64]
    of_tree: npt.NDArray[np.int64]
    labels: Array
    link: Link | None = None


@dataclass(frozen=True)
class LeafAverages:
    """A model of squared loss as averages of residuals over leaves.

    Tree t takes from the residuals r, and adds to the scores, ``rates[l] * (weights * r).sum()``
    over the training samples of each leaf l.

    Attributes
    ----------
    rates : ndarray of float64 of shape (L,)
        The learning rate, divided by the weight of the leaf's samples and the L2 term.
    weights : ndarray of float64 of shape (n,)
        Weight of each training sample.
    y : ndarray of float64 of shape (n,)
        Targets.
    base_score : float
        Score before the first tree: the weighted mean of the targets.
    values : ndarray of float64 of shape (L,)
        What each leaf adds to the score.
    """

    rates: Array
    weights: Array
    y: Array
    base_score: float
    values: Array


class FittedForest(ABC):
    """A fitted tree ensemble, seen through its leaves.

    Leaf ids are global: those of tree t run from ``leaf_offsets[t]`` to ``leaf_offsets[t + 1]``.
    """

    #: The fitted model, as its own library made it.
    estimator: Any

    #: First leaf id of each tree, and the number of leaves; int64, shape (T + 1,).
    leaf_offsets: npt.NDArray[np.int64]

    #: What the trees add up to; known once :meth:`contributions` was called.
    outputs: Outputs | None = None

    #: Whether its leaves are known only by the samples of fit that reached them.
    learns_leaves: bool = False

    @abstractmethod
    def leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaf that each sample reaches in each tree, shape (n, T)."""

    def for_workers(self) -> FittedForest:
        """Return the forest with no more than other processes need to route and to draw."""
        return self

    def training_leaves(self, X: Any, *, n_threads: int = 1) -> Array:
        """Return the leaves of the training samples; what knows its leaves only by them learns."""
        return self.leaves(X, n_threads=n_threads)

    def features(self, X: Any) -> Array:
        """Return the samples as numbers, with the columns that :meth:`path_features` speaks of."""
        try:
            # A copy: X may change while a scheme still reads the samples.
            return np.array(X.toarray() if issparse(X) else X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise Unavailable(f"X holds more than numbers ({error}); use 'kerf'") from error

    def predicts_numbers(self) -> bool:
        """Return whether the forest is known to be a regressor."""
        try:
            return bool(is_regressor(self.estimator))
        except (AttributeError, TypeError):  # it does not speak scikit-learn
            return False

    def is_boosted(self) -> bool:
        """Return whether the values of its leaves add up to its score."""
        return False

    def in_bag(
        self, X: Any, y: Any, sample_weight: Any, leaf: Array, *, n_threads: int = 1
    ) -> InBag:
        """Return how the trees were trained on these samples, their own training set."""
        raise Unavailable(f"{self} does not tell how its trees drew their samples")

    def in_bag_of_trees(
        self, trees: slice, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
    ) -> InBag:
        """Return how some trees were trained on all samples, without the samples themselves.

        For training samples that are not in one place.
        """
        leaf = np.broadcast_to(0, (n_samples, len(self.leaf_offsets) - 1))
        whole = self.in_bag(None, y, sample_weight, leaf, n_threads=n_threads)
        return InBag(whole.weights[:, trees], whole.is_oob[:, trees])

    def check_in_bag(  # noqa: B027 - most forests cannot tell
        self, masses: Array, *, n_threads: int = 1
    ) -> None:
        """Refuse in-bag weights that, summed over each leaf, are not those of the trees."""

    def tree_weights(self, leaf_mass: Array) -> Array:
        """Return each tree's weight in the ensemble, shape (T,), given the samples in each leaf."""
        raise Unavailable(f"{self} has no tree weights")

    def contributions(
        self, y: Any, sample_weight: Any, leaf: Array, *, objective: Any = None
    ) -> Array:
        """Return the part of each training sample in the value of its leaf in each tree.

        The result has shape (n, T), or (n, T, K) where leaves have a value for each output. The
        objective gives the derivatives of the loss for models that do not tell theirs. The
        attribute ``outputs`` is set.
        """
        raise Unavailable(
            f"{self} is not a gradient-boosted model; use 'gap' for a random forest, or 'kerf'"
        )

    def leaf_averages(self, y: Any, sample_weight: Any, leaf: Array) -> LeafAverages:
        """Return how a model of squared loss averages residuals over its leaves."""
        raise Unavailable(
            f"{self} is not a gradient-boosted model; use the scheme 'gap' for a random forest"
        )

    def path_features(self) -> tuple[Array, Array]:
        """Return (offsets, features): the distinct features on the path to each leaf, ascending."""
        raise Unavailable(f"{self} does not tell its paths")

    def trees(self) -> Sequence[Tree]:
        """Return the trees with their splits, whose leaves are numbered as :meth:`leaves` does."""
        raise Unavailable(
            f"{self} does not tell how its trees split; give the model itself as the forest, of "
            "scikit-learn, LightGBM, XGBoost or CatBoost"
        )

    def feature_names(self, names: Array) -> Array:
        """Return the names of the columns that the trees split on, given those of X."""
        return names

    def categories(self) -> dict[int, list[Any]]:
        """Return, for features with categories, what the codes of the splits stand for."""
        return {}

    @abstractmethod
    def __str__(self) -> str:
        """Name the forest in messages."""
