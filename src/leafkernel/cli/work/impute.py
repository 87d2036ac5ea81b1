"""The ``impute`` command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from leafkernel._validation import shorten
from leafkernel.cli._output import Talk
from leafkernel.cli.commands import Impute
from leafkernel.tables._copying import TextCopy
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._gaps import GappyColumn
from leafkernel.tables._target import find_columns
from leafkernel.tables._writing import TYPED_FORMATS
from leafkernel.tables.files import call, open_source, read_source
from leafkernel.tables.preparation import Prepared, prepare
from leafkernel.tasks import ProximityImputer


def impute(talk: Talk, options: Impute) -> None:
    """Fill in the missing values of a table."""
    table, target, output = options.table, options.target, options.output
    stated, kinds = options.stated, options.kinds
    talk.step(f"reading {call(table)}")
    # JSON and typed files store values with types. In text, each cell keeps its original form.
    typed = talk.json if output is None else suffix_of(output) in TYPED_FORMATS
    remedy = "Split the file into parts and fill each of them."
    with open_source(table) as source:
        frame = read_source(
            source,
            max_rows=None,
            random_state=options.seed,
            remedy=remedy,
            as_text=not typed,
            stated=stated,
        )
        original = None
        if source.is_text and not typed:
            original = TextCopy.of(source, frame.attrs["dialect"])
    talk.note(*frame.attrs.get("notes", ()))
    prepared = None
    if target is not None:
        task = None if options.task is None else options.task.value
        prepared = prepare(frame, target, task=task, kinds=kinds)
    names = clean_names(frame.columns, Findings())
    kinds, dropped = find_columns(names, kinds, options.drop or ())
    columns = _columns(talk, frame, names, {target, *dropped}, kinds)
    from_text = source.is_text
    if typed and from_text:
        columns = {j: column.typed() for j, column in columns.items()}
        for j, column in columns.items():
            frame.isetitem(j, column.raw)
    gappy = {j: column for j, column in columns.items() if column.fillable and column.gaps.any()}
    fills: dict[tuple[int, int], str] = {}
    if gappy:
        talk.step(f"filling {len(gappy)} column{'s' * (len(gappy) > 1)}")
        forest = {
            "random_state": options.seed,
            "n_jobs": options.threads,
            "n_estimators": options.trees,
        }
        found = _fill(columns, frame, prepared, forest)
        for j, column in gappy.items():
            filled = column.filled(found[j], as_text=from_text)
            frame.isetitem(j, filled)
            fills |= {(i, j): filled.iloc[i] for i in np.flatnonzero(column.gaps).tolist()}
    else:
        talk.note("No column of numbers or categories has missing values. Nothing was filled.")
    write = None
    if original is not None and (note := original.note(output)):
        talk.note(note)
    elif original is not None:
        write = replace(original, fills=fills, escape_formulas=options.escape_formulas).write
    elif output is not None and from_text:
        talk.note(f"{output.name} stores values with types: numbers as numbers, missing as null.")
    counts = {column.name: int(column.gaps.sum()) for column in gappy.values()}
    lines = {
        "table": f"{call(table)}: {len(frame):,} rows, {frame.shape[1]:,} columns",
        "filled": ", ".join(f"{count:,} in {name}" for name, count in counts.items()) or "0",
    }
    about = {"table": str(table), "target": target, "rows": len(frame), "filled": counts}
    talk.result(frame, options, lines=lines, about=about, write=write)


def _columns(
    talk: Talk,
    frame: pd.DataFrame,
    names: list[str],
    left_out: set[str | None],
    kinds: dict[str, str],
) -> dict[int, GappyColumn]:
    """Return the columns that are filled or used to fill others, by position."""
    columns, untouched, findings = {}, [], Findings()
    signs = frame.attrs.get("signs", {})
    for j, name in enumerate(names):
        column = None
        if name not in left_out:
            column = GappyColumn.of(name, frame.iloc[:, j], signs.get(j), kinds.get(name))
        if column is not None:
            columns[j] = column
            findings.add_values(name, column.values)
        if (column is None or not column.fillable) and frame.iloc[:, j].isna().any():
            untouched.append(repr(name))
    if untouched:
        talk.note(f"Missing values of these columns were not filled: {shorten(untouched)}.")
    talk.note(*findings.sentences())
    return columns


def _fill(
    columns: dict[int, GappyColumn],
    frame: pd.DataFrame,
    prepared: Prepared | None,
    forest: dict[str, Any],
) -> dict[int, Any]:
    """Return the filled columns by position."""
    X = pd.DataFrame({str(j): column.for_imputer() for j, column in columns.items()})
    imputer = ProximityImputer(**forest)
    if prepared is None:
        filled = imputer.fit_transform(X)
        return {j: filled[str(j)] for j in columns}
    # Rows without a target are filled like new rows.
    known = np.isin(np.asarray(frame.index), prepared.rows)
    parts = [imputer.fit_transform(X[known].reset_index(drop=True), prepared.target)]
    if not known.all():
        parts.append(imputer.transform(X[~known].reset_index(drop=True)))
    order = np.argsort(np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)]))
    return {
        j: np.concatenate([np.asarray(part[str(j)], dtype=object) for part in parts])[order]
        for j in columns
    }
