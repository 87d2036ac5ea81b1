"""The most similar rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leafkernel.cli._kinds import Findings, clean_names
from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._table import row_names
from leafkernel.cli._train import Plan, Study, fit, plan
from leafkernel.cli.errors import TableError
from leafkernel.cli.files import call, read_file


def neighbors(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    new: Path | None,
    k: int,
) -> None:
    """Find the most similar rows of each row."""
    check_output(writing.output, source.table, new, forest.model)
    planned = plan(talk, source, forest)
    others = None
    if new is not None:  # before the forest is grown, which may take long
        others = _read_new(talk, planned, new, source)
    study = fit(talk, source, forest, planned)
    n_candidates = len(study.y) - (new is None)
    if k > n_candidates:
        talk.note(f"There are only {n_candidates:,} rows to choose neighbours from.")
    X, names = others or (None, study.names())
    talk.step("nearest rows")
    try:
        similarity, rows = study.prox.kneighbors(X, min(k, n_candidates))
    except ValueError as error:
        if new is None:
            raise
        # Such as a category that a pipeline's encoder has not seen.
        raise TableError(f"{call(new)}: the model does not take its rows. {error}") from error
    frame = _long(study, names, similarity, rows)
    talk.result(frame, writing, lines=study.lines(), about=study.about())


def _read_new(
    talk: Talk, planned: Plan, path: Path, source: TableOptions
) -> tuple[Any, dict[str, Any]]:
    """Return new rows as the forest takes them, and their names."""
    talk.step(f"reading {call(path)}")
    frame = read_file(
        path,
        remedy="Give fewer rows at a time with --new.",
        stated=source.stated,
        exact={*source.exact, planned.prepared.id_name},
    )
    if len(frame) == 0:
        raise TableError(f"{call(path)} has names of columns but no rows below them.")
    names: dict[str, Any] = {"row": np.arange(len(frame))}
    columns, id_name = clean_names(frame.columns, Findings()), planned.prepared.id_name
    if planned.prepared.ids is not None and id_name in columns:
        names["id"] = row_names(frame.iloc[:, columns.index(id_name)], names["row"])
    try:
        X = planned.encode(frame)
    except TableError as error:
        raise TableError(f"{call(path)}: {error}") from error
    for note in getattr(X, "attrs", frame.attrs).get("notes", ()):
        talk.note(f"{call(path)}: {note}")
    return X, names


def _long(study: Study, names: dict[str, Any], similarity: Any, rows: Any) -> pd.DataFrame:
    """Return one line for each row and neighbour, without those that share no leaf."""
    m, k = rows.shape
    near = rows.ravel()
    frame = pd.DataFrame(
        {
            **{name: np.repeat(values, k) for name, values in names.items()},
            "rank": np.tile(np.arange(1, k + 1), m),
            **study.names(near, prefix="neighbor"),
            "proximity": similarity.ravel(),
            "neighbor_target": study.shown(study.y)[near],
        }
    )
    return frame[frame["proximity"] > 0].reset_index(drop=True)
