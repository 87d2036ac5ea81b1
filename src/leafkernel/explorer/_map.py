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
    "Rows that share leaves in many trees lie near each other. Only nearness has a meaning: the "
    "axes have none, nor has the space between groups."
)

# UMAP repeats itself only on one thread; above this many rows that takes too long.
_MOST_REPEATABLE = 20_000
_FEWEST_FOR_UMAP = 30
# Empty stretches along an axis are at most this part of all that is not empty.
_WIDEST_GAP = 0.1


def draw_map(
    prox: ForestProximity, X: Any, y: Any, n: int, method: str, random_state: int
) -> tuple[str, Array]:
    """Return the method chosen and the place of each row, shape (n, 2)."""
    if method == "auto":
        has_umap = find_spec("umap") is not None
        method = "umap" if has_umap and n >= _FEWEST_FOR_UMAP else "pca"
    scheme = "uniform" if method == "mds" else "kerf"
    symmetric = prox
    if prox.scheme_.name != scheme or prox.diagonal != "scheme":
        symmetric = ForestProximity(prox.forest_, scheme, n_jobs=prox.n_jobs).fit(X, y)
    by_neighbors = method in ("umap", "tsne")
    model = LeafEmbedding(
        symmetric,
        method=method,
        # The exact neighbours: fifty principal components of deep trees take minutes to find.
        source="kernel" if by_neighbors else "pca",
        n_neighbors=min(30, n - 1),
        # Wider than UMAP's own, so that the points of a group can be told apart and clicked.
        parameters={"min_dist": 0.3} if method == "umap" else None,
        random_state=None if method == "umap" and n > _MOST_REPEATABLE else random_state,
    )
    points = model.fit_transform(X)
    return method, close_gaps(points) if by_neighbors else points


def close_gaps(points: Array) -> Array:
    """Shorten the empty space between groups, which nothing holds together or apart.

    Where no neighbours join two groups, UMAP lets them drift; one that is far away would make all
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
            steps = np.minimum(steps, _WIDEST_GAP * filled) if filled > 0 else steps
        closed[order, axis] = np.concatenate([[0.0], np.cumsum(steps)])
    return closed
