"""From a scheme to weights in trees, and from those to sparse maps Q and W."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.schemes import Weighting, WeightScheme

INT32_MAX = np.iinfo(np.int32).max

# Rows of a map are made this many at a time, so that no (n, T) array of doubles ever exists.
_ROWS_AT_ONCE = 1 << 14


def query_weights(
    scheme: WeightScheme, samples: Samples, forest: ForestStats, dtype: np.dtype[Any]
) -> Weighting:
    """Return how samples weigh as queries."""
    weights = scheme.query(samples, forest)
    return check_weights(weights, samples, forest, scheme, "query").compact(dtype)


def reference_weights(
    scheme: WeightScheme, samples: Samples, forest: ForestStats, dtype: np.dtype[Any]
) -> Weighting:
    """Return how samples weigh as reference samples."""
    weights = scheme.reference(samples, forest)
    return check_weights(weights, samples, forest, scheme, "reference").compact(dtype)


def side_by_side(
    leaf: Array, first: Weighting, second: Weighting, dtype: np.dtype[Any]
) -> Weighting:
    """Return the weights of [A B]/√2 over 2T trees.

    With A = Q, B = W on the query side and A = W, B = Q on the reference side the product is
    ½[Q W][W Q]ᵀ = (Q Wᵀ + W Qᵀ)/2, so a symmetrised kernel is a product of two maps as well.
    """
    entry = np.empty((leaf.shape[0], 2 * leaf.shape[1]), dtype=dtype)
    entry[:, : leaf.shape[1]] = first.dense(leaf)
    entry[:, leaf.shape[1] :] = second.dense(leaf)
    return Weighting(scale=np.sqrt(0.5), by_entry=entry)


def leaf_map(leaf: Array, weighting: Weighting, n_leaves: int, dtype: np.dtype[Any]) -> csr_array:
    """Return the weights as a sparse map, shape (n, L): each sample's weights at its leaves."""
    # Leaf ids grow with the tree, so each row of `leaf` is sorted already: the rows of a CSR
    # matrix are the nonzero entries as they stand.
    offsets = np.zeros(len(leaf) + 1, dtype=np.int64)
    leaves, data = [], []
    for begin in range(0, len(leaf), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        weights = weighting.rows(rows).dense(leaf[rows]).astype(dtype)
        nonzero = weights != 0
        offsets[begin + 1 : begin + 1 + len(weights)] = np.count_nonzero(nonzero, axis=1)
        leaves.append(leaf[rows][nonzero])
        data.append(weights[nonzero])
    np.cumsum(offsets, out=offsets)
    index_type = np.int32 if max(offsets[-1], n_leaves) <= INT32_MAX else np.int64
    columns = np.concatenate(leaves) if leaves else np.zeros(0)
    matrix = csr_array(
        (
            np.concatenate(data) if data else np.zeros(0, dtype),
            columns.astype(index_type, copy=False),
            offsets.astype(index_type, copy=False),
        ),
        shape=(len(leaf), n_leaves),
    )
    matrix.has_canonical_format = True
    return matrix


def check_weights(
    weights: Any, samples: Samples, forest: ForestStats, scheme: WeightScheme, side: str
) -> Weighting:
    """Refuse weights that would make a wrong proximity, whoever wrote the scheme."""
    where = f"weight scheme {scheme.name!r} ({side})"
    if isinstance(weights, Weighting):
        factors = {
            "scale": (weights.scale, ()),
            "by_sample": (weights.by_sample, (samples.n_samples,)),
            "by_leaf": (weights.by_leaf, (forest.n_leaves,)),
            "by_entry": (weights.by_entry, samples.leaf.shape),
        }
        for name, (factor, shape) in factors.items():
            if factor is not None:
                _check_factor(np.asarray(factor), shape, f"{where}, {name},")
        return weights
    array = np.asarray(weights)
    _check_factor(array, samples.leaf.shape, where, "(n_samples, n_trees) = ")
    return Weighting(by_entry=array)


def _check_factor(array: Array, shape: tuple[int, ...], where: str, meaning: str = "") -> None:
    if array.dtype.kind not in "buif":
        raise TypeError(f"{where} must return real numbers; got dtype {array.dtype}.")
    if array.shape != shape:
        raise ValueError(
            f"{where} must return an array of shape {meaning}{shape}; got {array.shape}."
        )
    if array.dtype.kind in "bu":
        return  # nothing else can be wrong with them
    if np.isnan(array).any():
        raise ValueError(f"{where} returned NaN; leafkernel.schemes.ratio divides safely.")
    if np.isinf(array).any():
        raise ValueError(f"{where} returned infinite weights.")
    if (array < 0).any():
        raise ValueError(f"{where} returned negative weights; a proximity needs them >= 0.")
