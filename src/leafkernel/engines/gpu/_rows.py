"""Rows of P on the device, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

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
#: Thread blocks that fit on a multiprocessor at the same time.
_BLOCKS_PER_UNIT = 3
_FILL_THREADS = 512
#: The same for sums of weights, with the parts of a chunk and the masks of entries and trees.
_BLOCKS_WITH_MASKS = 3
_PARTS_WITH_MASKS = 2
_MASK_WORDS = 8 * 1024
#: Limits for bitmaps: bits of a count, share of the samples in a leaf, rows between two reports.
_MOST_PLANES = 12
_LARGE_LEAF = 0.01
_ROWS_BY_PLANES = 1 << 16
_SMALLEST_SCALE = 1e-30
_INT32_MAX = np.iinfo(np.int32).max


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
        counter_bits, parts = self._counters()
        entry_bytes = 4 + self.dtype.itemsize
        room = budget or usable_bytes()
        most = min(room // (2 * entry_bytes), _MOST_COLLISIONS)
        most_rows = most_rows or n_rows
        if n_rows <= most_rows:
            starts, n_entries = self._starts(self.order, parts)
            if n_entries + (math.prod(self.shape) if dense else 0) <= most:
                yield self._block(0, n_rows, self.order, starts, n_entries, counter_bits, parts)
                return
        most //= 2  # the block before is still there
        of_row = self.collisions(bound=True, chunk_parts=parts).sum(axis=1)
        ends = load_cupy().asnumpy(of_row + (self.shape[1] if dense else 0)).cumsum()
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
            starts, n_entries = self._starts(rows, parts)
            yield self._block(begin, end, rows, starts, n_entries, counter_bits, parts)
            begin, done = end, int(ends[end - 1])

    def _starts(self, rows: Any, parts: int) -> tuple[Any, int]:
        """Return room for the segments of rows: the position of each one, and the end of all."""
        starts = offsets_of(self.collisions(rows, bound=True, chunk_parts=parts))
        return starts, int(starts[-1])

    def _block(
        self,
        begin: int,
        end: int,
        rows: Any,
        starts: Any,
        n_entries: int,
        counter_bits: int,
        parts: int,
    ) -> Segments:
        cupy, index = load_cupy(), self.index
        n_segments, n_chunks = len(starts) - 1, -(-index.n_parts // parts)
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
        mask_words, member_weights = 0, None
        table = index.table(self.first) if not counter_bits and self.offsets is None else None
        if table is not None:
            mask_words, member_weights = _MASK_WORDS, table.weights
        macros = {
            "COUNTER_BITS": counter_bits,
            "BLOCKS_PER_UNIT": _BLOCKS_PER_UNIT if counter_bits else _BLOCKS_WITH_MASKS,
            "N_THREADS": _FILL_THREADS,
        }
        kernel("fill_rows.cu", "fill_rows", **macros, **self.macros)(
            *self._query_arguments(),
            self.weights,
            self.by_leaf,
            rows,
            np.int32(len(rows)),
            index.list_offsets,
            index.members,
            member_weights,
            np.int64(index.n_leaves),
            np.int32(index.n_parts),
            np.int32(parts),
            np.int32(index.part_size),
            np.int32(mask_words),
            is_pending,
            *finish,
            n_blocks=min(len(rows), macros["BLOCKS_PER_UNIT"] * attribute("MultiProcessorCount")),
            n_threads=_FILL_THREADS,
            shared_bytes=self._shared_bytes(parts, counter_bits, mask_words),
        )
        found = int(status)
        if found & _FOUND_PENDING:
            self._pull(segments, is_pending, finish)
            found = int(status)
        if found & _FOUND_INFINITY:
            raise OverflowError(
                f"a proximity is too large for {self.dtype}; use "
                + ("dtype=np.float64, or " if self.dtype == np.float32 else "")
                + "smaller weights"
            )
        if found & _FOUND_ZERO:
            segments.drop_zeros()
        return segments

    def _pull(self, segments: Segments, is_pending: Any, finish: tuple[Any, ...]) -> None:
        """Compute the values of pending segments from the leaves of both samples."""
        table = self.index.table(self.first) if self.offsets is None else None
        before = (self.weights, self.by_leaf, segments.rows, np.int64(segments.n_rows))
        if table is not None:
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
                shared_bytes=16 * table.n_vectors + 8 * self.n_groups,
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

        Counts must be the order of proximities, so there are no factors of rows and samples.
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
        """Write the nearest samples of consecutive rows, and yield where these begin and end."""
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

    def _counters(self) -> tuple[int, int]:
        """Return the bits of a counter, or 0, and the number of parts in a chunk."""
        index, most = self.index, attribute("MaxSharedMemoryPerBlockOptin") - 2048
        if self.sums_are_counts:
            for bits in (8, 16):
                fits = self._shared_bytes(1, bits, 0) <= most
                if self.longest < 2**bits and fits:
                    return bits, 1
        return 0, min(index.n_parts, _PARTS_WITH_MASKS)

    def _shared_bytes(self, parts: int, counter_bits: int, mask_words: int) -> int:
        """Return the shared memory of a chunk: flags, and counters or the masks of its entries."""
        n_samples = -(-parts * self.index.part_size // 128) * 128
        flags = n_samples // 8
        if counter_bits:
            return flags + n_samples * counter_bits // 8
        return flags + 8 * self.n_groups + n_samples // 128 * 4 + 4 * mask_words

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


def _as_row_ids(order: Any) -> Any:
    return order.astype(np.int32)
