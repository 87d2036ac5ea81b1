"""The largest eigenpairs of a symmetric operator, without its matrix."""

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

# Up to here a dense decomposition takes no longer than an iterative one.
_DENSE_ROWS = 500
# ARPACK takes 2 to 12 restarts on forests of real tables, and thousands where many eigenvalues are
# nearly equal. Where this many do not do, a dense decomposition is faster up to so many rows.
_RESTARTS = 100
_DENSE_ROWS_AT_LAST = 4096
# How many missed pairs are looked for at once, how roughly one is at first, and what is the same
# eigenvalue.
_MISSED_AT_ONCE = 4
_ROUGH = 1e-3
_SAME = 1e-8
# Halko, Martinsson and Tropp, Finding structure with randomness, 2011: a few vectors more, and a
# few powers, make the leading pairs accurate.
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
        How. "auto" is dense for small n or nearly all pairs, else ARPACK. Where ARPACK cannot tell
        the pairs apart, it gives way to a dense solver, or to the randomised one with a warning.
    rough : bool
        Whether the randomized solver may stop early. That does for the start of a layout, which
        moves all points anyway.
    random_state : int or RandomState
        Seed of the first vectors.

    Returns
    -------
    values : ndarray of shape (k,)
        Eigenvalues.
    vectors : ndarray of shape (n, k)
        Eigenvectors, the entry of largest size in each positive.
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
        f"the {k} largest of {n:,} eigenvalues are too close to each other to be told apart in "
        f"{_RESTARTS} restarts of ARPACK: the randomised solver's are given, which are not exact. "
        "No few directions stand out in this similarity; larger leaves would make some. "
        "solver='randomized' skips the attempt",
        ConvergenceWarning,
        stacklevel=2,
    )
    return values, vectors


def _arpack(apply: Apply, n: int, k: int, rng: Any) -> tuple[Array, Array]:
    """Find the pairs by ARPACK, and then those that it missed.

    It starts from one vector, which in each eigenspace sees one direction alone: of equal
    eigenvalues (a similarity that falls into parts has one for each part) some are lost. They are
    the largest of what is left when all that was found is taken out.
    """
    values, vectors = _largest(apply, n, k, rng)
    while True:
        found = vectors

        def rest(V: Array, found: Array = found) -> Array:
            V = V - found @ (found.T @ V)
            out = apply(V)
            return np.asarray(out - found @ (found.T @ out))

        least = values.min() + _SAME * np.abs(values).max()
        # What is found is never too large, so a rough search is enough to know.
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
    """Turn each vector so that its entry of largest size is positive: signs mean nothing."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    turned: Array = vectors * np.where(signs == 0, 1.0, signs)
    return turned
