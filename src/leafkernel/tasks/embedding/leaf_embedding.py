"""A forest's similarity as a picture: one estimator over many methods."""

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
    """Embed samples in few dimensions as a forest sees them.

    Parameters
    ----------
    proximity : ForestProximity, forest, scheme or None, default=None
        Where the similarity comes from; by default "kerf" ("uniform" for "mds", "gap" for "svd") on
        a random forest, or "kerf" on totally random trees where ``fit`` is given no y.
    method : str, default="pca"
        - "pca": principal components of leaf coordinates, :class:`LeafPCA`;
        - "umap", "tsne", "phate": from the leading principal components, or from the kernel: see
          ``source``. They need ``leafkernel[embedding]``;
        - "spectral": eigenvectors of the random walk that P makes (Laplacian eigenmaps);
        - "diffusion": the same, corrected for the density of the samples, and each vector times its
          eigenvalue;
        - "mds": classical scaling of Breiman's squared distances 1 - p;
        - "svd": singular vectors of P, which may be asymmetric: ``embedding_`` holds the samples as
          queries, ``reference_embedding_`` as references, and their inner products are nearly P.
    n_components : int, default=2
        Number of coordinates.
    source : {"pca", "kernel"}, default="pca"
        What "umap", "tsne" and "phate" start from: the leading ``n_pca`` principal components, as
        in the paper; or the proximities themselves, exactly: the graph of nearest neighbors for
        "umap" and "tsne", and for "phate" the diffusion that P is, over landmarks (no library
        needed). The exact "oob" has no leaf coordinates, and so no principal components: it is for
        "umap" and "tsne" from the kernel.
    n_neighbors : int, default=30
        Neighbors for "umap" and "phate", and perplexity of "tsne".
    n_pca : int, default=50
        Principal components to start from.
    parameters : dict, default=None
        More parameters of UMAP, openTSNE's TSNE, or PHATE; for "phate" from the kernel
        ``n_landmarks`` and ``time``; for "diffusion" ``time`` and ``alpha``; for all but "svd" that
        need no library the ``solver``, as in :class:`LeafPCA`.
    n_jobs : int, default=None
        Threads, where ``proximity`` does not say.
    random_state : int or RandomState, default=None
        Seed of the default forest and of the method. UMAP repeats itself only on one thread: with
        a seed it takes longer.

    Attributes
    ----------
    proximity_ : ForestProximity
        The fitted proximity.
    embedding_ : ndarray of shape (n, n_components)
        Coordinates of the training samples.
    reference_embedding_ : ndarray of shape (n, n_components)
        For "svd", coordinates of the training samples as references.

    Notes
    -----
    Under "kerf", the default, each row of P sums to 1. "pca", "spectral" and "diffusion" are then
    nearly the same picture, except for the scale of the axes. Under "uniform" the rows of crowded
    regions have larger sums, and the three differ.

    Every method places new samples: by projection ("pca", "mds", "svd"), by one step of the walk
    ("spectral", "diffusion"), by the library's own ``transform`` (from principal components), or,
    from the kernel, at the median of their neighbors ("umap", "tsne") or the mean of the landmarks
    ("phate"), weighted by proximity.

    "umap" starts from UMAP's own spectral layout up to 100,000 samples, and above that, where this
    may take hours, from the leading principal components, as always from the kernel; ``init`` in
    `parameters` says otherwise.

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
        # Under "kerf" a row that totally random trees leave alone is far from all others.
        return {"spectral": "kerf", "diffusion": "kerf"}.get(self.method, "uniform")

    # Whether a layout may start from a few rough components. It moves all points anyway.
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
        """Return the names that ``parameters`` may hold; None where a library knows."""
        if self.method == "phate" and self.source == "kernel":
            return ("n_landmarks", "time")
        own = {"diffusion": ("time", "alpha", "solver"), "svd": ()}
        if self.method in ("umap", "tsne", "phate"):
            return None
        return own.get(self.method, ("solver",))

    def _learn(self, proximity: ForestProximity, y: Any) -> None:
        n, k = proximity.n_samples_fit_, self.n_components
        if k >= n:
            raise ValueError(f"n_components={k} needs more training samples; got n_samples={n}.")
        if n < _FEWEST_FOR_LIBRARIES and self._own_parameters() is None:
            raise ValueError(
                f"method={self.method!r} needs at least {_FEWEST_FOR_LIBRARIES} training samples; "
                f"got n_samples={n}. Use 'pca'."
            )
        # One seed for all parts of a fit, so that a RandomState gives them different numbers once.
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self.embedding_, self._map = self._embed(proximity, n, k, seed)

    def _embed(self, prox: ForestProximity, n: int, k: int, seed: int) -> tuple[Array, Any]:
        """Return the coordinates of the training samples, and what places others."""
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
            # As scikit-learn does, without self-loops: a row that is alone in its leaves would walk
            # to itself, and so be a coordinate of its own.
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
        # A picture starts from as many principal components; landmarks are groups in a few more.
        few = k if self.method != "phate" else max(k, min(_LANDMARK_PCA, n - 1))
        start = None
        if self.method == "phate" or not prox.scheme_.divides_by_shared_oob:
            # Layouts and groups only begin here: to ten digits, as the default gives them, these
            # components would take longer than all the rest where leaves are small.
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
        """Return the seed and the threads for a library; UMAP with a seed runs on one thread."""
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
    """A method on principal scores, which takes samples."""

    def __init__(self, principal: PrincipalMap, method: Any) -> None:
        self.principal = principal
        self.method = method
        self.coordinates = method.coordinates

    def transform(self, X: Any) -> Array:
        """Return the coordinates of unseen samples."""
        placed: Array = self.method.transform(self.principal.transform(X))
        return placed
