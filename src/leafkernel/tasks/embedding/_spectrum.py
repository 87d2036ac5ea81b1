"""The largest eigenpairs of a symmetric operator, without its matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state

Array = npt.NDArray[Any]
Apply = Callable[[Array], Array]

SOLVERS = ("auto", "arpack", "randomized", "dense")

# Up to here a dense decomposition takes no longer than an iterative one.
_DENSE_ROWS = 500
# Vectors are then accurate to half as many digits and more.
_ARPACK_TOLERANCE = 1e-10
# Halko, Martinsson and Tropp, Finding structure with randomness, 2011: a few vectors more, and a
# few powers, make the leading pairs accurate.
_MORE_VECTORS = 10
_POWERS = 7


def top_eigenpairs(
    apply: Apply, n: int, k: int, *, solver: str = "auto", random_state: Any = None
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues, falling, and their eigenvectors of shape (n, k).

    Parameters
    ----------
    apply : callable
        Multiplies the operator with a block of vectors of shape (n, c).
    n : int
        Size of the operator.
    k : int
        Number of pairs, at most n.
    solver : {"auto", "arpack", "randomized", "dense"}
        How. "auto" is dense for small n or nearly all pairs, else ARPACK.
    random_state : int or RandomState
        Seed of the first vectors.

    Returns
    -------
    values : ndarray of shape (k,)
        Eigenvalues.
    vectors : ndarray of shape (n, k)
        Eigenvectors, the entry of largest size in each positive.
    """
    rng = check_random_state(random_state)
    if solver == "auto":
        solver = "dense" if n <= _DENSE_ROWS or k > n // 2 else "arpack"
    if solver == "dense" or k >= n - 1:
        matrix = apply(np.eye(n))
        values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=(n - k, n - 1))
    elif solver == "arpack":
        operator = LinearOperator(
            (n, n),
            matvec=lambda v: apply(v.reshape(-1, 1)).ravel(),
            matmat=apply,
            dtype=np.float64,
        )
        start = rng.uniform(-1, 1, n)
        values, vectors = eigsh(operator, k, which="LA", v0=start, tol=_ARPACK_TOLERANCE)
    else:
        values, vectors = _randomized(apply, n, k, rng)
    order = np.argsort(values)[::-1]
    return values[order], _with_fixed_signs(vectors[:, order])


def _randomized(apply: Apply, n: int, k: int, rng: Any) -> tuple[Array, Array]:
    width = min(k + _MORE_VECTORS, n)
    basis = qr(apply(rng.normal(size=(n, width))), mode="economic")[0]
    for _ in range(_POWERS):
        basis = qr(apply(basis), mode="economic")[0]
    small = basis.T @ apply(basis)
    values, turn = eigh((small + small.T) / 2)
    return values[-k:], basis @ turn[:, -k:]


def _with_fixed_signs(vectors: Array) -> Array:
    """Turn each vector so that its entry of largest size is positive: signs mean nothing."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    turned: Array = vectors * np.where(signs == 0, 1.0, signs)
    return turned
