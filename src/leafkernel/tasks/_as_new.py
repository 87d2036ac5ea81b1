"""Compare training samples and new samples on the same scale.

A tree often puts a training sample alone in a leaf. A training sample is then similar to itself,
and less similar to others than a new sample from the same distribution. To make scores comparable,
training samples are not compared with themselves, and only their out-of-bag trees are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel.forests import Unavailable
from leafkernel.inside import Inside
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.proximity import ForestProximity
from leafkernel.schemes import Collapsed, Kerf, Weighting, WeightScheme, ratio
from leafkernel.tasks._base import Array, without_self

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class OutOfBagQueries(WeightScheme):
    r"""Restrict the query weights of another scheme to out-of-bag trees.

    .. math:: q'_t(x) = q_t(x) \cdot o_t(x) \cdot \frac{T}{S(x)}, \qquad w'_t(x) = w_t(x)

    Here q are the query weights of a new sample. New samples are out of bag in all trees, so their
    weights do not change. With "kerf", the query itself is not counted in its leaf.
    """

    scheme: WeightScheme

    symmetric = False

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the other scheme."""
        return self.scheme.name

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The requirements of the other scheme, and in-bag weights."""
        return self.scheme.needs | {"in_bag"}

    def learn(self, samples: Samples, forest: ForestStats) -> Array | None:
        """Return the array that the other scheme computes from the training samples."""
        return self.scheme.learn(samples, forest)

    def query(self, samples: Samples, forest: ForestStats) -> Weighting:
        """Return the query weights q'."""
        unseen = Samples.unseen(samples.leaf, feature_values=samples.feature_values)
        weights = self.scheme.query(unseen, forest)
        if not isinstance(weights, Weighting):
            weights = Weighting(by_entry=np.asarray(weights))
        share = ratio(forest.n_trees, samples.n_oob_trees[:, 0])
        entry = samples.is_oob
        of_leaves = self.scheme.scheme if isinstance(self.scheme, Collapsed) else self.scheme
        if isinstance(of_leaves, Kerf) and samples.in_bag.any():
            # The leaf of a training sample counts the sample itself; that of a new sample does not.
            mass = forest.leaf_mass[samples.leaf]
            entry = entry * ratio(mass, mass - 1)
        return Weighting(
            weights.scale,
            share if weights.by_sample is None else share * weights.by_sample,
            weights.by_leaf,
            entry if weights.by_entry is None else entry * weights.by_entry,
        )

    def reference(self, samples: Samples, forest: ForestStats) -> Any:
        """Return the reference weights w'."""
        return self.scheme.reference(samples, forest)

    def cells(self, forest: ForestStats) -> Any:
        """Return the cells of the other scheme."""
        return self.scheme.cells(forest)

    def node_weights(self, forest: ForestStats) -> Any:
        """Return the node weights of the other scheme."""
        return self.scheme.node_weights(forest)


class AsNew:
    """Proximities of training samples and new samples on the same scale.

    Training samples have no self-similarity and use only their out-of-bag trees, if the forest has
    them. A new sample uses as many trees: the out-of-bag trees of a training sample, which is
    always the same one for the same leaves. With more trees, its proximities would vary less and
    its scores would have another scale.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
        The training samples of that proximity.
    """

    def __init__(self, prox: ForestProximity, X: Any) -> None:
        asked = prox
        if not prox.scheme_.out_of_bag:
            asked = _with_out_of_bag_queries(prox, X)
        self.prox = without_self(asked)
        self.has_oob = asked.scheme_.out_of_bag

    def blocks(self, X: Any = None) -> Iterator[tuple[slice, csr_array]]:
        """Yield the proximities of training samples or of X in blocks of rows."""
        inside = Inside.of(self.prox)
        if X is None or not self.has_oob:
            yield from inside.blocks(X, sort=False)
            return
        samples, asks = inside.route(X), inside.samples.is_oob
        for begin in range(0, samples.n_samples, _ROWS_AT_ONCE):
            rows = slice(begin, min(begin + _ROWS_AT_ONCE, samples.n_samples))
            some = samples.rows(rows)
            flags = asks[_hash(some.leaf) % len(asks)]
            flags[~flags.any(axis=1)] = True
            product = inside.kernel.product(replace(some, oob_flags=flags))
            yield rows, inside.engine.rows(product, sort=False)


def _with_out_of_bag_queries(prox: ForestProximity, X: Any) -> ForestProximity:
    """Return a proximity with out-of-bag queries, or unchanged if the forest has no such trees."""
    try:
        return prox.reweigh(OutOfBagQueries(prox.scheme_), diagonal="scheme", X=X)
    except ValueError as error:
        if not isinstance(error.__cause__, Unavailable):
            raise
    return prox


def _hash(leaf: Array) -> npt.NDArray[np.uint64]:
    """Return a hash of each row of leaves."""
    mixed = leaf.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    total = np.zeros(len(leaf), dtype=np.uint64)
    for column in mixed.T:
        total = (total ^ (column >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(total >> np.uint64(17))
