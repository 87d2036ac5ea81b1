"""From weights to sparse maps: a scheme and samples give Q and W, and W gives the leaf index."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from leafkernel.leaf_index import Array, ForestStats, LeafIndex, Samples
from leafkernel.schemes import WeightScheme

INT32_MAX = np.iinfo(np.int32).max


def query_map(
    scheme: WeightScheme, samples: Samples, forest: ForestStats, dtype: np.dtype[Any]
) -> csr_array:
    """Return Q, shape (n, L): the query weights at each sample's leaves."""
    weights = scheme.query(samples, forest)
    return _leaf_map(samples, check_weights(weights, samples, scheme, "query"), forest, dtype)


def reference_map(
    scheme: WeightScheme, samples: Samples, forest: ForestStats, dtype: np.dtype[Any]
) -> csr_array:
    """Return W, shape (n, L): the reference weights at each sample's leaves."""
    weights = scheme.reference(samples, forest)
    return _leaf_map(samples, check_weights(weights, samples, scheme, "reference"), forest, dtype)


def symmetrized(first: csr_array, second: csr_array) -> csr_array:
    """Return [A B]/√2, shape (n, 2L).

    With A = Q, B = W on the query side and A = W, B = Q on the reference side the product is
    ½[Q W][W Q]ᵀ = (Q Wᵀ + W Qᵀ)/2, so a symmetrised kernel is a product of two maps as well.
    """
    stacked = csr_array(hstack([first, second], format="csr"))
    stacked.data *= np.sqrt(0.5, dtype=stacked.dtype)
    return stacked


def index_by_leaf(reference: csr_array, order: Array) -> LeafIndex:
    """Return the reference map W listed by leaf, samples at their places in the order."""
    by_leaf = reference[order].tocsc()
    return LeafIndex(
        offsets=by_leaf.indptr.astype(np.int64, copy=False),
        members=by_leaf.indices.astype(np.int32, copy=False),
        weights=by_leaf.data,
        sample_at=np.ascontiguousarray(order, dtype=np.int32),
    )


def transposed_map(index: LeafIndex) -> csr_array:
    """Return Wᵀ, shape (L, n)."""
    shape = (len(index.offsets) - 1, index.n_samples)
    return csr_array((index.weights, index.sample_at[index.members], index.offsets), shape=shape)


def check_weights(weights: Any, samples: Samples, scheme: WeightScheme, side: str) -> Array:
    """Refuse weights that would make a wrong proximity, whoever wrote the scheme."""
    where = f"weight scheme {scheme.name!r} ({side})"
    array = np.asarray(weights)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{where} must return real numbers; got dtype {array.dtype}.")
    if array.shape != samples.leaf.shape:
        raise ValueError(
            f"{where} must return an array of shape (n_samples, n_trees) = {samples.leaf.shape}; "
            f"got {array.shape}."
        )
    if np.isnan(array).any():
        raise ValueError(f"{where} returned NaN; leafkernel.schemes.ratio divides safely.")
    if np.isinf(array).any():
        raise ValueError(f"{where} returned infinite weights.")
    if (array < 0).any():
        raise ValueError(f"{where} returned negative weights; a proximity needs them >= 0.")
    return array


def _leaf_map(
    samples: Samples, weights: Array, forest: ForestStats, dtype: np.dtype[Any]
) -> csr_array:
    # Leaf ids grow with the tree, so each row of `leaf` is sorted already: the rows of a CSR
    # matrix are the nonzero entries as they stand.
    nonzero = weights != 0
    offsets = np.zeros(samples.n_samples + 1, dtype=np.int64)
    np.cumsum(nonzero.sum(axis=1), out=offsets[1:])
    index_type = np.int32 if max(offsets[-1], forest.n_leaves) <= INT32_MAX else np.int64
    leaves = samples.leaf[nonzero].astype(index_type, copy=False)
    data = weights[nonzero].astype(dtype, copy=False)
    shape = (samples.n_samples, forest.n_leaves)
    matrix = csr_array((data, leaves, offsets.astype(index_type, copy=False)), shape=shape)
    matrix.has_canonical_format = True
    return matrix
