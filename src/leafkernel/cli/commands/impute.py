"""``leafkernel impute``: a table without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import (
    AsOption,
    DecimalOption,
    DropOption,
    JobsOption,
    OutputOptions,
    SeedOption,
    TableArgument,
    TaskOption,
    ThousandsOption,
)

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = ("leafkernel impute wines.csv --target quality -o filled.csv",)

TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="The column to predict later. It helps to fill the other columns, and is not filled "
        "itself.",
        show_default=False,
    ),
]
TreesOption = Annotated[
    int,
    typer.Option(
        "--trees", metavar="N", min=1, help="Trees of each forest: one for each column with gaps."
    ),
]


@dataclass(frozen=True)
class ImputeOptions:
    """Which table to fill, how to read it, and which forests fill it."""

    table: TableArgument
    target: TargetOption = None
    task: TaskOption = None
    drop: DropOption = None
    as_kind: AsOption = None
    decimal: DecimalOption = None
    thousands: ThousandsOption = None
    trees: TreesOption = 100
    seed: SeedOption = 0
    jobs: JobsOption = -1


def impute(talk: Talk, options: ImputeOptions, writing: OutputOptions) -> None:
    """Fill in missing values from similar rows, and change nothing else.

    Numbers get the mean of similar rows, in the style of their column: whole numbers if all present
    ones are whole. Categories get the most frequent one among similar rows. Names of rows, free
    text and dates are not filled. A text file keeps its encoding and its separators.
    """
    from leafkernel.cli.work import impute as work

    work.impute(talk, options, writing)
