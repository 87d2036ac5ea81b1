"""Leaf schemes on a coarser partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leafkernel._validation import check_count
from leafkernel.cells import Cells
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import AnyWeights, Weights, WeightScheme


@dataclass(frozen=True)
class Collapsed(WeightScheme):
    r"""Another scheme, on trees whose lower splits are removed.

    .. math:: P(x, x') = \sum_t q_t(x)\, w_t(x')\, [c(\ell_t(x)) = c(\ell_t(x'))]

    c(ℓ) is the node that the leaf ℓ becomes a part of, and q and w are the weights of the scheme.
    Use it if the leaves are too small, without fitting the forest again. Deep trees leave only few
    samples in each leaf, so most pairs have the proximity 0. All leaves below a removed split count
    as one leaf. Leaf sizes and in-bag weights are those of the larger leaves.

    The result has the properties of the scheme, with one exception: with "gap", P times y is the
    prediction of the smaller trees, not of the forest. Needs the nodes of the trees, and the
    information that the scheme needs.

    Parameters
    ----------
    scheme : str, callable or WeightScheme
        The scheme for the larger leaves. Kernels that compare whole paths ("pbk" and "rpk") are not
        allowed.
    max_depth : int, default=None
        Remove the splits at this depth and below.
    min_samples : int, default=None
        Remove a split, with all splits below it, if one of its sides has fewer training samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.schemes import Collapsed
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> prox = ForestProximity(forest, Collapsed("gap", max_depth=2)).fit(X, y)
    >>> prox.query_map().shape[1] <= 50 * 2**2 < prox.n_leaves_
    True
    """

    scheme: Any
    max_depth: int | None = None
    min_samples: int | None = None

    def __post_init__(self) -> None:
        from leafkernel.schemes import find_scheme  # noqa: PLC0415 - that module imports this one

        scheme = find_scheme(self.scheme)
        if type(scheme).cells is not WeightScheme.cells:
            raise ValueError(
                f"scheme={scheme.name!r} cannot be collapsed, because it is not a scheme of "
                "leaves. Use a scheme such as 'uniform', 'kerf' or 'gap'."
            )
        if self.max_depth is None and self.min_samples is None:
            raise ValueError("max_depth and min_samples are both None. Pass one of them.")
        object.__setattr__(self, "scheme", scheme)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the scheme, with the prefix ``collapsed_``."""
        return f"collapsed_{self.scheme.name}"

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The needs of the scheme, and the nodes of the trees."""
        return frozenset({*self.scheme.needs, "trees"})

    @property
    def optional_needs(self) -> frozenset[str]:  # type: ignore[override]
        """The optional needs of the scheme."""
        return frozenset(self.scheme.optional_needs)

    @property
    def learns(self) -> bool:
        """Whether the scheme computes an array from all training samples."""
        return bool(self.scheme.learns)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether the scheme is symmetric."""
        return bool(self.scheme.symmetric)

    @property
    def divides_by_shared_oob(self) -> bool:  # type: ignore[override]
        """Whether entries are divided by shared out-of-bag counts."""
        return bool(self.scheme.divides_by_shared_oob)

    @property
    def own_proximity(self) -> float | None:  # type: ignore[override]
        """Proximity of every training sample to itself."""
        own: float | None = self.scheme.own_proximity
        return own

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether weights may be negative."""
        return bool(self.scheme.signed)

    def learn(self, samples: Samples, forest: ForestStats) -> Weights | None:
        """Return the array that the scheme computes from the training samples."""
        return self.scheme.learn(samples, forest)  # type: ignore[no-any-return]

    def query(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Return the query weights of the scheme."""
        return self.scheme.query(samples, forest)  # type: ignore[no-any-return]

    def reference(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        """Return the reference weights of the scheme."""
        return self.scheme.reference(samples, forest)  # type: ignore[no-any-return]

    def adjusted_diagonal(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the values of the scheme for ``diagonal="adjusted"``."""
        return self.scheme.adjusted_diagonal(samples, forest)  # type: ignore[no-any-return]

    def cells(self, forest: ForestStats) -> Cells:
        """Return the leaves of the smaller trees."""
        nodes = forest.nodes
        is_kept = ~nodes.is_leaf  # whether the split of a node is kept
        if self.max_depth is not None:
            is_kept &= nodes.depth < check_count("max_depth", self.max_depth, at_least=0)
        if self.min_samples is not None:
            least = check_count("min_samples", self.min_samples)
            too_small = nodes.sums(forest.leaf_mass) < least
            is_kept[nodes.parent[too_small & (nodes.depth > 0)]] = False
        is_there = nodes.depth == 0  # whether all splits above a node are kept
        for below in nodes.levels[1:]:
            above = nodes.parent[below]
            is_there[below] = is_there[above] & is_kept[above]
        return Cells.below(forest, is_there & ~is_kept)
