"""The GPU engine. It needs CuPy and an NVIDIA GPU. CuPy is imported only if the engine is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel._validation import check_choice
from leafkernel.engines.gpu._device import (
    gpu_problem,
    kernel,
    load_cupy,
    usable_bytes,
)
from leafkernel.engines.gpu._index import LARGEST_PART, DeviceIndex
from leafkernel.engines.gpu._listing import count_leaves
from leafkernel.engines.gpu._results import OnDevice, in_main_memory
from leafkernel.engines.gpu._routing import route
from leafkernel.engines.gpu._rows import DeviceProduct
from leafkernel.engines.gpu._segments import Segments
from leafkernel.engines.gpu._tiles import Tiles, in_column_groups, in_tiles
from leafkernel.engines.native import NO_LIMIT, TooManyEntriesError
from leafkernel.forests import RouteTable
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

__all__ = ["GpuEngine", "gpu_problem"]

_INT32_MAX = np.iinfo(np.int32).max
#: Up to this k, a warp keeps the best entries of a row in shared memory.
_FEW_NEIGHBORS = 192
#: Neighbors of all rows are found in at most this many pieces, of at least this many entries.
_MOST_PIECES = 8
_ENTRIES_OF_PIECE = 2**20


@dataclass(frozen=True)
class GpuEngine:
    """Computes rows of P on an NVIDIA GPU, through CuPy.

    ``ForestProximity(forest, engine="gpu")`` creates it. Proximities equal those of the engine
    "native" to the last bit, except that float32 proximities below 1.2e-38 are zero. Products with
    vectors are summed in another, fixed order, so they agree up to rounding. The training samples
    stay on the GPU. If they do not fit, they are copied there in slices for every call. If the rows
    of P do not fit, they are computed in blocks.

    Parameters
    ----------
    n_threads : int, default=1
        Not used. The GPU manages its own threads.
    output : {"numpy", "cupy"}, default="numpy"
        Type of the results: NumPy and SciPy arrays in main memory, or CuPy arrays and
        ``cupyx.scipy.sparse`` matrices on the GPU.
    max_bytes : int, default=None
        GPU memory for one block of rows. By default, 60% of the free memory.
    part_size : int, default=None
        Number of reference samples in a part of the index, at most 65,536. By default, as many as
        possible.
    """

    n_threads: int = 1
    output: Literal["numpy", "cupy"] = "numpy"
    max_bytes: int | None = None
    part_size: int | None = None
    lists_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("output", self.output, ("numpy", "cupy"))
        if self.part_size is not None and not 0 < self.part_size <= LARGEST_PART:
            raise ValueError(
                f"part_size must be from 1 to {LARGEST_PART:,}; got {self.part_size}. Leave it out "
                "to use the largest size that the GPU supports."
            )
        if self.max_bytes is not None and self.max_bytes <= 0:
            raise ValueError(
                f"max_bytes must be positive; got {self.max_bytes}. Leave it out to use 60% of the "
                "free memory."
            )
        load_cupy()  # raises an error if there is no GPU

    @property
    def key(self) -> Hashable:
        """Engines on the same device, with the same size of parts, share the copy of an index."""
        return "gpu", load_cupy().cuda.Device().id, self.part_size

    def prepare(self, index: LeafIndex) -> DeviceIndex:
        """Copy an index to the GPU."""
        return DeviceIndex.of(index, self.part_size)

    def on_one_thread(self) -> GpuEngine:
        """Return the engine itself."""
        return self

    def on_host(self) -> GpuEngine:
        """Return the same engine with results in main memory."""
        return replace(self, output="numpy")

    def result_bytes(self) -> int | None:
        """Return the memory for results, or None if they are returned in main memory."""
        return usable_bytes() if self.output == "cupy" else None

    def describe(self, product: Product) -> str:
        """Return the name of the engine and the device."""
        cupy = load_cupy()
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
        tiles = Tiles.of(product, self)
        if tiles is None:
            return f"gpu, {name}"
        n_tiles = len(tiles.references) * len(tiles.queries)
        return f"gpu, {name} (in {n_tiles} slices, because its memory is too small for the samples)"

    def route(self, table: RouteTable, X: Any) -> npt.NDArray[Any] | None:
        """Return the leaves of float32 samples, or None if the CPU is faster."""
        return route(table, X)

    def count_leaves(
        self, rows: WeighedRows
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None] | None:
        """Return the sizes and weights of leaves, or None to use the processor."""
        return count_leaves(rows)

    @in_tiles
    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,  # noqa: ARG002 - rows are always sorted
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return P, shape (m, n). A CuPy matrix if ``output="cupy"``."""
        cupy, found = load_cupy(), self._on_device(product)
        pieces: list[tuple[Any, ...]] = []
        n_entries = 0
        with self._results() as results:
            for block in self._blocks(found, on_progress):
                results.wait()  # the block before was copied while this one was computed
                gathered = block.to_csr(most_entries - n_entries)
                if gathered is None:
                    raise TooManyEntriesError
                offsets, columns, values = gathered
                if pieces:
                    offsets = offsets[1:] + n_entries
                n_entries += len(columns)
                pieces.append(tuple(map(results.take, (offsets, columns, values))))
        xp = cupy if self.output == "cupy" else np
        if not pieces:
            pieces = [(xp.zeros(1, np.int64), xp.zeros(0, np.int32), xp.zeros(0, product.dtype))]
        offsets, columns, values = (_joined(xp, arrays) for arrays in zip(*pieces, strict=True))
        kind = np.int32 if n_entries <= _INT32_MAX else np.int64
        offsets = offsets.astype(kind)
        if xp is cupy:
            return _matrix_on_device(values, columns, offsets, product.shape)
        matrix = csr_array((values, columns.astype(kind, copy=False), offsets), product.shape)
        matrix.has_canonical_format = matrix.has_sorted_indices = True
        return matrix

    @in_tiles
    def dense(self, product: Product, on_progress: OnProgress | None = None) -> npt.NDArray[Any]:
        """Return P as a dense array, shape (m, n)."""
        found = self._on_device(product)
        with self._results() as results:
            dense: npt.NDArray[Any] = results.empty(product.shape, product.dtype)
            for block in self._blocks(found, on_progress, dense=True):
                results.wait()
                results.put(block.to_dense(product.shape[1]), dense[block.begin : block.end])
        return dense

    @in_tiles
    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the k largest entries of each row and their columns, shapes (m, k)."""
        cupy, found = load_cupy(), self._on_device(product)
        similarity = cupy.empty((product.n_rows, k), product.dtype)
        samples = cupy.empty((product.n_rows, k), np.int64)
        pieces = self._nearest(found, similarity, samples, on_progress, by_magnitude=by_magnitude)
        if self.output == "cupy":
            deque(pieces, maxlen=0)
            return similarity, samples
        outs = np.empty(similarity.shape, similarity.dtype), np.empty(samples.shape, np.int64)
        with in_main_memory() as results:
            for begin, end in pieces:
                results.put(similarity[begin:end], outs[0][begin:end])
                results.put(samples[begin:end], outs[1][begin:end])
        return outs

    def _nearest(
        self,
        found: DeviceProduct,
        similarity: Any,
        samples: Any,
        on_progress: OnProgress | None,
        *,
        by_magnitude: bool,
    ) -> Iterator[tuple[int, int]]:
        """Write the nearest samples of consecutive rows, and yield the first row and the end."""
        cupy, k, dtype = load_cupy(), similarity.shape[1], similarity.dtype
        if k == 0:
            return
        # Several blocks, so that the results of one are copied while the next one is computed.
        n_blocks = max(1, min(_MOST_PIECES, similarity.size // _ENTRIES_OF_PIECE))
        most_rows = max(1, -(-found.shape[0] // n_blocks))
        few = k <= _FEW_NEIGHBORS
        if few and found.has_large_leaves():
            for begin, end in found.nearest_by_planes(similarity, samples, most_rows):
                yield begin, end
                if on_progress is not None:
                    on_progress(end)
            return
        n_keys = (
            max(2 * (k + 64), 256) if few else 256
        )  # of shared memory for a row, see nearest.cu
        for block in self._blocks(found, on_progress, most_rows=most_rows):
            kernel("nearest.cu", "nearest", **found.macros)(
                *block.arguments(),
                *block.entries(),
                found.own,
                np.int32(by_magnitude),
                np.int32(found.shape[1]),
                np.int32(k),
                np.int32(few),
                similarity,
                samples,
                n_warps=block.n_rows,
                n_threads=128,
                shared_bytes=4 * n_keys * dtype.itemsize,
            )
            if not few:  # entries are in the order of samples, and the sort is stable
                here = slice(block.begin, block.end)
                rank = cupy.abs(similarity[here]) if by_magnitude else similarity[here]
                order = cupy.argsort(-rank, axis=1)
                similarity[here] = cupy.take_along_axis(similarity[here], order, axis=1)
                samples[here] = cupy.take_along_axis(samples[here], order, axis=1)
            yield block.begin, block.end

    @in_column_groups
    @in_tiles
    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values, shape (m, c)."""
        cupy, found = load_cupy(), self._on_device(product)
        dense = cupy.ascontiguousarray(cupy.asarray(values))
        out = cupy.empty((product.n_rows, dense.shape[1]))
        for block in self._blocks(found, on_progress):
            block.times_dense(dense, out)
        return self._returned(out)

    @in_column_groups
    @in_tiles
    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c), through the leaves."""
        cupy, found = load_cupy(), self._on_device(product)
        index = found.index
        dense = cupy.ascontiguousarray(cupy.asarray(values))
        n_columns = np.int32(dense.shape[1])
        of_leaf = cupy.empty((index.n_leaves, dense.shape[1]), product.dtype)
        kernel("apply.cu", "sum_leaves", **found.macros)(
            index.list_offsets,
            index.members,
            index.member_weights,
            np.int64(index.n_leaves),
            np.int32(index.n_parts),
            np.int32(index.part_size),
            found.by_leaf,
            index.by_sample,
            dense,
            n_columns,
            of_leaf,
            n_warps=index.n_leaves,
        )
        out = cupy.empty((product.n_rows, dense.shape[1]))
        kernel("apply.cu", "sum_rows", **found.macros)(
            found.columns,
            found.offsets,
            np.int32(found.n_groups),
            found.weights,
            found.by_row,
            found.scale,
            np.int64(product.n_rows),
            of_leaf,
            n_columns,
            out,
            n_warps=product.n_rows,
        )
        return self._returned(out)

    @in_tiles
    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,)."""
        counts = self._on_device(product).collisions()
        return load_cupy().asnumpy(counts.ravel())  # type: ignore[no-any-return]

    @in_tiles
    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        cupy = load_cupy()
        counts = np.zeros(product.n_rows, np.int64)
        for block in self._blocks(self._on_device(product), on_progress):
            counts[block.begin : block.end] = cupy.asnumpy(block.row_sizes())
        return counts

    def moved(self, found: Any) -> Any:
        """Return a result that is in main memory in the form that ``output`` names."""
        if self.output == "numpy":
            return found
        asarray = load_cupy().asarray
        if isinstance(found, csr_array):
            values, columns, offsets = map(asarray, (found.data, found.indices, found.indptr))
            return _matrix_on_device(values, columns, offsets, found.shape)
        return tuple(map(asarray, found)) if isinstance(found, tuple) else asarray(found)

    def _on_device(self, product: Product) -> DeviceProduct:
        return DeviceProduct(product, product.index.prepared(self))

    def _results(self) -> Any:
        """Return a context that collects results where they are wanted."""
        return nullcontext(OnDevice()) if self.output == "cupy" else in_main_memory()

    def _blocks(
        self, product: DeviceProduct, on_progress: OnProgress | None, **options: Any
    ) -> Iterator[Segments]:
        for block in product.blocks(budget=self.max_bytes, **options):
            yield block
            if on_progress is not None:
                on_progress(block.end)

    def _returned(self, array: Any) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = array if self.output == "cupy" else load_cupy().asnumpy(array)
        return found


def _matrix_on_device(values: Any, columns: Any, offsets: Any, shape: tuple[int, int]) -> Any:
    if offsets.dtype == np.int64:
        raise MemoryError(
            f"P has {len(values):,} nonzeros, more than a CuPy matrix can hold. Use "
            "iter_proximity() for one block of rows at a time."
        )
    matrix = import_module("cupyx.scipy.sparse").csr_matrix((values, columns, offsets), shape)
    matrix.has_canonical_format = matrix.has_sorted_indices = True
    return matrix


def _joined(xp: Any, arrays: tuple[Any, ...]) -> Any:
    return arrays[0] if len(arrays) == 1 else xp.concatenate(arrays)
