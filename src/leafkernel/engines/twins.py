"""Query rows with equal rows of P, which are computed only once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

import leafkernel._native as core
from leafkernel.product import Product

_FEW = 4096  # with fewer rows, searching for equal rows does not pay off
_MOST_DISTINCT = 0.75  # with a larger fraction of distinct rows, copying saves little
_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Twins:
    """The distinct rows of a product, and the distinct row that equals each row.

    Attributes
    ----------
    product : Product
        The distinct rows. They have no own samples.
    twin : ndarray of int64 of shape (m,)
        The distinct row that equals each row.
    """

    product: Product
    twin: npt.NDArray[np.int64]

    @classmethod
    def of(cls, product: Product, n_threads: int) -> Twins | None:
        """Find equal rows of a product. Return None if there are few or none.

        Rows with individual weights, a diagonal or out-of-bag counts are hardly ever equal.
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
        """Return the number of entries of all rows, given the distinct rows."""
        return int(np.diff(matrix.indptr)[self.twin].sum())

    def rows(self, matrix: csr_array, n_threads: int, *, wide_indices: bool) -> csr_array:
        """Return all rows, given the distinct rows."""
        wide = wide_indices or self.n_entries(matrix) > _INT32_MAX
        kind = np.dtype(np.int64 if wide else np.int32)
        columns, offsets = (a.astype(kind, copy=False) for a in (matrix.indices, matrix.indptr))
        arrays = core.repeat_rows(matrix.data, columns, offsets, self.twin, n_threads)
        return csr_array(arrays, shape=(len(self.twin), matrix.shape[1]))

    def nearest(
        self, found: tuple[npt.NDArray[Any], npt.NDArray[np.int64]], own: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k nearest samples of all rows, given the k + 1 nearest of each distinct row.

        Parameters
        ----------
        found : tuple of ndarray of shape (d, k + 1)
            Similarities and samples of the distinct rows.
        own : ndarray of shape (m,) or None
            The own sample of each row, which is excluded, or -1.
        """
        similarity, samples = (array[self.twin] for array in found)
        keep = samples != (-1 if own is None else own[:, None])
        keep[keep.all(axis=1), -1] = False
        shape = len(samples), samples.shape[1] - 1
        return similarity[keep].reshape(shape), samples[keep].reshape(shape)
