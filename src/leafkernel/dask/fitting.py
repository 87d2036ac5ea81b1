"""Fit on Dask data: route and count each partition, and keep the parts on the workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np

from leafkernel import forests
from leafkernel._targets import Targets
from leafkernel._validation import check_dtype, check_length, count_threads, describe, refuse_masked
from leafkernel.dask import pieces
from leafkernel.dask.data import blocks_of, fetched, sizes_of
from leafkernel.dask.graph import compute, known, persist, task, tree
from leafkernel.dask.kernel import DaskKernel
from leafkernel.forests.wrapped import unfreeze
from leafkernel.schemes import WeightScheme
from leafkernel.training import check_draws, complete_stats, draw_trees, warn_of_never_oob

# Every part is compared with every part, so if there are more partitions, they are joined.
_MOST_PARTS = 128
# Largest size in bytes of the in-bag weights of one task, and the smallest number of such tasks.
_DRAWN_AT_ONCE = 1 << 28
_FEWEST_DRAWS = 8


def fit(prox: Any, scheme: WeightScheme, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the attributes of a proximity fitted on Dask data."""
    if scheme.needs & {"features", "labels", "targets"} or scheme.learns:
        raise ValueError(
            f"weight_scheme={scheme.name!r} needs all training samples in one process, so it does "
            "not work with Dask data. Use another scheme, or fit on data in memory."
        )
    if "gradients" in scheme.needs:
        raise ValueError(
            f"weight_scheme={scheme.name!r} repeats steps of the training with all samples in one "
            "process, so it does not work with Dask data. Use another scheme, or fit on data in "
            "memory."
        )
    n_threads = count_threads(prox.n_jobs)
    estimator = _fitted_forest(prox.forest, X, y, sample_weight)
    forest = forests.adapt(estimator, n_threads=n_threads)
    if not hasattr(forest, "leaf_offsets"):
        raise TypeError(
            f"forest={describe(estimator)} cannot be used with Dask data, because it has no list "
            "of its leaves. Fit on data in memory, or use a forest of scikit-learn, XGBoost, "
            "LightGBM or CatBoost."
        )
    y, sample_weight = fetched(y), fetched(sample_weight)
    refuse_masked("y", y)
    refuse_masked("sample_weight", sample_weight)
    router, rule = persist(_share("forest", forest.for_workers()), _share("scheme", scheme))
    routed = [
        task("route", pieces.route, router, rule, block, n_threads) for block in blocks_of(X)[0]
    ]
    routed = persist(*routed)
    counts = sizes_of(routed, [np.nan] * len(routed))
    routed = [block for block, size in zip(routed, counts, strict=True) if size]
    sizes = [size for size in counts if size]
    if not sizes:
        raise ValueError("X has no rows. Pass at least one training sample.")
    routed, sizes = _joined(routed, sizes)
    n = sum(sizes)
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is not None and not np.isscalar(values):
            check_length(name, values, n)
    begins = np.cumsum([0, *sizes])
    cuts = [slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=False)]
    draws = _draws(forest, scheme, router, rule, y, sample_weight, cuts)
    samples = [
        task("samples", pieces.make_samples, block, drawn)
        for block, drawn in zip(routed, draws, strict=True)
    ]
    counted = [task("stats", pieces.count, router, some, n_threads) for some in samples]
    total, *samples = persist(tree("stats", pieces.add_stats, counted), *samples)
    stats = complete_stats(compute(total), forest, scheme, progress=prox.progress)
    if "in_bag" in scheme.needs:
        check_draws(stats, forest, scheme, n_threads=n_threads)
        warn_of_never_oob(_n_never_oob(samples), n, scheme)
    trees = {"weights_of_trees": stats.weights_of_trees, "nodes_of_trees": stats.nodes_of_trees}
    masses = task("stats", replace, total, **trees)
    params = {
        "diagonal": prox.diagonal,
        "symmetrize": prox.symmetrize,
        "dtype": check_dtype(prox.dtype),
        "n_threads": n_threads,
    }
    parts = [
        task("part", pieces.make_part, rule, some, masses, int(begin), **params)
        for some, begin in zip(samples, begins, strict=False)
    ]
    parts = persist(*parts)
    # Compute the parts now, so that errors in the weights are raised by fit.
    compute([task("count", pieces.n_samples, part) for part in parts])
    kernel = DaskKernel(
        scheme=scheme,
        parts=tuple(parts),
        sizes=tuple(sizes),
        router=router,
        forest=stats,
        dtype=params["dtype"],
        symmetrize=prox.symmetrize and not scheme.symmetric,
        diagonal=prox.diagonal,
    )
    targets = Targets(y)
    return {
        "kernel_": kernel,
        "forest_": estimator,
        "n_trees_": len(forest.leaf_offsets) - 1,
        "n_leaves_": int(forest.leaf_offsets[-1]),
        "n_samples_fit_": n,
        "index_": range(n),
        "y_": targets.values,
        "_targets": targets,
        "_samples": None,
        "_sample_weight": None if sample_weight is None else np.array(sample_weight),
        "_router": forest,
    }


def _fitted_forest(forest: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the fitted forest, or fit a forest that can be trained on Dask data."""
    if isinstance(forest, type) or forests.is_fitted(unfreeze(forest)):
        return forests.fit_if_needed(forest, X, y, sample_weight)
    if "dask" not in type(forest).__module__:
        raise ValueError(
            f"forest={describe(forest)} is not fitted, and it cannot be fitted on Dask data. Fit "
            "it first on samples in memory ('gap' and 'oob' require a fit on all samples), or use "
            "xgboost.dask.DaskXGBClassifier or lightgbm.DaskLGBMClassifier."
        )
    return forests.fit_if_needed(forest, X, y, sample_weight)


def _joined(routed: list[Any], sizes: list[int]) -> tuple[list[Any], list[int]]:
    """Join neighboring partitions if there are too many."""
    if len(sizes) <= _MOST_PARTS:
        return routed, sizes
    at = (np.cumsum(sizes) - 1) * _MOST_PARTS // sum(sizes)
    groups = [np.flatnonzero(at == i) for i in np.unique(at)]
    blocks = [task("join", pieces.join, [routed[i] for i in group]) for group in groups]
    return blocks, [sum(sizes[i] for i in group) for group in groups]


def _draws(
    forest: forests.FittedForest,
    scheme: WeightScheme,
    router: Any,
    rule: Any,
    y: Any,
    sample_weight: Any,
    cuts: list[slice],
) -> list[list[Any]]:
    """Return tasks for the in-bag weights of each part, a few trees at a time."""
    if "in_bag" not in scheme.needs:
        return [[] for _ in cuts]
    n, n_trees = cuts[-1].stop, len(forest.leaf_offsets) - 1
    at_once = max(1, min(_DRAWN_AT_ONCE // int(n), -(-n_trees // _FEWEST_DRAWS)))
    targets, weights = known("targets", y), known("targets", sample_weight)
    drawn = [
        task("draw", draw_trees, router, rule, slice(t, t + at_once), targets, weights, int(n))
        for t in range(0, n_trees, at_once)
    ]
    return [[task("draw", pieces.cut_draws, some, rows) for some in drawn] for rows in cuts]


def _n_never_oob(samples: list[Any]) -> int:
    """Return the number of training samples that are in bag in every tree."""
    return int(sum(compute([task("count", pieces.never_oob, some) for some in samples])))


def _share(name: str, value: Any) -> Any:
    """Return an object as a task that can be repeated if a worker fails."""
    return task(name, cloudpickle.loads, cloudpickle.dumps(value))
