"""UMAP, t-SNE and PHATE embeddings with their libraries."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._optional import require
from leafkernel._validation import count_threads
from leafkernel.proximity import ForestProximity
from leafkernel.tasks.embedding._cuml_umap import find_cuml_umap

Array = npt.NDArray[Any]

_ROWS_AT_ONCE = 1 << 12
_MEDIAN_STEPS = 10
# UMAP starts from eigenvectors of its graph. For 522,910 samples and a graph with many components,
# this took more than half an hour. For more samples than this, start from principal components.
_SPECTRAL_START_AT_MOST = 100_000


@contextmanager
def _their_warnings_hidden() -> Iterator[None]:
    """Hide the warnings of these libraries, and print their messages to standard error.

    A program may be reading standard output.
    """
    with warnings.catch_warnings(), redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        yield


def _require(module: str) -> ModuleType:
    with _their_warnings_hidden():
        return require(module, extra="embedding")


class UmapOfScores:
    """UMAP on principal components, with UMAP's transform for new samples."""

    def __init__(self, scores: Array, n_neighbors: int, parameters: dict[str, Any]) -> None:
        umap = _require("umap")
        if len(scores) > _SPECTRAL_START_AT_MOST and scores.shape[1] >= parameters["n_components"]:
            start = scores[:, : parameters["n_components"]]
            parameters = {"init": _spread(start, 10.0), **parameters}
        parameters = {"n_neighbors": min(n_neighbors, len(scores) - 1), **parameters}
        self.model = umap.UMAP(**parameters)
        with _their_warnings_hidden():
            self.coordinates = self.model.fit_transform(scores)

    def transform(self, scores: Array) -> Array:
        """Return the positions of samples with these scores."""
        with _their_warnings_hidden():
            return np.asarray(self.model.transform(scores))


class TsneOfScores:
    """t-SNE on principal components, with openTSNE's transform for new samples."""

    def __init__(self, scores: Array, n_neighbors: int, parameters: dict[str, Any]) -> None:
        tsne = _require("openTSNE")
        parameters = {"perplexity": min(n_neighbors, (len(scores) - 1) / 3), **parameters}
        with _their_warnings_hidden():
            self.model = tsne.TSNE(**parameters).fit(scores)
        self.coordinates = np.asarray(self.model)

    def transform(self, scores: Array) -> Array:
        """Return the positions of samples with these scores."""
        with _their_warnings_hidden():
            return np.asarray(self.model.transform(scores))


class PhateOfScores:
    """PHATE on principal components, with PHATE's transform for new samples."""

    def __init__(self, scores: Array, n_neighbors: int, parameters: dict[str, Any]) -> None:
        phate = _require("phate")
        knn = min(n_neighbors, len(scores) - 2)
        self.model = phate.PHATE(**{"knn": knn, "verbose": 0, "n_pca": None, **parameters})
        with _their_warnings_hidden():
            self.coordinates = np.asarray(self.model.fit_transform(scores))

    def transform(self, scores: Array) -> Array:
        """Return the positions of samples with these scores."""
        with _their_warnings_hidden():
            return np.asarray(self.model.transform(scores))


class _OfNeighbors:
    """An embedding of the exact graph of nearest neighbors."""

    coordinates: Array

    def __init__(self, prox: ForestProximity, n_neighbors: int) -> None:
        self.prox = prox
        self.n_neighbors = min(n_neighbors, prox.n_samples_fit_ - 1)

    def transform(self, X: Any) -> Array:
        """Return the median position of each sample's neighbors, weighted by proximity.

        With the mean instead, a sample with neighbors in two groups would lie between them. A
        sample without neighbors is placed at the center.
        """
        weights, rows = self.prox.kneighbors(X, self.n_neighbors)
        placed = np.empty((len(rows), self.coordinates.shape[1]))
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            placed[part] = _weighted_median(self.coordinates[rows[part]], weights[part])
        placed[~weights.any(axis=1)] = self.coordinates.mean(axis=0)
        return placed


