"""Dask arrays and data frames as blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import numpy as np

from leafkernel.dask.graph import compute, known, task


def blocks_of(X: Any) -> tuple[list[Any], list[float]]:
    """Return the blocks of rows of X, and their sizes. Unknown sizes are NaN.

    Data in memory is a single block.
    """
    if not dask.is_dask_collection(X):
        X = X if hasattr(X, "shape") else np.asarray(X)
        return [known("data", X)], [float(X.shape[0])]
    if hasattr(X, "rechunk"):
        if X.ndim == 2 and len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        return X.to_delayed().ravel().tolist(), [float(size) for size in X.chunks[0]]
    if not hasattr(X, "to_delayed"):
        raise TypeError(
            f"X must be a Dask array or a Dask data frame; got {type(X).__name__}. Convert a bag "
            "with to_dataframe()."
        )
    blocks = list(X.to_delayed())
    return blocks, [np.nan] * len(blocks)


def sizes_of(blocks: Sequence[Any], sizes: Sequence[float]) -> list[int]:
    """Return the size of each block. Unknown sizes are computed."""
    unknown = [i for i, size in enumerate(sizes) if np.isnan(size)]
    counted = compute([task("count", len, blocks[i]) for i in unknown])
    found = dict(zip(unknown, counted, strict=True))
    return [int(found.get(i, size)) for i, size in enumerate(sizes)]


def meta_of(X: Any) -> Any:
    """Return a small object with the columns of X, for validation."""
    if not dask.is_dask_collection(X):
        return X
    if hasattr(X, "columns"):
        return X._meta  # an empty data frame; documented in Dask's developer guide
    if X.ndim != 2:
        return np.empty((0,) * X.ndim)  # the validation raises the error
    return np.empty((0, X.shape[1]), dtype=X.dtype)


def fetched(values: Any) -> Any:
    """Return targets or weights as an array in memory."""
    if values is None or not dask.is_dask_collection(values):
        return values
    return np.asarray(values.compute())
