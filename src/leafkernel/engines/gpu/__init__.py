"""The GPU engine. It needs CuPy and an NVIDIA GPU; nothing of it is imported before it is used."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from leafkernel._progress import OnProgress
from leafkernel._validation import check_choice
from leafkernel.engines.gpu._device import (
    clear_memory_errors,
    gpu_problem,
    kernel,
    load_cupy,
    usable_bytes,
)
from leafkernel.engines.gpu._index import DeviceIndex
from leafkernel.engines.gpu._routing import route
from leafkernel.engines.gpu._rows import DeviceProduct
from leafkernel.engines.native import NO_LIMIT, TooManyEntriesError
from leafkernel.forests import RouteTable
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

__all__ = ["GpuEngine", "gpu_problem"]

_INT32_MAX = np.iinfo(np.int32).max
#: Up to this k, a warp keeps the best entries of a row in shared memory.
_FEW_NEIGHBORS = 192


@dataclass(frozen=True)
class GpuEngine:
    """Computes rows of P on an NVIDIA GPU, through CuPy.

    ``ForestProximity(forest, engine="gpu")`` creates it. Proximities equal those of the default
    engine to the last bit. Products with vectors are summed in another, fixed order, so they agree
    up to rounding. The index of the training samples stays on the GPU. If the rows of P do not fit
    there, they are computed in blocks.

    Parameters
    ----------
    n_threads : int, default=1
        Not used. The GPU manages its own threads.
    output : {"numpy", "cupy"}, default="numpy"
        Where results are returned: in main memory as NumPy and SciPy arrays, or on the GPU as CuPy
        arrays and ``cupyx.scipy.sparse`` matrices.
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

    def __post_init__(self) -> None:
        check_choice("output", self.output, ("numpy", "cupy"))
        load_cupy()  # raises an error if there is no GPU

    @property
    def key(self) -> Hashable:
        """Engines on the same device share the copy of an index."""
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

    def describe(self, product: Product) -> str:  # noqa: ARG002
        """Return the name of the engine and the device."""
        cupy = load_cupy()
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
        return f"gpu, {name.decode()}"

    def route(self, table: RouteTable, X: Any) -> npt.NDArray[Any] | None:
        """Return the leaves of float32 samples, or None if the CPU is faster."""
        return route(table, X)

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
        pieces, n_entries = [], 0
        for block in self._blocks(found, on_progress):
            sizes = block.row_sizes()
            offsets = cupy.concatenate([cupy.zeros(1, np.int64), cupy.cumsum(sizes)])
            n_block = int(offsets[-1])
            n_entries += n_block
            if n_entries > most_entries:
                raise TooManyEntriesError
            columns = cupy.empty(n_block, np.int32)
            values = cupy.empty(n_block, product.dtype)
            kernel("gather_rows.cu", "to_csr", **found.macros())(
                *block.arguments(),
                np.int64(block.begin),
                *block.entries(),
                offsets,
                columns,
                values,
                n_warps=block.n_rows,
            )
            pieces.append(tuple(map(self._returned, (sizes, columns, values))))
        xp = cupy if self.output == "cupy" else np
        if not pieces:
            pieces = [(xp.zeros(0, np.int64), xp.zeros(0, np.int32), xp.zeros(0, product.dtype))]
        sizes, columns, values = (_joined(xp, arrays) for arrays in zip(*pieces, strict=True))
        kind = np.int32 if n_entries <= _INT32_MAX else np.int64
        offsets = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(sizes)]).astype(kind)
        if xp is np:
            matrix = csr_array((values, columns.astype(kind, copy=False), offsets), product.shape)
        else:
            if kind is np.int64:
                raise MemoryError(
                    f"P has {n_entries:,} nonzeros, more than a CuPy matrix can hold. Use "
                    "iter_proximity() for one block of rows at a time."
                )
            sparse = import_module("cupyx.scipy.sparse")
            matrix = sparse.csr_matrix((values, columns, offsets), product.shape)
        matrix.has_canonical_format = matrix.has_sorted_indices = True
        return matrix

    def dense(self, product: Product, on_progress: OnProgress | None = None) -> npt.NDArray[Any]:
        """Return P as a dense array, shape (m, n)."""
        cupy, found = load_cupy(), self._on_device(product)
        xp = cupy if self.output == "cupy" else np
        dense: npt.NDArray[Any] = xp.empty(product.shape, product.dtype)
        for block in self._blocks(found, on_progress, dense=True):
            rows = cupy.zeros((block.n_rows, product.shape[1]), product.dtype)
            kernel("gather_rows.cu", "to_dense", **found.macros())(
                *block.arguments(),
                np.int64(block.begin),
                *block.entries(),
                np.int64(product.shape[1]),
                rows,
                n_warps=block.n_rows,
            )
            dense[block.begin : block.end] = self._returned(rows)
        return dense

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
        few = k <= _FEW_NEIGHBORS
        if few and k > 0 and found.has_large_leaves():
            for end in found.nearest_by_planes(similarity, samples):
                if on_progress is not None:
                    on_progress(end)
            return self._returned(similarity), self._returned(samples)
        n_keys = (
            max(2 * (k + 64), 256) if few else 256
        )  # of shared memory for a row, see nearest.cu
        for block in self._blocks(found, on_progress):
            kernel("nearest.cu", "nearest", **found.macros())(
                *block.arguments(),
                *block.entries(),
                found.own,
                np.int32(by_magnitude),
                np.int32(product.shape[1]),
                np.int32(k),
                np.int32(few),
                similarity,
                samples,
                n_warps=block.n_rows,
                n_threads=128,
                shared_bytes=4 * n_keys * product.dtype.itemsize,
            )
        if not few:  # entries are in the order of samples, and the sort is stable
            order = cupy.argsort(-(cupy.abs(similarity) if by_magnitude else similarity), axis=1)
            similarity = cupy.take_along_axis(similarity, order, axis=1)
            samples = cupy.take_along_axis(samples, order, axis=1)
        return self._returned(similarity), self._returned(samples)

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
            kernel("gather_rows.cu", "times_dense", **found.macros())(
                *block.arguments(),
                *block.entries(),
                dense,
                np.int32(dense.shape[1]),
                out,
                n_warps=block.n_rows,
            )
        return self._returned(out)

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values, shape (m, c), through the leaves."""
        cupy, found = load_cupy(), self._on_device(product)
        index = found.index
        dense = cupy.ascontiguousarray(cupy.asarray(values))
        n_columns = np.int32(dense.shape[1])
        of_leaf = cupy.empty((index.n_leaves, dense.shape[1]), product.dtype)
        kernel("apply.cu", "sum_leaves", **found.macros())(
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
        kernel("apply.cu", "sum_rows", **found.macros())(
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

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row, shape (m,)."""
        counts = self._on_device(product).collisions()
        return load_cupy().asnumpy(counts.ravel())  # type: ignore[no-any-return]

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the number of nonzeros of each row, shape (m,)."""
        cupy = load_cupy()
        counts = np.zeros(product.n_rows, np.int64)
        for block in self._blocks(self._on_device(product), on_progress):
            counts[block.begin : block.end] = cupy.asnumpy(block.row_sizes())
        return counts

    def _on_device(self, product: Product) -> DeviceProduct:
        with clear_memory_errors():
            return DeviceProduct(product, product.index.prepared(self))

    def _blocks(
        self, product: DeviceProduct, on_progress: OnProgress | None, *, dense: bool = False
    ) -> Any:
        with clear_memory_errors():
            for block in product.blocks(budget=self.max_bytes, dense=dense):
                yield block
                if on_progress is not None:
                    on_progress(block.end)

    def _returned(self, array: Any) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = array if self.output == "cupy" else load_cupy().asnumpy(array)
        return found


def _joined(xp: Any, arrays: tuple[Any, ...]) -> Any:
    return arrays[0] if len(arrays) == 1 else xp.concatenate(arrays)
