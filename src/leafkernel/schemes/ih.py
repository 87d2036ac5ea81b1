"""The proximity that discounts hard samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leafkernel._validation import check_choice, check_count
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.schemes._base import Weights, WeightScheme, ratio

# Distances are computed for this many (query, candidate) pairs at a time: about 32 MB.
_PAIRS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class InstanceHardness(WeightScheme):
    r"""Shared leaves, where a reference sample among neighbors of other classes counts less.

    .. math:: q_t(x) = \frac{1}{T}, \qquad w_t(x') = 1 - \mathrm{kDN}_t(x')

    kDN_t(x) is the share of the k nearest neighbors of x that carry another label, searched in
    the subspace of the features that the path of x in tree t splits on (Euclidean, features as they
    are, x itself excluded). Candidates tied at the k-th distance share its place evenly, so the
    order of the rows does not matter. A sample with fewer than k candidates uses those it has; one
    with none is not hard. Unseen samples have no label, and count as not hard.

    Needs class labels and tree paths.

    Parameters
    ----------
    k : int, default=5
        Number of neighbors.
    neighbors : {"all", "leaf"}, default="all"
        Where to look for them: among all training samples, or only in the sample's leaf. "all" is
        quadratic in the number of samples: see `max_reference`.
    symmetric : bool, default=False
        Whether to weigh both sides by :math:`\sqrt{(1 - \mathrm{kDN}_t) / T}`, which makes the
        proximity symmetric and positive semidefinite.
    max_reference : int or None, default=None
        With ``neighbors="all"``, search among at most so many training samples, drawn evenly at
        random with a fixed seed.

    References
    ----------
    H. Cao, S. Bernard, R. Sabourin, L. Heutte, "A novel random forest dissimilarity measure for
    multi-view learning", ICPR (2021).
    """

    k: int = 5
    neighbors: Literal["all", "leaf"] = "all"
    symmetric: bool = False
    max_reference: int | None = None

    name = "ih"
    needs = frozenset({"features", "labels", "paths"})

    def query(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return q, shape (n, T)."""
        if self.symmetric:
            return np.sqrt((1.0 - self._hardness(samples, forest)) / forest.n_trees)
        return np.broadcast_to(1.0 / forest.n_trees, samples.leaf.shape)

    def reference(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return w, shape (n, T)."""
        if self.symmetric:
            return self.query(samples, forest)
        return 1.0 - self._hardness(samples, forest)

    def _hardness(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return kDN_t(x), shape (n, T)."""
        check_count("k", self.k)
        check_choice("neighbors", self.neighbors, ("all", "leaf"))
        if samples.labels is None or samples.feature_values is None:
            return np.zeros(samples.leaf.shape)
        if not np.isfinite(samples.features).all():
            raise ValueError("weight_scheme='ih' measures distances, so X must be finite (no NaN).")
        if self.neighbors == "leaf":
            return self._hardness_in_leaves(samples, forest)
        return self._hardness_among_all(samples, forest)

    def _hardness_in_leaves(self, samples: Samples, forest: ForestStats) -> Weights:
        hardness = np.zeros(samples.leaf.shape)
        for tree in forest.track(range(forest.n_trees), "instance hardness", forest.n_trees):
            order = np.argsort(samples.leaf[:, tree], kind="stable")
            starts = np.flatnonzero(np.diff(samples.leaf[order, tree], prepend=-1))
            for members in np.split(order, starts[1:]):
                features = forest.path_features(samples.leaf[members[0], tree])
                hardness[members, tree] = self._disagreement(samples, members, members, features)
        return hardness

    def _hardness_among_all(self, samples: Samples, forest: ForestStats) -> Weights:
        candidates = np.arange(samples.n_samples)
        if self.max_reference is not None:
            check_count("max_reference", self.max_reference)
            if self.max_reference < samples.n_samples:
                draw = np.random.default_rng(0).choice
                candidates = np.sort(draw(candidates, self.max_reference, replace=False))
        # A sample's neighbors depend on the subspace alone: each (sample, subspace) is done once,
        # however many trees share it.
        number_of: dict[tuple[int, ...], int] = {}
        subspace_of_leaf = np.zeros(forest.n_leaves, dtype=np.intp)
        for leaf in np.unique(samples.leaf):
            subspace = tuple(forest.path_features(leaf).tolist())
            subspace_of_leaf[leaf] = number_of.setdefault(subspace, len(number_of))
        subspace_of = subspace_of_leaf[samples.leaf].ravel()
        order = np.argsort(subspace_of, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(subspace_of))[:-1])

        hardness = np.zeros(samples.leaf.shape)
        work = zip(number_of, groups, strict=True)
        for subspace, group in forest.track(work, "instance hardness", len(number_of)):
            rows, trees = np.divmod(group, forest.n_trees)
            queries, place = np.unique(rows, return_inverse=True)
            features = np.array(subspace, dtype=np.intp)
            found = self._disagreement(samples, queries, candidates, features)
            hardness[rows, trees] = found[place]
        return hardness

    def _disagreement(
        self, samples: Samples, queries: Array, candidates: Array, features: Array
    ) -> Weights:
        """Return, for each query, the share of its k nearest candidates with another label."""
        assert samples.labels is not None
        found = np.empty(len(queries))
        step = max(1, _PAIRS_AT_ONCE // max(1, len(candidates)))
        for begin in range(0, len(queries), step):
            block = queries[begin : begin + step]
            distance = np.zeros((len(block), len(candidates)))
            for feature in features:
                values = samples.features[:, feature]
                distance += (values[block, None] - values[candidates]) ** 2
            is_self = block[:, None] == candidates
            distance[is_self] = np.inf
            disagrees = samples.labels[block, None] != samples.labels[candidates]

            n_others = len(candidates) - is_self.sum(axis=1)
            k = np.minimum(self.k, n_others)
            at_most = np.maximum(min(self.k, len(candidates)), 1)
            kth = np.sort(np.partition(distance, at_most - 1, axis=1)[:, :at_most], axis=1)
            radius = kth[np.arange(len(block)), np.maximum(k, 1) - 1, None]
            nearer = distance < radius
            tied = (distance == radius) & ~is_self
            places_left = k - nearer.sum(axis=1)
            share_of_ties = ratio(places_left, tied.sum(axis=1))
            disagreeing = (disagrees & nearer).sum(axis=1) + share_of_ties * (disagrees & tied).sum(
                axis=1
            )
            found[begin : begin + step] = ratio(disagreeing, k)
        return found
