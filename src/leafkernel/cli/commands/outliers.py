"""``leafkernel outliers``: rows that are unlike others of their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import Convention, ForestOptions, OutputOptions, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = ("leafkernel outliers wines.csv --target quality --top 20",)

ConventionOption = Annotated[
    Convention,
    typer.Option(
        "--convention",
        help="auto: residual for numbers, otherwise breiman; scores above 10 deserve a look. "
        "breiman: similar to few rows of its class; rfgap: as the authors of RF-GAP do; raw: not "
        "standardized within classes; residual: a target far from those of similar rows, or "
        "unusual features.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top", metavar="N", min=1, help="Only so many rows. All by default.", show_default=False
    ),
]


def outliers(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    convention: ConventionOption = Convention.auto,
    top: Top = None,
) -> None:
    """Rank the rows by how unusual they are: for their class, or in their numbers."""
    from leafkernel.cli.work import outliers as work

    work.outliers(talk, source, forest, writing, convention, top)
