"""PHATE with the kernel P and landmarks.

Moon et al., Visualizing structure and transitions in high-dimensional biological data, Nature
Biotechnology 37, 2019. The kernel is P instead of a kernel computed from distances. Only matrices
between landmarks are dense.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.sparse import csr_array, vstack
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import MiniBatchKMeans

from leafkernel._validation import check_count
from leafkernel.proximity import ForestProximity

Array = npt.NDArray[Any]

_MOST_TIME = 100
_SMALLEST_PROBABILITY = 1e-7
_MDS_STEPS = 300
_MDS_TOLERANCE = 1e-5


class PhateOfKernel:
    """PHATE coordinates of the training samples, and of new samples through the landmarks.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    scores : ndarray of shape (n, c)
        Coordinates for grouping the samples into landmarks.
    n_components : int
        Number of coordinates.
    n_landmarks : int
        Largest number of landmarks.
    time : int or None
        Number of diffusion steps. By default, at the knee of the entropy.
    random_state : int or RandomState
        Seed of the grouping.
    """

    def __init__(
        self,
        prox: ForestProximity,
        scores: Array,
        n_components: int,
        *,
        n_landmarks: int = 2000,
        time: int | None = None,
        random_state: Any = None,
    ) -> None:
        if time is not None:
            check_count("time", time)
        check_count("n_landmarks", n_landmarks, at_least=2)
        self.prox = prox
        self.group = _group(scores, n_landmarks, random_state)
        to_landmarks = self._to_landmarks(None)
        back = to_landmarks.T.tocsr()
        every_sample = to_landmarks.shape[1] == len(self.group)
        if every_sample:
            walk = _normalized((to_landmarks + back).tocsr()).toarray()
        else:  # from landmark to landmark through the samples
            walk = (_normalized(back) @ _normalized(to_landmarks)).toarray()
        self.time = _best_time(walk) if time is None else time
        walk = np.linalg.matrix_power(walk, self.time)
        potential = -np.log(walk + _SMALLEST_PROBABILITY)
        self.landmarks = _metric_mds(squareform(pdist(potential)), n_components)
        self.landmarks[walk.sum(axis=1) == 0] = self.landmarks.mean(axis=0)
        # A sample that is a landmark keeps its position. The mean of its neighbors would be an
        # additional step of the diffusion.
        self.coordinates = self.landmarks if every_sample else self._place(to_landmarks)

    def transform(self, X: Any) -> Array:
        """Return the positions of new samples."""
        return self._place(self._to_landmarks(X))

    def _to_landmarks(self, X: Any) -> csr_array:
        """Return the total proximity of each sample to the samples of each landmark."""
        n = len(self.group)
        members = csr_array((np.ones(n, np.float32), (np.arange(n), self.group)))
        return vstack([block @ members for _, block in self.prox.iter_proximity(X)], format="csr")

    def _place(self, to_landmarks: csr_array) -> Array:
        placed: Array = _normalized(to_landmarks) @ self.landmarks
        nowhere = np.diff(to_landmarks.indptr) == 0
        placed[nowhere] = self.landmarks.mean(axis=0)
        return placed


def _group(scores: Array, n_groups: int, random_state: Any) -> Array:
    n = len(scores)
    if n <= n_groups:
        return np.arange(n)
    size = max(1024, 3 * n_groups)
    groups = MiniBatchKMeans(n_groups, batch_size=size, n_init=1, random_state=random_state)
    # Empty groups are not landmarks.
    return np.asarray(np.unique(groups.fit_predict(scores), return_inverse=True)[1])


def _normalized(matrix: csr_array) -> csr_array:
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    scale = 1 / np.where(sums > 0, sums, 1.0)
    sizes = np.diff(matrix.indptr)
    data = matrix.data * np.repeat(scale, sizes)
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _best_time(walk: Array) -> int:
    """Return the time at the knee of the entropy of the diffusion's spectrum."""
    # Use singular values instead of eigenvalues, as in the authors' implementation.
    values = np.linalg.svd(walk, compute_uv=False)
    entropies = []
    powers = np.ones_like(values)
    for _ in range(_MOST_TIME):
        powers = powers * values
        shares = powers / powers.sum()
        shares = shares[shares > 0]
        entropies.append(float(-(shares * np.log(shares)).sum()))
    # The index in the curve is the time, as in the authors' implementation.
    return _bend(np.array(entropies))


def _bend(curve: Array) -> int:
    """Return the knee of a curve: where two straight lines, one on each side, fit best."""
    n = len(curve)
    x = np.arange(n, dtype=float)

    def error(part: slice) -> float:
        slope, level = np.polyfit(x[part], curve[part], 1)
        return float(np.abs(curve[part] - slope * x[part] - level).sum())

    errors = [error(slice(0, i + 1)) + error(slice(i, n)) for i in range(1, n - 1)]
    return int(np.argmin(errors)) + 1


def _metric_mds(distances: Array, n_components: int) -> Array:
    """Return positions with the given distances by SMACOF, starting from classical scaling."""
    n = len(distances)
    squares = distances**2
    centered = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    k = min(n_components, n)
    values, vectors = eigh(-centered / 2, subset_by_index=(n - k, n - 1))
    places = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1]
    if k < n_components:
        places = np.pad(places, ((0, 0), (0, n_components - k)))
    total = max(float(squares.sum()), np.finfo(float).tiny)
    stress = np.inf
    for _ in range(_MDS_STEPS):
        current = squareform(pdist(places))
        before, stress = stress, float(((current - distances) ** 2).sum()) / total
        if before - stress < _MDS_TOLERANCE * stress:
            break
        ratio = -distances / np.where(current > 0, current, 1.0)
        ratio[current == 0] = 0
        ratio[np.diag_indices(n)] = -ratio.sum(axis=1) + ratio.diagonal()
        places = ratio @ places / n
    return np.asarray(places)
