"""Fit a proximity to a table that is read once, batch by batch.

Leaf ids go to a file as they are found. In-bag weights follow, a few trees at a time, then the
masses of leaves, then the lists of one part of the rows after the other. What lies there at the end
is a saved proximity, which is opened with its arrays mapped from their files. Each step notes what
is done, so that a fit that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields
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
from leafkernel.incidence import WeighedRows
from leafkernel.kernel import LeafKernel
from leafkernel.leaf_index import Samples, list_by_leaf
from leafkernel.parts import cut
from leafkernel.schemes import WeightScheme
from leafkernel.streaming._work import Array, GrowingArray, Work, seal
from leafkernel.training import complete_samples, read_stats
from leafkernel.weighting import leaf_id_type

_LISTS = ("offsets", "members", "weights", "sample_at")
# A part of so much memory, while it is made, needs several times as much.
_SHARE_OF_PART = 10
# Rows whose leaf masses are counted at once, and rows whose leaves are compared with earlier ones.
_ROWS_AT_ONCE = 1 << 17
_COMPARED = 256


@dataclass(frozen=True)
class BatchFit:
    """What was fitted to batches.

    Attributes
    ----------
    kernel : LeafKernel
        The kernel, over arrays that are mapped from files.
    samples : Samples
        The training samples.
    y : ndarray or None
        Their targets.
    first : Any
        X of the first batch.
    work : Work
        The folder with the files.
    there : dict of str to ndarray
        The arrays that lie in it.
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
        Further parameters of :meth:`LeafKernel.fit`.
    limit : int
        Memory to stay within, in bytes.
    progress : bool
        Whether to show progress.
    n_threads : int
        Threads.
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
        """Fit, or go on with a fit of the same identity that was interrupted."""
        # The name that the data of a save has: at the end, it is one.
        work = Work(folder / f"data-{(identity or secrets.token_hex(6))[:12]}", identity)
        first, leaf = self._route(work, batches)
        n_rows, n_trees = leaf.shape
        y = _targets(work, y, n_rows)
        there = {"leaf": leaf}
        if "in_bag" in self.scheme.needs:
            there.update(self._draw(work, y, sample_weight, leaf))
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
            n_threads=self.n_threads,
        )
        return BatchFit(kernel, samples, y, first, work, there)

    def identity(self, batches: Batches, y: Any, sample_weight: Any) -> str | None:
        """Return what tells this fit from others; None where the table or scheme has no identity.

        Part of it is where the forest sends the first rows.
        """
        first = next(iter(batches), None)
        if first is None:
            raise ValueError("the table has no rows.")
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
        """Refuse what needs all samples in memory."""
        if self.forest.learns_leaves:
            raise TypeError(
                f"{self.forest} tells its leaves only through the samples of one fit, so it cannot "
                "be fitted batch by batch; pass all samples at once."
            )
        if "features" in self.scheme.needs:
            raise ValueError(
                f"weight_scheme={self.scheme.name!r} looks at the training samples themselves, "
                "which are not kept when they come in batches; use 'kerf' or 'gap'."
            )
        if "gradients" in self.scheme.needs:
            raise ValueError(
                f"weight_scheme={self.scheme.name!r} follows the training of the model over all "
                "samples at once, so it does not work with batches; pass all samples to fit, or "
                "use 'kerf'."
            )
        if self.options["symmetrize"] and not self.scheme.symmetric:
            raise ValueError(
                f"symmetrize=True with weight_scheme={self.scheme.name!r} keeps two maps in "
                "memory, so it does not work with batches; use 'kerf', which is symmetric."
            )

    def _route(self, work: Work, batches: Batches) -> tuple[Any, Array]:
        """Return X of the first batch, and the leaves of all rows, mapped from their file."""
        first = next(iter(batches), None)
        if first is None:
            raise ValueError("the table has no rows.")
        _check_size(first.X, self.limit)
        done = int(work.state.get("rows", 0))
        width, kind = len(self.forest.leaf_offsets) - 1, leaf_id_type(self.forest.leaf_offsets[-1])
        if not work.state.get("routed"):
            # Before the first file: a folder with files and no note is taken for another's.
            work.note(rows=done)
            names = _names(first.X)
            with (
                GrowingArray(work.folder / "leaf.npy", width, kind, done) as leaf,
                progress_bar("leaves", batches.n_rows, enabled=self.progress) as on_progress,
            ):
                for batch in batches.rows_from(done):
                    if _names(batch.X) != names:
                        raise ValueError(f"the columns change at row {leaf.n_rows}.")
                    if (batch.y is None) != (first.y is None):
                        raise ValueError(f"targets are missing from row {leaf.n_rows} on.")
                    if batch.y is not None:
                        work.put(f"y_{leaf.n_rows}", _plain(batch.y))
                    leaf.append(self.forest.leaves(batch.X, n_threads=self.n_threads))
                    work.note(rows=leaf.n_rows)
                    if on_progress is not None:
                        on_progress(leaf.n_rows)
            work.note(routed=True)
        return first.X, work.get("leaf")

    def _draw(self, work: Work, y: Any, sample_weight: Any, leaf: Array) -> dict[str, Array]:
        """Return in-bag weights and out-of-bag flags, mapped from files, a few trees at a time."""
        n_rows, n_trees = leaf.shape
        names, at_once = (
            ("in_bag_weights", "oob_flags"),
            max(self.limit // (64 * max(n_rows, 1)), 1),
        )
        done = int(work.state.get("trees", 0))
        with progress_bar("draws", n_trees, enabled=self.progress, unit="tree") as on_progress:
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
                        raise ValueError("the trees drew samples in different ways.")
                    file[:, trees] = found
                    file.flush()
                done = trees.stop
                work.note(trees=done)
                if on_progress is not None:
                    on_progress(done)
        return {name: work.get(name) for name in names}

    def _list_part(
        self, work: Work, there: dict[str, Array], i: int, rows: WeighedRows
    ) -> core.LeafLists:
        """Return the lists of a part, mapped from files; those that were written stay."""
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
    """Return the targets that were given, or those of the batches."""
    if y is None:
        files = sorted(work.folder.glob("y_*.npy"), key=lambda path: int(path.stem[2:]))
        if not files:
            return None
        parts = [np.load(path, allow_pickle=False) for path in files]
        if len({part.dtype.kind in "biuf" for part in parts}) > 1:
            raise TypeError("some batches have numbers as targets, and others have none.")
        y = np.concatenate(parts)
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y):,} rows, but the batches of X have {n_rows:,}.")
    return y


