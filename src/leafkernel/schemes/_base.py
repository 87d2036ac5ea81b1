"""What a weight scheme is."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.weighting import Weighting

#: What a scheme returns: an array of shape (n, T), or the same in factors.
Weights = npt.NDArray[Any]
AnyWeights = Weights | Weighting

#: What a scheme may ask for in ``needs``.
NEEDS = frozenset({"in_bag", "tree_weights", "labels", "paths", "features", "gradients"})


class WeightScheme(ABC):
    r"""A rule that weighs samples in trees, and so defines a proximity.

    The proximity of a query x to a reference sample x' is

    .. math:: P(x, x') = \sum_t q_t(x)\, w_t(x')\, [\ell_t(x) = \ell_t(x')]

    with the query weights q from :meth:`query` and the reference weights w from
    :meth:`reference`. Subclass it to define a proximity of your own; where both sides weigh alike,
    :meth:`query` is enough. Both get the samples (:class:`leafkernel.schemes.Samples`: leaves,
    in-bag weights, …) and the forest (:class:`leafkernel.schemes.ForestStats`: masses of leaves,
    tree weights, …), and return weights: an array of shape (n, T), or the same in factors, a
    :class:`leafkernel.schemes.Weighting`, which is faster and takes less memory.

    Attributes
    ----------
    name : str
        How messages call the scheme; the name of the class by default.
    needs : frozenset of {"in_bag", "tree_weights", "labels", "paths", "features", "gradients"}
        What must be known of the forest beyond its leaves: in-bag weights (``samples.in_bag``,
        ``samples.is_oob``, ``forest.in_bag_mass``), tree weights (``forest.tree_weights``), labels
        (``samples.labels``, None for unseen samples), the features that are split on along the path
        to each leaf (``forest.path_features``), the values of the samples' features
        (``samples.features``), the part of each training sample in the leaf values of a boosted
        model (``samples.contributions``, ``forest.base_scores``, ``forest.tree_outputs``,
        ``forest.output_labels``).
    symmetric : bool
        Whether q = w, so that P is symmetric and positive semidefinite. By default, whether the
        class leaves :meth:`reference` as it is.
    divides_by_shared_oob : bool
        Whether each entry is divided by the number of trees that both samples are out of bag in.
        Then P is not the product Q Wᵀ, so it has no maps and no operator.
    predicts : bool
        Whether rows of P are distributions over the training samples, and P times y is the
        forest's own prediction. Tasks that explain rely on it.
    out_of_bag : bool
        Whether training samples are compared with others only in the trees that did not draw them.
        By default, whether the scheme needs in-bag weights. Where ``predicts`` holds as well, P
        times y is the forest's out-of-bag prediction of its training samples.
    own_proximity : float or None
        The proximity of every training sample to itself; None where samples differ in it.
    signed : bool
        Whether weights may be negative. Proximities are then contributions to a sum, which may
        cancel, and not similarities.

    Examples
    --------
    Count only the collisions in small leaves, as a class:

    >>> import numpy as np
    >>> from leafkernel import ForestProximity, WeightScheme
    >>> class SmallLeaves(WeightScheme):
    ...     name = "small_leaves"
    ...     def query(self, samples, forest):
    ...         return (forest.leaf_mass[samples.leaf] <= 20) / np.sqrt(forest.n_trees)
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, random_state=0)
    >>> ForestProximity(forest, weight_scheme=SmallLeaves()).fit(X, y).proximity().shape
    (150, 150)
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    symmetric: bool = True
    divides_by_shared_oob: ClassVar[bool] = False
    predicts: ClassVar[bool] = False
    own_proximity: ClassVar[float | None] = None
    signed: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):
            cls.name = cls.__name__
        own = cls.__mro__[: cls.__mro__.index(WeightScheme)]
        if cls.reference is not WeightScheme.reference and not any(
            "symmetric" in vars(base) for base in own
        ):
            cls.symmetric = False
        for old, new, meaning in (
            ("separable", "divides_by_shared_oob", {True: False, False: True}),
            ("equal_diagonal", "own_proximity", {True: 1.0, False: None}),
        ):
            if old in vars(cls):
                value = vars(cls)[old]
                if not isinstance(value, bool):
                    raise TypeError(f"{cls.__name__} sets {old}; set {new} instead.")
                warnings.warn(
                    f"{cls.__name__} sets {old}, which is now called {new}; write "
                    f"{new} = {meaning[value]} instead of {old} = {value}.",
                    FutureWarning,
                    stacklevel=3,
                )
                setattr(cls, new, meaning[value])
                delattr(cls, old)

    @property
    def out_of_bag(self) -> bool:
        """Whether training samples are compared in out-of-bag trees alone."""
        return "in_bag" in self.needs

    @property
    def separable(self) -> bool:
        """Whether P is the product Q Wᵀ: the opposite of ``divides_by_shared_oob``."""
        return not self.divides_by_shared_oob

    @property
    def equal_diagonal(self) -> bool:
        """Whether all training samples have proximity one to themselves."""
        return self.own_proximity == 1

    @abstractmethod
    def query(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Return the query weights: how much each tree counts for samples to be compared.

        Parameters
        ----------
        samples : Samples
            n samples, in training or unseen.
        forest : ForestStats
            What the training samples say of leaves and trees.

        Returns
        -------
        ndarray of shape (n, T) or Weighting
            q_t(x); not negative, unless the scheme is ``signed``.
        """

    def reference(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Return the reference weights: how much each tree counts for samples to compare with.

        By default they are the query weights.

        Parameters
        ----------
        samples : Samples
            n samples, in training or unseen.
        forest : ForestStats
            What the training samples say of leaves and trees.

        Returns
        -------
        ndarray of shape (n, T) or Weighting
            w_t(x); not negative, unless the scheme is ``signed``.
        """
        return self.query(samples, forest)

    def adjusted_diagonal(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return what ``diagonal="adjusted"`` puts on the diagonal, shape (n,)."""
        raise ValueError(
            f"diagonal='adjusted' is defined for weight_scheme='gap' alone, not for {self.name!r}; "
            "use 'scheme', 'one' or 'zero'."
        )


def ratio(numerator: Any, denominator: Any) -> Weights:
    """Return a/b, and 0 where b = 0: the one place where that choice is made.

    A denominator is zero where nothing was counted (a row never out of bag, a leaf without mass).
    Such a row or leaf has no say, so its weight is zero.

    Parameters
    ----------
    numerator, denominator : array-like
        a and b, of shapes that broadcast.

    Returns
    -------
    ndarray of float64
        a/b.
    """
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    out: Weights = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out
