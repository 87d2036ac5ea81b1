"""The reference samples on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.engines.gpu._copies import to_device
from leafkernel.engines.gpu._device import attribute, c_name, finished, kernel, load_cupy
from leafkernel.engines.gpu._listing import list_members, narrow, padded
from leafkernel.engines.gpu._query import DeviceQuery
from leafkernel.leaf_index import LeafIndex

#: Samples per part. A member of a leaf then takes two bytes.
LARGEST_PART = 65_536
#: Largest numbers of a leaf id type, which mark missing entries.
_N_MARKS = 2
_MOST_KEPT = 8


@dataclass(frozen=True)
class LeafTable:
    """The leaves of each reference sample, one id per group, for kernels that compare rows.

    Attributes
    ----------
    ids : cupy.ndarray of shape (n, stride)
        Leaf of each sample, counted within its group. The largest number marks missing entries and
        padding.
    weights : cupy.ndarray of shape (n, G) or None
        Weight of each entry. None means one.
    first : cupy.ndarray of int64 of shape (G + 1,)
        First leaf of each group.
    """

    ids: Any
    weights: Any
    first: Any

    @property
    def n_vectors(self) -> int:
        """Number of 16-byte vectors for one sample."""
        return int(self.ids.strides[0]) // 16


@dataclass(frozen=True)
class RaggedRows:
    """The leaves of each reference sample, if samples have any number of leaves.

    Attributes
    ----------
    offsets : cupy.ndarray of int64 of shape (n + 1,)
        Start of each sample.
    columns, weights : cupy.ndarray
        Leaves, ascending within a sample, and their weights. ``weights`` may be None.
    """

    offsets: Any
    columns: Any
    weights: Any


@dataclass
class DeviceIndex:
    """The members of each leaf, on the device, part by part.

    Attributes
    ----------
    n_samples, n_leaves, n_parts, part_size : int
        Sizes. All parts but the last have ``part_size`` samples.
    list_offsets : cupy.ndarray of shape (n_parts * n_leaves + 1,)
        Start of the members of each leaf in each part.
    members : cupy.ndarray of uint16
        Samples, counted from the first one of the part, followed by padding: kernels read several
        at once.
    member_weights : cupy.ndarray or None
        Weight of each member. None means one.
    by_sample : cupy.ndarray of float64 or None
        Factor of each sample.
    sample_at : cupy.ndarray of int32 of shape (n,)
        The sample at each place.
    """

    n_samples: int
    n_leaves: int
    n_parts: int
    part_size: int
    list_offsets: Any
    members: Any
    member_weights: Any
    by_sample: Any
    sample_at: Any
    _kept: dict[tuple[Any, ...], tuple[npt.NDArray[Any], Any]] = field(default_factory=dict)
    _table: tuple[LeafTable | None] | None = None
    _ragged: RaggedRows | None = None
    _bitmaps: Any = None
    _leaf_share: float | None = None

    @classmethod
    def of(cls, index: LeafIndex, part_size: int | None = None) -> DeviceIndex:
        """Copy an index to the device."""
        cupy = load_cupy()
        n, rows = index.n_samples, index.rows
        part_size = part_size or default_part_size(n)
        n_parts = max(1, -(-n // part_size))
        sample_at = cupy.asarray(index.sample_at)
        if rows is not None and rows.incidence.offsets is None:
            found = DeviceQuery.of(rows)
            first = rows.incidence.coordinates.first
            offsets, members, weights = list_members(
                found.columns, found.weights, first, part_size, n_parts
            )
        else:
            offsets, members, weights = _from_host(index, sample_at, part_size, n_parts)
        made = cls(
            n_samples=n,
            n_leaves=(len(offsets) - 1) // n_parts,
            n_parts=n_parts,
            part_size=part_size,
            list_offsets=offsets,
            members=members,
            member_weights=weights,
            by_sample=None,
            sample_at=sample_at,
        )
        if index.by_place is not None:
            made.by_sample = made.in_sample_order(cupy.asarray(index.by_place))
        return finished(made)  # type: ignore[no-any-return]

    def upload(
        self, array: npt.NDArray[Any] | None, convert: Callable[[Any], Any] | None = None
    ) -> Any:
        """Return an array on the device, converted. Those that were used last are kept there.

        The array must not change.
        """
        if array is None:
            return None
        name = None if convert is None else convert.__name__
        key = array.ctypes.data, array.shape, array.strides, array.dtype.str, name
        # Removed and added again, so that the least recently used array is the first.
        kept = self._kept.pop(key, None)
        if kept is None:
            found = to_device(array)
            # The array is kept too, so that no other array gets its memory.
            kept = array, finished(found if convert is None else convert(found))
        self._kept[key] = kept
        for old in [*self._kept][:-_MOST_KEPT]:
            self._kept.pop(old, None)
        return kept[1]

    def samples_at(self, places: Any) -> Any:
        """Return the samples at places, as int32. Negative places stay -1."""
        return load_cupy().where(places < 0, np.int32(-1), self.sample_at[places])

    def in_sample_order(self, by_place: Any) -> Any:
        """Return values in the order of samples, given those in the order of places."""
        found = load_cupy().empty_like(by_place)
        found[self.sample_at] = by_place
        return found

    def table(self, first: npt.NDArray[np.int64]) -> LeafTable | None:
        """Return the leaves of each sample, given the first leaf of each group. It is made once.

        The result is None if a sample has several leaves in a group.
        """
        if self._table is None:
            self._table = (finished(self._make_table(first)),)
        return self._table[0]

    def leaf_share(self) -> float:
        """Return the average share of all samples in the leaf of a sample. Computed once."""
        if self._leaf_share is None:
            cupy = load_cupy()
            sizes = cupy.diff(self.list_offsets.astype(np.int64)).reshape(self.n_parts, -1)
            sizes = sizes.sum(axis=0).astype(np.float64)
            n_pairs = max(float(sizes.sum()) * self.n_samples, 1.0)
            self._leaf_share = float((sizes**2).sum()) / n_pairs
        return self._leaf_share

    def bitmaps(self) -> Any:
        """Return the members of each leaf as a bitmap, and one more that is empty. Made once.

        The shape is (L + 1, n_words), with 32 samples per word and whole vectors of 16 bytes.
        """
        if self._bitmaps is None:
            shape = self.bitmap_shape
            bitmaps = load_cupy().zeros(shape, np.uint32)
            kernel("nearest_by_planes.cu", "fill_bitmaps", N_PLANES=4, **self.macros())(
                self.list_offsets,
                self.members,
                np.int64(self.n_leaves),
                np.int32(self.n_parts),
                np.int32(self.part_size),
                np.int64(shape[1]),
                bitmaps,
                n_warps=self.n_leaves,
            )
            self._bitmaps = finished(bitmaps)  # set last, because another thread may read it
        return self._bitmaps

    @property
    def bitmap_shape(self) -> tuple[int, int]:
        """Shape of :meth:`bitmaps`."""
        return self.n_leaves + 1, -(-self.n_samples // 128) * 4

    def ragged(self) -> RaggedRows:
        """Return the leaves of each sample as rows of any length. They are made once."""
        if self._ragged is None:
            self._ragged = finished(self._make_ragged())
        return self._ragged

    def _make_table(self, first: npt.NDArray[np.int64]) -> LeafTable | None:
        cupy = load_cupy()
        n_groups = len(first) - 1
        largest = int(np.diff(first).max(initial=0))
        id_type = np.dtype(np.uint16 if largest <= 2**16 - 1 - _N_MARKS else np.uint32)
        per_vector = 16 // id_type.itemsize
        stride = max(1, -(-n_groups // per_vector)) * per_vector
        ids = cupy.full((self.n_samples, stride), np.iinfo(id_type).max, id_type)
        kind = np.uint8 if self.member_weights is None else self.member_weights.dtype
        shape = (0 if self.member_weights is None else self.n_samples, n_groups)
        weights = cupy.zeros(shape, kind)
        on_device, repeated = cupy.asarray(first), cupy.zeros(1, np.int32)
        arguments = (
            self.list_offsets,
            self.members,
            self.member_weights,
            np.int64(self.n_leaves),
            np.int32(self.n_parts),
            np.int32(self.part_size),
            on_device,
            np.int32(n_groups),
            np.int32(stride),
            ids,
            weights,
            repeated,
        )
        macros = {"LeafId": c_name(id_type), **self.macros()}
        scatter = kernel("build_table.cu", "scatter_leaves", **macros)
        scatter(*arguments, n_warps=self.n_leaves)
        kernel("build_table.cu", "check_leaves", **macros)(*arguments, n_warps=self.n_leaves)
        if int(repeated[0]):
            return None
        return LeafTable(ids, None if self.member_weights is None else weights, on_device)

    def _make_ragged(self) -> RaggedRows:
        cupy = load_cupy()
        entry = cupy.arange(int(self.list_offsets[-1]))
        place = cupy.searchsorted(self.list_offsets[1:].astype(np.int64), entry, side="right")
        part, leaf = cupy.divmod(place, self.n_leaves)
        samples = part * self.part_size + self.members[: len(entry)]
        order = cupy.lexsort(cupy.stack([leaf, samples]))
        offsets = cupy.searchsorted(samples[order], cupy.arange(self.n_samples + 1))
        weights = None if self.member_weights is None else self.member_weights[order]
        return RaggedRows(offsets, leaf[order], weights)

    def macros(self) -> dict[str, Any]:
        """Return the macros for kernels that read the lists."""
        weights = self.member_weights
        return {
            "ListOffset": c_name(self.list_offsets.dtype),
            "MEMBER_WEIGHTS": int(weights is not None),
            "MemberWeight": "float" if weights is None else c_name(weights.dtype),
        }


def _from_host(
    index: LeafIndex, sample_at: Any, part_size: int, n_parts: int
) -> tuple[Any, Any, Any]:
    """Copy the lists of an index to the device, and split them into parts."""
    cupy, n_leaves = load_cupy(), len(index.offsets) - 1
    samples = sample_at[to_device(index.members)].astype(np.int64)
    weights = None if index.weights is None else to_device(index.weights)
    ends = to_device(index.offsets[1:])
    leaf = cupy.searchsorted(ends, cupy.arange(len(samples)), side="right")
    key = samples // part_size * n_leaves + leaf
    order = cupy.argsort(key * index.n_samples + samples)
    offsets = cupy.searchsorted(key[order], cupy.arange(n_parts * n_leaves + 1))
    members = (samples[order] % part_size).astype(np.uint16)
    weights = None if weights is None else weights[order]
    return narrow(offsets, len(members)), padded(members), weights


def default_part_size(n_samples: int) -> int:
    """Return the size of parts. Their counters must fit in shared memory."""
    # Counters of 16 bits for all samples, and flags.
    fits = attribute("MaxSharedMemoryPerBlockOptin") >= 144 * 1024
    largest = LARGEST_PART if fits else LARGEST_PART // 2
    return min(largest, max(32, -(-n_samples // 32) * 32))
