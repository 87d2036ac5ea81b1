"""Write results block by block, and resume after an interruption."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap
from scipy.sparse import csr_array

from leafkernel._files import open_whole
from leafkernel._memory import release
from leafkernel._optional import require
from leafkernel._progress import progress_bar
from leafkernel.batches import Batches, checksum
from leafkernel.inside import Inside
from leafkernel.leaf_index import Samples
from leafkernel.parts import cut, parts_of
from leafkernel.product import Product
from leafkernel.streaming._work import Work, seal

Array = npt.NDArray[Any]
Columns = dict[str, Array]
#: Computes the columns (row, neighbor, proximity) of a block, given its first row.
Lines = Callable[[Product, int], Columns]

_MOST_ROWS = 1 << 16
_PARQUET, _NPY = ".parquet", ".npy"


def write_neighbors(
    inside: Inside, path: str | os.PathLike[str], X: Any, n_neighbors: int, by: str
) -> Path:
    """Write the most similar training samples of each sample."""

    def nearest(product: Product, first: int) -> Columns:
        similarity, neighbors = inside.engine.nearest(
            product, n_neighbors, by_magnitude=by == "magnitude"
        )
        if is_matrix:
            return {"neighbor": neighbors, "proximity": similarity}
        row, rank = np.nonzero(similarity)
        return {
            "row": row + first,
            "neighbor": neighbors[row, rank],
            "proximity": similarity[row, rank],
        }

    target = Path(path)
    is_matrix = _format_of(target) == _NPY
    return _write(inside, target, X, nearest, {"nearest": n_neighbors, "by": by})


def write_proximity(inside: Inside, path: str | os.PathLike[str], X: Any) -> Path:
    """Write the nonzeros of P."""

    def rows(product: Product, first: int) -> Columns:
        matrix = inside.engine.rows(product)
        row = np.repeat(np.arange(first, first + product.n_rows), np.diff(matrix.indptr))
        return {"row": row, "neighbor": matrix.indices.astype(np.int64), "proximity": matrix.data}

    target = Path(path)
    if _format_of(target) == _NPY:
        raise ValueError(
            f"path={str(path)!r} must end in .parquet: P is written as a Parquet file."
        )
    return _write(inside, target, X, rows, {"nearest": None})


def _write(inside: Inside, path: Path, X: Any, lines: Lines, asked: dict[str, Any]) -> Path:
    """Compute the blocks into a folder next to the file, then write the file."""
    if path.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder. Pass the name of a file.")
    kernel = inside.kernel
    batches = X if X is None or isinstance(X, Batches) else Batches.from_arrays(X)
    if batches is not None and batches.n_rows == 0:
        raise ValueError("X has no rows.")
    table = "training" if batches is None else batches.identity
    first = slice(0, 256)
    identity = (
        None
        if table is None
        else seal(
            **asked,
            rows=table,
            kernel=[str(kernel.dtype), str(inside.fitted_with["diagonal"]), kernel.symmetrize],
            leaves=[checksum(inside.stats.leaf_mass), checksum(inside.samples.leaf[first])],
            weights=[checksum(side.dense(first)) for side in (kernel.query, kernel.reference)],
        )
    )
    work = Work(path.with_name(path.name + ".part"), identity)
    done = int(work.state.get("rows", 0))
    blocks: list[int] = list(work.state.get("blocks", []))
    total = inside.n_samples if batches is None else batches.n_rows
    with progress_bar(path.name, total, enabled=inside.prox.progress) as on_progress:
        products = _training(inside, done) if batches is None else _new(inside, batches, done)
        for product in products:
            for name, column in lines(product, done).items():
                work.put(f"{name}_{done}", column)
            blocks.append(done)
            done += product.n_rows
            work.note(rows=done, blocks=blocks)
            release(inside.samples.leaf, inside.samples.oob_flags, inside.samples.in_bag_weights)
            if on_progress is not None:
                on_progress(done)
    if _format_of(path) == _NPY:
        _join_matrices(work, blocks, path)
    else:
        _join_tables(work, blocks, path)
    shutil.rmtree(work.folder, ignore_errors=True)
    return path


def _training(inside: Inside, done: int) -> Iterator[Product]:
    """Yield the products of the remaining training samples. No block spans two parts."""
    begin = 0
    for part in parts_of(inside.kernel.index):
        for some in cut(part.n_samples, _MOST_ROWS):
            rows = slice(max(begin + some.start, done), begin + some.stop)
            if rows.start < rows.stop:
                yield inside.kernel.training_product(rows)
        begin += part.n_samples


def _new(inside: Inside, batches: Batches, done: int) -> Iterator[Product]:
    for batch in batches.rows_from(done):
        samples: Samples = inside.route(batch.X)
        yield inside.kernel.product(samples)


def _join_tables(work: Work, blocks: list[int], path: Path) -> None:
    arrow, parquet = require("pyarrow", extra="cli"), require("pyarrow.parquet", extra="cli")
    with open_whole(path) as file:
        writer = None
        for block in blocks:
            names = ("row", "neighbor", "proximity")
            table = arrow.table({name: work.get(f"{name}_{block}") for name in names})
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        file.flush()
        os.fsync(file.fileno())


def _join_matrices(work: Work, blocks: list[int], path: Path) -> None:
    """Write one file with the neighbors and one with their proximities."""
    for name, target in (
        ("neighbor", path),
        ("proximity", path.with_name(f"{path.stem}.proximity{path.suffix}")),
    ):
        parts = [work.get(f"{name}_{block}") for block in blocks]
        shape = (sum(map(len, parts)), parts[0].shape[1])
        temporary = work.folder / f"{name}.npy"
        whole = open_memmap(temporary, "w+", parts[0].dtype, shape)
        begin = 0
        for part in parts:
            whole[begin : begin + len(part)] = part
            begin += len(part)
        whole.flush()
        os.replace(temporary, target)


def blocks_of_batches(
    inside: Inside, batches: Batches, block_size: int, *, sort: bool
) -> Iterator[tuple[slice, csr_array]]:
    """Yield blocks of rows of P, batch after batch."""
    begin = 0
    for batch in batches:
        for rows, block in inside.blocks(batch.X, block_size, sort=sort):
            yield slice(begin + rows.start, begin + rows.stop), block
        begin += batch.n_rows


def _format_of(path: Path) -> str:
    if path.suffix not in (_PARQUET, _NPY):
        raise ValueError(f"path must end in .parquet or .npy; got {path.name!r}.")
    return path.suffix
