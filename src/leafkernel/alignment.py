r"""Centered alignment of the kernels of trees with the targets.

The kernel of tree t is :math:`K_t(i, j) = z_t(i)\, z_t(j)\, [\ell_t(i) = \ell_t(j)]`, with flags z
for the samples that count in the tree. H = I - 11ᵀ/n centers a kernel. Y contains the centered
targets: a column of indicators for each class, or one column of numbers. With tree weights μ,
:math:`K_\mu = \sum_t \mu_t K_t`. Its alignment with the targets is the cosine

.. math:: \rho(\mu) = \frac{\langle H K_\mu H,\, Y Y^\top \rangle}
          {\lVert H K_\mu H \rVert\, \lVert Y Y^\top \rVert}
          = \frac{a^\top \mu}{\sqrt{\mu^\top M \mu}\, \lVert Y Y^\top \rVert}, \qquad
          M_{st} = \langle H K_s H,\, H K_t H \rangle, \quad
          a_t = \langle H K_t H,\, Y Y^\top \rangle

Nonnegative weights with the largest alignment minimize :math:`\mu^\top M \mu - 2 a^\top \mu`, up to
their scale (Cortes, Mohri, Rostamizadeh, "Algorithms for learning kernels based on centered
alignment", JMLR 13, 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

import leafkernel._native as core
from leafkernel.incidence import Coordinates, Incidence, WeighedRows
from leafkernel.leaf_sums import leaf_sums, rows_by_class, standardized
from leafkernel.weighting import Weighting

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

# Eigenvalues of M below this share of the largest one are rounding errors.
_ROUNDING = 1e-13
# Smallest pivot of a matrix with ones on its diagonal that is not treated as singular.
_SINGULAR = 1e-5
# Steps of the pivoting, and steps without progress before it changes one entry at a time.
_MOST_STEPS = 100
_CHANCES = 3


@dataclass(frozen=True)
class TreeSamples:
    """Samples in the leaves of trees, with their targets.

    Attributes
    ----------
    leaf : ndarray of shape (n, T)
        Global id of the leaf of each sample in each tree.
    leaf_offsets : ndarray of int64 of shape (T + 1,)
        First leaf id of each tree, followed by the number of leaves.
    flags : ndarray of bool of shape (n, T) or None
        Whether a sample counts in a tree. None means that all do.
    targets : ndarray of shape (n,)
        Class indices (integers) or numbers (float64).
    """

    leaf: Array
    leaf_offsets: Array
    flags: Array | None
    targets: Array

    def rows(self, rows: Array) -> TreeSamples:
        """Return selected samples."""
        flags = None if self.flags is None else self.flags[rows]
        return TreeSamples(self.leaf[rows], self.leaf_offsets, flags, self.targets[rows])


@dataclass(frozen=True)
class Alignment:
    """Inner products of the centered kernels of trees and the targets.

    Attributes
    ----------
    products : ndarray of shape (T, T)
        M: the inner products of the centered kernels.
    with_targets : ndarray of shape (T,)
        a: the inner products of the centered kernels with YYᵀ.
    target_norm : float
        The norm of YYᵀ.
    """

    products: Doubles
    with_targets: Doubles
    target_norm: float

    @classmethod
    def of(cls, samples: TreeSamples, *, n_threads: int = 1) -> Alignment:
        """Compute the inner products from leaf counts and leaf sums, without any kernel."""
        coordinates = Coordinates.of_leaves(samples.leaf_offsets)
        incidence = Incidence.of(samples.leaf, coordinates, n_threads=n_threads)
        flags = None if samples.flags is None else np.ascontiguousarray(samples.flags, dtype=bool)
        rows = WeighedRows(incidence, Weighting(by_entry=flags))
        products = core.centered_tree_products(rows, n_threads)
        return cls(products, *_with_targets(samples))

    def weights(self) -> Doubles:
        """Return the nonnegative tree weights with the largest alignment. They sum to one.

        If no kernel is aligned with the targets, all weights are equal.
        """
        n_trees = len(self.with_targets)
        norms = np.sqrt(np.maximum(self.products.diagonal(), 0.0))
        # A tree that does not separate any samples has a centered kernel of zeros.
        useful = np.flatnonzero(norms > 1e-9 * norms.max(initial=0.0))
        found: Doubles = np.zeros(n_trees)
        if useful.size:
            norms = norms[useful]
            cosines = self.products[np.ix_(useful, useful)] / np.outer(norms, norms)
            found[useful] = _nonnegative(cosines, self.with_targets[useful] / norms) / norms
        total = found.sum()
        return found / total if total > 0 else np.full(n_trees, 1.0 / n_trees)

    def of_weights(self, weights: Doubles) -> float:
        """Return the alignment of a weighted sum of the kernels, or 0 if it is not defined."""
        norm = np.sqrt(max(float(weights @ self.products @ weights), 0.0)) * self.target_norm
        return float(self.with_targets @ weights) / norm if norm > 0 else 0.0


def _with_targets(samples: TreeSamples) -> tuple[Doubles, float]:
    """Return a and the norm of YYᵀ.

    The columns of Y sum to zero, so HYYᵀH = YYᵀ, and a_t = ‖Z_tᵀ Y‖²: the squared sums of Y over
    the samples that count in each leaf.
    """
    leaf, flags, targets = samples.leaf, samples.flags, samples.targets
    n_leaves, begins = int(samples.leaf_offsets[-1]), samples.leaf_offsets[:-1]
    if targets.dtype.kind not in "iu":
        numbers = standardized(targets)
        sums = leaf_sums(leaf, n_leaves, entries=flags, values=numbers)
        return np.add.reduceat(sums**2, begins), float(numbers @ numbers)
    sizes = np.bincount(targets)
    shares = sizes / len(targets)
    mass = leaf_sums(leaf, n_leaves, entries=flags)
    found: Doubles = np.zeros(len(begins))
    for rows, share in zip(rows_by_class(targets), shares, strict=True):
        sums = leaf_sums(leaf, n_leaves, entries=flags, rows=rows) - share * mass
        found += np.add.reduceat(sums**2, begins)
    # YᵀY = diag(n_c) - n_c n_d / n has the same norm as YYᵀ.
    return found, float(np.linalg.norm(np.diag(sizes) - np.outer(sizes, shares)))


def _nonnegative(products: Doubles, with_targets: Doubles) -> Doubles:
    """Return the x ≥ 0 that minimizes xᵀMx - 2aᵀx."""
    found = _by_pivoting(products, with_targets)
    if found is not None:
        return found
    # With M = BᵀB and a = Bᵀb, this is ‖Bx - b‖² up to a constant: nonnegative least squares.
    values, vectors = np.linalg.eigh(products)
    kept = values > _ROUNDING * len(values) * values[-1]
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    factor, target = roots[:, None] * vectors.T, (vectors.T @ with_targets) / roots
    solved: Doubles = nnls(factor, target, maxiter=30 * len(values))[0]
    return solved


def _by_pivoting(products: Doubles, with_targets: Doubles) -> Doubles | None:
    """Return the same by block principal pivoting, or None if M is singular or it does not end.

    All entries that violate a condition change sides at once. With many positive weights, this
    takes a few steps, and nonnegative least squares one for each weight (J. Kim, H. Park, "Fast
    nonnegative matrix factorization", SIAM J. Sci. Comput. 33, 2011).
    """
    is_positive = np.ones(len(with_targets), dtype=bool)
    fewest, chances = len(with_targets) + 1, _CHANCES
    slack = _ROUNDING * np.abs(with_targets).max()
    for _ in range(_MOST_STEPS):
        some = np.flatnonzero(is_positive)
        if not some.size:
            return None
        found: Doubles = np.zeros(len(with_targets))
        try:
            factor = cho_factor(products[np.ix_(some, some)], lower=True)
        except np.linalg.LinAlgError:
            return None
        if np.diag(factor[0]).min() < _SINGULAR:
            return None
        found[some] = cho_solve(factor, with_targets[some])
        slope = products @ found - with_targets
        wrong = np.flatnonzero(np.where(is_positive, found, slope) < -slack)
        if not wrong.size:
            return np.maximum(found, 0.0)
        if wrong.size < fewest:
            fewest, chances = wrong.size, _CHANCES
        elif chances > 0:
            chances -= 1
        else:  # one at a time, so that it cannot go in circles
            wrong = wrong[-1:]
        is_positive[wrong] = ~is_positive[wrong]
    return None
