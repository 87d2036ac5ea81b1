"""P as a linear operator, without building the matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from leafkernel.engines import Engine
from leafkernel.product import Product

Array = npt.NDArray[Any]


class ProximityOperator(LinearOperator):
    """The operator P V = Q (Wᵀ V) + d ∘ V and its adjoint, in O((m + n) T) for each column of V.

    Sums are computed in float64. The result has the dtype of ``P @ V`` in NumPy.

    Parameters
    ----------
    engine : Engine
        The engine.
    product : Product
        Q and W.
    transpose : callable
        Returns the product for Pᵀ. Called once, when the adjoint is first used.
    diagonal_shift : ndarray of shape (n,), optional
        d: the difference between the set diagonal and that of Q Wᵀ.
    """

    def __init__(
        self,
        engine: Engine,
        product: Product,
        transpose: Callable[[], Product],
        diagonal_shift: Array | None = None,
    ) -> None:
        self.engine = engine
        self.product = product
        self.diagonal_shift = diagonal_shift
        self._make_transposed = transpose
        self._transposed: Product | None = None
        super().__init__(dtype=product.dtype, shape=product.shape)

    def _matmat(self, V: Array) -> Array:
        return self._times(self.product, V)

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _rmatmat(self, V: Array) -> Array:
        return self._times(self._transposed_product(), V)

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(v.reshape(-1, 1)).ravel()

    def _adjoint(self) -> LinearOperator:
        return ProximityOperator(
            self.engine, self._transposed_product(), lambda: self.product, self.diagonal_shift
        )

    def _transpose(self) -> LinearOperator:
        return self._adjoint()  # P is real

    def _transposed_product(self) -> Product:
        if self._transposed is None:
            self._transposed = self._make_transposed()
        return self._transposed

    def _times(self, product: Product, V: Array) -> Array:
        if np.iscomplexobj(V):
            return self._times(product, V.real) + 1j * self._times(product, V.imag)
        dtype = np.result_type(self.dtype, V.dtype)
        # The sums of each leaf are kept in a type that preserves the precision of V.
        kept = np.dtype(np.float32 if dtype == np.float32 else np.float64)
        in_double = V.astype(np.float64)
        out: Array = self.engine.apply(product.with_dtype(kept), in_double)
        if kept == np.float32 and not np.isfinite(out).all():  # the sum of a leaf overflowed
            out = self.engine.apply(product.with_dtype(np.float64), in_double)
        if self.diagonal_shift is not None:
            out += self.diagonal_shift[:, None] * V
        limit = np.finfo(dtype).max
        if not (np.abs(out) <= limit).all() and np.isfinite(in_double).all():
            raise OverflowError(f"A product with P is too large for {dtype}. Use smaller numbers.")
        return out.astype(dtype, copy=False)
