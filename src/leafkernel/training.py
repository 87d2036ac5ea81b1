"""Read what a scheme needs about the training samples from a fitted forest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.multiclass import type_of_target

from leafkernel._optional import as_cupy, is_on_gpu
from leafkernel._progress import track
from leafkernel._targets import check_labels, refuse_missing, target_of
from leafkernel._validation import check_length, warn
from leafkernel.forests import FittedForest, InBag, RouteTable, Unavailable
from leafkernel.leaf_index import CountLeaves, ForestStats, Samples
from leafkernel.schemes import WeightScheme

#: Finds the leaves of float32 samples in packed trees, or returns None.
Route = Callable[[RouteTable, Any], "npt.NDArray[Any] | None"]


def read_samples(
    forest: FittedForest,
    scheme: WeightScheme,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    n_threads: int,
    route: Route | None = None,
) -> Samples:
    """Return the training samples with the information that the scheme needs."""
    route = None if forest.learns_leaves else route
    X = from_device(X, forest, scheme, route)
    leaf = leaves_by(route, forest, X)
    if leaf is None:
        leaf = forest.training_leaves(X, n_threads=n_threads)
    check_rows(forest, X, leaf)
    return complete_samples(Samples(leaf), forest, scheme, X, y, sample_weight, n_threads=n_threads)


def from_device(X: Any, forest: FittedForest, scheme: WeightScheme, route: Route | None) -> Any:
    """Return X, copied to main memory if it is on a device that does not find its leaves."""
    if not is_on_gpu(X):
        return X
    X = as_cupy(X)
    stays = route is not None and "features" not in scheme.needs and forest.packed(X) is not None
    return X if stays else X.get()


def leaves_by(route: Route | None, forest: FittedForest, X: Any) -> npt.NDArray[Any] | None:
    """Return the leaves that a device finds, or None if it does not."""
    packed = None if route is None else forest.packed(X)
    return None if packed is None or route is None else route(*packed)


def complete_samples(
    samples: Samples,
    forest: FittedForest,
    scheme: WeightScheme,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    n_threads: int,
) -> Samples:
    """Add the information that the scheme needs and that is not known yet.

    X may be None if the samples are not available. Few schemes need it.
    """
    known: dict[str, Any] = {}
    if uses_in_bag(scheme) and samples.in_bag_weights is None:
        with _needed_by(scheme, "bootstrap samples (in-bag weights)", "in_bag"):
            in_bag = forest.in_bag(X, y, sample_weight, samples.leaf, n_threads=n_threads)
            _check_range(in_bag.weights)
            known = {"in_bag_weights": in_bag.weights, "oob_flags": in_bag.is_oob}
    if "labels" in scheme.needs and samples.labels is None:
        known["labels"] = class_codes(y, scheme, forest)
    if "targets" in scheme.needs and samples.targets is None:
        known["targets"] = read_targets(y, scheme, forest, samples.n_samples)
    if "features" in scheme.needs and samples.feature_values is None:
        if X is None:
            raise ValueError(
                f"X is missing, but weight_scheme={scheme.name!r} needs the features of the "
                "training samples. Pass X."
            )
        known["feature_values"] = read_features(forest, scheme, X)
    if "gradients" in scheme.needs and samples.leaf_parts is None:
        with _needed_by(scheme, "gradients"):
            known["leaf_parts"] = forest.contributions(
                y, sample_weight, samples.leaf, objective=getattr(scheme, "objective", None)
            )
    return replace(samples, **known)


def more_samples(
    forest: FittedForest, scheme: WeightScheme, unseen: Samples, stats: ForestStats
) -> Samples:
    """Return new samples as reference samples, if the scheme allows it."""
    if "in_bag" in scheme.needs:
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs in-bag weights, but new samples have none. Use "
            "prox.reweigh('kerf').extend(...), or fit a new forest on all samples."
        )
    if "gradients" in scheme.needs:
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs the gradients of the training, but new samples "
            "have none. Use 'kerf' or 'uniform', or train a new model on all samples."
        )
    if forest.learns_leaves and not stats.leaf_mass[unseen.leaf].all():
        row = int(np.flatnonzero((stats.leaf_mass[unseen.leaf] == 0).any(axis=1))[0])
        raise ValueError(
            f"X[{row}] reaches a leaf that no training sample reached, and {forest} has no list of "
            "its leaves. Fit again with all samples."
        )
    more = Samples(unseen.leaf, feature_values=unseen.feature_values)
    if "in_bag" in scheme.optional_needs:  # no tree was trained on them
        more = replace(more, in_bag_weights=unseen.in_bag, oob_flags=unseen.is_oob)
    return more


def _check_range(in_bag: npt.NDArray[Any]) -> None:
    """Raise an error if sums or reciprocals of the in-bag weights could overflow float64."""
    if in_bag.dtype.kind != "f":
        return
    low, high = np.min(in_bag, where=in_bag > 0, initial=1.0), np.max(in_bag, initial=1.0)
    if low < 1e-300 or high > 1e300:
        raise ValueError(
            f"in-bag weights must be 0 or between 1e-300 and 1e300; found {low:.3g} to "
            f"{high:.3g}. Divide all weights by the same number; only their ratios matter."
        )


def check_rows(forest: FittedForest, X: Any, leaf: npt.NDArray[Any]) -> None:
    """Raise an error if a forest does not return one row of leaves for each sample."""
    n_samples = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
    if leaf.shape[0] != n_samples:
        raise ValueError(
            f"leaves(X) of {forest} returned {leaf.shape[0]} rows, but X has {n_samples} samples. "
            "It must return one row for each sample."
        )


def read_features(
    forest: FittedForest, scheme: WeightScheme, X: Any
) -> npt.NDArray[np.float64] | None:
    """Return the features of the samples as a dense array, if the scheme needs them."""
    if "features" not in scheme.needs:
        return None
    with _needed_by(scheme, "numeric features"):
        return forest.features(X)


def read_stats(
    forest: FittedForest,
    scheme: WeightScheme,
    samples: Samples,
    *,
    progress: bool,
    n_threads: int,
    stats: ForestStats | None = None,
    rows_at_once: int | None = None,
    count: CountLeaves | None = None,
) -> ForestStats:
    """Return the statistics of leaves and trees that the scheme needs.

    Statistics that are in ``stats`` (of the same samples) are not computed again. A device may
    count the samples of leaves with ``count``.
    """
    has_in_bag = uses_in_bag(scheme) and samples.in_bag_weights is not None
    weighs_leaves = has_in_bag and (stats is None or stats.in_bag_masses is None)
    if stats is None or weighs_leaves:
        counted = _count(samples, forest, rows_at_once, n_threads=n_threads, count=count)
        if stats is not None:
            counted = replace(
                counted,
                weights_of_trees=stats.weights_of_trees,
                features_on_paths=stats.features_on_paths,
                nodes_of_trees=stats.nodes_of_trees,
                base_scores_of_outputs=stats.base_scores_of_outputs,
                outputs_of_trees=stats.outputs_of_trees,
                labels_of_outputs=stats.labels_of_outputs,
                link_of_outputs=stats.link_of_outputs,
            )
        stats = counted
    stats = complete_stats(stats, forest, scheme, progress=progress)
    if weighs_leaves:
        check_draws(stats, forest, scheme, n_threads=n_threads)
    if weighs_leaves and scheme.out_of_bag:
        samples.count_oob_trees(n_threads=n_threads)
        n_never = int((samples.n_oob_trees == 0).sum())
        warn_of_never_oob(n_never, samples.n_samples, scheme)
    return stats


def complete_stats(
    stats: ForestStats, forest: FittedForest, scheme: WeightScheme, *, progress: bool
) -> ForestStats:
    """Add the statistics of the trees that the scheme needs."""
    known: dict[str, Any] = {"track": partial(track, enabled=progress)}
    if "tree_weights" in scheme.needs and stats.weights_of_trees is None:
        with _needed_by(scheme, "tree weights"):
            known["weights_of_trees"] = forest.tree_weights(stats.leaf_mass)
        if not np.isfinite(known["weights_of_trees"]).all():
            raise ValueError(
                f"weight_scheme={scheme.name!r} needs finite tree weights, but those of {forest} "
                "are not finite. Pass your own with Boosted(tree_weights=...)."
            )
        if not known["weights_of_trees"].any():
            warn(
                "All tree weights are zero, so all proximities are zero. The trees add nothing to "
                "the model; y may be constant."
            )
    if "paths" in scheme.needs and stats.features_on_paths is None:
        with _needed_by(scheme, "tree paths"):
            known["features_on_paths"] = forest.path_features()
    if "trees" in scheme.needs and stats.nodes_of_trees is None:
        with _needed_by(scheme, "the nodes of the trees"):
            known["nodes_of_trees"] = forest.nodes()
    if "gradients" in scheme.needs and forest.outputs is not None:
        known["base_scores_of_outputs"] = forest.outputs.base_scores
        known["outputs_of_trees"] = forest.outputs.of_tree
        known["labels_of_outputs"] = _plain(forest.outputs.labels)
        known["link_of_outputs"] = np.array([str(forest.outputs.link or "")])
    return replace(stats, **known)


def _plain(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels with a native NumPy dtype, which can be saved, if possible."""
    given = labels.tolist()
    plain = np.array(given)
    return plain if plain.ndim == 1 and plain.tolist() == given else labels


