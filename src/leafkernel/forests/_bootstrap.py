"""Recover the in-bag weights of scikit-learn forests.

RF-GAP reproduces the predictions of a forest only with the exact weights that its trees were
trained with. The draws are available through public API (``estimators_samples_``, since
scikit-learn 1.4). The use of sample and class weights is not, and it changed in 1.9. The rules
below were taken from the sources of 1.4.0, 1.8.0 and 1.9.1:

* Before 1.9, the weight of a sample in a tree is its bootstrap count times ``sample_weight`` times
  ``class_weight``.
* Since 1.9, ``sample_weight`` and ``class_weight`` are the probabilities of the draw, and the
  weight is the count alone.
* In both, ``class_weight="balanced_subsample"`` multiplies by the balanced class weights of each
  draw.

Unweighted draws are ``RandomState(seed).randint(0, n_samples, n_draws)``, with the seed of each
tree. The compiled core draws and counts them for many trees at once. It is used only if it
reproduces ``estimators_samples_`` for the first tree.

The weights are then checked against the values stored in the trees (:func:`check_leaf_masses`). If
a rule no longer holds, or X is not the training set, an error is raised.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.fixes import parse_version

import leafkernel._native as core
from leafkernel._validation import describe
from leafkernel.forests._base import Array, InBag, Unavailable

_installed = parse_version(sklearn.__version__)
WEIGHTS_STEER_THE_DRAW = _installed >= parse_version("1.9")
# In 1.4.0 to 1.7.2, fitted trees send some samples with missing values to other leaves than during
# training. Their in-bag weights cannot be checked.
MISSING_VALUES_STRAY = _installed < parse_version("1.8")

_OWN = (
    "The weight scheme depends on the bootstrap samples, so pass the X that the forest was fitted "
    "on. For other samples, use 'kerf' or 'uniform'."
)


def recover_in_bag(
    forest: Any, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
) -> InBag:
    """Return the in-bag weights of a fitted forest, shape (n, T)."""
    if hasattr(forest, "samplers_"):
        return _recover_resampled(forest, sample_weight, n_samples)
    _check_size(forest, n_samples)
    row_weight, per_draw = _weighting(forest, y, sample_weight, n_samples)
    draws: list[npt.NDArray[np.int32]] | None = None
    counts = None if per_draw else _count_from_seeds(forest, n_samples, n_threads)
    if counts is None:
        draws = _draw_again(forest, n_samples, n_threads)
        counts = core.count_draws(draws, n_samples, n_threads)
    if counts is None:  # some sample was drawn more than 255 times
        counts = _count(draws, n_samples)
    if row_weight is None and not per_draw:
        is_byte = counts.dtype == np.uint8
        return InBag(counts, core.zeros(counts, n_threads) if is_byte else counts == 0)
    weights = counts.astype(np.float64)
    if row_weight is not None:
        weights *= row_weight[:, None]
    if draws is not None and per_draw:
        for t, drawn in enumerate(draws):
            weights[:, t] *= compute_sample_weight("balanced", y, indices=drawn)
    return InBag(weights, counts == 0)


def recover_bagging(bagging: Any, sample_weight: Any, n_samples: int) -> InBag:
    """Return the in-bag weights of a fitted Bagging or IsolationForest.

    The weights are the counts of the draws, with or without replacement. ``sample_weight``
    multiplies the counts. In versions that store it (since 1.8), it is the probability of the draw
    instead.
    """
    _check_size(bagging, n_samples)
    if getattr(bagging.estimators_[0], "class_weight", None) is not None:
        raise Unavailable(
            f"the trees of {describe(bagging)} use class_weight, so their in-bag weights cannot be "
            "computed; use 'kerf', or RandomForestClassifier(class_weight=...)"
        )
    counts = _count(bagging.estimators_samples_, n_samples)
    if counts.shape[1] != len(bagging.estimators_):
        raise Unavailable(
            f"{describe(bagging)} was fitted in several steps (warm_start=True) and stores only "
            "the bootstrap samples of the last step; fit it in one step, or use 'kerf'"
        )
    if counts.all():
        raise Unavailable(
            f"{describe(bagging)} has none: every tree was trained on every sample. Refit with a "
            "smaller max_samples or bootstrap=True, or use 'kerf'"
        )
    if hasattr(bagging, "_sample_weight"):
        _check_same_weights(bagging, sample_weight)
        return InBag(counts, counts == 0)
    if sample_weight is None:
        return InBag(counts, counts == 0)
    return InBag(counts * np.reshape(sample_weight, (-1, 1)).astype(np.float64), counts == 0)


def _recover_resampled(forest: Any, sample_weight: Any, n_samples: int) -> InBag:
    """Return the in-bag weights of a forest with a sampler for each tree (imbalanced-learn)."""
    if sample_weight is not None or forest.class_weight is not None:
        raise Unavailable(
            f"{describe(forest)} resamples the data, so in-bag weights with sample_weight or "
            "class_weight cannot be computed; fit it without them, or use 'kerf'"
        )
    draws = []
    for sampler, tree in zip(forest.samplers_, forest.estimators_, strict=True):
        resampled = sampler.sample_indices_
        if int(resampled.max()) >= n_samples:
            raise ValueError(
                f"X has {n_samples} samples, but {describe(forest)} was fitted on more. {_OWN}"
            )
        part = copy(forest)
        part.estimators_ = [tree]
        part._n_samples = len(resampled)
        part._n_samples_bootstrap = min(_bootstrap_size(forest, n_samples), len(resampled))
        part._sample_weight = None
        draws.append(resampled[part.estimators_samples_[0]])
    counts = _count(draws, n_samples)
    return InBag(counts, counts == 0)


def _bootstrap_size(forest: Any, n_samples: int) -> int:
    """Return the number of samples that each tree draws, given ``max_samples``."""
    size = forest.max_samples
    if size is None:
        return n_samples
    return int(size) if isinstance(size, (int, np.integer)) else max(round(n_samples * size), 1)


def _check_size(forest: Any, n_samples: int) -> None:
    n_trained = getattr(forest, "_n_samples", n_samples)
    if n_samples != n_trained:
        raise ValueError(
            f"X has {n_samples} samples, but {describe(forest)} was fitted on {n_trained}. {_OWN}"
        )


def _count(draws: Any, n_samples: int) -> Array:
    return np.stack([np.bincount(drawn, minlength=n_samples) for drawn in draws], axis=1)


def _count_from_seeds(forest: Any, n_samples: int, n_threads: int) -> npt.NDArray[np.uint8] | None:
    """Count how often each tree drew each sample, from the seeds of the trees, shape (n, T).

    Return None if the trees draw in another way, or if a count exceeds 255.
    """
    seeds = [tree.random_state for tree in forest.estimators_]
    is_steered = getattr(forest, "_sample_weight", None) is not None
    if is_steered or not all(_is_seed(seed) for seed in seeds):
        return None
    first = _draw(forest, n_samples, slice(1))[0]
    given = np.array(seeds, dtype=np.uint32)
    counts = core.count_seeded_draws(given, n_samples, len(first), n_threads)
    if counts is None or not np.array_equal(counts[:, :1], _count([first], n_samples)):
        return None
    return counts


def _is_seed(seed: Any) -> bool:
    return isinstance(seed, (int, np.integer)) and 0 <= int(seed) < 2**32


def _draw(forest: Any, n_samples: int, trees: slice) -> list[npt.NDArray[np.int32]]:
    """Return the samples drawn by some trees, through scikit-learn's public API."""
    part = copy(forest)
    part.estimators_ = forest.estimators_[trees]
    if not hasattr(forest, "_n_samples"):  # scikit-survival < 0.24
        part._n_samples = n_samples
        part._n_samples_bootstrap = _bootstrap_size(forest, n_samples)
    return [np.ascontiguousarray(d, dtype=np.int32) for d in part.estimators_samples_]


