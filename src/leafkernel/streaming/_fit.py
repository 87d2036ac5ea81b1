"""Fit a proximity to a table that is read once, batch by batch.

Leaf ids are written to a file as they are computed. In-bag weights follow, a few trees at a time,
then the leaf sizes, then the lists of one part of the rows after the other. The result is a saved
proximity, whose arrays are memory-mapped. Each step records its progress, so an interrupted fit can
be resumed.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

import leafkernel._native as core
from leafkernel import forests
from leafkernel._memory import format_bytes
from leafkernel._progress import progress_bar
from leafkernel._targets import refuse_missing
from leafkernel.batches import Batches, checksum
from leafkernel.cells import Cells
from leafkernel.incidence import WeighedRows
from leafkernel.kernel import LeafKernel
from leafkernel.leaf_index import Samples, list_by_leaf
from leafkernel.parts import cut
from leafkernel.schemes import WeightScheme
from leafkernel.streaming._work import Array, GrowingArray, Work, seal
from leafkernel.training import complete_samples, read_stats, uses_in_bag
from leafkernel.weighting import leaf_id_type

_LISTS = ("offsets", "members", "weights", "sample_at")
# The memory limit divided by the size of a part. Creating a part takes several times its size.
_SHARE_OF_PART = 10
# Number of rows to count at once, and of rows whose leaves identify the forest.
_ROWS_AT_ONCE = 1 << 17
_COMPARED = 256


@dataclass(frozen=True)
class BatchFit:
    """The result of a fit to batches.

    Attributes
    ----------
    kernel : LeafKernel
        The kernel, on memory-mapped arrays.
    samples : Samples
        The training samples.
    y : ndarray or None
        Their targets.
    first : Any
        X of the first batch.
    work : Work
        The folder with the files.
    there : dict of str to ndarray
        The arrays in it, by name.
    """

    kernel: LeafKernel
    samples: Samples
    y: Any
    first: Any
    work: Work
    there: dict[str, Array]


@dataclass(frozen=True)
class BatchFitter:
    """Fits a kernel to batches, with all large arrays in a folder.

    Parameters
    ----------
    forest : FittedForest
        The forest.
    scheme : WeightScheme
        The weight scheme.
    options : dict
        Other parameters of :meth:`LeafKernel.fit`.
    limit : int
        Memory limit in bytes.
    progress : bool
        Whether to show progress bars.
    n_threads : int
        Number of threads.
    """

    forest: forests.FittedForest
    scheme: WeightScheme
    options: dict[str, Any]
    limit: int
    progress: bool
    n_threads: int

    def fit(
        self, batches: Batches, y: Any, sample_weight: Any, folder: Path, identity: str | None
    ) -> BatchFit:
        """Fit, or resume an interrupted fit with the same identity."""
        # Named like the data folder of a save, because it becomes one.
        work = Work(folder / f"data-{(identity or secrets.token_hex(6))[:12]}", identity)
        first, leaf = self._route(work, batches)
        n_rows, n_trees = leaf.shape
        y = _targets(work, y, n_rows)
        there = {"leaf": leaf}
        if uses_in_bag(self.scheme):
            try:
                there.update(self._draw(work, y, sample_weight, leaf))
            except forests.Unavailable:
                if "in_bag" in self.scheme.needs:
                    raise
        samples = complete_samples(
            Samples(leaf, there.get("in_bag_weights"), there.get("oob_flags")),
            self.forest,
            self.scheme,
            None,
            y,
            sample_weight,
            n_threads=self.n_threads,
        )
        stats = read_stats(
            self.forest,
            self.scheme,
            samples,
            progress=self.progress,
            n_threads=self.n_threads,
            rows_at_once=_ROWS_AT_ONCE,
        )
        if "rows_per_part" not in work.state:
            work.note(rows_per_part=max(self.limit // (_SHARE_OF_PART * 8 * n_trees), 1))
        kernel = LeafKernel.fit(
            self.scheme,
            samples,
            stats,
            **self.options,
            cuts=cut(n_rows, work.state["rows_per_part"]),
            list_part=lambda i, rows: self._list_part(work, there, i, rows),
            in_cells=lambda cells, some: self._in_cells(work, there, cells, some),
            n_threads=self.n_threads,
        )
        return BatchFit(kernel, samples, y, first, work, there)

    def identity(self, batches: Batches, y: Any, sample_weight: Any) -> str | None:
        """Return a text that identifies the fit, or None if the table or scheme has no identity.

        It includes the leaves of the first rows, to identify the forest.
        """
        first = next(iter(batches), None)
        if first is None:
            raise ValueError("X has no rows.")
        head = first.X.iloc[:_COMPARED] if hasattr(first.X, "iloc") else first.X[:_COMPARED]
        leaves = self.forest.leaves(head, n_threads=self.n_threads)
        table, scheme = batches.identity, _identity_of(self.scheme)
        if table is None or scheme is None:
            return None
        return seal(
            batches=table,
            given=[checksum(y), checksum(sample_weight)],
            scheme=scheme,
            forest=hashlib.sha256(leaves.tobytes()).hexdigest(),
            settings=[self.scheme.name, *map(str, self.options.values())],
        )

    def refuse_unsupported(self) -> None:
        """Raise an error for forests and schemes that need all samples in memory."""
        if self.forest.learns_leaves:
            raise TypeError(
                f"forest={self.forest} cannot be used with Batches, because it has no list of its "
                "leaves. Pass all samples at once."
            )
        if "features" in self.scheme.needs:
            raise ValueError(
                f"weight_scheme={self.scheme.name!r} needs the features of all training samples "
                "in memory, so it does not work with Batches. Use 'kerf' or 'gap'."
            )
        if "gradients" in self.scheme.needs:
            raise ValueError(
                f"weight_scheme={self.scheme.name!r} needs all training samples in memory, so it "
                "does not work with Batches. Pass all samples to fit, or use 'kerf'."
            )
        if self.options["symmetrize"] and not self.scheme.symmetric:
            raise ValueError(
                f"symmetrize=True with weight_scheme={self.scheme.name!r} keeps two maps in "
                "memory, so it does not work with Batches. Use 'kerf', which is symmetric."
            )

    def _route(self, work: Work, batches: Batches) -> tuple[Any, Array]:
        """Return X of the first batch, and the leaves of all rows, mapped from their file."""
        first = next(iter(batches), None)
        if first is None:
            raise ValueError("X has no rows.")
        _check_size(first.X, self.limit)
        done = int(work.state.get("rows", 0))
        width, kind = len(self.forest.leaf_offsets) - 1, leaf_id_type(self.forest.leaf_offsets[-1])
        if not work.state.get("routed"):
            # Before the first file, because a folder with files but without a record is rejected.
            work.note(rows=done)
            names = _names(first.X)
            with (
                GrowingArray(work.folder / "leaf.npy", width, kind, done) as leaf,
                progress_bar("leaves", batches.n_rows, enabled=self.progress) as on_progress,
            ):
                for batch in batches.rows_from(done):
                    if _names(batch.X) != names:
                        raise ValueError(
                            f"X has different columns in the batch at row {leaf.n_rows} than in "
                            "the first batch. All batches must have the same columns."
                        )
                    if (batch.y is None) != (first.y is None):
                        raise ValueError(
                            "y must be in all batches or in none; the batch at row "
                            f"{leaf.n_rows} and the first batch differ in this."
                        )
                    if batch.y is not None:
                        work.put(f"y_{leaf.n_rows}", _plain(batch.y))
                    leaf.append(self.forest.leaves(batch.X, n_threads=self.n_threads))
                    work.note(rows=leaf.n_rows)
                    if on_progress is not None:
                        on_progress(leaf.n_rows)
            work.note(routed=True)
        return first.X, work.get("leaf")

    def _draw(self, work: Work, y: Any, sample_weight: Any, leaf: Array) -> dict[str, Array]:
        """Return in-bag weights and out-of-bag flags, mapped from files."""
        n_rows, n_trees = leaf.shape
        names, at_once = (
            ("in_bag_weights", "oob_flags"),
            max(self.limit // (64 * max(n_rows, 1)), 1),
        )
        done = int(work.state.get("trees", 0))
        with progress_bar("in-bag", n_trees, enabled=self.progress, unit="tree") as on_progress:
            while done < n_trees:
                trees = slice(done, min(done + at_once, n_trees))
                bag = self.forest.in_bag_of_trees(
                    trees, y, sample_weight, n_rows, n_threads=self.n_threads
                )
                for name, found in zip(names, (bag.weights, bag.is_oob), strict=True):
                    path = work.folder / f"{name}.npy"
                    if done == 0:
                        file = open_memmap(path, "w+", found.dtype, (n_rows, n_trees))
                    else:
                        file = open_memmap(path, "r+")
                    if not np.can_cast(found.dtype, file.dtype, "safe"):
                        raise ValueError(
                            "in-bag weights of different trees have different types "
                            f"({file.dtype} and {found.dtype})."
                        )
                    file[:, trees] = found
                    file.flush()
                done = trees.stop
                work.note(trees=done)
                if on_progress is not None:
                    on_progress(done)
        return {name: work.get(name) for name in names}

    def _in_cells(
        self, work: Work, there: dict[str, Array], cells: Cells, samples: Samples
    ) -> Samples:
        """Return samples with their cells as leaves, mapped from a file."""
        name, leaf = "query_columns", samples.leaf
        if not work.state.get("cells"):
            path = work.folder / f"{name}.npy"
            with GrowingArray(path, leaf.shape[1], cells.of_leaf.dtype, 0) as columns:
                for rows in cut(len(leaf), _ROWS_AT_ONCE):
                    columns.append(cells.of_leaf[leaf[rows]])
            work.note(cells=True)
        there[name] = work.get(name)
        return replace(samples, leaf=there[name])

    def _list_part(
        self, work: Work, there: dict[str, Array], i: int, rows: WeighedRows
    ) -> core.LeafLists:
        """Return the lists of a part, mapped from files. Existing files are reused."""
        names = {name: f"part{i}_{name}" for name in _LISTS}
        if i >= int(work.state.get("parts", 0)):
            lists = list_by_leaf(rows, n_threads=self.n_threads)
            for name, file in names.items():
                if getattr(lists, name) is not None:
                    work.put(file, getattr(lists, name))
            work.note(parts=i + 1)
            del lists
        arrays: dict[str, Any] = {
            name: work.get(file) if work.has(file) else None for name, file in names.items()
        }
        there.update({names[name]: array for name, array in arrays.items() if array is not None})
        return core.LeafLists(**arrays)


def _targets(work: Work, y: Any, n_rows: int) -> Any:
    """Return the given targets, or those of the batches."""
    if y is None:
        files = sorted(work.folder.glob("y_*.npy"), key=lambda path: int(path.stem[2:]))
        if not files:
            return None
        parts = [np.load(path, allow_pickle=False) for path in files]
        if len({part.dtype.kind in "biuf" for part in parts}) > 1:
            raise TypeError("y is numeric in some batches and not in others. Use one type.")
        y = np.concatenate(parts)
    if len(y) != n_rows:
        raise ValueError(
            f"y has {len(y):,} rows, but the batches of X have {n_rows:,}. Pass one target for "
            "each row."
        )
    return y


def _plain(y: Array) -> Array:
    """Return targets as an array of numbers, text or dates, which can be written to a file."""
    refuse_missing(y)
    if y.dtype != object:
        return y
    kinds = {type(value) for value in y.ravel()}
    found = np.array(y.tolist())
    if found.dtype == object or (len(kinds) > 1 and str in kinds):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(
            f"y has values of type {names}, which cannot be written to a file. Use numbers or text."
        )
    return found


def _identity_of(scheme: WeightScheme) -> list[str] | None:
    """Return values that identify a built-in scheme, or None for user-defined schemes."""
    if not type(scheme).__module__.startswith("leafkernel.schemes."):
        return None
    found = [scheme.name]
    for field in fields(scheme):  # type: ignore[arg-type]
        value = getattr(scheme, field.name)
        inner = _identity_of(value) if isinstance(value, WeightScheme) else []
        if inner is None:
            return None
        found += inner or [checksum(np.asarray(value))]
    return found


def _names(X: Any) -> list[Any]:
    return list(getattr(X, "columns", []))


def _check_size(X: Any, limit: int) -> None:
    """Raise an error if a batch takes more than a quarter of the memory limit."""
    size = X.memory_usage().sum() if hasattr(X, "memory_usage") else getattr(X, "nbytes", 0)
    if size > limit // 4:
        raise MemoryError(
            f"X has a batch of {X.shape[0]:,} rows, which takes {format_bytes(size)}, more than a "
            f"quarter of the memory limit ({format_bytes(limit)}). Use a smaller batch_rows."
        )
