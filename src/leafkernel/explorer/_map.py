"""The map: where each row lies on the page."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.proximity import ForestProximity
from leafkernel.tasks import LeafEmbedding

Array = npt.NDArray[Any]

MAP_LABELS = {
    "umap": "Leaf UMAP",
    "tsne": "Leaf t-SNE",
    "phate": "Leaf PHATE",
    "pca": "Leaf PCA",
    "spectral": "Spectral map",
    "diffusion": "Diffusion map",
    "mds": "Breiman's scaling",
}
MAPS = ("auto", *MAP_LABELS)
ABOUT_MAPS = (
    "Rows that share leaves in many trees lie near each other. Only nearness has a meaning. The "
    "axes have none, and neither has the space between groups."
)
_BY_PROXIMITY = "at the median of their nearest training rows, weighted by proximity"
ABOUT_NEW_ROWS = {
    "umap": _BY_PROXIMITY,
    "tsne": _BY_PROXIMITY,
    "phate": "by PHATE's own transform",
    "pca": "by projection on the principal components of the training rows",
    "spectral": "at the mean of the training rows, weighted by proximity and scaled",
    "diffusion": "at the mean of the training rows, weighted by proximity and scaled",
    "mds": "by projection on the coordinates of the training rows",
}

# UMAP repeats itself only on one thread; above this many rows that takes too long.
_MOST_REPEATABLE = 20_000
_FEWEST_FOR_UMAP = 30
_BY_NEIGHBORS = ("umap", "tsne")
_BY_SPECTRUM = ("pca", "spectral", "diffusion", "mds")
# Up to here the spectrum is found at once, whatever it is.
_MOST_EXACT = 500
# Empty stretches along an axis are at most this part of all that is not empty.
_WIDEST_GAP = 0.1


def draw_map(
    prox: ForestProximity, X: Any, method: str, random_state: int, X_new: Any = None
) -> tuple[str, Array]:
    """Return the method chosen and the place of each row, new rows last, shape (n + m, 2)."""
    # Wider than UMAP's own, so that the points of a group can be told apart and clicked.
    method, model = map_model(prox, X, method, random_state=random_state, min_dist=0.3)
    points = np.asarray(model.embedding_, dtype=np.float64)
    new = np.empty((0, 2)) if X_new is None else np.asarray(model.transform(X_new))
    if method in _BY_NEIGHBORS:
        closed = close_gaps(points)
        new = np.column_stack(
            [_move_along(points[:, axis], closed[:, axis], new[:, axis]) for axis in range(2)]
        )
        points = closed
    return method, np.concatenate([points, new])


def _move_along(before: Array, after: Array, places: Array) -> Array:
    """Move places on an axis as the points around them were moved from ``before`` to ``after``."""
    order = np.argsort(before, kind="stable")
    moved: Array = np.interp(places, before[order], after[order])
    return moved


def map_model(
    prox: ForestProximity,
    X: Any,
    method: str,
    *,
    n_components: int = 2,
    random_state: int = 0,
    min_dist: float = 0.1,
    keep_scheme: bool = False,
) -> tuple[str, LeafEmbedding]:
    """Return the method chosen and the embedding of the training samples, fitted.

    It is that of the scheme that suits the method best, unless ``keep_scheme``.
    """
    n = prox.n_samples_fit_
    if method == "auto":
        has_umap = find_spec("umap") is not None
        method = "umap" if has_umap and n >= _FEWEST_FOR_UMAP else "pca"
    scheme = "uniform" if method == "mds" else "kerf"
    symmetric = prox
    if not keep_scheme and (prox.scheme_.name != scheme or prox.diagonal != "scheme"):
        symmetric = prox.reweigh(scheme, diagonal="scheme", symmetrize=False)
    model = LeafEmbedding(
        symmetric,
        method=method,
        n_components=n_components,
        # The exact neighbors: fifty principal components of deep trees take minutes to find.
        source="kernel" if method in _BY_NEIGHBORS else "pca",
        n_neighbors=min(30, n - 1),
        parameters=_parameters(method, n, min_dist),
        random_state=None if method == "umap" and n > _MOST_REPEATABLE else random_state,
    )
    model._starts_roughly = True  # a page is looked at: its start need not be exact
    return method, model.fit(X)


def _parameters(method: str, n: int, min_dist: float) -> dict[str, Any] | None:
    if method == "umap":
        return {"min_dist": min_dist}
    # A picture needs few digits, and the exact solver may take minutes for them where all
    # directions are nearly alike, as they are for noise.
    return {"solver": "randomized"} if method in _BY_SPECTRUM and n > _MOST_EXACT else None


def close_gaps(points: Array) -> Array:
    """Shorten the empty space between groups, which nothing holds together or apart.

    Where no neighbors join two groups, UMAP lets them drift; one that is far away would make all
    others too small to see.
    """
    closed = np.empty_like(points)
    for axis in range(points.shape[1]):
        order = np.argsort(points[:, axis], kind="stable")
        steps = np.diff(points[order, axis])
        widest = np.inf
        # Again while there is one: beside a very wide gap, a wide one looks like none.
        while steps.sum() > 0 and steps.max() < widest:
            widest = steps.max()
            filled = steps[steps <= _WIDEST_GAP * steps.sum()].sum()
            is_gap = (steps > _WIDEST_GAP * steps.sum()) & (filled > 0)
            steps = np.where(is_gap, np.minimum(steps, _WIDEST_GAP * filled), steps)
        closed[order, axis] = np.concatenate([[0.0], np.cumsum(steps)])
    return closed
