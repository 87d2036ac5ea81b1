"""Explain the similarity of two samples by the splits of the trees."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._optional import require
from leafkernel.incidence import shared_by_tree
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_similarity
from leafkernel.tasks._paths import Box, TreePaths, read_trees
from leafkernel.tasks._query import Query, is_row_label, new_sample, number, training_row

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# LightGBM uses a tiny number for zero.
_NEARLY_ZERO = 1e-30
# Largest number of features in each list of the text, and of categories of a feature.
_NAMED = 6


@dataclass(frozen=True, eq=False)
class Partings:
    """The splits that separate two samples, part of a ``PairExplanation``.

    Attributes
    ----------
    trees : ndarray of int64 of shape (k,)
        The trees in which the samples do not share a leaf.
    features : ndarray of int64 of shape (k,)
        Feature of the split that separates them in each tree.
    thresholds : ndarray of float64 of shape (k,)
        Threshold of the split; NaN for a categorical split. One sample is at most at the threshold,
        the other above it.
    depths : ndarray of int64 of shape (k,)
        Number of splits on their common path before.
    shares : ndarray of float64 of shape (k,)
        Share of the training samples that reach the split. It is small for samples that are
        separated late.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import explain_pair
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(10, random_state=0), "kerf").fit(X, y)
    >>> len(explain_pair(prox, 0, 149).partings.trees)  # of 10 trees
    10
    """

    trees: npt.NDArray[np.int64]
    features: npt.NDArray[np.int64]
    thresholds: Doubles
    depths: npt.NDArray[np.int64]
    shares: Doubles


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation:
    """The reasons why two samples are similar, and what separates them.

    It is returned by ``explain_pair``. Print it to see the most important features.

    Attributes
    ----------
    a, b : str
        Names of the samples.
    proximity : float or None
        Proximity of a to b, or of b to a if only a is a training sample. None for two new samples.
    n_trees : int
        Number of trees.
    trees : ndarray of int64 of shape (k,)
        The trees in which the samples share a leaf.
    tree_shares : ndarray of float64 of shape (k,)
        Share of the proximity that each of these trees contributes. The shares are equal if the
        proximity is zero or None.
    feature_names : ndarray of str of shape (n_features,)
        Names of the features that the trees split on.
    bits : ndarray of float64 of shape (n_features,)
        Bits of each feature on the common paths, averaged over the trees with ``tree_shares``. They
        sum to the average of log2(n_root / n_leaf).
    shares : ndarray of float64 of shape (n_features,)
        Share of each feature in the bits.
    low, high : ndarray of float64 of shape (n_features,)
        The samples share all of these leaves if both have values above ``low`` and up to ``high``.
        The limits are infinite if there is none, and NaN after a categorical split.
    missing_stays : ndarray of bool of shape (n_features,)
        Whether a sample with a missing value shares these leaves too.
    categories : dict of int to str
        For features with categorical splits, a text with the categories for which the samples share
        these leaves, if the model provides them.
    partings : Partings
        The splits that separate the samples in the other trees.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import explain_pair
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(10, random_state=0), "kerf").fit(X, y)
    >>> explained = explain_pair(prox, 0, 1)
    >>> explained.bits.shape, bool(explained.shares.sum().round(6) == 1)
    ((4,), True)
    """

    a: str
    b: str
    proximity: float | None
    n_trees: int
    trees: npt.NDArray[np.int64]
    tree_shares: Doubles
    feature_names: Array
    bits: Doubles
    low: Doubles
    high: Doubles
    missing_stays: npt.NDArray[np.bool_]
    categories: dict[int, str]
    partings: Partings

    @property
    def shares(self) -> Doubles:
        """Share of each feature in the bits, shape (n_features,)."""
        total = self.bits.sum()
        return self.bits / total if total > 0 else np.zeros_like(self.bits)

    @property
    def parted_in(self) -> npt.NDArray[np.int64]:
        """Number of trees in which each feature separates the samples, shape (n_features,)."""
        return np.bincount(self.partings.features, minlength=len(self.bits)).astype(np.int64)

    def to_frame(self) -> Any:
        """Return the results for each feature as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each feature that occurs on a common path or separates the samples, the
            largest share first. ``parted_in`` is the number of trees in which the feature separates
            them, ``parted_at`` is the median threshold, and ``parted_among`` is the mean share of
            the training samples that reach the split.
        """
        pandas = require("pandas", extra="cli")
        met = [self._parted_at(f) for f in range(len(self.bits))]
        table = pandas.DataFrame(
            {
                "share": self.shares,
                "bits": self.bits,
                "low": self.low,
                "high": self.high,
                "missing_stays": self.missing_stays,
                "categories": [self.categories.get(f, "") for f in range(len(self.bits))],
                "parted_in": self.parted_in,
                "parted_at": [threshold for threshold, _ in met],
                "parted_among": [share for _, share in met],
            },
            index=pandas.Index(self.feature_names, name="feature"),
        )
        return table.iloc[[f for f in self._order() if self._is_met(f)]]

    def __str__(self) -> str:
        lines = [self._headline()]
        deciding = [f for f in self._order() if self.bits[f] > 0]
        if deciding:
            lines.append("Features that keep them together, and their range of values:")
            names = _columns([self.feature_names[f] for f in deciding[:_NAMED]])
            for f, name in zip(deciding, names, strict=False):
                interval = self.categories.get(f) or _interval(self.low[f], self.high[f])
                lines.append(f"  {self.shares[f]:6.1%}  {name}  {interval}")
            lines += _others(len(deciding) - _NAMED)
        parting = [f for f in np.argsort(-self.parted_in, kind="stable") if self.parted_in[f]]
        if parting:
            trees = self._trees(len(self.partings.trees))
            lines.append(f"Features that separate them in {trees}:")
            names = _columns([self.feature_names[f] for f in parting[:_NAMED]])
            counts = _columns([str(self.parted_in[f]) for f in parting[:_NAMED]], right=True)
            for f, name, count in zip(parting, names, counts, strict=False):
                threshold, share = self._parted_at(f)
                at = (
                    "split by category"
                    if np.isnan(threshold)
                    else f"split at about {number(_plain(threshold))}"
                )
                reached = f"({share:.0%} of training rows reach this split)"
                trees = "tree " if count.strip() == "1" else "trees"
                lines.append(f"  {count} {trees}  {name}  {at} {reached}")
            lines += _others(len(parting) - _NAMED)
        return "\n".join(lines)

    __repr__ = __str__

    def _headline(self) -> str:
        pair = f"{self.a[0].upper()}{self.a[1:]} and {self.b}"
        if len(self.trees) == 0:
            text = f"{pair} share a leaf in none of {self.n_trees} trees"
        else:
            text = f"{pair} share a leaf in {len(self.trees)} of {self.n_trees} trees"
        counting = np.count_nonzero(self.tree_shares)
        if self.proximity is None:
            return f"{text}."
        if self.proximity == 0 and len(self.trees):
            return f"{text}, but all with weight 0. Their proximity is 0."
        some = (
            f" Only {counting} of these trees count with this scheme."
            if counting < len(self.trees)
            else ""
        )
        return f"{text}. Their proximity is {number(self.proximity)}.{some}"

    def _trees(self, count: int) -> str:
        if count == self.n_trees:
            return "all trees" if count > 1 else "the tree"
        return f"the other {count} trees" if count > 1 else "the other tree"

    def _order(self) -> list[int]:
        """Return the features sorted by bits, then by the number of trees that they separate."""
        return [int(f) for f in np.lexsort([-self.parted_in, -self.bits])]

    def _is_met(self, feature: int) -> bool:
        unbounded = self.low[feature] == -np.inf and self.high[feature] == np.inf
        return bool(self.bits[feature] or self.parted_in[feature] or not unbounded)

    def _parted_at(self, feature: int) -> tuple[float, float]:
        """Return the median threshold and the mean share of training samples at the splits."""
        here = self.partings.features == feature
        if not here.any():
            return np.nan, np.nan
        thresholds = self.partings.thresholds[here]
        known = thresholds[~np.isnan(thresholds)]
        at = float(np.median(known)) if len(known) else np.nan
        return at, float(self.partings.shares[here].mean())


def explain_pair(prox: ForestProximity, a: Any, b: Any) -> PairExplanation:
    """Explain why two samples are similar, and what separates them.

    Use it to see which features, and which ranges of their values, put two samples into the same
    leaves.

    If two samples share a leaf, they take the same path. Consider a split on this path, with n
    training samples at its node and n′ in the child. It has log₂(n / n′) bits, which count for the
    feature of the split. The bits of a path add up to log₂(n_root / n_leaf). The share of a feature
    is its share of the bits, where trees are weighted by their contribution to the proximity. Trees
    have equal weights if the proximity is zero or both samples are new. In each other tree, a
    single split separates the samples.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity of a forest whose splits can be read: from scikit-learn, LightGBM,
        XGBoost or CatBoost.
    a, b : label or {array-like, dataframe} of shape (1, n_features) or (n_features,)
        The samples. A training sample is given by its label in the index of the training data
        frame, or by its position. A new sample is given by its values.

    Returns
    -------
    PairExplanation
        Shares of features, ranges of values, and splits that separate the samples. Print it, or
        call its ``to_frame()``. For a pipeline, the features are those that reach the forest.

    Notes
    -----
    Nodes are counted with the training samples of ``prox``. An empty node counts as half a sample.
    Trees of scikit-learn, XGBoost and CatBoost compare values in single precision. A value that is
    within rounding of a limit may be on the other side.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import explain_pair
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(10, random_state=0), "kerf").fit(X, y)
    >>> explained = explain_pair(prox, 0, [5.0, 3.4, 1.5, 0.2])
    >>> len(explained.trees), explained.n_trees
    (10, 10)
    >>> round(float(explained.shares.sum()), 6)
    1.0
    """
    prox = check_similarity(prox, "explain_pair")
    trees, names = read_trees(prox, "explain_pair")
    first, second = _query(prox, a, "a"), _query(prox, b, "b")
    inside = Inside.of(prox)
    stats, leaf_a, leaf_b = inside.stats, first.leaf, second.leaf
    shared = np.flatnonzero(leaf_a == leaf_b)
    proximity, adds = _proximity(prox, first, second)
    adds = np.ones(len(shared)) if adds is None or not adds.any() else adds[shared]
    tree_shares = adds / adds.sum() if len(shared) else adds

    bits, box, parted = np.zeros(len(names)), Box.unbounded(len(names)), []
    weight_of = dict(zip(shared.tolist(), tree_shares, strict=True))
    for t, tree in enumerate(trees):
        begin, end = stats.leaf_offsets[t], stats.leaf_offsets[t + 1]
        paths = TreePaths.of(tree, stats.leaf_mass[begin:end])
        here, there = int(leaf_a[t] - begin), int(leaf_b[t] - begin)
        if t in weight_of:
            bits += weight_of[t] * paths.bits_by_feature(np.array([here]), len(names))[0]
            box.narrow(paths, here)
        else:
            node, depth = paths.parting(here, there)
            share = paths.counts[node] / paths.counts[0]
            parted.append((t, tree.feature[node], tree.threshold[node], depth, share))
    box.low[box.by_category] = box.high[box.by_category] = np.nan
    return PairExplanation(
        a=first.label,
        b=second.label if proximity is not None else "another",
        proximity=proximity,
        n_trees=stats.n_trees,
        trees=shared.astype(np.int64),
        tree_shares=tree_shares,
        feature_names=names,
        bits=bits,
        low=box.low,
        high=box.high,
        missing_stays=box.missing,
        categories=_categories(box, inside.forest.categories()),
        partings=_partings(parted),
    )


def _query(prox: ForestProximity, sample: Any, name: str) -> Query:
    if is_row_label(prox, sample):
        return training_row(prox, sample, name)
    return new_sample(prox, sample, name)


def _proximity(
    prox: ForestProximity, first: Query, second: Query
) -> tuple[float | None, Doubles | None]:
    """Return the proximity of a pair and the contribution of each tree, or None for new samples."""
    query, column = (first, second.row) if second.row is not None else (second, first.row)
    if column is None:
        return None, None
    inside, rows = Inside.of(prox), np.array([column])
    kernel = inside.kernel
    if query.row == column and kernel.own_diagonal is not None:
        proximity = float(kernel.own_diagonal[column])
    else:
        proximity = float(inside.engine.rows(kernel.toward(query.product, rows)).sum())
    return proximity, shared_by_tree(query.product.query, kernel.reference.rows(rows))


def _partings(found: list[tuple[int, int, float, int, float]]) -> Partings:
    trees, features, thresholds, depths, shares = zip(*found, strict=True) if found else [()] * 5
    return Partings(
        np.array(trees, dtype=np.int64),
        np.array(features, dtype=np.int64),
        np.array(thresholds, dtype=np.float64),
        np.array(depths, dtype=np.int64),
        np.array(shares, dtype=np.float64),
    )


def _interval(low: float, high: float) -> str:
    if np.isnan(low):
        return "by category"
    if low == np.inf:
        return "missing"
    (start, has_start), (end, has_end) = _end(low, ROUND_FLOOR), _end(high, ROUND_CEILING)
    if low == -np.inf:
        return "any" if high == np.inf else f"{'below' if has_end else 'up to'} {end}"
    if high == np.inf:
        return f"{'from' if has_start else 'above'} {start}"
    return f"in {'[' if has_start else '('}{start}, {end}{')' if has_end else ']'}"


def _categories(box: Box, names: dict[int, list[Any]]) -> dict[int, str]:
    """Return a text with the allowed categories of each feature, by name or by code."""
    found = {}
    for f in sorted({*box.among, *box.beyond}):
        beyond = box.beyond.get(f, frozenset())
        if f in names:
            everything = frozenset(range(len(names[f])))
            codes = (box.among.get(f, everything) - beyond) & everything
            found[f] = f"is {_one_of([str(names[f][code]) for code in sorted(codes)])}"
        elif f in box.among:
            codes = box.among[f] - beyond
            found[f] = f"has code {_one_of([str(code) for code in sorted(codes)])}"
        else:
            found[f] = f"does not have code {_one_of([str(code) for code in sorted(beyond)])}"
    return found


def _one_of(names: list[str]) -> str:
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} others"]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "missing"


def _plain(value: float) -> float:
    return 0.0 if abs(value) < _NEARLY_ZERO else value


def _end(value: float, rounding: str) -> tuple[str, bool]:
    """Return a limit as text, and whether the text is the next value above the limit.

    Both samples must be inside of the written interval, so limits are rounded outward, unless trees
    cannot distinguish the two numbers. XGBoost compares with "less than", so its limits are just
    below the rounded numbers.
    """
    value = _plain(value)
    nearest = float(f"{value:.7g}")
    with np.errstate(over="ignore"):  # trees of some libraries compare doubles
        written = np.float32(nearest)
    is_above = np.isfinite(written) and float(written) > value
    if is_above and float(np.nextafter(written, np.float32(-np.inf))) <= value:
        return f"{nearest:.7g}", True
    if nearest < value if rounding == ROUND_CEILING else is_above:
        exact = Decimal(value)
        digit = Decimal(1).scaleb(exact.adjusted() - 6)
        nearest = float(exact.quantize(digit, rounding=rounding))
    return f"{nearest:.7g}", False


def _columns(texts: list[str], *, right: bool = False) -> list[str]:
    width = max(map(len, texts))
    return [text.rjust(width) if right else text.ljust(width) for text in texts]


def _others(count: int) -> list[str]:
    return [f"  and {count} other feature{'s' * (count > 1)}"] * (count > 0)
