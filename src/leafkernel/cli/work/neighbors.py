"""The most similar rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leafkernel.cli._new import read_new, taking_rows
from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import Study, fit, plan


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
        others = read_new(talk, planned, new, source)
    study = fit(talk, source, forest, planned)
    n_candidates = len(study.y) - (new is None)
    if k > n_candidates:
        talk.note(f"There are only {n_candidates:,} rows to choose neighbours from.")
    X, names = (None, study.names()) if others is None else (others.X, others.names)
    talk.step("nearest rows")
    with taking_rows(others):
        similarity, rows = study.prox.kneighbors(X, min(k, n_candidates))
    frame = _long(study, names, similarity, rows)
    talk.result(frame, writing, lines=study.lines(), about=study.about())


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