def check_draws(
    stats: ForestStats, forest: FittedForest, scheme: WeightScheme, *, n_threads: int = 1
) -> None:
    """Raise an error if the in-bag weights in each leaf do not match the fitted trees."""
    with _needed_by(scheme, "bootstrap samples (in-bag weights)"):
        forest.check_in_bag(stats.in_bag_mass, n_threads=n_threads)


def draw_trees(
    forest: FittedForest,
    scheme: WeightScheme,
    trees: slice,
    y: Any,
    sample_weight: Any,
    n_samples: int,
) -> InBag:
    """Return the in-bag weights of some trees, for samples that are distributed."""
    with _needed_by(scheme, "bootstrap samples (in-bag weights)"):
        in_bag = forest.in_bag_of_trees(trees, y, sample_weight, n_samples)
    _check_range(in_bag.weights)
    return in_bag


def _count(
    samples: Samples, forest: FittedForest, rows_at_once: int | None, **known: Any
) -> ForestStats:
    """Return the statistics of leaves, counted in blocks of rows to limit memory use."""
    if rows_at_once is None or samples.n_samples <= rows_at_once:
        return ForestStats.of(samples, forest.leaf_offsets, **known)
    begins = range(0, samples.n_samples, rows_at_once)
    parts = (samples.rows(slice(begin, begin + rows_at_once)) for begin in begins)
    counted = (ForestStats.of(part, forest.leaf_offsets, **known) for part in parts)
    return reduce(ForestStats.plus, counted)


