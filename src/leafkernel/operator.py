"""P as a linear operator: products with vectors through the maps, without P."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

Array = npt.NDArray[Any]


class ProximityOperator(LinearOperator):
    """P v = Q (Wᵀ v) + d ∘ v in O((m + n) T), and its adjoint.

    Parameters
    ----------
    query : csr_array of shape (m, L)
        The query map Q.
    reference_t : csr_array of shape (L, n)
        The transposed reference map Wᵀ.
    diagonal_shift : ndarray of shape (n,), optional
        d: what the diagonal policy adds to the diagonal of Q Wᵀ.
    """

    def __init__(
        self, query: csr_array, reference_t: csr_array, diagonal_shift: Array | None = None
    ) -> None:
        self.query = query
        self.reference_t = reference_t
        self.diagonal_shift = diagonal_shift
        super().__init__(dtype=query.dtype, shape=(query.shape[0], reference_t.shape[1]))

    def _matmat(self, V: Array) -> Array:
        out: Array = self.query @ (self.reference_t @ V)
        return out if self.diagonal_shift is None else out + self.diagonal_shift[:, None] * V

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _rmatmat(self, V: Array) -> Array:
        out: Array = self.reference_t.T @ (self.query.T @ V)
        return out if self.diagonal_shift is None else out + self.diagonal_shift[:, None] * V

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(v.reshape(-1, 1)).ravel()

    def _adjoint(self) -> LinearOperator:
        return ProximityOperator(
            csr_array(self.reference_t.T.tocsr()),
            csr_array(self.query.T.tocsr()),
            self.diagonal_shift,
        )


def diagonal_of(query: csr_array, reference: csr_array) -> Array:
    """Return the diagonal of Q Wᵀ, shape (n,), in float64."""
    return np.asarray((query.astype(np.float64) * reference.astype(np.float64)).sum(axis=1)).ravel()
