"""``leafkernel explore``: a table as the forest sees it, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import AUTO_MAP, MAP_HELP, ForestOptions, Map, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = (
    "leafkernel explore wines.csv --target quality",
    "leafkernel explore houses.parquet --target price --task regression -o houses.html",
    "leafkernel explore wines.csv --target quality --new more.csv",
)

PageOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE.html",
        help="Where to write the page. By default the table's name with .html, in this folder.",
        show_default=False,
    ),
]
NewOption = Annotated[
    Path | None,
    typer.Option(
        "--new",
        metavar="TABLE",
        help="New rows to show on the map, from another file with the same columns. They need no "
        "target.",
        show_default=False,
    ),
]
MapOption = Annotated[
    Map,
    typer.Option(
        "--embedding",
        metavar="NAME",
        help=f"How to draw the map: {MAP_HELP}",
    ),
]
OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Show the page in a browser.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Overwrite a file that is no page of leafkernel.")
]


def explore(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    *,
    output: PageOption = None,
    new: NewOption = None,
    embedding: MapOption = AUTO_MAP,
    open_page: OpenOption = False,
    force: ForceOption = False,
) -> None:
    """Show a table the way a forest sees it, on one HTML page that works offline."""
    from leafkernel.cli.work.explore import write_page

    write_page(
        talk,
        source,
        forest,
        output,
        new=new,
        embedding=embedding,
        open_page=open_page,
        force=force,
    )
