"""The proximity with tree weights that are learned from the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from leafkernel._validation import check_choice, check_count
from leafkernel.alignment import Alignment, TreeSamples
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import WeightScheme
from leafkernel.weighting import Weighting, locked

Doubles = npt.NDArray[np.float64]

# Shares of the learned weights that are compared by cross-validation. 0 means equal weights.
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Smaller differences between alignments are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Learned(WeightScheme):
    r"""Shared leaves, with tree weights that are learned from the targets.

    .. math:: q_t(x) = w_t(x) = \sqrt{\mu_t}, \qquad \mu_t \ge 0, \quad \sum_t \mu_t = 1

    Use it if some trees are better than others, for example in a mixed ensemble, or if some trees
    see only uninformative features. The weights maximize the centered alignment of the proximity
    with the targets:

    .. math:: \max_{\mu \ge 0}\ \frac{\langle H K_\mu H,\, Y Y^\top \rangle}
              {\lVert H K_\mu H \rVert\, \lVert Y Y^\top \rVert}, \qquad
              K_\mu(x, x') = \sum_t \mu_t\, o_t(x)\, o_t(x')\, [\ell_t(x) = \ell_t(x')]

    H = I - 11ᵀ/n centers a kernel. Y contains centered class indicators, or standardized numbers.
    If the forest has bootstrap samples, the weights are learned from out-of-bag samples only. So a
    tree cannot get a large weight because it fits its own training samples.

    With few samples, learned weights can be worse than equal weights. By default, cross-validation
    chooses the share of the learned weights among 0, 1/4, 1/2, 3/4 and 1; the remaining share
    belongs to equal weights. So the alignment is not worse than that of ``"uniform"`` by
    cross-validation. All trees count in the proximity itself. It is symmetric and positive
    semidefinite, with ones on the diagonal. Needs targets.

    The cost is proportional to the number of samples and to the square of the number of trees. No
    matrix of samples by samples is formed.

    Parameters
    ----------
    estimate : {"auto", "oob", "all"}, default="auto"
        The training samples that count in each tree for learning: its out-of-bag samples, or all.
        "auto" is "oob" if the forest has bootstrap samples, and "all" otherwise.
    folds : int, default=5
        Number of folds for cross-validation. 0 uses the learned weights alone.
    max_samples : int or None, default=10_000
        Largest number of training samples to learn from. They are drawn at random. None means all.
    random_state : int, default=0
        Seed for this draw and for the folds.

    Notes
    -----
    ``ForestProximity.tree_weights_`` contains the weights μ.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh, "Algorithms for learning kernels based on centered
    alignment", JMLR 13 (2012).

    Examples
    --------
    The first tree separates the classes, and the second one does not:

    >>> from leafkernel import ForestProximity
    >>> from leafkernel.schemes import Learned
    >>> leaves, y = [[1, 4], [1, 5], [2, 4], [2, 5]], ["a", "a", "b", "b"]
    >>> prox = ForestProximity.from_leaves(leaves, y=y, weight_scheme=Learned(folds=0))
    >>> prox.tree_weights_
    array([1., 0.])
    """

    estimate: Literal["auto", "oob", "all"] = "auto"
    folds: int = 5
    max_samples: int | None = 10_000
    random_state: int = 0

    name = "learned"
    own_proximity = 1.0
    out_of_bag = False  # only the weights are learned out-of-bag

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Targets, and in-bag weights if the estimate is "oob"."""
        return frozenset({"targets", "in_bag"} if self.estimate == "oob" else {"targets"})

    @property
    def optional_needs(self) -> frozenset[str]:  # type: ignore[override]
        """In-bag weights if the estimate is "auto"."""
        return frozenset({"in_bag"} if self.estimate == "auto" else ())

    def learn(self, samples: Samples, forest: ForestStats) -> Doubles:
        """Return the weight of each tree, shape (T,)."""
        check_choice("estimate", self.estimate, ("auto", "oob", "all"))
        folds = check_count("folds", self.folds, at_least=0)
        random = np.random.default_rng(check_count("random_state", self.random_state, at_least=0))
        some = self._drawn(samples, forest, random)
        learned = Alignment.of(some, n_threads=forest.n_threads).weights()
        if folds == 0:
            return learned
        share = _best_share(some, min(folds, len(some.targets) // 2), forest, random)
        return _mixed(learned, share)

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights, which are also the reference weights."""
        by_leaf = forest.once(
            self.name,
            lambda: locked(
                np.repeat(np.sqrt(self.tree_weights(forest)), np.diff(forest.leaf_offsets))
            ),
        )
        return Weighting(by_leaf=by_leaf)

    def tree_weights(self, forest: ForestStats) -> Doubles:
        """Return the weights μ of the trees. They sum to one.

        Parameters
        ----------
        forest : ForestStats
            Statistics of the leaves and trees.

        Returns
        -------
        ndarray of float64 of shape (T,)
            The weights.
        """
        assert forest.learned is not None
        return forest.learned

    def _drawn(
        self, samples: Samples, forest: ForestStats, random: np.random.Generator
    ) -> TreeSamples:
        """Return the samples to learn from."""
        assert samples.targets is not None
        flags = None if self.estimate == "all" else samples.oob_flags
        whole = TreeSamples(samples.leaf, forest.leaf_offsets, flags, samples.targets)
        if self.max_samples is None:
            return whole
        most = check_count("max_samples", self.max_samples)
        if most >= samples.n_samples:
            return whole
        return whole.rows(np.sort(random.choice(samples.n_samples, most, replace=False)))


def _best_share(
    samples: TreeSamples, folds: int, forest: ForestStats, random: np.random.Generator
) -> float:
    """Return the share of the learned weights with the best alignment on held-out samples."""
    if folds < 2:
        return 0.0
    order = random.permutation(len(samples.targets))
    found = np.zeros(len(_SHARES))
    for fold in forest.track(range(folds), "learning tree weights", folds):
        held_out = np.zeros(len(order), dtype=bool)
        held_out[order[fold::folds]] = True
        rest, held = (
            Alignment.of(samples.rows(np.flatnonzero(rows)), n_threads=forest.n_threads)
            for rows in (~held_out, held_out)
        )
        learned = rest.weights()
        found += [held.of_weights(_mixed(learned, share)) for share in _SHARES]
    return _SHARES[int(np.argmax(found >= found.max() - _ROUNDING * folds))]


def _mixed(learned: Doubles, share: float) -> Doubles:
    """Return a mixture of learned weights and equal weights."""
    return share * learned + (1.0 - share) / len(learned)
