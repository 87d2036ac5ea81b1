"""``leafkernel neighbors``: the most similar rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = (
    "leafkernel neighbors wines.csv --target quality -k 5 -o neighbors.csv",
    "leafkernel neighbors wines.csv --target quality --new more.csv | head",
)

New = Annotated[
    Path | None,
    typer.Option(
        "--new",
        metavar="TABLE",
        help="Rows to find neighbours for among those of TABLE, from another file with the same "
        "columns. By default for each row of TABLE among the others.",
        show_default=False,
    ),
]
Count = Annotated[
    int, typer.Option("--neighbors", "-k", metavar="N", min=1, help="Neighbours for each row.")
]


def neighbors(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    new: New = None,
    k: Count = 10,
) -> None:
    """Find the rows that a forest holds most similar to each row, with their proximities."""
    from leafkernel.cli.work import neighbors as work

    work.neighbors(talk, source, forest, writing, new, k)
