"""``leafkernel demo``: the page of a small data set that comes along."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import AUTO_MAP, ForestOptions, SeedOption, TableOptions, TreesOption
from leafkernel.cli.commands.explore import ForceOption, MapOption

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = ("leafkernel demo",)

PageOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE.html", help="Where to write the page."),
]
OpenOption = Annotated[
    bool | None,
    typer.Option(
        "--open/--no-open",
        help="Show the page in a browser. By default if there is a screen and a person.",
        show_default=False,
    ),
]


def demo(
    talk: Talk,
    *,
    output: PageOption = Path("leafkernel-demo.html"),
    embedding: MapOption = AUTO_MAP,
    open_page: OpenOption = None,
    force: ForceOption = False,
    trees: TreesOption = None,
    seed: SeedOption = 0,
) -> None:
    """Make the page of 344 penguins and their species, and show it."""
    from leafkernel.cli.work.explore import can_show_a_browser, write_page

    wanted = talk.lively and can_show_a_browser() if open_page is None else open_page
    with as_file(files("leafkernel.cli") / "data" / "penguins.csv") as path:
        source = TableOptions(table=path, target="species")
        forest = ForestOptions(trees=trees, seed=seed)
        write_page(talk, source, forest, output, embedding=embedding, open_page=wanted, force=force)
