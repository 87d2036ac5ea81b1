"""Spectral embeddings of P: kernel principal components, diffusion maps, singular vectors.

Each map is fitted to the training samples and can embed new samples. P is never built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.utils import check_random_state

from leafkernel._lazy import lazy
from leafkernel.inside import Inside
from leafkernel.leaf_index import Samples
from leafkernel.operator import ProximityOperator
from leafkernel.product import Product
from leafkernel.proximity import ForestProximity
from leafkernel.tasks.embedding._spectrum import top_eigenpairs

Array = npt.NDArray[Any]

# Eigenvalues below this share of the largest are rounding errors.
_NOISE = 1e-10


class Kernel(Protocol):
    """A symmetric kernel, given by its products with vectors."""

    def of_training(self, V: Array) -> Array:
        """Multiply the training samples' rows with V, shape (n, c)."""

    def of_unseen(self, X: Any, V: Array) -> Array:
        """Multiply the rows of new samples with V, shape (n, c)."""


@dataclass(frozen=True)
class LeafCoordinates:
    """The inner products of leaf coordinates, Q Qᵀ."""

    prox: ForestProximity

    def __post_init__(self) -> None:
        Inside.of(self.prox).require_maps("this embedding")

    def of_training(self, V: Array) -> Array:
        """Multiply the training samples' rows with V, shape (n, c)."""
        return self._apply(self._training_product, V)

    def of_unseen(self, X: Any, V: Array) -> Array:
        """Multiply the rows of new samples with V, shape (n, c)."""
        return self._apply(self._product(Inside.of(self.prox).route(X)), V)

    @lazy
    def _training_product(self) -> Product:
        return self._product(None)

    def _product(self, samples: Samples | None) -> Product:
        inside = Inside.of(self.prox)
        product = inside.kernel.gram_product(samples, n_threads=inside.n_threads)
        return product.with_dtype(np.float64)

    def _apply(self, product: Product, V: Array) -> Array:
        return Inside.of(self.prox).sums(product, V)

    def __getstate__(self) -> dict[str, Any]:
        return {"prox": self.prox}  # the product can be computed again


@dataclass(frozen=True)
class Proximities:
    """P, or (P + Pᵀ)/2 if P is not symmetric. Rows of new samples are those of P."""

    prox: ForestProximity

    def __post_init__(self) -> None:
        Inside.of(self.prox).require_maps("this embedding")

    def of_training(self, V: Array) -> Array:
        """Multiply the training samples' rows with V, shape (n, c)."""
        if Inside.of(self.prox).is_symmetric:
            return np.asarray(self._operator @ V)
        return np.asarray((self._operator @ V + self._operator.T @ V) / 2)

    def of_unseen(self, X: Any, V: Array) -> Array:
        """Multiply the rows of new samples with V, shape (n, c)."""
        return self.prox.weighted_sums(V, X)

    @lazy
    def _operator(self) -> ProximityOperator:
        return self.prox.operator()

    def __getstate__(self) -> dict[str, Any]:
        return {"prox": self.prox}


@dataclass(frozen=True)
class SquaredDistances:
    """Inner products whose squared distances are 1 - P, up to a shift.

    This is P/2 with ones on the diagonal of P, so that the distance of each sample to itself is 0.
    """

    prox: ForestProximity

    def of_training(self, V: Array) -> Array:
        """Multiply the training samples' rows with V, shape (n, c)."""
        return np.asarray((self._proximities.of_training(V) + self._missing * V) / 2)

    def of_unseen(self, X: Any, V: Array) -> Array:
        """Multiply the rows of new samples with V, shape (n, c)."""
        return self._proximities.of_unseen(X, V) / 2

    @lazy
    def _proximities(self) -> Proximities:
        return Proximities(self.prox)

    @lazy
    def _missing(self) -> Array:
        """Return one minus the diagonal, shape (n, 1)."""
        kernel = Inside.of(self.prox).kernel
        own = kernel.scheme_diagonal() if kernel.own_diagonal is None else kernel.own_diagonal
        return np.asarray(1 - own)[:, None]

    def __getstate__(self) -> dict[str, Any]:
        return {"prox": self.prox}