def _weighted_median(points: Array, weights: Array) -> Array:
    """Return the geometric median of each row of points (m, k, c) with weights (m, k)."""
    weights = weights.astype(np.float64)
    apart = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    best = np.einsum("mij,mj->mi", apart, weights).argmin(axis=1)
    # Start from the best of the points, and improve it with Weiszfeld's algorithm.
    median = points[np.arange(len(points)), best]
    spread = apart.mean(axis=(1, 2))[:, None] + np.finfo(float).tiny
    for _ in range(_MEDIAN_STEPS):
        distance = np.linalg.norm(points - median[:, None], axis=-1)
        pull = weights / np.maximum(distance, 1e-3 * spread)
        mass = pull.sum(axis=1, keepdims=True)
        moved = np.einsum("mk,mkc->mc", pull, points) / np.where(mass > 0, mass, 1.0)
        median = np.where(mass > 0, moved, median)
    return np.asarray(median)


class UmapOfNeighbors(_OfNeighbors):
    """UMAP on the exact graph of nearest neighbors, with cuML if the engine is the GPU."""

    def __init__(
        self,
        prox: ForestProximity,
        start: Array | None,
        n_neighbors: int,
        parameters: dict[str, Any],
    ) -> None:
        super().__init__(prox, n_neighbors)
        if start is not None:
            parameters = {"init": _spread(start, 10.0), **parameters}
        with _their_warnings_hidden():
            on_gpu = find_cuml_umap(prox.engine, parameters)
        make = _require("umap").UMAP if on_gpu is None else on_gpu
        distances, rows = _neighbors_and_itself(prox, self.n_neighbors)
        n_entries = rows.shape[1]
        # UMAP uses only the precomputed graph, so the samples themselves do not matter.
        stand_in = np.zeros((len(rows), 1), dtype=np.float32)
        with _their_warnings_hidden():
            model = make(
                **{"n_neighbors": n_entries, "precomputed_knn": (rows, distances), **parameters}
            )
            self.coordinates = np.asarray(model.fit_transform(stand_in))


class TsneOfNeighbors(_OfNeighbors):
    """t-SNE on the exact graph of nearest neighbors."""

    def __init__(
        self,
        prox: ForestProximity,
        start: Array | None,
        n_neighbors: int,
        parameters: dict[str, Any],
    ) -> None:
        super().__init__(prox, 3 * n_neighbors)
        tsne = _require("openTSNE")
        affinity = _require("openTSNE.affinity")
        index = _require("openTSNE.nearest_neighbors")
        similarity, rows = prox.kneighbors(n_neighbors=self.n_neighbors)
        distances = np.maximum(1 - similarity, 0).astype(np.float64)
        with _their_warnings_hidden():
            affinities = affinity.PerplexityBasedNN(
                perplexity=self.n_neighbors / 3,
                knn_index=index.PrecomputedNeighbors(rows, distances),
                n_jobs=count_threads(prox.n_jobs),
            )
            model = tsne.TSNE(**{"initialization": "random", **parameters})
            begin = None if start is None else _spread(start, 1e-4)
            found = model.fit(affinities=affinities, initialization=begin)
        self.coordinates = np.asarray(found)


def _neighbors_and_itself(prox: ForestProximity, k: int) -> tuple[Array, Array]:
    """Return distances and neighbors, with each sample as its own first neighbor, for UMAP."""
    similarity, rows = prox.kneighbors(n_neighbors=k)
    distances = np.maximum(1 - similarity, 0).astype(np.float32)
    itself = np.arange(len(rows))
    return np.insert(distances, 0, 0, axis=1), np.insert(rows, 0, itself, axis=1)


def _spread(start: Array, width: float) -> Array:
    """Return principal components scaled to a given width, as a start for a layout."""
    largest = max(float(np.abs(start).max()), np.finfo(float).tiny)
    return np.ascontiguousarray(start / largest * width, dtype=np.float32)
