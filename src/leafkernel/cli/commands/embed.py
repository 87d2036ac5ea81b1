"""``leafkernel embed``: coordinates of rows, such that similar ones are near."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import (
    AUTO_MAP,
    MAP_HELP,
    ForestOptions,
    Map,
    OutputOptions,
    TableOptions,
)

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

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
    from leafkernel.cli.work import embed as work

    work.embed(talk, source, forest, writing, method, n)
