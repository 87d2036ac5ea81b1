"""The proximity that weights leaves by their quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from leafkernel._validation import check_choice, check_nonnegative, warn
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.leaf_sums import leaf_sums, rows_by_class, standardized
from leafkernel.schemes._base import Weights, WeightScheme, ratio
from leafkernel.weighting import Weighting, locked

Doubles = npt.NDArray[np.float64]

# Smaller qualities are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Purity(WeightScheme):
    r"""Shared leaves, weighted by how well each leaf separates the targets.

    .. math:: q_t(x) = w_t(x) = \sqrt{\frac{u(\ell_t(x))}{T}}, \qquad
              P(x, x') = \frac{1}{T} \sum_t u(\ell_t(x))\, [\ell_t(x) = \ell_t(x')]

    Use it if some leaves are known to be better than others. The quality u of a leaf is between 0
    and 1. It is computed from the targets of the training samples in the leaf:

    .. math:: u_{\text{purity}} = \sum_c p_c^2, \qquad
              u_{\text{variance reduction}} =
              \max\left(0,\, 1 - \frac{\mathrm{Var}(\ell)}{\mathrm{Var}}\right), \qquad
              u_{\text{impurity decrease}} = \max\left(0,\, 1 - \frac{I(\ell)}{I}\right)

    .. math:: p_c = \frac{N_c + a\, \pi_c}{N + a}, \qquad
              \mathrm{Var}(\ell) = \frac{\sum_{x \in \ell} v(x)\, (y(x) - \bar y_\ell)^2 +
              a\, \mathrm{Var}}{N + a}

    v(x) is the weight of a sample in the tree, and a is the ``prior``. N is the sum of the weights
    in the leaf, :math:`N_c` that of class c, and :math:`\bar y_\ell` the weighted mean.
    :math:`\pi_c` is the share of the class in the training set. I is the Gini impurity
    :math:`1 - \sum_c p_c^2` of classes, or the variance of numbers. Var and I without a leaf are
    those of the training set. If all targets are equal, every leaf has the quality 1.

    A tree is fitted to its in-bag samples, so they make its leaves look better than they are. By
    default, the quality is estimated from out-of-bag samples. All trees count in the proximity
    itself. It is symmetric and positive semidefinite. Needs targets.

    Parameters
    ----------
    quality : {"auto", "purity", "variance_reduction", "impurity_decrease"}, default="auto"
        The quality u. "auto" is "purity" for classes and "variance_reduction" for numbers.
    estimate : {"auto", "oob", "in_bag", "all"}, default="auto"
        The training samples that define the quality of a leaf: its out-of-bag samples, its in-bag
        samples with their in-bag weights, or all. "auto" is "oob" if the forest has bootstrap
        samples, and "all" otherwise.
    prior : float, default=1.0
        Weight of the whole training set in each leaf, as a number of samples. A leaf with few
        samples then has a quality close to that of the training set. A leaf without samples has
        exactly that quality.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone, "Classification and regression trees",
    Wadsworth (1984), for the impurity measures.

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.schemes import Purity
    >>> leaves, y = [[1, 4], [1, 4], [2, 4], [2, 4]], ["a", "a", "b", "b"]
    >>> scheme = Purity(prior=0)
    >>> prox = ForestProximity.from_leaves(leaves, y=y, weight_scheme=scheme, dtype="float64")
    >>> prox.proximity().toarray().round(3)
    array([[0.75, 0.75, 0.25, 0.25],
           [0.75, 0.75, 0.25, 0.25],
           [0.25, 0.25, 0.75, 0.75],
           [0.25, 0.25, 0.75, 0.75]])
    """

    quality: Literal["auto", "purity", "variance_reduction", "impurity_decrease"] = "auto"
    estimate: Literal["auto", "oob", "in_bag", "all"] = "auto"
    prior: float = 1.0

    name = "purity"
    out_of_bag = False  # only the quality of leaves is estimated out-of-bag

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Targets, and in-bag weights if the estimate is "oob" or "in_bag"."""
        return frozenset(
            {"targets", "in_bag"} if self.estimate in ("oob", "in_bag") else {"targets"}
        )

    @property
    def optional_needs(self) -> frozenset[str]:  # type: ignore[override]
        """In-bag weights if the estimate is "auto"."""
        return frozenset({"in_bag"} if self.estimate == "auto" else ())

    def learn(self, samples: Samples, forest: ForestStats) -> Doubles:
        """Return the quality of each leaf, shape (L,)."""
        check_choice("estimate", self.estimate, ("auto", "oob", "in_bag", "all"))
        prior = check_nonnegative("prior", self.prior)
        assert samples.targets is not None
        is_classes = samples.targets.dtype.kind in "iu"
        quality = self._quality(is_classes=is_classes)
        entries = self._entries(samples)
        mass = leaf_sums(samples.leaf, forest.n_leaves, entries=entries)
        # A leaf without samples has the quality of the training set, for any prior.
        added = np.where(mass > 0, prior, 1.0)
        mass += added
        if is_classes:
            found, overall = _concentration(samples, entries, mass, added)
            if quality == "impurity_decrease":
                found = (
                    1.0 - (1.0 - found) / (1.0 - overall) if overall < 1 else np.ones_like(found)
                )
        else:
            found = 1.0 - _relative_variance(samples, entries, mass, added)
        found = np.clip(np.where(found > _ROUNDING, found, 0.0), 0.0, 1.0)
        if not found.any():
            warn(
                "All leaves have quality 0, so all proximities are zero. The leaves say nothing "
                "about the targets; use other trees or another quality."
            )
        return found

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are also the reference weights."""
        quality = forest.learned
        assert quality is not None
        by_leaf = forest.once(self.name, lambda: locked(np.sqrt(quality / forest.n_trees)))
        return Weighting(by_leaf=by_leaf)

    def _quality(self, *, is_classes: bool) -> str:
        names = ("auto", "purity", "variance_reduction", "impurity_decrease")
        check_choice("quality", self.quality, names)
        if self.quality == "auto":
            return "purity" if is_classes else "variance_reduction"
        if self.quality == ("variance_reduction" if is_classes else "purity"):
            kind, other = ("classes", "purity") if is_classes else ("numbers", "variance_reduction")
            raise ValueError(
                f"quality={self.quality!r} is not defined, because the targets are {kind}. Use "
                f"{other!r} or 'impurity_decrease'."
            )
        return self.quality

    def _entries(self, samples: Samples) -> Weights | None:
        """Return the weight of each sample in each tree, or None if all are one."""
        if self.estimate == "all":
            return None
        return samples.in_bag if self.estimate == "in_bag" else samples.oob_flags


def _concentration(
    samples: Samples, entries: Array | None, mass: Doubles, added: Doubles
) -> tuple[Doubles, float]:
    """Return Σ p² of each leaf and of the training set. ``mass`` contains what was added."""
    assert samples.targets is not None
    found: Doubles = np.zeros(len(mass))
    shares = np.bincount(samples.targets) / samples.n_samples
    for rows, share in zip(rows_by_class(samples.targets), shares, strict=True):
        count = leaf_sums(samples.leaf, len(mass), entries=entries, rows=rows)
        found += ((count + added * share) / mass) ** 2
    return found, float(np.sum(shares**2))


def _relative_variance(
    samples: Samples, entries: Array | None, mass: Doubles, added: Doubles
) -> Doubles:
    """Return the variance of each leaf, divided by that of the training set."""
    assert samples.targets is not None
    numbers = standardized(samples.targets)  # the training set has mean 0 and variance 1
    if not numbers.any():
        return np.zeros(len(mass))
    first = leaf_sums(samples.leaf, len(mass), entries=entries, values=numbers)
    second = leaf_sums(samples.leaf, len(mass), entries=entries, values=numbers**2)
    within = np.maximum(second - first * ratio(first, mass - added), 0.0)
    return np.asarray((within + added) / mass)
