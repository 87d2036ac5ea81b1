"""The base class of weight schemes."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from leafkernel.cells import Cells
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.weighting import Weighting

if TYPE_CHECKING:
    from leafkernel.schemes._paths import NodeWeights

#: The return value of a scheme: an array of shape (n, T), or its factors.
Weights = npt.NDArray[Any]
AnyWeights = Weights | Weighting

#: Allowed values in ``needs``.
NEEDS = frozenset(
    {"in_bag", "tree_weights", "labels", "targets", "paths", "features", "gradients", "trees"}
)
#: Allowed values in ``optional_needs``.
OPTIONAL_NEEDS = frozenset({"in_bag"})


class WeightScheme(ABC):
    r"""Base class for weight schemes. A scheme defines a proximity.

    The proximity of a query x to a reference sample x' is

    .. math:: P(x, x') = \sum_t q_t(x)\, w_t(x')\, [\ell_t(x) = \ell_t(x')]

    with the query weights q from :meth:`query` and the reference weights w from
    :meth:`reference`. Subclass this to define your own proximity. If both sides have the same
    weights, define only :meth:`query`.

    Both methods get the samples (:class:`leafkernel.schemes.Samples`: leaves, in-bag weights, …)
    and the forest (:class:`leafkernel.schemes.ForestStats`: leaf sizes, tree weights, …). They
    return an array of shape (n, T), or its factors as a :class:`leafkernel.schemes.Weighting`.
    Factors are faster and take less memory.

    Attributes
    ----------
    name : str
        Name of the scheme in messages. By default, the name of the class.
    needs : frozenset of str
        Information that the scheme uses in addition to the leaves. Only declared information is
        available:

        - "in_bag": ``samples.in_bag``, ``samples.is_oob`` and ``forest.in_bag_mass``
        - "tree_weights": ``forest.tree_weights``
        - "labels": ``samples.labels`` (None for new samples)
        - "targets": ``samples.targets``, the classes or numbers that the forest predicts (None for
          new samples)
        - "paths": ``forest.path_features``, the features on the path to each leaf
        - "features": ``samples.features``, the feature values of the samples
        - "trees": ``forest.nodes``, the nodes of the trees
        - "gradients": ``samples.contributions``, the contribution of each training sample to the
          leaf values of a boosted model, ``forest.base_scores``, ``forest.tree_outputs`` and
          ``forest.output_labels``
    optional_needs : frozenset of {"in_bag"}
        Information that the scheme uses if the forest has it. Otherwise
        ``samples.in_bag_weights`` and ``samples.oob_flags`` are None.
    symmetric : bool
        Whether q = w, so that P is symmetric and positive semidefinite. By default, True if the
        class does not override :meth:`reference`.
    divides_by_shared_oob : bool
        Whether each entry is divided by the number of trees in which both samples are out-of-bag.
        P is then not the product Q Wᵀ, so there are no maps and no operator.
    predicts : bool
        Whether each row of P is a distribution over the training samples and P times y is the
        forest's prediction. Tasks that explain predictions rely on it.
    out_of_bag : bool
        Whether training samples are compared using only their out-of-bag trees. By default, True if
        the scheme needs in-bag weights. If ``predicts`` is also True, P times y is the forest's
        out-of-bag prediction for the training samples.
    own_proximity : float or None
        Proximity of every training sample to itself, or None if it depends on the sample.
    signed : bool
        Whether weights may be negative. Proximities are then contributions to a sum, not
        similarities.

    Examples
    --------
    Count only small leaves:

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
    optional_needs: ClassVar[frozenset[str]] = frozenset()
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
                    raise TypeError(
                        f"{old} was renamed to {new}. Define {new} in {cls.__name__} instead."
                    )
                warnings.warn(
                    f"{old} was renamed to {new}. In {cls.__name__}, replace {old} = {value} by "
                    f"{new} = {meaning[value]}.",
                    FutureWarning,
                    stacklevel=3,
                )
                setattr(cls, new, meaning[value])
                delattr(cls, old)

    @property
    def out_of_bag(self) -> bool:
        """Whether training samples are compared using only their out-of-bag trees."""
        return "in_bag" in self.needs

    @property
    def learns(self) -> bool:
        """Whether the scheme computes an array from all training samples, with :meth:`learn`."""
        return type(self).learn is not WeightScheme.learn

    @property
    def separable(self) -> bool:
        """Whether P is the product Q Wᵀ: the opposite of ``divides_by_shared_oob``."""
        return not self.divides_by_shared_oob

    @property
    def equal_diagonal(self) -> bool:
        """Whether the proximity of every training sample to itself is 1."""
        return self.own_proximity == 1

    def learn(self, samples: Samples, forest: ForestStats) -> Weights | None:
        """Return an array that is computed once from the training samples.

        Override it if the weights depend on all training samples, for example by a factor for each
        leaf or tree. The result is available as ``forest.learned`` in :meth:`query` and
        :meth:`reference`, also for new samples and after loading. By default, nothing is computed.

        Parameters
        ----------
        samples : Samples
            The n training samples. Their arrays may be memory-mapped files, so read them in blocks.
        forest : ForestStats
            Statistics of the leaves and trees.

        Returns
        -------
        ndarray or None
            The array. It contains numbers and is saved with the proximity.
        """
        return None

    @abstractmethod
    def query(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Return the query weights.

        Parameters
        ----------
        samples : Samples
            n samples, from the training data or new.
        forest : ForestStats
            Statistics of the leaves and trees.

        Returns
        -------
        ndarray of shape (n, T) or Weighting
            The weights q_t(x). They must be nonnegative unless the scheme is ``signed``.
        """

    def reference(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Return the reference weights. Defaults to :meth:`query`.

        Parameters
        ----------
        samples : Samples
            n samples, from the training data or new.
        forest : ForestStats
            Statistics of the leaves and trees.

        Returns
        -------
        ndarray of shape (n, T) or Weighting
            The weights w_t(x). They must be nonnegative unless the scheme is ``signed``.
        """
        return self.query(samples, forest)

    def cells(self, forest: ForestStats) -> Cells | None:
        """Return the sets of leaves that count as one leaf. None means that every leaf is one."""
        return None

    def node_weights(self, forest: ForestStats) -> NodeWeights | None:
        """Return the weights of the nodes if the scheme compares whole paths, else None."""
        return None

    def adjusted_diagonal(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the values for ``diagonal="adjusted"``.

        Parameters
        ----------
        samples : Samples
            The n training samples.
        forest : ForestStats
            Statistics of the leaves and trees.

        Returns
        -------
        ndarray of shape (n,)
            The proximity of each training sample to itself.
        """
        raise ValueError(
            f"diagonal='adjusted' is defined only for weight_scheme='gap'; got {self.name!r}. "
            "Use 'scheme', 'one' or 'zero'."
        )


def ratio(numerator: Any, denominator: Any) -> Weights:
    """Return a / b, and 0 where b is 0.

    Schemes use it for their weights. A denominator of 0 means that nothing was counted, for
    example for a sample that is never out-of-bag or a leaf without in-bag samples. The weight is
    then 0.

    Parameters
    ----------
    numerator, denominator : array-like
        The arrays a and b. Their shapes are broadcast.

    Returns
    -------
    ndarray of float64
        The ratio.

    Examples
    --------
    >>> from leafkernel.schemes import ratio
    >>> ratio([1, 1], [2, 0])
    array([0.5, 0. ])
    """
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    out: Weights = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out