def _plain(y: Array) -> Array:
    """Return targets as an array of numbers, texts or dates, which a file can hold."""
    refuse_missing(y)
    if y.dtype != object:
        return y
    kinds = {type(value) for value in y.ravel()}
    found = np.array(y.tolist())
    if found.dtype == object or (len(kinds) > 1 and str in kinds):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(
            f"targets of type {names} cannot be written to a file; give numbers or text."
        )
    return found


def _identity_of(scheme: WeightScheme) -> list[str] | None:
    """Return what tells a scheme of ours from others; a user's own could have changed."""
    if not type(scheme).__module__.startswith("leafkernel.schemes."):
        return None
    values = [getattr(scheme, field.name) for field in fields(scheme)]  # type: ignore[arg-type]
    return [scheme.name, *(checksum(np.asarray(value)) for value in values)]


def _names(X: Any) -> list[Any]:
    return list(getattr(X, "columns", []))


def _check_size(X: Any, limit: int) -> None:
    """Refuse batches that would take most of the memory alone."""
    size = X.memory_usage().sum() if hasattr(X, "memory_usage") else getattr(X, "nbytes", 0)
    if size > limit // 4:
        raise MemoryError(
            f"a batch of {X.shape[0]:,} rows takes {format_bytes(size)}, more than a quarter of "
            f"max_memory ({format_bytes(limit)}); read smaller batches (batch_rows)."
        )
