"""Write results to Parquet files on the workers, one for each block of rows."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leafkernel._optional import require
from leafkernel._validation import check_choice, check_n_neighbors
from leafkernel.dask.graph import compute, task
from leafkernel.dask.methods import Ask
from leafkernel.inside import Inside


def write_neighbors(
    inside: Inside,
    path: str | os.PathLike[str],
    X: Any = None,
    n_neighbors: int = 10,
    *,
    by: str = "value",
) -> Path:
    """Write the most similar training samples of each sample to a folder of Parquet files."""
    check_choice("by", by, ("value", "magnitude"))
    k = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
    ask = Ask.of(inside, X)
    found = ask.engine.lazy_nearest(ask.product, k, by_magnitude=by == "magnitude")
    return _write_blocks(ask, Path(path), [[block] for block in found], _pairs_of_neighbors)


def write_proximity(inside: Inside, path: str | os.PathLike[str], X: Any = None) -> Path:
    """Write the nonzeros of P to a folder of Parquet files."""
    ask = Ask.of(inside, X)
    begins = np.cumsum([0, *ask.kernel.sizes]).tolist()
    blocks = ask.engine.lazy_rows(ask.product)
    return _write_blocks(ask, Path(path), blocks, partial(_pairs_of_blocks, begins))


def _write_blocks(ask: Ask, folder: Path, blocks: list[list[Any]], pairs_of: Any) -> Path:
    require("pyarrow.parquet", extra="cli")
    if folder.suffix == ".npy":
        raise ValueError(
            f"path={folder.name!r} must be a folder: with Dask, results are written as a folder of "
            "Parquet files."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(
            f"path={str(folder)!r} is not empty. Use a new folder, or delete it first."
        )
    begins = np.cumsum([0, *ask.product.sizes]).tolist()
    files = [str(folder.resolve() / f"part-{i:05d}.parquet") for i in range(len(blocks))]
    compute(
        [
            task("write", _write, pairs_of, path, begin, *row)
            for row, path, begin in zip(blocks, files, begins, strict=False)
        ]
    )
    return folder


def _pairs_of_neighbors(found: Any) -> tuple[Any, Any, Any]:
    similarity, samples = found
    row, rank = np.nonzero(similarity)
    return row, samples[row, rank], similarity[row, rank]


def _pairs_of_blocks(begins: list[int], *blocks: csr_array) -> tuple[Any, Any, Any]:
    row, column, value = [], [], []
    for begin, block in zip(begins, blocks, strict=False):
        row.append(np.repeat(np.arange(block.shape[0]), np.diff(block.indptr)))
        column.append(block.indices.astype(np.int64) + begin)
        value.append(block.data)
    order = np.argsort(np.concatenate(row), kind="stable")
    return tuple(np.concatenate(parts)[order] for parts in (row, column, value))  # type: ignore[return-value]


def _write(pairs_of: Any, path: str, begin: int, *blocks: Any) -> None:
    """Write one file, and rename it when it is complete."""
    pyarrow, parquet = (require(name, extra="cli") for name in ("pyarrow", "pyarrow.parquet"))
    row, neighbor, proximity = pairs_of(*blocks)
    columns = {"row": row + begin, "neighbor": neighbor, "proximity": proximity}
    unfinished = f"{path}.{os.getpid()}.tmp"
    parquet.write_table(pyarrow.table(columns), unfinished)
    os.replace(unfinished, path)
