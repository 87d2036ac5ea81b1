"""Compute the weights of a scheme, and the sparse maps Q and W."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from leafkernel._validation import refuse_masked
from leafkernel.incidence import Incidence, WeighedRows
from leafkernel.leaf_index import Array, ForestStats, Samples
from leafkernel.schemes import Weighting, WeightScheme

INT32_MAX = np.iinfo(np.int32).max

# Number of rows to compute at a time, to avoid an (n, T) array of float64.
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class LeafFactor:
    """A factor for each leaf that was already checked.

    Attributes
    ----------
    given : ndarray of shape (L,)
        The array returned by the scheme.
    taken : ndarray of float64 of shape (L,)
        The same numbers in the form for the engines.
    """

    given: Array
    taken: Array


def weigh(
    scheme: WeightScheme,
    side: Literal["query", "reference"],
    samples: Samples,
    forest: ForestStats,
    dtype: np.dtype[Any],
    known: LeafFactor | None = None,
) -> tuple[Weighting, LeafFactor | None]:
    """Return the weights of samples on one side, and their leaf factor.

    If the scheme returns the same array as before (``known``), it is not checked again. It may have
    millions of entries, even if there are few samples.
    """
    given = getattr(scheme, side)(samples, forest)
    if (
        known is not None
        and isinstance(given, Weighting)
        and given.by_leaf is known.given
        and (given.by_entry is None or given.by_entry.dtype in (np.bool_, np.uint8))
    ):
        others = replace(given, by_leaf=None)
        taken = _take_weights(others, samples, forest, scheme, side, dtype)
        return replace(taken, by_leaf=known.taken), known
    taken = _take_weights(given, samples, forest, scheme, side, dtype)
    known = None
    if isinstance(given, Weighting) and given.by_leaf is not None and taken.by_leaf is not None:
        # Reuse the factor only if it was not rescaled and cannot change.
        is_same = given.by_leaf is taken.by_leaf or (
            not given.by_leaf.flags.writeable and np.array_equal(given.by_leaf, taken.by_leaf)
        )
        known = LeafFactor(given.by_leaf, taken.by_leaf) if is_same else None
    return taken, known


def check_symmetric(scheme: WeightScheme, samples: Samples, forest: ForestStats) -> None:
    """Raise an error if a scheme has ``symmetric=True`` but different reference weights.

    A symmetric kernel uses the query weights on both sides and would ignore them.
    """
    has_own = getattr(scheme.reference, "__func__", None) is not WeightScheme.reference
    if not has_own or type(scheme).__module__.startswith("leafkernel."):
        return
    incidence = samples.incidence_in(forest.coordinates)
    sides = [
        WeighedRows(incidence, weigh(scheme, side, samples, forest, np.dtype(np.float64))[0])
        for side in ("query", "reference")
    ]
    for begin in range(0, samples.n_samples, _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        asks, lends = (side.dense(rows) for side in sides)
        if not np.allclose(asks, lends, rtol=1e-6, atol=0):
            raise ValueError(
                f"weight scheme {scheme.name!r} has symmetric=True, but its reference() and "
                "query() return different weights. Remove symmetric=True or reference()."
            )


def side_by_side(
    first: WeighedRows, second: WeighedRows, both: Incidence, dtype: np.dtype[Any]
) -> WeighedRows:
    """Return the rows of [A B]/√2, on twice the columns.

    With A = Q, B = W for the queries and A = W, B = Q for the references, the product is
    ½[Q W][W Q]ᵀ = (Q Wᵀ + W Qᵀ)/2. A symmetrized kernel is therefore also a product of two maps.
    """
    entries = first.incidence.beside(first.dense(), second.dense())
    return WeighedRows(both, Weighting(scale=np.sqrt(0.5), by_entry=entries).compact(dtype))


def leaf_map(rows: WeighedRows, dtype: np.dtype[Any]) -> csr_array:
    """Return the weights as a sparse matrix, with the weights of each row in its columns."""
    # The columns of each row are already ascending, so the nonzero entries form a CSR matrix.
    incidence, n_rows = rows.incidence, rows.n_rows
    n_columns = incidence.coordinates.n_columns
    offsets = np.zeros(n_rows + 1, dtype=np.int64)
    columns, data = [], []
    for begin in range(0, n_rows, _ROWS_AT_ONCE):
        some = slice(begin, min(begin + _ROWS_AT_ONCE, n_rows))
        exact = rows.dense(some)
        if np.max(np.abs(exact), initial=0) > np.finfo(dtype).max:
            raise OverflowError(f"A weight is too large for {dtype}. Use dtype=np.float64.")
        weights = exact.astype(dtype)
        nonzero = weights != 0
        places = incidence.entries(some)
        if incidence.offsets is None:
            counts = np.count_nonzero(nonzero, axis=1)
        else:
            row = incidence.row_of_entry[places][nonzero]
            counts = np.bincount(row - begin, minlength=some.stop - begin)
        offsets[begin + 1 : some.stop + 1] = counts
        columns.append(incidence.columns[places][nonzero])
        data.append(weights[nonzero])
    np.cumsum(offsets, out=offsets)
    index_type = np.int32 if max(offsets[-1], n_columns) <= INT32_MAX else np.int64
    matrix = csr_array(
        (
            np.concatenate(data) if data else np.zeros(0, dtype),
            (np.concatenate(columns) if data else np.zeros(0)).astype(index_type, copy=False),
            offsets.astype(index_type, copy=False),
        ),
        shape=(n_rows, n_columns),
    )
    matrix.has_canonical_format = True
    return matrix


def _take_weights(
    given: Any,
    samples: Samples,
    forest: ForestStats,
    scheme: WeightScheme,
    side: str,
    dtype: np.dtype[Any],
) -> Weighting:
    """Return a checked copy of the weights of a scheme, in the form for the engines."""
    where = f"weight scheme {scheme.name!r} ({side})"
    checked = _check_weights(given, samples, forest, where, signed=scheme.signed)
    owned = (samples.in_bag_weights, samples.oob_flags)
    try:
        return checked.compact(dtype, samples.leaf, owned=owned)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _check_weights(
    weights: Any, samples: Samples, forest: ForestStats, where: str, *, signed: bool
) -> Weighting:
    """Raise an error for invalid weights of a scheme."""
    if isinstance(weights, Weighting):
        factors = {
            "scale": (weights.scale, ()),
            "by_sample": (weights.by_sample, (samples.n_samples,)),
            "by_leaf": (weights.by_leaf, (forest.n_leaves,)),
            "by_entry": (weights.by_entry, samples.leaf.shape),
        }
        for name, (factor, shape) in factors.items():
            if factor is not None:
                _check_factor(factor, shape, f"{where}, {name},", signed=signed)
        return weights
    _check_factor(weights, samples.leaf.shape, where, "(n_samples, n_trees) = ", signed=signed)
    return Weighting(by_entry=np.asarray(weights))


def _check_factor(
    factor: Any, shape: tuple[int, ...], where: str, meaning: str = "", *, signed: bool
) -> None:
    refuse_masked(where, factor)
    array = np.asarray(factor)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{where} must return real numbers; got dtype {array.dtype}.")
    if array.shape != shape:
        raise ValueError(
            f"{where} must return an array of shape {meaning}{shape}; got {array.shape}."
        )
    if array.dtype.kind in "bu":
        return  # always finite and nonnegative
    # Two passes without temporary arrays, because there may be millions of leaves.
    low, high = np.min(array, initial=0), np.max(array, initial=0)
    if np.isnan(low):
        raise ValueError(
            f"{where} returned NaN. Use leafkernel.schemes.ratio to avoid division by zero."
        )
    if max(-low, high) > np.finfo(np.float64).max:
        raise ValueError(f"{where} returned weights that are infinite or too large for float64.")
    if not signed and low < 0:
        raise ValueError(
            f"{where} returned negative weights. Return nonnegative weights, or set signed = True "
            "in the scheme."
        )
