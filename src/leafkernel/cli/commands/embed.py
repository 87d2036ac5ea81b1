"""``leafkernel embed``: coordinates of rows, such that similar ones are near."""

from __future__ import annotations

from enum import Enum
from importlib.util import find_spec
from typing import Annotated

import pandas as pd
import typer

from leafkernel.cli._options import ForestOptions, OutputOption, TableOptions
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import begin
from leafkernel.tasks import LeafEmbedding

EXAMPLES = ("leafkernel embed wines.csv --target quality --method pca -n 3 -o map.parquet",)

# UMAP repeats itself only on one thread; above this many rows that takes too long.
_MOST_REPEATABLE = 20_000
_FEWEST_FOR_UMAP = 30


class Method(str, Enum):
    """Ways to draw a map."""

    auto = "auto"
    umap = "umap"
    tsne = "tsne"
    phate = "phate"
    pca = "pca"
    spectral = "spectral"
    diffusion = "diffusion"
    mds = "mds"


MethodOption = Annotated[
    Method,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="How to place the rows: umap, tsne, phate, pca, spectral, diffusion or mds. auto is "
        "umap where umap-learn is installed, else pca.",
    ),
]
Count = Annotated[
    int, typer.Option("--components", "-n", metavar="N", min=1, help="Number of coordinates.")
]


def embed(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    method: MethodOption = Method.auto,
    n: Count = 2,
    output: OutputOption = None,
) -> None:
    """Give each row coordinates, such that rows that the forest holds similar are near."""
    check_output(output, source.table)
    study = begin(talk, source, forest)
    n_rows = len(study.y)
    chosen = method
    if chosen is Method.auto:
        umap = find_spec("umap") is not None and n_rows >= _FEWEST_FOR_UMAP
        chosen = Method.umap if umap else Method.pca
    talk.step(f"{chosen.value} of {n_rows:,} rows")
    seed: int | None = forest.seed
    if chosen is Method.umap and n_rows > _MOST_REPEATABLE:
        seed = None
        talk.note("UMAP of so many rows runs on all threads, and differs a little every time.")
    # Without a scheme of the user's, the one that is best for the method.
    given = study.prox.forest_ if forest.scheme is None else study.prox
    model = LeafEmbedding(
        given,
        method=chosen.value,
        n_components=n,
        n_neighbors=min(30, n_rows - 1),
        n_jobs=forest.jobs,
        random_state=seed,
    )
    points = model.fit(study.X, study.y).embedding_
    columns = {f"{chosen.value}_{i + 1}": points[:, i] for i in range(n)}
    frame = pd.DataFrame({**study.names(), **columns, "target": study.y})
    talk.summary(study.lines())
    talk.frame(frame, output, {**study.about(), "method": chosen.value})
