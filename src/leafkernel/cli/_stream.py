"""Find neighbors in a table that is larger than memory.

All intermediate results are kept in a folder, with a record of the finished steps. A run that was
interrupted continues from there when the same command is run again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import sklearn
from pyarrow import ipc
from pyarrow.parquet import read_metadata

import leafkernel
from leafkernel import ForestProximity
from leafkernel._files import open_whole
from leafkernel._memory import format_bytes, parse_bytes
from leafkernel._optional import require
from leafkernel._progress import OnProgress, progress_shown_by
from leafkernel.batches import Batch, Batches, identity_of
from leafkernel.cli._models import Encode, check_target, encoder_of
from leafkernel.cli._output import Talk
from leafkernel.cli._train import (
    count_trees,
    diagonal_of,
    grow_on,
    new_forest,
    prepare_frame,
    read_model,
)
from leafkernel.cli.commands import Neighbors
from leafkernel.cli.errors import CommandError, FileError, OptionError, TableError
from leafkernel.saving._forest import load_skops
from leafkernel.schemes import find_scheme
from leafkernel.streaming._work import STATE, Work
from leafkernel.tables._arrow import find_signs, to_frame
from leafkernel.tables._missing import quote
from leafkernel.tables._room import ReadOptions, choose_rows
from leafkernel.tables._target import check_rows, find_column
from leafkernel.tables.files import call
from leafkernel.tables.large import LargeTable
from leafkernel.tables.preparation import Prepared, Rows

_SCHEME = "kerf"
# The default number of rows in the sample, and the number that is always allowed.
_SAMPLE, _LEAST = 100_000, 1000
# Rows to read before the progress of the sampling is recorded again.
_BLOCK = 1 << 22
# The sample with its forest may take one third of the memory, and a batch one part in 64.
_SHARE_OF_SAMPLE, _SHARE_OF_BATCH = 3, 64
# Bytes of a sampled row in a tree (its nodes and a copy of them for routing), and of its leaf.
_TREE_BYTES, _LEAF_BYTES = 250, 16
# Bytes on disk of a row in a tree, and of a neighbor.
_DISK_BYTES, _PAIR_BYTES = 10, 32
_COPIES = 4  # of each value, while it is read and prepared
_TREES = 100  # in a model, about
_MOST_ROWS, _FEWEST_ROWS = 1 << 16, 1 << 10
_RESULT = "neighbors.parquet"
# The library's name of each step, the text to show, and the text of the work that follows it.
_LISTING = "preparing the proximities"
_STEPS = {
    "leaves": ("finding the leaves of all rows", _LISTING),
    _RESULT: ("finding neighbors", "joining the results"),
}


def stream_neighbors(talk: Talk, options: Neighbors) -> None:
    """Write the most similar rows of each row without holding the table in memory."""
    scheme = _check(options)
    assert options.output is not None
    output = Path(os.path.realpath(options.output))
    table = LargeTable(options.table)
    find_column(options.target, table.names, "--target")
    check_rows(table.n_rows, table.n_rows)
    new = None if options.new is None else LargeTable(options.new)
    model = read_model(talk, options)
    limit = parse_bytes(options.max_memory)
    folder = output.with_name(f"{output.name}.work")
    run = _Run(talk, options, scheme, table, new, model, limit, folder)
    again = f"unfinished work is kept in {folder}. Run the same command again to continue."
    try:
        run.begin()
        lines = {} if run.is_written(output) else run.write(output)
        run.clean_up()
    except CommandError:
        if not run.work.state.get("checked"):
            run.clean_up()
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(again) from None
    except MemoryError as error:
        raise FileError(
            f"not enough memory: {error} Use a smaller --sample or fewer --trees; {again}"
        ) from error
    except OSError as error:
        raise FileError(f"{error}; {again}") from error
    talk.summary(lines)
    n_pairs = read_metadata(output).num_rows
    if options.json:
        about = {"table": str(options.table), "target": options.target, "rows": table.n_rows}
        talk.document({**about, "scheme": scheme, "pairs": n_pairs, "output": str(options.output)})
    else:
        talk.written(n_pairs, options.output)


def _check(options: Neighbors) -> str:
    """Reject options that cannot be combined; return the scheme."""
    require("skops.io", extra="save")
    if options.output is None or options.output.suffix != ".parquet":
        raise OptionError("--max-memory requires --output with a name that ends in .parquet.")
    if options.max_rows is not None:
        raise OptionError(
            "--max-rows cannot be combined with --max-memory, which compares all rows. Use "
            "--sample to set the number of rows that the forest is trained on."
        )
    if options.forest.value != "random":
        raise OptionError(
            f"--forest {options.forest.value} cannot be combined with --max-memory, which trains a "
            "random forest. Train the model yourself and pass it with --model."
        )
    scheme = _SCHEME if options.scheme is None else options.scheme.value
    found = find_scheme(scheme)
    needs = found.needs | found.optional_needs
    if "in_bag" in needs or "features" in needs:
        why = (
            "it requires a forest that was trained on all rows, not on a sample"
            if "in_bag" in needs
            else "it requires the values of all rows in memory"
        )
        raise OptionError(
            f"--scheme {scheme} cannot be combined with --max-memory: {why}. Use kerf or uniform."
        )
    return scheme


@dataclass
class _Run:
    """The steps of the command. Each step skips the work that is already done."""

    talk: Talk
    options: Neighbors
    scheme: str
    table: LargeTable
    new: LargeTable | None
    model: Any
    limit: int
    folder: Path
    work: Work = field(init=False)

    def begin(self) -> None:
        """Open the folder. Reject a folder with the work of another command."""
        asked = self._asked()
        self.work = Work(self.folder, "")
        known = self.work.state.get("asked", asked)
        other = [name for name, value in asked.items() if known.get(name) != value]
        if other and self.work.state.get("checked"):
            raise OptionError(
                f"{self.folder} has unfinished work of a command with other values of "
                f"{', '.join(other)}. Use the same options as before to continue, or delete the "
                "folder to start again."
            )
        if other:  # the work is short up to here
            self.clean_up()
            self.work = Work(self.folder, "")
        elif self.work.state.get("checked"):
            self.talk.note(f"Continuing the unfinished work in {self.folder}.")
        self.work.note(asked=asked)

    def _asked(self) -> dict[str, Any]:
        """Return everything that the result depends on."""
        options = self.options
        asked = {
            "TABLE": self.table.identity,
            "--new": None if self.new is None else self.new.identity,
            "--model": None if options.model is None else identity_of(options.model),
            "--target": options.target,
            "--task": options.task,
            "--drop": options.drop,
            "--as": options.as_kind,
            "--decimal": options.decimal,
            "--thousands": options.thousands,
            "--id": options.id_column,
            "--trees": options.trees,
            "--seed": options.seed,
            "--scheme": self.scheme,
            "--sample": options.sample,
            "--neighbors": options.k,
            "the version of leafkernel": leafkernel.__version__,
            "the version of scikit-learn": sklearn.__version__,
        }
        read: dict[str, Any] = json.loads(json.dumps(asked))
        return read

    def is_written(self, output: Path) -> bool:
        """Return whether a run that was killed has already written the output."""
        return output.exists() and identity_of(output)[1:] == self.work.state.get("written")

    def write(self, output: Path) -> dict[str, str]:
        """Compute the output, move it to its place, and return the summary."""
        result = self.folder / _RESULT
        lines = {} if result.exists() else self._compute(result)
        if output.exists():
            shutil.copymode(output, result)
        self.work.note(written=identity_of(result)[1:])
        os.replace(result, output)
        return lines

    def clean_up(self) -> None:
        """Remove the folder. The record of the finished steps is removed last."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != STATE:
                path.unlink()
        shutil.rmtree(self.folder)

    def _compute(self, result: Path) -> dict[str, str]:
        talk, options, model = self.talk, self.options, self.model
        n_trees = options.trees or _TREES
        if model is None and options.trees is None:
            n_trees = count_trees(talk, self.table.n_rows)
        self._check_disk(n_trees)
        frame = self._sample(n_trees)
        talk.step("reading the sample")
        prepared = prepare_frame(talk, options, frame, model, is_sample=True)
        needed: list[str] | None = None
        encode: Encode = _features
        if model is not None:
            needed, encode = encoder_of(model, prepared, talk)
            check_target(model, prepared, talk)
        cost = _COPIES * self.table.row_bytes + _LEAF_BYTES * n_trees
        at_once = int(np.clip(self.limit // _SHARE_OF_BATCH // cost, _FEWEST_ROWS, _MOST_ROWS))
        reader = _Reader(talk, prepared, needed, encode, at_once)
        new = None
        if self.new is not None:
            new = reader.batches(self.new)
            if next(iter(new), None) is None:  # this also checks the columns
                raise TableError(f"{call(self.new.path)} has column names but no rows.")
        self.work.note(checked=True)
        forest = self._grow(prepared, encode(prepared), n_trees) if model is None else model
        n_candidates = self.table.n_rows - (new is None)
        if options.k > n_candidates:
            talk.note(f"There are only {n_candidates:,} rows to choose neighbors from.")
        prox = ForestProximity(
            forest,
            self.scheme,
            diagonal=diagonal_of(self.scheme),
            n_jobs=options.threads,
            max_memory=self.limit // 2,
            progress=talk.lively,
        )
        with progress_shown_by(self._show):
            talk.step(_LISTING)
            prox.fit(reader.batches(self.table), folder=self.folder / "fit")
            prox.write_neighbors(result, new, min(options.k, n_candidates))
        d, kind = prepared.features.shape[1], type(forest).__name__
        rows = f"{self.table.n_rows:,} rows, {d:,} feature{'s' * (d != 1)}"
        return {
            "table": f"{call(self.table.path)}: {rows}",
            "target": prepared.target_name,
            "forest": f"{'random forest' if model is None else kind} with {prox.n_trees_:,} trees, "
            f"scheme {self.scheme}",
        }

    def _check_disk(self, n_trees: int) -> None:
        """Reject work that does not fit on the disk."""
        needed = self.table.n_rows * (_DISK_BYTES * n_trees + _PAIR_BYTES * self.options.k)
        free = shutil.disk_usage(self.folder).free
        if needed > free and not self.work.state.get("checked"):
            raise FileError(
                f"--output needs about {format_bytes(needed)} of disk space in "
                f"{self.folder.parent}, but only {format_bytes(free)} is free. Use fewer --trees, "
                "or write to another disk."
            )

    def _sample(self, n_trees: int) -> Any:
        """Return a random sample of the rows."""
        table, work = self.table, self.work
        cost = _COPIES * table.row_bytes + (_TREE_BYTES * n_trees if self.model is None else 0)
        room = max(self.limit // _SHARE_OF_SAMPLE // cost, _LEAST)
        wanted = self.options.sample
        if wanted is not None and min(wanted, table.n_rows) > room:
            raise OptionError(
                f"--sample {wanted} is too large: with {n_trees} trees it needs about "
                f"{format_bytes(wanted * cost)}, more than a third of --max-memory. Use at most "
                f"--sample {room}, fewer --trees or a larger --max-memory."
            )
        if not work.has("rows"):
            draw = ReadOptions(
                max_rows=wanted or min(room, _SAMPLE), random_state=self.options.seed
            )
            work.put("rows", choose_rows(table.n_rows, draw))
        rows, done = work.get("rows"), int(work.state.get("sampled", 0))
        self.talk.step("drawing a sample", total=table.n_rows)
        while done < table.n_rows:
            end = min(done + _BLOCK, table.n_rows)
            taken = table.take(rows, done, end)
            with open_whole(self._part(done)) as file, ipc.new_stream(file, taken.schema) as writer:
                writer.write_table(taken)
            work.note(sampled=end)
            self.talk.advance(end)
            done = end
        parts = [ipc.open_stream(self._part(i)) for i in range(0, table.n_rows, _BLOCK)]
        frame = to_frame(pyarrow.concat_tables([part.read_all() for part in parts]))
        if len(rows) < table.n_rows:
            self.talk.note(
                f"The forest is trained on a random sample of {len(rows):,} of {table.n_rows:,} "
                "rows."
            )
        return find_signs(frame, rows, len(rows), self.options.stated)

    def _part(self, begin: int) -> Path:
        return self.folder / f"sample_{begin}.arrow"

    def _grow(self, prepared: Prepared, X: Any, n_trees: int) -> Any:
        """Train a forest, and save its trees in parts."""
        skops = require("skops.io", extra="save")
        forest, grown = new_forest(prepared, self.options), list(self.work.state.get("trees", []))
        for i, end in enumerate(grown):
            part = load_skops(self._trees(end))
            if i == 0:
                forest = part.set_params(n_jobs=self.options.threads)
            else:
                forest.estimators_ += part.estimators_
        for end in grow_on(self.talk, forest, X, prepared.target, n_trees):
            part = copy(forest)
            part.estimators_ = forest.estimators_[grown[-1] if grown else 0 :]
            with open_whole(self._trees(end)) as file:
                skops.dump(part, file)
            grown.append(end)
            self.work.note(trees=grown)
        return forest

    def _trees(self, end: int) -> Path:
        return self.folder / f"trees_{end}.skops"

    def _show(self, step: str, total: int | None) -> OnProgress:
        text, after = _STEPS.get(step, (step, ""))
        self.talk.step(text, total)

        def advance(done: int) -> None:
            self.talk.advance(done)
            if done == total and after:
                self.talk.step(after)

        return advance


@dataclass(frozen=True)
class _Reader:
    """Reads tables in batches, in the same way as the sample."""

    talk: Talk
    prepared: Prepared
    needed: list[str] | None
    encode: Encode
    at_once: int

    def batches(self, table: LargeTable) -> Batches:
        """Return the rows of a table, encoded for the forest."""
        names = self.needed or [column.name for column in self.prepared.columns]

        def read(skip: int) -> Iterator[Batch]:
            for frame in table.frames(skip, names, self.at_once):
                try:
                    rows = self.prepared.read(frame, self.needed)
                except TableError as error:
                    raise TableError(f"{call(table.path)}: {error}") from error
                self._note_unknown(table, rows)
                yield Batch(self.encode(rows), None)

        return Batches(read, n_rows=table.n_rows, identity=lambda: {"parquet": table.identity})

    def _note_unknown(self, table: LargeTable, rows: Rows) -> None:
        """Add a note for each column with categories that are not in the sample."""
        for column in self.prepared.columns if self.needed is None else ():
            if (
                column.categories is not None
                and (rows.features[column.name].isna() & rows.shown[column.name].notna()).any()
            ):
                self.talk.note(
                    f"{call(table.path)}: column {quote(column.name)} has categories that are not "
                    "in the sample. They are treated as missing."
                )


def _features(rows: Rows) -> Any:
    return rows.features
