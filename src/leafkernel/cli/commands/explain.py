"""``leafkernel explain``: the rows behind a prediction, and why they are similar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = (
    "leafkernel explain wines.csv --target quality --row 12",
    "leafkernel explain wines.csv --target quality --new more.csv --row 0 --top 5",
)

Row = Annotated[
    str | None,
    typer.Option(
        "--row",
        metavar="ROW",
        help="The row to explain: its name in the id column, or its number in the file, from 0. A "
        "row of TABLE, or of the table of --new.",
        show_default=False,
    ),
]
New = Annotated[
    Path | None,
    typer.Option(
        "--new",
        metavar="TABLE",
        help="Explain rows of another file with the same columns. Without --row, all of its rows.",
        show_default=False,
    ),
]
Top = Annotated[
    int,
    typer.Option(
        "--top", metavar="N", min=1, help="Rows to show of those that made the prediction."
    ),
]
Pairs = Annotated[
    int,
    typer.Option(
        "--pairs",
        metavar="N",
        min=0,
        help="Rows for which to say why they are similar to the explained row.",
    ),
]

FileOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The file for the rows that made the prediction, as a table: .csv, .csv.gz, .tsv, "
        ".parquet or .feather. By default the explanation is printed in words.",
        rich_help_panel="Output",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ExplanationOptions(OutputOptions):
    """Where the table goes, if one is wanted."""

    output: FileOption = None


def explain(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: ExplanationOptions,
    row: Row = None,
    new: New = None,
    top: Top = 10,
    pairs: Pairs = 1,
) -> None:
    """Explain a prediction: which training rows made it, and why they are similar.

    The explanation is printed in words. With -o or --json, the rows that made the prediction are a
    table.
    """
    from leafkernel.cli.work import explain as work

    work.explain(talk, source, forest, writing, row=row, new=new, top=top, pairs=pairs)