def _draw_again(forest: Any, n_samples: int, n_threads: int) -> list[npt.NDArray[np.int32]]:
    """Return the samples drawn by each tree, reproduced from its seed."""

    def draw(trees: slice) -> list[npt.NDArray[np.int32]]:
        return _draw(forest, n_samples, trees)

    n_trees = len(forest.estimators_)
    step = -(-n_trees // n_threads)
    parts = [slice(begin, begin + step) for begin in range(0, n_trees, step)]
    if len(parts) == 1:
        return draw(parts[0])
    with ThreadPoolExecutor(n_threads) as pool:  # NumPy releases the GIL while drawing
        return [drawn for part in pool.map(draw, parts) for drawn in part]


def _weighting(
    forest: Any, y: Any, sample_weight: Any, n_samples: int
) -> tuple[Array | None, bool]:
    """Return the factor of each sample's counts, and whether each draw is balanced."""
    class_weight = getattr(forest, "class_weight", None)
    per_draw = isinstance(class_weight, str) and class_weight == "balanced_subsample"
    row_weight = None
    if not WEIGHTS_STEER_THE_DRAW:
        if sample_weight is not None:
            row_weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n_samples)
        if class_weight is not None and not per_draw:
            by_class = compute_sample_weight(class_weight, _require_y(forest, y))
            row_weight = by_class if row_weight is None else row_weight * by_class
    elif class_weight is None:
        _check_same_weights(forest, sample_weight)
    if per_draw:
        _require_y(forest, y)
    return row_weight, per_draw


