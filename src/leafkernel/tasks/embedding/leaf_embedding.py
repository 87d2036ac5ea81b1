"""Embed samples with PCA, UMAP, t-SNE, PHATE and spectral methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from leafkernel._validation import check_choice, check_count, count_threads
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import without_self
from leafkernel.tasks.embedding._base import Embedding
from leafkernel.tasks.embedding._kernel_maps import (
    DiffusionMap,
    Kernel,
    LeafCoordinates,
    PrincipalMap,
    Proximities,
    SingularMap,
    SquaredDistances,
)
from leafkernel.tasks.embedding._neighbor_maps import (
    PhateOfScores,
    TsneOfNeighbors,
    TsneOfScores,
    UmapOfNeighbors,
    UmapOfScores,
)
from leafkernel.tasks.embedding._phate import PhateOfKernel

Array = npt.NDArray[Any]

METHODS = ("pca", "umap", "tsne", "phate", "spectral", "diffusion", "mds", "svd")
SOURCES = ("pca", "kernel")

_LANDMARK_PCA = 10
_FEWEST_FOR_LIBRARIES = 10


class LeafEmbedding(Embedding):
    """Embed samples in few dimensions, so that similar samples are close to each other.

    Use it to draw a map of the data as seen by a forest.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        The similarity. The default scheme is "kerf" ("uniform" for "mds", "gap" for "svd"), with a
        random forest. Without y, the default forest has totally random trees, and the default
        scheme is "uniform" ("kerf" for "spectral" and "diffusion").
    method : str, default="pca"
        The embedding method.

        - "pca": principal components of leaf coordinates, see ``LeafPCA``.
        - "umap", "tsne", "phate": nonlinear embeddings of the input given by ``source``. They
          require ``leafkernel[embedding]``.
        - "spectral": eigenvectors of the random walk defined by P (Laplacian eigenmaps).
        - "diffusion": like "spectral", but corrected for the density of the samples, with each
          vector multiplied by its eigenvalue.
        - "mds": classical multidimensional scaling of Breiman's squared distances 1 - p.
        - "svd": singular vectors of P, which may be asymmetric. ``embedding_`` has the samples as
          queries, and ``reference_embedding_`` has them as references. Their inner products
          approximate P.
    n_components : int, default=2
        Number of coordinates.
    source : {"pca", "kernel"}, default="pca"
        The input of "umap", "tsne" and "phate". "pca" uses the leading ``n_pca`` principal
        components, as in the paper. "kernel" uses the exact proximities: the graph of nearest
        neighbors for "umap" and "tsne", and diffusion over landmarks for "phate" (which then
        requires no library). The scheme "oob" has no leaf coordinates, so it works only for "umap"
        and "tsne" with "kernel".
    n_neighbors : int, default=30
        Number of neighbors for "umap" and "phate", and perplexity of "tsne".
    n_pca : int, default=50
        Number of principal components for ``source="pca"``.
    parameters : dict, default=None
        Further parameters of UMAP, of openTSNE's TSNE, or of PHATE. For "phate" with
        ``source="kernel"``: ``n_landmarks`` and ``time``. For "diffusion": ``time``, ``alpha`` and
        ``solver``. For "pca", "mds" and "spectral": ``solver``, see ``LeafPCA``.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. Ignored if ``proximity`` is a
        ``ForestProximity``, which has its own ``n_jobs``.
    random_state : int or RandomState, default=None
        Seed of the default forest and of the method. With a seed, UMAP is slower: umap-learn then
        runs on a single thread, and cuML with less parallelism.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    embedding_ : ndarray of shape (n, n_components)
        Coordinates of the training samples.
    reference_embedding_ : ndarray of shape (n, n_components)
        Coordinates of the training samples as references, for "svd".

    Notes
    -----
    With "kerf", each row of P sums to 1. "pca", "spectral" and "diffusion" then give nearly the
    same picture, except for the scale of the axes. With "uniform", rows in dense regions have
    larger sums, and the three differ.

    All methods can embed new samples: by projection ("pca", "mds", "svd"), by one step of the
    random walk ("spectral", "diffusion"), or by ``transform`` of the library. With
    ``source="kernel"``, a new sample is placed at the median of its neighbors ("umap", "tsne") or
    at the mean of the landmarks ("phate"), weighted by proximity.

    With ``source="pca"``, "umap" starts from UMAP's spectral layout for up to 100,000 samples. For
    more samples, where this may take hours, and with ``source="kernel"``, it starts from the
    leading principal components. Use ``init`` in ``parameters`` to change this.

    With ``source="kernel"`` and a proximity with ``engine="gpu"``, "umap" runs on the GPU if cuML
    26.02 or later is installed. If ``parameters`` has a name or value that cuML lacks or treats
    differently, such as ``densmap`` or ``local_connectivity``, umap-learn is used.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from leafkernel.tasks import LeafEmbedding
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LeafEmbedding(method="spectral", random_state=0).fit(X[:150], y[:150])
    >>> model.embedding_.shape, model.transform(X[150:]).shape
    ((150, 2), (28, 2))
    """

    @property
    def _default_scheme(self) -> str:  # type: ignore[override]
        return {"mds": "uniform", "svd": "gap"}.get(self.method, "kerf")

    @property
    def _default_unsupervised_scheme(self) -> str:  # type: ignore[override]
        # With "kerf", a sample that is alone in its leaves is far from all others.
        return {"spectral": "kerf", "diffusion": "kerf"}.get(self.method, "uniform")

    # Whether a layout may start from approximate components. It moves all points anyway.
    _starts_roughly: bool = False

    def __init__(
        self,
        proximity: Any = None,
        *,
        method: str = "pca",
        n_components: int = 2,
        source: str = "pca",
        n_neighbors: int = 30,
        n_pca: int = 50,
        parameters: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.proximity = proximity
        self.method = method
        self.n_components = n_components
        self.source = source
        self.n_neighbors = n_neighbors
        self.n_pca = n_pca
        self.parameters = parameters
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self, y: Any) -> Any:
        check_choice("method", self.method, METHODS)
        check_choice("source", self.source, SOURCES)
        check_count("n_components", self.n_components)
        check_count("n_neighbors", self.n_neighbors)
        check_count("n_pca", self.n_pca)
        allowed = self._own_parameters()
        for name in self.parameters or {}:
            if allowed is not None:
                check_choice(f"a name in parameters of method={self.method!r}", name, allowed)
        return y

    def _own_parameters(self) -> tuple[str, ...] | None:
        """Return the allowed names in ``parameters``; None if a library checks them."""
        if self.method == "phate" and self.source == "kernel":
            return ("n_landmarks", "time")
        own = {"diffusion": ("time", "alpha", "solver"), "svd": ()}
        if self.method in ("umap", "tsne", "phate"):
            return None
        return own.get(self.method, ("solver",))

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        n, k = proximity.n_samples_fit_, self.n_components
        if k >= n:
            raise ValueError(
                f"n_components={k} is too large: there are only n_samples={n} training samples. "
                "Use a smaller value."
            )
        if n < _FEWEST_FOR_LIBRARIES and self._own_parameters() is None:
            raise ValueError(
                f"method={self.method!r} requires at least {_FEWEST_FOR_LIBRARIES} training "
                f"samples; got n_samples={n}. Use 'pca'."
            )
        # Draw one seed for all parts of a fit, so that a RandomState is used only once.
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self.embedding_, self._map = self._embed(proximity, n, k, seed)

    def _embed(self, prox: ForestProximity, n: int, k: int, seed: int) -> tuple[Array, Any]:
        """Return the coordinates of the training samples, and the map for new samples."""
        options = dict(self.parameters or {})
        if self.method in ("pca", "mds"):
            kernel: Kernel = (
                SquaredDistances(prox) if self.method == "mds" else LeafCoordinates(prox)
            )
            principal = PrincipalMap.fit(kernel, n, k, random_state=seed, **options)
            return principal.scores, principal
        if self.method in ("spectral", "diffusion"):
            walk: dict[str, Any] = {"time": 1.0, "alpha": 1.0} if self.method == "diffusion" else {}
            walk.update(options)
            # Like scikit-learn, omit self-loops. Otherwise a sample that is alone in its leaves
            # would be a coordinate of its own.
            others = Proximities(without_self(prox))
            diffusion = DiffusionMap.fit(others, n, k, random_state=seed, **walk)
            return diffusion.coordinates, diffusion
        if self.method == "svd":
            singular = SingularMap.fit(prox, k, random_state=seed, **options)
            self.reference_embedding_ = singular.right
            return singular.left, singular
        if self.source == "kernel":
            placed = self._from_kernel(prox, n, k, seed, options)
        else:
            placed = self._from_scores(prox, n, k, seed, options)
        return np.asarray(placed.coordinates, dtype=np.float64), placed

    def _from_kernel(
        self, prox: ForestProximity, n: int, k: int, seed: int, options: dict[str, Any]
    ) -> Any:
        # Layouts start from k principal components. Landmarks are clusters of a few more.
        few = k if self.method != "phate" else max(k, min(_LANDMARK_PCA, n - 1))
        start = None
        if self.method == "phate" or not prox.scheme_.divides_by_shared_oob:
            # These are only a start. The exact solver could take longer than all other steps if
            # leaves are small.
            start = PrincipalMap.fit(
                LeafCoordinates(prox),
                n,
                few,
                solver="randomized",
                rough=self._starts_roughly,
                random_state=seed,
            ).scores
        if self.method == "phate" and start is not None:
            return PhateOfKernel(prox, start, k, random_state=seed, **options)
        options = {"n_components": k, **self._chance(prox, seed), **options}
        if self.method == "umap":
            return UmapOfNeighbors(prox, start, self.n_neighbors, options)
        return TsneOfNeighbors(prox, start, self.n_neighbors, options)

    def _chance(self, prox: ForestProximity, seed: int) -> dict[str, Any]:
        """Return the seed and the number of threads for a library. UMAP with a seed uses one."""
        threads = count_threads(prox.n_jobs)
        if self.method != "umap":
            return {"random_state": seed, "n_jobs": threads}
        free = self.random_state is None
        return {"n_jobs": threads} if free else {"random_state": seed, "n_jobs": 1}

    def _from_scores(
        self, prox: ForestProximity, n: int, k: int, seed: int, options: dict[str, Any]
    ) -> Any:
        kernel = LeafCoordinates(prox)
        principal = PrincipalMap.fit(kernel, n, min(self.n_pca, n - 1), random_state=seed)
        options = {"n_components": k, **self._chance(prox, seed), **options}
        if self.method == "umap":
            return _AfterPca(principal, UmapOfScores(principal.scores, self.n_neighbors, options))
        if self.method == "tsne":
            return _AfterPca(principal, TsneOfScores(principal.scores, self.n_neighbors, options))
        return _AfterPca(principal, PhateOfScores(principal.scores, self.n_neighbors, options))


class _AfterPca:
    """A map from samples to an embedding of their principal components."""

    def __init__(self, principal: PrincipalMap, method: Any) -> None:
        self.principal = principal
        self.method = method
        self.coordinates = method.coordinates

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new samples."""
        placed: Array = self.method.transform(self.principal.transform(X))
        return placed
