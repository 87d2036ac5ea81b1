"""``leafkernel embed``: coordinates of rows, such that similar ones are near."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from leafkernel.cli._options import (
    ForestOptions,
    Map,
    OutputOptions,
    TableOptions,
)
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import begin
from leafkernel.explorer._map import map_model


def embed(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    method: Map,
    n: int,
) -> None:
    """Give each row its coordinates on a map."""
    check_output(writing.output, source.table)
    # The score is that of the forest. The option says how rows are similar on the map.
    study = begin(talk, source, replace(forest, scheme=None))
    prox = study.prox if forest.scheme is None else study.similarity(forest.scheme.value)
    talk.step(f"map of {len(study.y):,} rows")
    chosen, model = map_model(
        prox,
        study.X,
        method.value,
        n_components=n,
        random_state=forest.seed,
        keep_scheme=forest.scheme is not None,
    )
    if model.random_state is None:
        talk.note("UMAP of so many rows runs on all threads, and differs a little every time.")
    points = model.embedding_
    columns = {f"{chosen}_{i + 1}": points[:, i] for i in range(n)}
    frame = pd.DataFrame({**study.names(), **columns, "target": study.shown(study.y)})
    scheme = model.proximity.scheme_.name
    about = {**study.about(scheme), "method": chosen}
    talk.result(frame, writing, lines=study.lines(scheme), about=about)
