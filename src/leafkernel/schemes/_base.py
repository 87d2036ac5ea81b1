"""What a weight scheme is."""

from __future__ import annotations

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
NEEDS = frozenset({"in_bag", "tree_weights", "labels", "paths"})


class WeightScheme(ABC):
    r"""A rule that weighs samples in trees, and so defines a proximity.

    The proximity of a query x to a reference sample x' is

    .. math:: P(x, x') = \sum_t q_t(x)\, w_t(x')\, [\ell_t(x) = \ell_t(x')]

    with the query weights q from :meth:`query` and the reference weights w from
    :meth:`reference`. Subclass it to define a proximity of your own; where both sides weigh alike,
    :meth:`query` is enough. Both get the samples (:class:`leafkernel.schemes.Samples`: leaves,
    in-bag weights, …) and the forest (:class:`leafkernel.schemes.ForestStats`: masses of leaves,
    tree weights, …), and return nonnegative weights: an array of shape (n, T), or the same in
    factors, a :class:`leafkernel.schemes.Weighting`, which is faster and takes less memory.

    Attributes
    ----------
    name : str
        How messages call the scheme; the name of the class by default.
    needs : frozenset of {"in_bag", "tree_weights", "labels", "paths"}
        What must be known of the forest beyond its leaves: in-bag weights (``samples.in_bag``,
        ``samples.is_oob``, ``forest.in_bag_mass``), tree weights (``forest.tree_weights``), labels
        (``samples.labels``, None for unseen samples), paths (``forest.path_features`` and
        ``samples.features``).
    symmetric : bool
        Whether q = w, so that P is symmetric and positive semidefinite. By default, whether the
        class leaves :meth:`reference` as it is.
    separable : bool
        Whether P is the product Q Wᵀ. Only the exact out-of-bag proximity is not.
    predicts : bool
        Whether rows of P are distributions over the training samples, and P times y is the
        forest's own prediction: out of bag for training samples, which have no proximity to
        themselves. Tasks that explain or calibrate rely on it.
    equal_diagonal : bool
        Whether all training samples have the same proximity to themselves.
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
    separable: ClassVar[bool] = True
    predicts: ClassVar[bool] = False
    equal_diagonal: ClassVar[bool] = False
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

    @abstractmethod
    def query(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Weigh samples that ask for their similar ones.

        Parameters
        ----------
        samples : Samples
            n samples, in training or unseen.
        forest : ForestStats
            What the training samples say of leaves and trees.

        Returns
        -------
        ndarray of shape (n, T) or Weighting
            q_t(x) >= 0.
        """

    def reference(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Weigh samples that are asked for; as queries, by default.

        Parameters
        ----------
        samples : Samples
            n samples, in training or unseen.
        forest : ForestStats
            What the training samples say of leaves and trees.

        Returns
        -------
        ndarray of shape (n, T) or Weighting
            w_t(x) >= 0.
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