@dataclass(frozen=True)
class PrincipalMap:
    """Kernel principal components of the training samples, and a map for new samples.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        Coordinates of the training samples.
    values : ndarray of shape (k,)
        Eigenvalues of the centered kernel.
    weights : ndarray of shape (n, k)
        Factor of a row of the kernel.
    origin : ndarray of shape (k,)
        Mean that is subtracted.
    """

    kernel: Kernel
    scores: Array
    values: Array
    weights: Array

    @classmethod
    def fit(cls, kernel: Kernel, n: int, k: int, **options: Any) -> PrincipalMap:
        """Decompose the centered kernel, H K H with H = I - 11ᵀ/n.

        Options are those of ``top_eigenpairs``.
        """

        def centered(V: Array) -> Array:
            out = kernel.of_training(V - V.mean(axis=0))
            return np.asarray(out - out.mean(axis=0))

        values, vectors = top_eigenpairs(centered, n, k, **options)
        values = np.maximum(values, 0)
        scale = np.sqrt(values)
        kept = values > _NOISE * max(values[0], np.finfo(float).tiny)
        weights = vectors * np.divide(1.0, scale, out=np.zeros_like(scale), where=kept)
        return cls(kernel, vectors * scale, values, weights)

    @lazy
    def origin(self) -> Array:
        """Return the mean of the coordinates of the training samples before centering."""
        return np.asarray(self.kernel.of_training(self.weights).mean(axis=0))

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new samples."""
        return self.kernel.of_unseen(X, self.weights) - self.origin


@dataclass(frozen=True)
class DiffusionMap:
    """Eigenvectors of the random walk defined by P, and their Nyström extension.

    Attributes
    ----------
    coordinates : ndarray of shape (n, k)
        Right eigenvectors of the row-normalized kernel, without the constant one, times their
        eigenvalues to the power of ``time``.
    values : ndarray of shape (k,)
        Eigenvalues.
    """

    kernel: Kernel
    coordinates: Array
    values: Array
    _vectors: Array
    _density: Array
    _time: float

    @classmethod
    def fit(
        cls,
        kernel: Kernel,
        n: int,
        k: int,
        *,
        time: float = 0.0,
        alpha: float = 0.0,
        solver: str = "auto",
        random_state: Any = None,
    ) -> DiffusionMap:
        """Decompose D^-1/2 K D^-1/2, where K is P divided by its row sums to the power alpha."""
        density = _positive(kernel.of_training(np.ones((n, 1)))) ** alpha
        degree = _positive(kernel.of_training(1 / density) / density)
        scale = np.sqrt(degree) * density

        def normalized(V: Array) -> Array:
            return np.asarray(kernel.of_training(V / scale) / scale)

        values, vectors = top_eigenpairs(
            normalized, n, min(k + 1, n), solver=solver, random_state=random_state
        )
        # The first vector is stationary: constant after division by √D.
        vectors = vectors[:, 1:] / np.sqrt(degree) * np.sqrt(degree.sum())
        values = values[1:]
        coordinates = vectors * np.abs(values) ** time
        return cls(kernel, coordinates, values, vectors, density, time)

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new samples after one step of the random walk."""
        ones = np.ones((len(self._vectors), 1))
        sums = self.kernel.of_unseen(X, np.hstack([self._vectors, ones]) / self._density)
        kept = np.abs(self.values) > _NOISE
        step = sums[:, :-1] / _positive(sums[:, -1:])
        back = np.divide(
            np.abs(self.values) ** self._time,
            self.values,
            out=np.zeros_like(self.values),
            where=kept,
        )
        return np.asarray(step * back)


@dataclass(frozen=True)
class SingularMap:
    """Left and right coordinates whose inner products are the best low-rank approximation of P.

    Attributes
    ----------
    left, right : ndarray of shape (n, k)
        Training samples as queries and as references.
    values : ndarray of shape (k,)
        Singular values in descending order.
    """

    prox: ForestProximity
    left: Array
    right: Array
    values: Array

    @classmethod
    def fit(cls, prox: ForestProximity, k: int, *, random_state: Any = None) -> SingularMap:
        """Decompose P."""
        operator = prox.operator()
        n = operator.shape[0]
        if k >= n:
            raise ValueError(
                f"n_components={k} is too large: there are only {n} training samples. Use a "
                "smaller value."
            )
        in_double = LinearOperator(
            operator.shape,
            matvec=lambda v: operator @ v.astype(np.float64),
            rmatvec=lambda v: operator.T @ v.astype(np.float64),
            matmat=lambda V: operator @ V.astype(np.float64),
            rmatmat=lambda V: operator.T @ V.astype(np.float64),
            dtype=np.float64,
        )
        start = check_random_state(random_state).uniform(-1, 1, n)
        U, values, Vt = svds(in_double, k, v0=start)
        order = np.argsort(values)[::-1]
        U, values, V = U[:, order], values[order], Vt[order].T
        signs = np.sign(U[np.abs(U).argmax(axis=0), np.arange(k)])
        root = np.sqrt(values) * np.where(signs == 0, 1.0, signs)
        return cls(prox, U * root, V * root, values)

    def transform(self, X: Any) -> Array:
        """Return the left coordinates of new samples."""
        kept = self.values > _NOISE * max(self.values[0], np.finfo(float).tiny)
        back = np.divide(1.0, self.values, out=np.zeros_like(self.values), where=kept)
        return self.prox.weighted_sums(self.right * back, X)


def _positive(sums: Array) -> Array:
    """Return sums for division, with 1 for samples without proximity."""
    return np.where(sums > 0, sums, 1.0)
