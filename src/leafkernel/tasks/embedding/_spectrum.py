"""Compute the largest eigenpairs of a symmetric operator without its matrix."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from leafkernel._validation import check_choice

Array = npt.NDArray[Any]
Apply = Callable[[Array], Array]

SOLVERS = ("auto", "arpack", "randomized", "dense")

# Up to this size, a dense decomposition is as fast as an iterative one.
_DENSE_ROWS = 500
# ARPACK takes 2 to 12 restarts for forests on real tables, and thousands if many eigenvalues are
# nearly equal. If _RESTARTS are not enough, a dense decomposition is faster up to this size.
_RESTARTS = 100
_DENSE_ROWS_AT_LAST = 4096
# For missed eigenpairs: how many to search at once, the tolerance of the first search, and the
# relative tolerance for equal eigenvalues.
_MISSED_AT_ONCE = 4
_ROUGH = 1e-3
_SAME = 1e-8
# Halko, Martinsson and Tropp, Finding structure with randomness, 2011: some additional vectors and
# power iterations make the leading pairs accurate.
_MORE_VECTORS = 10
_POWERS = 7


def top_eigenpairs(
    apply: Apply,
    n: int,
    k: int,
    *,
    solver: str = "auto",
    rough: bool = False,
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues in descending order, and their eigenvectors (n, k).

    Parameters
    ----------
    apply : callable
        Multiplies the operator by a block of vectors of shape (n, c).
    n : int
        Size of the operator.
    k : int
        Number of pairs, at most n.
    solver : {"auto", "arpack", "randomized", "dense"}
        "auto" is "dense" for small n or nearly all pairs, else "arpack". If ARPACK does not
        converge, the dense solver is used, or the randomized one with a warning.
    rough : bool
        Whether the randomized solver may stop early. This is enough for the start of a layout.
    random_state : int or RandomState
        Seed of the start vectors.

    Returns
    -------
    values : ndarray of shape (k,)
        Eigenvalues.
    vectors : ndarray of shape (n, k)
        Eigenvectors. The entry with the largest absolute value is positive.
    """
    check_choice("solver", solver, SOLVERS)
    rng = check_random_state(random_state)
    if solver == "auto":
        solver = "dense" if n <= _DENSE_ROWS or k > n // 2 else "arpack"
    if solver == "dense" or k >= n - 1:
        values, vectors = _dense(apply, n, k)
    elif solver == "arpack":
        try:
            values, vectors = _arpack(apply, n, k, rng)
        except ArpackNoConvergence:
            values, vectors = _without_arpack(apply, n, k, rng)
    else:
        values, vectors = _randomized(apply, n, k, rng, rough=rough)
    order = np.argsort(values)[::-1]
    return values[order], _with_fixed_signs(vectors[:, order])


def _dense(apply: Apply, n: int, k: int) -> tuple[Array, Array]:
    matrix = apply(np.eye(n))
    values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=(n - k, n - 1))
    return values, vectors


def _without_arpack(apply: Apply, n: int, k: int, rng: Any) -> tuple[Array, Array]:
    if n <= _DENSE_ROWS_AT_LAST:
        return _dense(apply, n, k)
    values, vectors = _randomized(apply, n, k, rng)
    warnings.warn(
        f"The solver ARPACK did not converge in {_RESTARTS} restarts, because the {k} largest of "
        f"{n:,} eigenvalues are too close to each other. The approximate result of the randomized "
        "solver is returned instead. Larger leaves (min_samples_leaf) may help. Use "
        "solver='randomized' to skip ARPACK.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return values, vectors


def _arpack(apply: Apply, n: int, k: int, rng: Any) -> tuple[Array, Array]:
    """Find the pairs with ARPACK, and then those that it missed.

    ARPACK starts from a single vector, so it finds only one direction of each eigenspace. It misses
    equal eigenvalues, which occur if the graph of similarities is not connected. The missed pairs
    are the largest ones after projecting out the pairs that were found.
    """
    values, vectors = _largest(apply, n, k, rng)
    while True:
        found = vectors

        def rest(V: Array, found: Array = found) -> Array:
            V = V - found @ (found.T @ V)
            out = apply(V)
            return np.asarray(out - found @ (found.T @ out))

        least = values.min() + _SAME * np.abs(values).max()
        # Approximate eigenvalues are never too large, so a rough search is enough here.
        if _largest(rest, n, 1, rng, tolerance=_ROUGH)[0][0] <= least:
            return values, vectors
        more, others = _largest(rest, n, min(k, _MISSED_AT_ONCE), rng)
        missed = more > least
        basis = qr(np.hstack([vectors, others[:, missed]]), mode="economic")[0]
        values, vectors = _within(apply, basis, k)


def _largest(
    apply: Apply, n: int, k: int, rng: Any, *, tolerance: float = 1e-10
) -> tuple[Array, Array]:
    operator = LinearOperator(
        (n, n),
        matvec=lambda v: apply(v.reshape(-1, 1)).ravel(),
        matmat=apply,
        dtype=np.float64,
    )
    start = rng.uniform(-1, 1, n)
    values, vectors = eigsh(operator, k, which="LA", v0=start, tol=tolerance, maxiter=_RESTARTS)
    return values, vectors


def _within(apply: Apply, basis: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest pairs within the span of a basis (Rayleigh-Ritz)."""
    small = basis.T @ apply(basis)
    values, turn = eigh((small + small.T) / 2)
    return values[-k:], basis @ turn[:, -k:]


def _randomized(
    apply: Apply, n: int, k: int, rng: Any, *, rough: bool = False
) -> tuple[Array, Array]:
    more, powers = (2, 2) if rough else (_MORE_VECTORS, _POWERS)
    width = min(k + more, n)
    basis = qr(apply(rng.normal(size=(n, width))), mode="economic")[0]
    for _ in range(powers):
        basis = qr(apply(basis), mode="economic")[0]
    return _within(apply, basis, k)


def _with_fixed_signs(vectors: Array) -> Array:
    """Fix the sign of each vector: make the entry with the largest absolute value positive."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    turned: Array = vectors * np.where(signs == 0, 1.0, signs)
    return turned