def uses_in_bag(scheme: WeightScheme) -> bool:
    """Return whether a scheme uses in-bag weights, at least if the forest has them."""
    return "in_bag" in scheme.needs | scheme.optional_needs


@contextmanager
def _needed_by(scheme: WeightScheme, what: str, need: str = "") -> Iterator[None]:
    """Name the scheme and its need in an error of the forest. Ignore it if the need is optional."""
    try:
        yield
    except Unavailable as error:
        if need in scheme.optional_needs - scheme.needs:
            return
        raise ValueError(f"weight_scheme={scheme.name!r} needs {what}, but {error}.") from error


def warn_of_never_oob(n_never: int, n_samples: int, scheme: WeightScheme) -> None:
    """Warn if training samples are in bag in every tree."""
    if n_never:
        warn(
            f"{n_never} of {n_samples} training samples are in bag in every tree, so they have no "
            f"out-of-bag neighbors with weight_scheme={scheme.name!r}. Use more trees."
        )


def read_targets(
    y: Any, scheme: WeightScheme, forest: FittedForest, n_samples: int
) -> npt.NDArray[Any]:
    """Return the classes of the training samples as integers, or their numbers as float64."""
    if y is None:
        raise ValueError(
            f"y is missing, but weight_scheme={scheme.name!r} needs the targets of the training "
            "samples. Pass y."
        )
    values = np.zeros((0, 0)) if issparse(y) else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.names:
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs one target for each sample, but y has "
            f"{'several fields' if values.dtype.names else f'shape {np.shape(y)}'}. Pass one class "
            "or number for each sample."
        )
    check_length("y", values, n_samples)
    refuse_missing(values)
    if forest.predicts_classes():  # then numbers are classes, too
        return np.unique(values, return_inverse=True)[1].ravel()
    if not forest.predicts_numbers() and target_of(values) == "classes":
        return check_labels(values, n_samples)[1]
    try:
        numbers: npt.NDArray[np.float64] = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs numbers as targets, because {forest} is a "
            f"regressor, but y has dtype {values.dtype} ({error}). Pass numbers."
        ) from error
    return numbers


def class_codes(y: Any, scheme: WeightScheme, forest: FittedForest) -> npt.NDArray[np.intp]:
    """Return the class of each training sample as an index, or raise an error."""
    if forest.predicts_numbers():
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs class labels, but {forest} is a regressor. Use a "
            "classifier, or another scheme."
        )
    if y is None:
        raise ValueError(
            f"y is missing, but weight_scheme={scheme.name!r} needs class labels. Pass y."
        )
    kind = "structured" if np.asarray(y).dtype.names else type_of_target(y)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs class labels, but y is {kind}. Pass one label "
            "for each sample."
        )
    codes: npt.NDArray[np.intp] = np.unique(np.asarray(y).ravel(), return_inverse=True)[1].ravel()
    return codes
