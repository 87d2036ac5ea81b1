"""Local importance: which features determine the neighbors of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._optional import require
from leafkernel._progress import track
from leafkernel._row_labels import index_of
from leafkernel._validation import check_choice, check_flag, check_values, warn
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_similarity, read_targets, targets_of
from leafkernel.tasks._paths import TreePaths, read_trees

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# Number of rows in a block, so that temporary arrays stay in cache.
_ROWS_AT_ONCE = 1 << 12


def local_importance(
    prox: ForestProximity,
    X: Any = None,
    *,
    y: Any = None,
    splits: str = "auto",
    normalize: bool = True,
    as_frame: bool = False,
) -> Any:
    r"""Return the importance of each feature for the similarities of each sample.

    Use it to see which features determine the neighbors of a single sample. Compare
    ``feature_importances_`` of a forest, which is a single number for each feature.

    Consider a split on the path of a sample, with n training samples at its node and n′ in the
    child. It has log₂(n / n′) bits, which count for the feature of the split. The importance of a
    feature is the mean of its bits over the trees, weighted by the total proximity of the sample in
    each tree:

    .. math:: \frac{\sum_t m_t(x)\, \mathrm{bits}_{t f}(x)}{\sum_t m_t(x)}, \qquad
              m_t(x) = q_t(x) \sum_{x' \in \ell_t(x)} w_t(x')

    The deep splits of fully grown trees are often on noise. By default, the bits of a split are
    therefore multiplied by the share of the target's variance that it explains beyond chance.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity of a forest whose splits can be read: from scikit-learn, LightGBM,
        XGBoost or CatBoost.
    X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
        Samples, treated as new data. If None, the training samples, compared using their
        out-of-bag trees if the scheme uses them.
    y : array-like of shape (n,), default=None
        Targets of the training samples. By default, those that ``prox`` was fitted on.
    splits : {"auto", "target", "all"}, default="auto"
        The weight of a split. "target" uses the share of the target's variance that the split
        explains at its node, minus the share that the best split on noise would explain,
        ln(n p) / n for n training samples and p features. "all" gives all splits the same weight,
        so that the bits of a path add up to log₂(n_root / n_leaf). "auto" is "target", or "all" if
        there are no targets.
    normalize : bool, default=True
        Whether to divide each row by its sum. Otherwise the importances are in bits.
    as_frame : bool, default=False
        Whether to return a pandas data frame, with feature names as columns and the labels of the
        samples as the index.

    Returns
    -------
    ndarray of float64 of shape (m, n_features), or pandas.DataFrame
        The importances. For a pipeline, the features are those that reach the forest. A row is NaN,
        with a warning, if the sample has no proximity. It is zero if no split has a positive
        weight.

    Notes
    -----
    A training sample is never its own neighbor here, whatever ``diagonal`` is. For "oob", the
    weights are those before the division by shared counts. Nodes are counted with the training
    samples of ``prox``. An empty node counts as half a sample.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import local_importance
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(100, random_state=0)).fit(X, y)
    >>> local_importance(prox, X[:2]).shape
    (2, 4)
    """
    prox = check_similarity(prox, "local_importance")
    check_choice("splits", splits, ("auto", "target", "all"))
    check_flag("normalize", normalize)
    check_flag("as_frame", as_frame)
    target = None
    if splits == "target" or (splits == "auto" and (y is not None or prox.y_ is not None)):
        target = _standardized(prox, y)
    trees, names = read_trees(prox, "local_importance")
    inside = Inside.of(prox)
    kernel, stats = inside.kernel, inside.stats
    samples = inside.route_if_given(X)
    query = kernel.query if samples is None else kernel.queries(samples)
    leaf = (inside.samples if samples is None else samples).leaf
    total: Doubles = np.zeros((len(leaf), len(names)))
    mass: Doubles = np.zeros(len(leaf))
    for t, tree in track(enumerate(trees), "trees", stats.n_trees, enabled=prox.progress):
        begin, end = stats.leaf_offsets[t], stats.leaf_offsets[t + 1]
        weights = np.zeros(len(leaf))
        groups = kernel.coordinates.groups_of(t)
        for ours, theirs in zip(
            query.in_groups(groups), kernel.reference.in_groups(groups), strict=True
        ):
            in_leaf = np.bincount(theirs.leaf, theirs.weight, minlength=end - begin)[ours.leaf]
            # A training sample is not its own neighbor.
            others = in_leaf if samples is not None else in_leaf - theirs.weight
            weights += np.bincount(ours.row, ours.weight * others, minlength=len(leaf))
        mass += weights
        # Bits of leaves that no sample reaches are not needed.
        rows = np.flatnonzero(weights)
        reached = np.zeros(end - begin, dtype=bool)
        reached[leaf[rows, t] - begin] = True
        place = np.cumsum(reached) - 1
        paths = TreePaths.of(tree, stats.leaf_mass[begin:end])
        if target is not None:
            sums = _sums_in_leaves(target, inside.samples.leaf[:, t] - begin, end - begin)
            paths = paths.weighted(paths.explained(*sums, len(names)))
        bits = paths.bits_by_feature(np.flatnonzero(reached), len(names))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            total[some] += weights[some, None] * bits[place[leaf[some, t] - begin]]
    empty = mass == 0
    if empty.any():
        warn(
            f"{int(empty.sum())} of {len(mass)} samples have no proximity to any training sample. "
            "Their importances are NaN."
        )
    divisor = total.sum(axis=1) if normalize else mass
    divisor[divisor == 0] = 1
    total /= divisor[:, None]
    total[empty] = np.nan
    if not as_frame:
        return total
    index = prox.index_ if X is None else index_of(X, len(total))
    return require("pandas", extra="cli").DataFrame(total, columns=names, index=index)


def _standardized(prox: ForestProximity, y: Any) -> Doubles:
    """Return the targets as numbers: class indicators, or standardized columns."""
    targets = np.asarray(targets_of(prox, y))
    if targets.ndim == 2 and targets.shape[1] > 1:
        values = check_values(targets, prox.n_samples_fit_)
    else:
        values = read_targets(prox, y).numbers()
        if values.shape[1] > 1:
            return values
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _sums_in_leaves(target: Doubles, leaf: Array, n_leaves: int) -> tuple[Doubles, Doubles]:
    """Return the sums of the targets and of their squares in each leaf."""
    columns = [np.bincount(leaf, column, minlength=n_leaves) for column in target.T]
    squares = np.asarray(np.bincount(leaf, (target**2).sum(axis=1), minlength=n_leaves))
    return np.column_stack(columns), squares.astype(np.float64)