def _check_same_weights(forest: Any, sample_weight: Any) -> None:
    """Raise an error for other weights than those of the forest's own draws."""
    if sample_weight is None:
        return
    used = 1.0 if forest._sample_weight is None else forest._sample_weight
    if not np.allclose(np.asarray(sample_weight, dtype=np.float64), used):
        raise ValueError(
            f"sample_weight differs from the weights that {describe(forest)} was fitted with. Omit "
            "it, or fit the forest again with these weights."
        )


def _require_y(forest: Any, y: Any) -> Any:
    if y is None:
        raise ValueError(
            f"y is missing, but {describe(forest, class_weight=forest.class_weight)} needs it to "
            "compute the in-bag weights. Pass the y that the forest was fitted on."
        )
    return y


def check_leaf_masses(
    forest: Any, masses: Array, leaf_offsets: Array, *, n_threads: int = 1
) -> None:
    """Raise an error if the in-bag weights in each leaf do not match the fitted trees.

    Each tree stores the training weight of every node. With other samples, or without the
    ``sample_weight`` of the fit, the sums differ in some leaf.

    Parameters
    ----------
    forest : fitted forest of scikit-learn
    masses : ndarray of float64 of shape (L,)
        Sum of the in-bag weights over the samples in each leaf, in the order of the nodes.
    leaf_offsets : ndarray of shape (T + 1,)
        First leaf id of each tree.
    """
    trees = [estimator.tree_ for estimator in forest.estimators_]
    t = core.find_other_masses(trees, masses, leaf_offsets, n_threads)
    if t < 0:
        return
    hint = (
        "The weight scheme depends on the bootstrap samples, so pass the X that the forest was "
        "fitted on, with its rows in the same order"
    )
    if not WEIGHTS_STEER_THE_DRAW:
        hint += " and the same sample_weight, if any"
    hint += ". For other samples, use 'kerf' or 'uniform'"
    if MISSING_VALUES_STRAY:
        hint += (
            ". If X has missing values, scikit-learn < 1.8 can send them to other leaves in "
            "prediction than in training. Use scikit-learn 1.8 or later, or 'kerf'"
        )
    raise ValueError(
        f"X does not match the rows that {describe(forest)} was fitted on: the samples in the "
        f"leaves of tree {t} differ. {hint}."
    )
