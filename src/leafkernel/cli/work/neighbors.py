"""The ``neighbors`` command."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leafkernel.cli._output import Talk
from leafkernel.cli._stream import stream_neighbors
from leafkernel.cli._train import begin, taking_rows
from leafkernel.cli.commands import Neighbors
from leafkernel.cli.errors import OptionError


def neighbors(talk: Talk, options: Neighbors) -> None:
    """Find the most similar rows of each row."""
    if options.max_memory is not None:
        stream_neighbors(talk, options)
        return
    if options.sample is not None:
        raise OptionError("--sample requires --max-memory. To use fewer rows, use --max-rows.")
    study = begin(talk, options)
    n_candidates = len(study.y) - (study.new is None)
    if options.k > n_candidates:
        talk.note(f"There are only {n_candidates:,} rows to choose neighbors from.")
    talk.step("finding neighbors")
    with taking_rows(study.new):
        similarity, rows = study.prox.kneighbors(study.asked, min(options.k, n_candidates))
    m, k = rows.shape
    near = rows.ravel()
    frame = pd.DataFrame(
        {
            **{name: np.repeat(values, k) for name, values in study.rows.names().items()},
            "rank": np.tile(np.arange(1, k + 1), m),
            **study.prepared.names(near, prefix="neighbor"),
            "proximity": similarity.ravel(),
            "neighbor_target": study.shown(study.y)[near],
        }
    )
    # A proximity of zero means that the rows share no leaf.
    frame = frame[frame["proximity"] > 0].reset_index(drop=True)
    talk.result(frame, options, lines=study.lines(), about=study.about())
