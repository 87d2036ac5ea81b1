"""``leafkernel embed``: coordinates of rows, such that similar ones are near."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import pandas as pd
import typer

from leafkernel.cli._options import (
    AUTO_MAP,
    MAP_HELP,
    ForestOptions,
    Map,
    OutputOptions,
    TableOptions,
)
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import begin
from leafkernel.explorer._map import map_model

EXAMPLES = ("leafkernel embed wines.csv --target quality --method pca -n 3 -o map.parquet",)

MethodOption = Annotated[
    Map,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help=f"How to place the rows: {MAP_HELP}",
    ),
]
Count = Annotated[
    int, typer.Option("--components", "-n", metavar="N", min=1, help="Number of coordinates.")
]


def embed(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    method: MethodOption = AUTO_MAP,
    n: Count = 2,
) -> None:
    """Give each row coordinates, such that rows that the forest holds similar are near."""
    check_output(writing.output, source.table)
    # The score is that of the forest. The option says how rows are similar on the map.
    study = begin(talk, source, replace(forest, scheme=None))
    prox = study.prox if forest.scheme is None else study.similarity(forest.scheme.value)
    talk.step(f"map of {len(study.y):,} rows")
    chosen, model = map_model(
        prox,
        study.X,
        study.y,
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
