"""Query rows that have equal rows of P: one is computed for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

import leafkernel._native as core
from leafkernel.product import Product

_FEW = 4096  # rows for which looking for twins is not worth it
_MOST_DISTINCT = 0.75  # with a larger share of distinct rows, copying saves little
_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Twins:
    """The distinct rows of a product, and which of them each row is equal to.

    Attributes
    ----------
    product : Product
        The distinct rows. They are nobody's own rows.
    twin : ndarray of int64 of shape (m,)
        The distinct row that each row is equal to.
    """

    product: Product
    twin: npt.NDArray[np.int64]

    @classmethod
    def of(cls, product: Product, n_threads: int) -> Twins | None:
        """Find the twins of a product; None where they are few, or its rows cannot have any.

        Rows with weights of their own, a diagonal or out-of-bag counts are hardly ever equal.
        """
        query = product.query
        is_plain = query.weights is None and query.incidence.offsets is None
        if product.n_rows < _FEW or not is_plain or product.query_oob is not None:
            return None
        if product.diagonal is not None:
            return None
        first = core.twins(query, n_threads)
        is_first = first == np.arange(len(first))
        if np.count_nonzero(is_first) > _MOST_DISTINCT * len(first):
            return None
        distinct = replace(product.take(np.flatnonzero(is_first)), own=None)
        order = distinct.query.incidence.locality_order()
        return cls(replace(distinct, row_order=order), (np.cumsum(is_first) - 1)[first])

    def n_entries(self, matrix: csr_array) -> int:
        """Return how many entries the rows of all have, given those of the distinct rows."""
        return int(np.diff(matrix.indptr)[self.twin].sum())

    def rows(self, matrix: csr_array, n_threads: int, *, wide_indices: bool) -> csr_array:
        """Return the rows of all, given those of the distinct rows."""
        wide = wide_indices or self.n_entries(matrix) > _INT32_MAX
        kind = np.dtype(np.int64 if wide else np.int32)
        columns, offsets = (a.astype(kind, copy=False) for a in (matrix.indices, matrix.indptr))
        arrays = core.repeat_rows(matrix.data, columns, offsets, self.twin, n_threads)
        return csr_array(arrays, shape=(len(self.twin), matrix.shape[1]))

    def nearest(
        self, found: tuple[npt.NDArray[Any], npt.NDArray[np.int64]], own: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the nearest of all, given one more for each distinct row.

        Parameters
        ----------
        found : tuple of ndarray of shape (d, k + 1)
            Similarities and samples of the distinct rows.
        own : ndarray of shape (m,) or None
            The sample that each row is, which is left out; -1 where it is none.
        """
        similarity, samples = (array[self.twin] for array in found)
        keep = samples != (-1 if own is None else own[:, None])
        keep[keep.all(axis=1), -1] = False
        shape = len(samples), samples.shape[1] - 1
        return similarity[keep].reshape(shape), samples[keep].reshape(shape)
