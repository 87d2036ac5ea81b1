"""The map of a page."""

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
    "Rows that share leaves in many trees are close to each other. Only closeness has a meaning. "
    "The axes and the distances between groups have none."
)
_BY_PROXIMITY = "at the median of their nearest training rows, weighted by proximity"
ABOUT_NEW_ROWS = {
    "umap": _BY_PROXIMITY,
    "tsne": _BY_PROXIMITY,
    "phate": "by the transform of PHATE",
    "pca": "by projection on the principal components of the training rows",
    "spectral": "at the mean of the training rows, weighted by proximity and scaled",
    "diffusion": "at the mean of the training rows, weighted by proximity and scaled",
    "mds": "by projection on the coordinates of the training rows",
}

# UMAP is reproducible only on one thread, which is too slow for more rows.
_MOST_REPEATABLE = 20_000
_FEWEST_FOR_UMAP = 30
_BY_NEIGHBORS = ("umap", "tsne")
_BY_SPECTRUM = ("pca", "spectral", "diffusion", "mds")
# Up to this many rows, the exact spectrum is fast to compute.
_MOST_EXACT = 500
# Largest gap along an axis, as a share of the extent without gaps.
_WIDEST_GAP = 0.1


def draw_map(
    prox: ForestProximity, X: Any, method: str, random_state: int, X_new: Any = None
) -> tuple[str, Array]:
    """Return the method and the positions of all rows, new rows last, shape (n + m, 2)."""
    # A larger min_dist than UMAP's default, so that single points can be clicked.
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
    """Move positions on an axis like nearby points, from ``before`` to ``after``."""
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
    """Return the method and the fitted embedding of the training samples.

    The scheme is the best one for the method, unless ``keep_scheme`` is true.
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
        # Use exact neighbors, because fifty principal components of deep trees take minutes.
        source="kernel" if method in _BY_NEIGHBORS else "pca",
        n_neighbors=min(30, n - 1),
        parameters=_parameters(method, n, min_dist),
        random_state=None if method == "umap" and n > _MOST_REPEATABLE else random_state,
    )
    model._starts_roughly = True  # an approximate start is enough for a picture
    return method, model.fit(X)


def _parameters(method: str, n: int, min_dist: float) -> dict[str, Any] | None:
    if method == "umap":
        return {"min_dist": min_dist}
    # A picture needs few digits. The exact solver may take minutes if all directions have nearly
    # the same variance, as for noise.
    return {"solver": "randomized"} if method in _BY_SPECTRUM and n > _MOST_EXACT else None


def close_gaps(points: Array) -> Array:
    """Shorten large gaps between groups of points.

    UMAP lets groups drift apart if no neighbors connect them. A group that is far away would make
    all others too small to see.
    """
    closed = np.empty_like(points)
    for axis in range(points.shape[1]):
        order = np.argsort(points[:, axis], kind="stable")
        steps = np.diff(points[order, axis])
        widest = np.inf
        # Repeat, because a very wide gap can hide another wide one.
        while steps.sum() > 0 and steps.max() < widest:
            widest = steps.max()
            filled = steps[steps <= _WIDEST_GAP * steps.sum()].sum()
            is_gap = (steps > _WIDEST_GAP * steps.sum()) & (filled > 0)
            steps = np.where(is_gap, np.minimum(steps, _WIDEST_GAP * filled), steps)
        closed[order, axis] = np.concatenate([[0.0], np.cumsum(steps)])
    return closed
