"""Nearest neighbors written to Parquet by the workers, one file for each block of rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from leafkernel._optional import require
from leafkernel._validation import check_n_neighbors
from leafkernel.dask.graph import compute, task
from leafkernel.dask.methods import Ask
from leafkernel.inside import Inside


def write_neighbors(
    prox: Any, folder: str | os.PathLike[str], X: Any = None, n_neighbors: int = 10
) -> Path:
    """Write the nearest training samples of each sample to a folder of Parquet files.

    Every worker writes the blocks that it computes, so the folder must be one that all workers
    see. Read it with ``pandas.read_parquet(folder)`` or ``dask.dataframe.read_parquet(folder)``.

    Parameters
    ----------
    prox : ForestProximity
        A proximity that was fitted on Dask data, or one in memory with X as Dask data.
    folder : str or path-like
        The folder. It is made if it is not there.
    X : Dask array or Dask data frame, default=None
        Samples, all taken as unseen. By default the training samples.
    n_neighbors : int, default=10
        Number of neighbors.

    Returns
    -------
    pathlib.Path
        The folder. Each file has a line for each pair: ``row``, the position of the sample,
        ``neighbor``, the position of the training sample, and ``proximity``.
    """
    require("pyarrow.parquet", extra="cli")
    inside = Inside.of(prox)
    k = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
    ask = Ask.of(inside, X)
    Path(folder).mkdir(parents=True, exist_ok=True)
    begins = np.cumsum([0, *ask.product.sizes]).tolist()
    found = ask.engine.lazy_nearest(ask.product, k)
    files = [str(Path(folder).resolve() / f"part-{i:05d}.parquet") for i in range(len(found))]
    written = [task("write", _write, *one) for one in zip(found, files, begins, strict=False)]
    compute(written)
    return Path(folder)


def _write(found: Any, path: str, begin: int) -> None:
    """Write one file, and put it in its place when it is complete."""
    pyarrow, parquet = (require(name, extra="cli") for name in ("pyarrow", "pyarrow.parquet"))
    similarity, samples = found
    rows = np.repeat(np.arange(begin, begin + len(samples)), samples.shape[1])
    columns = {"row": rows, "neighbor": samples.ravel(), "proximity": similarity.ravel()}
    unfinished = f"{path}.{os.getpid()}.tmp"
    parquet.write_table(pyarrow.table(columns), unfinished)
    os.replace(unfinished, path)
