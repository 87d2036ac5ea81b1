"""How scikit-learn's forests drew and weighed the training samples of each tree.

RF-GAP reproduces a forest only with the weights that its trees were really trained with. The draws
come from public API (``estimators_samples_``, scikit-learn 1.4 on). How weights enter does not,
and changed with 1.9, so the rules stand here, read on the sources of 1.4.0, 1.8.0 and 1.9.1:

* before 1.9 the weight of a sample in a tree is its bootstrap count times ``sample_weight`` times
  ``class_weight``;
* from 1.9 on ``sample_weight`` and ``class_weight`` steer the draw, and the count alone is the
  weight;
* in both, ``class_weight="balanced_subsample"`` multiplies by balanced class weights of each draw.

Draws that no weight steers are ``RandomState(seed).randint(0, n_samples, n_draws)``, with the seed
of each tree. The compiled core draws and counts them, for many trees at once. It is used only if it
gives what ``estimators_samples_`` gives for the first tree.

Whatever comes out is checked against what the trees recorded (:func:`check_leaf_masses`), so a rule
that no longer holds, or another training set, is refused instead of giving wrong numbers.
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
# Seen on 1.4.0 to 1.7.2: trees grown on samples with missing values send some of these to other
# leaves than those they were trained in. Nothing can be recovered.
MISSING_VALUES_STRAY = _installed < parse_version("1.8")

_OWN = "in-bag weights belong to the samples that the forest was fitted on, so give exactly those."


def recover_in_bag(
    forest: Any, y: Any, sample_weight: Any, n_samples: int, *, n_threads: int = 1
) -> InBag:
    """Return the weights with which each tree of a fitted forest was trained, shape (n, T)."""
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
    """Return the weights with which each tree of a fitted Bagging or IsolationForest was trained.

    Draws are counted, with or without replacement. ``sample_weight`` multiplies the counts, or, in
    versions that keep it (1.8 on), it steered the draw.
    """
    _check_size(bagging, n_samples)
    if getattr(bagging.estimators_[0], "class_weight", None) is not None:
        raise Unavailable(
            f"the trees of {describe(bagging)} weigh samples by class on top of its draws, which "
            "is not recovered; use 'kerf', or RandomForestClassifier(class_weight=...)"
        )
    counts = _count(bagging.estimators_samples_, n_samples)
    if counts.shape[1] != len(bagging.estimators_):
        raise Unavailable(
            f"{describe(bagging)} was grown with warm_start and forgot its earlier draws; fit it "
            "at once, or use 'kerf'"
        )
    if counts.all():
        raise Unavailable(
            f"{describe(bagging)} has none: every tree saw every sample; refit with a smaller "
            "max_samples or bootstrap=True, or use 'kerf'"
        )
    if hasattr(bagging, "_sample_weight"):
        _check_same_weights(bagging, sample_weight)
        return InBag(counts, counts == 0)
    if sample_weight is None:
        return InBag(counts, counts == 0)
    return InBag(counts * np.reshape(sample_weight, (-1, 1)).astype(np.float64), counts == 0)


def _recover_resampled(forest: Any, sample_weight: Any, n_samples: int) -> InBag:
    """Return the draws of a forest with a sampler for each tree (imbalanced-learn's)."""
    if sample_weight is not None or forest.class_weight is not None:
        raise Unavailable(
            f"{describe(forest)} resamples, and how it weighs samples on top of that is not "
            "recovered; fit it without sample_weight and class_weight, or use 'kerf'"
        )
    draws = []
    for sampler, tree in zip(forest.samplers_, forest.estimators_, strict=True):
        resampled = sampler.sample_indices_
        if int(resampled.max()) >= n_samples:
            raise ValueError(
                f"{describe(forest)} was fitted on more than the {n_samples} samples of X; {_OWN}"
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
    """Return how many samples a tree draws, as scikit-learn reads ``max_samples``."""
    size = forest.max_samples
    if size is None:
        return n_samples
    return int(size) if isinstance(size, (int, np.integer)) else max(round(n_samples * size), 1)


def _check_size(forest: Any, n_samples: int) -> None:
    n_trained = getattr(forest, "_n_samples", n_samples)
    if n_samples != n_trained:
        raise ValueError(
            f"{describe(forest)} was fitted on {n_trained} samples, but X has {n_samples}; {_OWN}"
        )


def _count(draws: Any, n_samples: int) -> Array:
    return np.stack([np.bincount(drawn, minlength=n_samples) for drawn in draws], axis=1)


def _count_from_seeds(forest: Any, n_samples: int, n_threads: int) -> npt.NDArray[np.uint8] | None:
    """Return how often each tree drew each sample, shape (n, T), from the seeds of the trees.

    None where the trees draw in another way, or a count exceeds 255.
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
    """Return the samples that some trees drew, by scikit-learn's public API."""
    part = copy(forest)
    part.estimators_ = forest.estimators_[trees]
    if not hasattr(forest, "_n_samples"):  # scikit-survival < 0.24
        part._n_samples = n_samples
        part._n_samples_bootstrap = _bootstrap_size(forest, n_samples)
    return [np.ascontiguousarray(d, dtype=np.int32) for d in part.estimators_samples_]


def _draw_again(forest: Any, n_samples: int, n_threads: int) -> list[npt.NDArray[np.int32]]:
    """Return the samples that each tree drew, drawn again from its seed."""

    def draw(trees: slice) -> list[npt.NDArray[np.int32]]:
        return _draw(forest, n_samples, trees)

    n_trees = len(forest.estimators_)
    step = -(-n_trees // n_threads)
    parts = [slice(begin, begin + step) for begin in range(0, n_trees, step)]
    if len(parts) == 1:
        return draw(parts[0])
    with ThreadPoolExecutor(n_threads) as pool:  # NumPy draws without holding the interpreter
        return [drawn for part in pool.map(draw, parts) for drawn in part]


def _weighting(
    forest: Any, y: Any, sample_weight: Any, n_samples: int
) -> tuple[Array | None, bool]:
    """Return the weight of each sample on top of its counts, and whether each draw is balanced."""
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
    """Refuse weights that a forest, whose draws they steered, was not fitted with."""
    if sample_weight is None:
        return
    used = 1.0 if forest._sample_weight is None else forest._sample_weight
    if not np.allclose(np.asarray(sample_weight, dtype=np.float64), used):
        raise ValueError(
            f"sample_weight differs from the one that {describe(forest)} was fitted with, and "
            "its draws are fixed; leave it out, or fit the forest with these weights."
        )


def _require_y(forest: Any, y: Any) -> Any:
    if y is None:
        raise ValueError(
            f"{describe(forest, class_weight=forest.class_weight)} weighs samples by class, so its "
            "in-bag weights need y; pass the y that it was fitted on."
        )
    return y


def check_leaf_masses(
    forest: Any, masses: Array, leaf_offsets: Array, *, n_threads: int = 1
) -> None:
    """Refuse in-bag weights that are not those of the trees, leaf by leaf.

    Each tree recorded the weight that it was trained with in every node. Samples other than the
    forest's own, or a missing ``sample_weight``, add up to something else in some leaf.

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
    hint = "X must hold the same samples in the same order as in the forest's own fit"
    if not WEIGHTS_STEER_THE_DRAW:
        hint += ", and sample_weight, if one was used there, must be passed here too"
    if MISSING_VALUES_STRAY:
        hint += (
            " (if X has missing values: scikit-learn < 1.8 routes some of them elsewhere after "
            "training, so that no X adds up; use 1.8 or later, or 'kerf')"
        )
    raise Unavailable(
        f"these are not the samples that {describe(forest)} was fitted on: the training weights "
        f"that tree {t} recorded in its leaves do not add up; {hint}"
    )
