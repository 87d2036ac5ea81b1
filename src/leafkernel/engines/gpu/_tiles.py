"""Products that do not fit on the device, computed in tiles.

A *tile* is a slice of the reference samples and a slice of the query rows. Slices of the reference
samples are used one after another, each with all slices of the query rows. Meanwhile, the next
slice is copied to the device.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from leafkernel._memory import format_bytes
from leafkernel._progress import OnProgress
from leafkernel.engines.gpu._copies import Copier, copier
from leafkernel.engines.gpu._device import clear_memory_errors, load_cupy, usable_bytes
from leafkernel.engines.gpu._index import default_part_size
from leafkernel.engines.gpu._query import DeviceQuery
from leafkernel.engines.gpu._uploads import forget, remember
from leafkernel.engines.native import NO_LIMIT
from leafkernel.engines.parted import PartedEngine
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.parts import PartedIndex, cut, parts_of
from leafkernel.product import Product

if TYPE_CHECKING:
    from leafkernel.engines.gpu import GpuEngine

#: Share of the memory for the index of one slice, for the next one, and for query rows. The rest is
#: for results.
_SHARE = 0.25
#: Bytes for each leaf in each part while samples are listed, see list_members.
_LEAF_BYTES = 20
#: Methods that always return results in main memory.
_COUNTS = ("collisions", "nonzeros")
_Method = Callable[..., Any]


@dataclass(frozen=True)
class Tiles:
    """The slices of a product.

    Attributes
    ----------
    references, queries : list of slice
        Slices of the reference samples and of the query rows.
    """

    references: list[slice]
    queries: list[slice]

    @classmethod
    def of(cls, product: Product, engine: GpuEngine, result_bytes: int = 0) -> Tiles | None:
        """Return the tiles of a product, or None if it fits on the device as a whole.

        ``result_bytes`` is the memory for the results of one query row.
        """
        index, query, rows = product.index, product.query, product.index.rows
        if (
            query.incidence.offsets is not None
            or rows is None
            or rows.incidence.offsets is not None
        ):
            return None
        of_query = _query_bytes(query) + result_bytes
        known = 0 if DeviceQuery.is_kept(query) else _query_bytes(query)
        query_bytes = query.n_rows * (known + result_bytes)
        leaf_bytes, of_sample = (
            _LEAF_BYTES * rows.incidence.coordinates.n_columns,
            _sample_bytes(rows),
        )
        size, index_bytes = engine.part_size or default_part_size(rows.n_rows), 0
        if not index.is_prepared(engine):
            index_bytes = rows.n_rows * of_sample + -(-rows.n_rows // size) * leaf_bytes
        if index_bytes + query_bytes <= usable_bytes():
            return None
        forget()  # the leaves of all samples cannot be used for slices
        room = usable_bytes()
        if index_bytes + query_bytes <= room:
            return None
        share = int(_SHARE * room)
        queries = cut(query.n_rows, max(share // of_query, 1))
        if index_bytes <= share:
            return cls([slice(0, rows.n_rows)], queries)
        parts_at_once = share // (size * of_sample + leaf_bytes)
        step = parts_at_once * size or (share - leaf_bytes) // of_sample
        if step < 1:
            raise MemoryError(
                f"The lists of {rows.incidence.coordinates.n_columns:,} leaves need "
                f"{format_bytes(leaf_bytes)} of GPU memory, but only {format_bytes(share)} are "
                'available for them. Use engine="native", free GPU memory, or train fewer or '
                "smaller trees."
            )
        return cls(cut(rows.n_rows, int(step)), queries)

    def product(self, product: Product) -> Product:
        """Return the product with reference samples in parts."""
        index, rows = product.index, product.index.rows
        if len(self.references) == 1:
            return product
        assert rows is not None
        own, oob = product.own, product.reference_oob
        # Places are samples here, because the slices are not reordered.
        found = replace(
            product,
            reference=PartedIndex(
                tuple(LeafIndex.unlisted(rows.rows(some)) for some in self.references)
            ),
            own=None if own is None else np.where(own < 0, -1, index.sample_at[own]),
            reference_oob=None if oob is None else oob[index.place_of],
        )
        vars(found)["by_leaf"] = product.by_leaf
        return found


def in_tiles(method: _Method) -> _Method:
    """Let a method of the engine compute products that do not fit on the device."""

    @wraps(method)
    def call(self: GpuEngine, product: Product, *args: Any, **params: Any) -> Any:
        tiles = Tiles.of(product, self, _result_bytes(method.__name__, product, *args, **params))
        if tiles is None:
            with clear_memory_errors():
                return method(self, product, *args, **params)
        with clear_memory_errors(), copier() as copies:
            parts = tiles.product(product)
            slices = parts_of(parts.reference)
            engine = PartedEngine(TileEngine(self.on_host(), tiles, slices, copies))
            found = getattr(engine, method.__name__)(parts, *args, **params)
            return found if method.__name__ in _COUNTS else self.moved(found)

    return call


def in_column_groups(method: _Method) -> _Method:
    """Let a method of the engine multiply groups of columns, if not all fit on the device."""

    @wraps(method)
    def call(
        self: GpuEngine,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> Any:
        n_leaves = product.query.incidence.coordinates.n_columns
        of_column = 8 * (n_leaves + sum(product.shape))
        groups = cut(values.shape[1], max(int(_SHARE * usable_bytes()) // of_column, 1))
        found = []
        for i, columns in enumerate(groups):
            watch = []
            if on_progress is not None:
                watch = [_share_of(on_progress, i, len(groups), product)]
            found.append(method(self, product, values[:, columns], *watch))
        if len(found) == 1:
            return found[0]
        return (np if self.output == "numpy" else load_cupy()).concatenate(found, axis=1)

    return call


def _share_of(on_progress: OnProgress, group: int, n_groups: int, product: Product) -> OnProgress:
    """Report the rows of one group as a share of all rows."""

    def watch(done: int) -> None:
        on_progress((group * product.n_rows + done) // n_groups)

    return watch


@dataclass(frozen=True)
class TileEngine:
    """Computes one slice of the reference samples, for one slice of query rows after another.

    Parameters
    ----------
    inner : GpuEngine
        The engine, with results in main memory.
    tiles : Tiles
        The slices.
    slices : tuple of LeafIndex
        The reference samples.
    copies : Copier
        Copies the next slice.
    coming : list
        The leaves of the next slice, and a future of their copy.
    """

    inner: GpuEngine
    tiles: Tiles
    slices: tuple[LeafIndex, ...]
    copies: Copier
    coming: list[tuple[npt.NDArray[Any], Future[Any]]] = field(default_factory=list)
    n_threads: int = 1

    @property
    def key(self) -> Hashable:
        """Key of the inner engine."""
        return self.inner.key

    def prepare(self, index: LeafIndex) -> Any:
        """Prepare one slice."""
        return self.inner.prepare(index)

    def on_one_thread(self) -> TileEngine:
        """Return the engine itself."""
        return self

    def rows(
        self,
        product: Product,
        on_progress: OnProgress | None = None,
        *,
        sort: bool = True,
        most_entries: int = NO_LIMIT,
    ) -> csr_array:
        """Return rows of P in one slice of the reference samples."""
        blocks: list[csr_array] = []
        for tile, watch in self._tiles(product, on_progress):
            left = most_entries - sum(block.nnz for block in blocks)
            blocks.append(self._call("rows", tile, watch, sort=sort, most_entries=left))
        return csr_array(vstack(blocks, format="csr"))

    def nearest(
        self,
        product: Product,
        k: int,
        on_progress: OnProgress | None = None,
        *,
        by_magnitude: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the nearest samples in one slice of the reference samples."""
        found = [
            self._call("nearest", tile, k, watch, by_magnitude=by_magnitude)
            for tile, watch in self._tiles(product, on_progress)
        ]
        similarity, samples = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return similarity, samples

    def sums(
        self,
        product: Product,
        values: npt.NDArray[np.float64],
        on_progress: OnProgress | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return P @ values in one slice of the reference samples."""
        tiles = self._tiles(product, on_progress)
        return np.concatenate([self._call("sums", tile, values, watch) for tile, watch in tiles])

    def apply(self, product: Product, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Q Wᵀ @ values in one slice of the reference samples."""
        return np.concatenate(
            [self._call("apply", tile, values) for tile, _ in self._tiles(product)]
        )

    def collisions(self, product: Product) -> npt.NDArray[np.int64]:
        """Return the leaf collisions of each row in one slice of the reference samples."""
        return np.concatenate([self._call("collisions", tile) for tile, _ in self._tiles(product)])

    def nonzeros(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the nonzeros of each row in one slice of the reference samples."""
        tiles = self._tiles(product, on_progress)
        return np.concatenate([self._call("nonzeros", tile, watch) for tile, watch in tiles])

    def _call(self, name: str, tile: Product, *args: Any, **params: Any) -> Any:
        # The method itself, because a tile must not be split again.
        return unwrap(getattr(type(self.inner), name))(self.inner, tile, *args, **params)

    def _tiles(
        self, product: Product, on_progress: OnProgress | None = None
    ) -> Iterator[tuple[Product, OnProgress | None]]:
        """Yield the tiles of a slice of the reference samples. Its copy is then removed."""
        index = product.index
        self._take(index)
        self._prefetch_after(index)
        # Rows of a small part may be a selection, see PartedEngine.nearest_in.
        whole = product.n_rows == self.tiles.queries[-1].stop
        step = self.tiles.queries[0].stop
        try:
            for rows in self.tiles.queries if whole else cut(product.n_rows, step):
                watch = None
                if on_progress is not None:

                    def watch(done: int, before: int = rows.start) -> None:
                        on_progress(before + done)

                yield _rows_of(product, rows), watch
        finally:
            if len(self.slices) > 1:
                vars(index).pop("_prepared", None)
                vars(index.rows).pop("_on_device", None)

    def _prefetch_after(self, index: LeafIndex) -> None:
        """Start to copy the slice that comes after this one."""
        place = next(i for i, some in enumerate(self.slices) if some is index)
        if place + 1 < len(self.slices):
            after = self.slices[place + 1].rows
            assert after is not None
            columns = after.incidence.columns
            self.coming[:] = [(columns, self.copies.upload(columns))]

    def _take(self, index: LeafIndex) -> None:
        """List a slice on the device, from the copy that was started before, if there is one."""
        for columns, copy in self.coming:
            remember(columns, copy.result())
        index.prepared(self.inner)
        for columns, _ in self.coming:
            forget(columns)
        self.coming.clear()


def _rows_of(product: Product, rows: slice) -> Product:
    """Return the product for a slice of the query rows."""
    query = product.query.rows(rows)
    some = replace(
        product,
        query=query,
        row_order=query.incidence.locality_order(),
        own=None if product.own is None else product.own[rows],
        diagonal=None if product.diagonal is None else product.diagonal[rows],
        query_oob=None if product.query_oob is None else product.query_oob[rows],
    )
    vars(some)["by_leaf"] = product.by_leaf
    return some


def _query_bytes(rows: WeighedRows) -> int:
    """Return the memory for one query row on the device, while it is copied."""
    columns = rows.incidence.columns
    weight = 0 if rows.weights is None else rows.weights.dtype.itemsize
    return int(columns.shape[1] * (2 * columns.itemsize + 1 + weight) + 64)


def _sample_bytes(rows: WeighedRows) -> int:
    """Return the memory for one reference sample on the device, while it is listed."""
    weight = 0 if rows.weights is None else rows.weights.dtype.itemsize
    # Its entry in a list, its leaf in a table, and the weights of both.
    return int(_query_bytes(rows) + rows.incidence.columns.shape[1] * (2 + 4 + 2 * weight))


def _result_bytes(name: str, product: Product, *args: Any, **params: Any) -> int:
    """Return the memory for the results of one query row of a method, if it is fixed."""
    if name == "nearest":
        k = args[0] if args else params["k"]
        return int(k) * (8 + product.dtype.itemsize)
    if name in ("sums", "apply"):
        values = args[0] if args else params["values"]
        return 8 * int(values.shape[1])
    return 0
