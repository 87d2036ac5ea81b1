"""The proximity that gives less weight to hard samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leafkernel._validation import check_choice, check_count
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.schemes._base import Weights, WeightScheme, ratio

# Number of (query, candidate) pairs for which distances are computed at a time: about 32 MB.
_PAIRS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class InstanceHardness(WeightScheme):
    r"""Shared leaves, with less weight for samples that are surrounded by other classes.

    .. math:: q_t(x) = \frac{1}{T}, \qquad w_t(x') = 1 - \mathrm{kDN}_t(x')

    Use it if mislabeled and borderline samples should count less. kDN_t(x) is the fraction of the k
    nearest neighbors of x that have another label. Neighbors are searched by Euclidean distance,
    using only the features on the path of x in tree t. Features are not scaled, and x itself is
    excluded. Candidates with the same distance as the k-th neighbor share its place evenly, so the
    order of the samples does not matter. With fewer than k candidates, all of them are used;
    without any, kDN is 0. New samples have no label, so their kDN is 0.

    Needs class labels, features and tree paths.

    Parameters
    ----------
    k : int, default=5
        Number of neighbors.
    neighbors : {"all", "leaf"}, default="all"
        Candidates: all training samples, or only those in the same leaf. The cost of "all" is
        quadratic in the number of samples; see `max_reference`.
    symmetric : bool, default=False
        Whether to use the weight :math:`\sqrt{(1 - \mathrm{kDN}_t) / T}` on both sides. The
        proximity is then symmetric and positive semidefinite.
    max_reference : int or None, default=None
        With ``neighbors="all"``, the largest number of candidates. They are drawn at random with
        a fixed seed.

    References
    ----------
    H. Cao, S. Bernard, R. Sabourin, L. Heutte, "A novel random forest dissimilarity measure for
    multi-view learning", ICPR (2021).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.schemes import InstanceHardness
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(20, random_state=0)
    >>> ForestProximity(forest, InstanceHardness(k=7)).fit(X, y).proximity().shape
    (150, 150)
    """

    k: int = 5
    neighbors: Literal["all", "leaf"] = "all"
    symmetric: bool = False
    max_reference: int | None = None

    name = "ih"
    needs = frozenset({"features", "labels", "paths"})

    def query(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the query weights, shape (n, T)."""
        if self.symmetric:
            return np.sqrt((1.0 - self._hardness(samples, forest)) / forest.n_trees)
        return np.broadcast_to(1.0 / forest.n_trees, samples.leaf.shape)

    def reference(self, samples: Samples, forest: ForestStats) -> Weights:
        """Return the reference weights, shape (n, T)."""
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
            raise ValueError(
                "X contains NaN or infinity, but weight_scheme='ih' computes distances between "
                "samples. Impute the missing values or use another scheme."
            )
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
        # The neighbors of a sample depend only on the subspace, so each (sample, subspace) pair is
        # computed once, even if several trees share it.
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
        """Return, for each query, the fraction of its k nearest candidates with another label."""
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
            # Shares of ties can add up to slightly more than their places, by rounding.
            found[begin : begin + step] = np.minimum(ratio(disagreeing, k), 1.0)
        return found
