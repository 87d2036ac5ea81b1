"""``leafkernel benchmark``: how long the steps take on a table, beside the obvious way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = ("leafkernel benchmark wines.csv --target quality --trees 100",)

Subset = Annotated[
    int,
    typer.Option(
        "--subset",
        metavar="N",
        min=2,
        help="Rows on which the obvious way is timed, beside leafkernel on the same rows; its "
        "time grows with their square.",
    ),
]


def benchmark(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    subset: Subset = 1000,
) -> None:
    """Time the steps on your table, beside the obvious way to the same numbers."""
    from leafkernel.cli.work import benchmark as work

    work.benchmark(talk, source, forest, writing, subset)
