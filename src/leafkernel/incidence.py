"""The columns of each row of the maps Q and W, and the weights there.

A *column* is a coordinate of the maps: a leaf. Columns come in *groups*, one for each tree. A
symmetrized kernel has every tree twice, once for each side, so it has two groups for each tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import leafkernel._native as core
from leafkernel._lazy import lazy
from leafkernel._state import FieldsState
from leafkernel.weighting import Weighting, leaf_id_type

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Rows = slice | Array


@dataclass(frozen=True)
class Coordinates:
    """The columns of the maps, and the tree of each column.

    Attributes
    ----------
    first : ndarray of int64 of shape (G + 1,)
        First column of each group, followed by the number of columns.
    tree : ndarray of int64 of shape (G,)
        Tree of each group.
    """

    first: npt.NDArray[np.int64]
    tree: npt.NDArray[np.int64]

    @classmethod
    def of_leaves(cls, leaf_offsets: Array) -> Coordinates:
        """Return one group for each tree, with one column for each leaf."""
        return cls(np.array(leaf_offsets, dtype=np.int64), np.arange(len(leaf_offsets) - 1))

    @lazy
    def twice(self) -> Coordinates:
        """Return these columns, followed by the same number of columns for the same trees."""
        both = np.concatenate([self.first, self.first[1:] + self.n_columns])
        return Coordinates(both, np.tile(self.tree, 2))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.first[-1])

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.tree.max(initial=-1)) + 1

    def groups_of(self, tree: int) -> list[int]:
        """Return the groups of a tree: one, or two if the kernel is symmetrized."""
        found: list[int] = np.flatnonzero(self.tree == tree).tolist()
        return found

    def tree_of(self, columns: Array) -> npt.NDArray[np.int64]:
        """Return the tree of each column."""
        return self.tree[np.searchsorted(self.first, columns, side="right") - 1]


@dataclass(frozen=True)
class Incidence(FieldsState):
    """The columns of each row.

    Most rows have one column in each group: the leaf of a sample in a tree. Then ``columns`` is a
    table with one line for each row. Rows may also have any number of columns. Then ``columns``
    lists them row after row, and ``offsets`` is the start of each row.

    Attributes
    ----------
    ids : leafkernel._native.Incidence
        The columns of each row. The compiled core checks them when it creates this object, and
        does not check them again.
    coordinates : Coordinates
        All columns of the maps.
    """

    ids: core.Incidence
    coordinates: Coordinates

    @classmethod
    def of(
        cls,
        columns: Array,
        coordinates: Coordinates,
        offsets: Array | None = None,
        *,
        n_threads: int = 1,
    ) -> Incidence:
        """Check the columns of rows: they are ascending, and a table has one in each group."""
        # The core copies writeable arrays and shares read-only arrays.
        ids = core.Incidence(np.ascontiguousarray(columns), coordinates.first, offsets, n_threads)
        return cls(ids, coordinates)

    @property
    def columns(self) -> Array:
        """The columns of rows, shape (n, G), or (n_entries,) with offsets."""
        return self.ids.columns

    @property
    def offsets(self) -> npt.NDArray[np.int64] | None:
        """Start of each row, shape (n + 1,). None if each row has one column in each group."""
        return self.ids.offsets

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        return len(self.columns) if self.offsets is None else len(self.offsets) - 1

    @lazy
    def row_of_entry(self) -> npt.NDArray[np.int64]:
        """Return the row of each entry. Only with offsets."""
        assert self.offsets is not None
        return np.repeat(np.arange(self.n_rows), np.diff(self.offsets))

    def entries(self, rows: Rows) -> Rows:
        """Return the positions of the entries of some rows in arrays like ``columns``."""
        if self.offsets is None:
            return rows
        if isinstance(rows, slice) and rows.step in (None, 1):
            begin, end, _ = rows.indices(self.n_rows)
            return slice(int(self.offsets[begin]), int(self.offsets[max(begin, end)]))
        chosen = np.arange(self.n_rows)[rows]
        begins, sizes = self.offsets[chosen], np.diff(self.offsets)[chosen]
        before = np.cumsum(sizes) - sizes
        places: npt.NDArray[np.int64] = np.repeat(begins - before, sizes) + np.arange(sizes.sum())
        return places

    def rows(self, rows: Rows) -> Incidence:
        """Return some of the rows."""
        if isinstance(rows, slice) and rows.step in (None, 1) and self.offsets is None:
            begin, end, _ = rows.indices(self.n_rows)
            if end - begin == self.n_rows:
                return self
            return Incidence(self.ids.rows(begin, max(begin, end)), self.coordinates)
        columns = _locked(self.columns[self.entries(rows)])
        if self.offsets is None:
            return Incidence.of(columns, self.coordinates)
        sizes = np.diff(self.offsets)[rows]
        return Incidence.of(columns, self.coordinates, np.concatenate([[0], np.cumsum(sizes)]))

    def locality_order(self) -> npt.NDArray[np.int64]:
        """Return the order of rows by their first column, so that similar rows are neighbors."""
        return core.locality_order(self.ids)

    def shared_columns(self) -> float:
        """Return the average number of columns that two rows share, estimated from a few groups."""
        n_groups = len(self.coordinates.first) - 1
        if self.offsets is not None or not self.n_rows or not n_groups:
            return 0.0
        probed = np.unique(np.linspace(0, n_groups - 1, 4).astype(int))
        sizes = [np.unique(self.columns[:, g], return_counts=True)[1] for g in probed]
        shares = [float(np.sum((size / self.n_rows) ** 2)) for size in sizes]
        return float(np.mean(shares)) * n_groups

    def twice(self) -> Incidence:
        """Return rows with each column, and its copy in the second half of the columns."""
        both = self.coordinates.twice
        kind = leaf_id_type(both.n_columns)
        doubled = self.columns.astype(kind, copy=False) + kind(self.coordinates.n_columns)
        offsets = None if self.offsets is None else 2 * self.offsets
        return Incidence.of(_locked(self.beside(self.columns, doubled)), both, offsets)

    def beside(self, first: Array, second: Array) -> Array:
        """Join two arrays of entries of these rows: each row has its entries of both."""
        if self.offsets is None:
            return np.concatenate([first, second], axis=1)
        order = np.argsort(np.tile(self.row_of_entry, 2), kind="stable")
        return np.concatenate([first, second])[order]


@dataclass(frozen=True)
class WeighedRows(FieldsState):
    """Rows of columns with their weights, as used by the compiled core.

    Attributes
    ----------
    incidence : Incidence
        The columns of each row.
    weighting : Weighting
        The factors of the weights. ``by_entry`` has the shape of the columns.
    """

    incidence: Incidence
    weighting: Weighting

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        return self.incidence.n_rows

    @property
    def present(self) -> npt.NDArray[np.uint8] | None:
        """Flags for the entries that count, with the shape of the columns. None means all."""
        entry = self.weighting.by_entry
        return None if entry is None or entry.dtype != bool else entry.view(np.uint8)

    @property
    def weights(self) -> Array | None:
        """Factor of each entry: uint8, float32 or float64. None means one."""
        entry = self.weighting.by_entry
        return None if entry is None or entry.dtype == bool else entry

    @property
    def by_row(self) -> Doubles | None:
        """Factor of each row. None means one."""
        return self.weighting.by_sample

    def rows(self, rows: Rows) -> WeighedRows:
        """Return some of the rows."""
        if isinstance(rows, slice) and rows.indices(self.n_rows) == (0, self.n_rows, 1):
            return self
        return WeighedRows(self.incidence.rows(rows), self._weighting_of(rows))

    def dense(self, rows: Rows = slice(None)) -> Doubles:
        """Return the weight of each entry of some rows, with the shape of their columns."""
        incidence, weighting = self.incidence, self._weighting_of(rows)
        columns = incidence.columns[incidence.entries(rows)]
        if incidence.offsets is not None and weighting.by_sample is not None:
            sizes = np.diff(incidence.offsets)[rows]
            factor = np.repeat(weighting.by_sample, sizes)
            return np.asarray(replace(weighting, by_sample=None).dense(columns) * factor)
        return weighting.dense(columns)

    def in_groups(self, groups: Iterable[int]) -> Iterator[GroupEntries]:
        """Yield the entries in each of some groups of columns."""
        incidence, weighting, groups = self.incidence, self.weighting, np.fromiter(groups, np.int64)
        first = incidence.coordinates.first
        if incidence.offsets is not None:
            weights = self.dense()
            for begin, end in zip(first[groups], first[groups + 1], strict=True):
                places = np.flatnonzero((incidence.columns >= begin) & (incidence.columns < end))
                columns = incidence.columns[places]
                yield GroupEntries(incidence.row_of_entry[places], columns - begin, weights[places])
            return
        # Column-major order makes each group contiguous in memory.
        columns = np.asfortranarray(incidence.columns[:, groups])
        if weighting.by_entry is not None:
            entries = np.asfortranarray(weighting.by_entry[:, groups])
            weighting = replace(weighting, by_entry=entries)
        row = np.arange(self.n_rows)
        for i, begin in enumerate(first[groups]):
            yield GroupEntries(row, columns[:, i] - begin, weighting.in_tree(columns, i))

    def row_dots(self, other: WeighedRows, rows: slice = slice(None)) -> Doubles:
        """Return the inner product of each row with the same row of ``other``."""
        mine, theirs = self.dense(rows), other.dense(rows)
        if self.incidence.offsets is None:
            return np.asarray(np.einsum("it,it->i", mine, theirs))
        row = self.incidence.row_of_entry[self.incidence.entries(rows)]
        begin, end, _ = rows.indices(self.n_rows)
        return np.bincount(row - begin, mine * theirs, minlength=end - begin).astype(np.float64)

    def _weighting_of(self, rows: Rows) -> Weighting:
        if self.incidence.offsets is None:
            return self.weighting.rows(rows)
        by_sample, by_entry = self.weighting.by_sample, self.weighting.by_entry
        return replace(
            self.weighting,
            by_sample=None if by_sample is None else by_sample[rows],
            by_entry=None if by_entry is None else by_entry[self.incidence.entries(rows)],
        )


@dataclass(frozen=True)
class GroupEntries:
    """The entries of rows in one group of columns.

    Attributes
    ----------
    row : ndarray of int
        Row of each entry.
    leaf : ndarray of int
        Column of each entry, counted within its group.
    weight : ndarray of float64
        Weight of each entry.
    """

    row: Array
    leaf: Array
    weight: Doubles


def _locked(array: Array) -> Array:
    """Make an array that is not shared read-only."""
    array.flags.writeable = False
    return array


def shared_by_tree(one: WeighedRows, other: WeighedRows) -> Doubles:
    """Return the contribution of each tree to the inner product of two rows, shape (T,)."""
    coordinates = one.incidence.coordinates
    columns, mine, theirs = np.intersect1d(
        one.incidence.columns.ravel(), other.incidence.columns.ravel(), return_indices=True
    )
    adds = one.dense().ravel()[mine] * other.dense().ravel()[theirs]
    trees = coordinates.tree_of(columns)
    return np.bincount(trees, adds, minlength=coordinates.n_trees).astype(np.float64)
