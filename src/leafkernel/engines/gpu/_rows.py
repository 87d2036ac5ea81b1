"""Rows of P on the device, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._memory import format_bytes
from leafkernel.engines.gpu._device import (
    attribute,
    c_name,
    kernel,
    load_cupy,
    offsets_of,
    usable_bytes,
)
from leafkernel.engines.gpu._index import DeviceIndex
from leafkernel.engines.gpu._query import DeviceQuery
from leafkernel.engines.gpu._segments import Segments
from leafkernel.product import Product

#: Blocks take milliseconds, so that Ctrl-C and progress work between them.
_MOST_COLLISIONS = 2**32
_FOUND_ZERO, _FOUND_INFINITY, _FOUND_PENDING = 1, 2, 4
#: Bitmaps use at most this share of the free memory.
_BITMAP_SHARE = 0.3
#: Thread blocks that fit on a multiprocessor at the same time, their threads, and the lanes that
#: walk the list of a leaf. `benchmarks/gpu.py --only tune` compares other values.
_BLOCKS_PER_UNIT = 3
_FILL_THREADS = 512
_LANES_OF_LEAF = 4
#: For sums of weights: parts of a chunk, and masks of entries and trees.
_PARTS_WITH_MASKS = 2
_MASK_WORDS = 8 * 1024
#: Shared memory of variables in kernels.
_STATIC_BYTES = 4096
#: Memory for each segment: its start, twice, its size and a flag.
_SEGMENT_BYTES = 24
#: Limits for bitmaps: bits of a count, share of the samples in a leaf, rows between two reports.
_MOST_PLANES = 12
_LARGE_LEAF = 0.01
_ROWS_BY_PLANES = 1 << 16
_SMALLEST_SCALE = 1e-30
_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class SharedMemory:
    """The shared memory of a thread block: flags of samples, and counters or masks.

    Attributes
    ----------
    n_bytes : int
        Size.
    parts, n_chunks : int
        Parts in a chunk, and number of chunks.
    counter_bits : int
        Bits of a counter. 0 if sums are not counts.
    mask_words : int
        Words for the trees of entries. If 0, pull_values.cu or pull_ragged.cu computes all values.
    """

    n_bytes: int
    parts: int
    n_chunks: int
    counter_bits: int = 0
    mask_words: int = 0


class DeviceProduct:
    """A product on the device. ``macros`` are those of kernels for its types.

    Parameters
    ----------
    product : Product
        The product.
    index : DeviceIndex
        Its reference samples.
    """

    def __init__(self, product: Product, index: DeviceIndex) -> None:
        self.index, self.dtype, self.shape = index, product.dtype, product.shape
        query = DeviceQuery.of(product.query)
        self.columns, self.offsets = query.columns, query.offsets
        self.weights, self.by_row = query.weights, query.by_row
        self.first = product.query.incidence.coordinates.first
        self.n_groups = len(self.first) - 1
        self.longest = query.longest
        self.by_leaf = index.upload(product.by_leaf)
        self.scale = np.float64(product.scale)
        self.order = index.upload(product.row_order, _as_row_ids)
        self.own = index.upload(product.own, index.samples_at)
        self.diagonal = index.upload(product.diagonal)
        self.query_oob = index.upload(product.query_oob)
        self.reference_oob = index.upload(product.reference_oob, index.in_sample_order)
        weights = self.weights
        self.macros = {
            "Value": c_name(self.dtype),
            "VALUE_BYTES": self.dtype.itemsize,
            "Column": c_name(self.columns.dtype),
            "QUERY_WEIGHTS": int(weights is not None),
            "QueryWeight": "float" if weights is None else c_name(weights.dtype),
            **index.macros(),
        }

    @property
    def sums_are_counts(self) -> bool:
        """Whether all weights are one, up to factors of rows and samples."""
        has_weights = self.weights is not None or self.index.member_weights is not None
        return not has_weights and self.by_leaf is None

    def collisions(
        self, rows: Any = None, *, bound: bool = False, chunk_parts: int | None = None
    ) -> Any:
        """Return the leaf collisions of rows in each chunk, on the device.

        ``rows`` are row numbers on the device, or None for all rows. If ``bound``, return an upper
        bound on the entries instead. The shape is (n_rows, n_chunks).
        """
        cupy, index = load_cupy(), self.index
        parts = chunk_parts or index.n_parts
        n_chunks = -(-index.n_parts // parts)
        n_rows = self.shape[0] if rows is None else len(rows)
        counts = cupy.empty((n_rows, n_chunks), np.int64)
        most = parts * index.part_size if bound else np.iinfo(np.int64).max
        kernel("collisions.cu", "count_collisions", **self.macros)(
            *self._query_arguments(),
            rows,
            np.int64(n_rows),
            index.list_offsets,
            np.int64(index.n_leaves),
            np.int32(index.n_parts),
            np.int32(parts),
            np.int32(n_chunks),
            np.int64(most),
            np.int32(bound and self.diagonal is not None),
            counts,
            n_warps=n_rows * n_chunks,
        )
        return counts

    def blocks(
        self, *, budget: int | None = None, dense: bool = False, most_rows: int | None = None
    ) -> Iterator[Segments]:
        """Yield the entries of consecutive rows, block by block.

        If ``dense``, a block also leaves room for its rows as a dense array.
        """
        n_rows = self.shape[0]
        if not n_rows:
            return
        memory = self._shared_memory()
        entry_bytes = 4 + self.dtype.itemsize
        # Memory of a row besides its entries, counted in entries.
        more = (self.shape[1] if dense else 0) + -(-_SEGMENT_BYTES * memory.n_chunks // entry_bytes)
        room = budget or usable_bytes()
        most = min(room // (2 * entry_bytes), _MOST_COLLISIONS)
        most_rows = most_rows or n_rows
        if n_rows <= most_rows and n_rows * more <= most:
            starts, n_entries = self._starts(self.order, memory.parts)
            if n_entries + n_rows * more <= most:
                yield self._block(0, n_rows, self.order, starts, n_entries, memory)
                return
            del starts
        most //= 2  # the block before is still there
        at_once = max(1, most * entry_bytes // (_SEGMENT_BYTES * memory.n_chunks))
        ends = np.cumsum(self._bounds(memory.parts, at_once) + more)
        begin, done = 0, 0
        while begin < n_rows:
            end = max(int(np.searchsorted(ends, done + most, side="right")), begin + 1)
            end = min(end, begin + most_rows)
            needed = int(ends[end - 1] - done) * entry_bytes
            if needed > room:
                raise MemoryError(
                    f"One row of P can need {format_bytes(needed)} of GPU memory, but only "
                    f'{format_bytes(room)} are available for it. Use engine="native", or free '
                    "GPU memory."
                )
            rows = self._rows_between(begin, end)
            starts, n_entries = self._starts(rows, memory.parts)
            yield self._block(begin, end, rows, starts, n_entries, memory)
            begin, done = end, int(ends[end - 1])

    def _bounds(self, parts: int, at_once: int) -> npt.NDArray[np.int64]:
        """Return a bound on the entries of each row, in main memory."""
        cupy, n_rows = load_cupy(), self.shape[0]
        bounds = []
        for begin in range(0, n_rows, at_once):
            rows = cupy.arange(begin, min(begin + at_once, n_rows), dtype=np.int32)
            counts = self.collisions(rows, bound=True, chunk_parts=parts)
            bounds.append(cupy.asnumpy(counts.sum(axis=1)))
        return np.concatenate(bounds)

    def _starts(self, rows: Any, parts: int) -> tuple[Any, int]:
        """Return room for the segments of rows: the position of each one, and the end of all."""
        starts = offsets_of(self.collisions(rows, bound=True, chunk_parts=parts))
        return starts, int(starts[-1])

    def _block(
        self, begin: int, end: int, rows: Any, starts: Any, n_entries: int, memory: SharedMemory
    ) -> Segments:
        cupy, index = load_cupy(), self.index
        n_segments, n_chunks = len(starts) - 1, memory.n_chunks
        segments = Segments(
            begin=begin,
            end=end,
            rows=rows,
            starts=starts,
            sizes=cupy.empty(n_segments, np.int32),
            columns=cupy.empty(n_entries, np.int32),
            values=cupy.empty(n_entries, self.dtype),
            n_chunks=n_chunks,
            macros=self.macros,
        )
        status, is_pending = cupy.zeros((), np.int32), cupy.empty(n_segments, np.uint8)
        finish = (np.int32(n_chunks), *self._finish_arguments(status), *segments.entries())
        table = index.table(self.first) if memory.mask_words else None
        macros = {
            "COUNTER_BITS": memory.counter_bits,
            "BLOCKS_PER_UNIT": _BLOCKS_PER_UNIT,
            "N_THREADS": _FILL_THREADS,
            "LANES_OF_LEAF": _LANES_OF_LEAF,
        }
        kernel("fill_rows.cu", "fill_rows", **macros, **self.macros)(
            *self._query_arguments(),
            self.weights,
            self.by_leaf,
            rows,
            np.int32(len(rows)),
            index.list_offsets,
            index.members,
            None if table is None else table.weights,
            np.int64(index.n_leaves),
            np.int32(index.n_parts),
            np.int32(memory.parts),
            np.int32(index.part_size),
            np.int32(memory.mask_words),
            is_pending,
            *finish,
            n_blocks=min(len(rows), _BLOCKS_PER_UNIT * attribute("MultiProcessorCount")),
            n_threads=_FILL_THREADS,
            shared_bytes=memory.n_bytes,
        )
        found = int(status)
        if found & _FOUND_PENDING:
            self._pull(segments, is_pending, finish)
            found = int(status)
        if found & _FOUND_INFINITY:
            raise OverflowError(
                f"A proximity is too large for {self.dtype}. Use "
                + ("dtype=np.float64, or " if self.dtype == np.float32 else "")
                + "smaller weights."
            )
        if found & _FOUND_ZERO:
            segments.drop_zeros()
        return segments

    def _pull(self, segments: Segments, is_pending: Any, finish: tuple[Any, ...]) -> None:
        """Compute the values of pending segments from the leaves of both samples."""
        table = self.index.table(self.first) if self.offsets is None else None
        before = (self.weights, self.by_leaf, segments.rows, np.int64(segments.n_rows))
        n_bytes = 0 if table is None else 16 * table.n_vectors + 8 * self.n_groups
        if table is not None and n_bytes <= _most_shared_bytes():
            macros = {"LeafId": c_name(table.ids.dtype), **self.macros}
            kernel("pull_values.cu", "pull_values", **macros)(
                self.columns,
                np.int32(self.n_groups),
                table.first,
                *before,
                table.ids,
                np.int32(table.n_vectors),
                table.weights,
                is_pending,
                *finish,
                n_blocks=segments.n_rows,
                n_threads=128,
                shared_bytes=n_bytes,
            )
            return
        rows = self.index.ragged()
        kernel("pull_ragged.cu", "pull_ragged", **self.macros)(
            *self._query_arguments(),
            *before,
            rows.offsets,
            rows.columns.astype(self.columns.dtype),
            rows.weights,
            is_pending,
            *finish,
            n_blocks=len(segments.sizes),
            n_threads=128,
        )

    def has_large_leaves(self) -> bool:
        """Return whether bitmaps of leaves find neighbors faster than lists of members.

        Counts must have the order of proximities, so there are no factors of rows and samples.
        """
        index = self.index
        factors = (self.by_row, index.by_sample, self.reference_oob, self.diagonal, self.offsets)
        is_plain = self.sums_are_counts and all(factor is None for factor in factors)
        if not is_plain or self.longest >= 2**_MOST_PLANES or not self.scale > _SMALLEST_SCALE:
            return False
        size = math.prod(index.bitmap_shape) * 4
        if index.n_leaves >= _INT32_MAX or size > _BITMAP_SHARE * usable_bytes():
            return False
        return index.leaf_share() > _LARGE_LEAF

    def nearest_by_planes(
        self, similarity: Any, samples: Any, most_rows: int
    ) -> Iterator[tuple[int, int]]:
        """Write the nearest samples of consecutive rows, and yield the first row and the end."""
        k = similarity.shape[1]
        bitmaps = self.index.bitmaps()
        n_planes = max(4, self.longest.bit_length())
        find = kernel("nearest_by_planes.cu", "nearest_by_planes", N_PLANES=n_planes, **self.macros)
        n_visits = -(-self.longest // 8) * 8
        step = min(most_rows, _ROWS_BY_PLANES)
        for begin in range(0, self.shape[0], step):
            end = min(begin + step, self.shape[0])
            rows = self._rows_between(begin, end)
            find(
                self.columns,
                np.int32(self.n_groups),
                rows,
                np.int32(len(rows)),
                bitmaps,
                np.int64(bitmaps.shape[1] // 4),
                np.int64(self.index.n_leaves),
                np.int32(self.index.n_samples),
                self.own,
                self.scale,
                np.int32(k),
                similarity,
                samples,
                n_blocks=len(rows),
                shared_bytes=4 * (n_visits + 6 * k),
            )
            load_cupy().cuda.get_current_stream().synchronize()
            yield begin, end

    def _rows_between(self, begin: int, end: int) -> Any:
        """Return rows in the order in which to compute them, on the device."""
        rows = self.order
        return rows if end - begin == self.shape[0] else rows[(rows >= begin) & (rows < end)]

    def _shared_memory(self) -> SharedMemory:
        """Return how the thread blocks that find entries use their shared memory."""
        n_parts, most = self.index.n_parts, _most_shared_bytes()
        if self.sums_are_counts:
            n_samples = -(-self.index.part_size // 128) * 128
            for bits in (8, 16):
                n_bytes = n_samples * (1 + bits) // 8
                if self.longest < 2**bits and n_bytes <= most:
                    return SharedMemory(n_bytes, 1, n_parts, counter_bits=bits)
        parts = min(n_parts, _PARTS_WITH_MASKS)
        n_chunks, n_vectors = -(-n_parts // parts), -(-parts * self.index.part_size // 128)
        n_bytes = n_vectors * (16 + 4)
        with_masks = n_bytes + 8 * self.n_groups + 4 * _MASK_WORDS
        has_table = self.offsets is None and self.index.table(self.first) is not None
        if has_table and with_masks <= most:
            return SharedMemory(with_masks, parts, n_chunks, mask_words=_MASK_WORDS)
        return SharedMemory(n_bytes, parts, n_chunks)

    def _query_arguments(self) -> tuple[Any, ...]:
        return self.columns, self.offsets, np.int32(self.n_groups)

    def _finish_arguments(self, status: Any) -> tuple[Any, ...]:
        oob_words = 0 if self.query_oob is None else self.query_oob.shape[1]
        return (
            self.by_row,
            self.index.by_sample,
            self.scale,
            self.query_oob,
            self.reference_oob,
            np.int32(oob_words),
            self.own,
            self.diagonal,
            status,
        )


def _most_shared_bytes() -> int:
    return attribute("MaxSharedMemoryPerBlockOptin") - _STATIC_BYTES


def _as_row_ids(order: Any) -> Any:
    return order.astype(np.int32)
