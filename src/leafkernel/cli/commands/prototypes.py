"""``leafkernel prototypes``: rows that stand for their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = ("leafkernel prototypes wines.csv --target quality -n 2 -o prototypes.csv",)

Count = Annotated[
    int,
    typer.Option(
        "--prototypes", "-n", metavar="N", min=1, help="Prototypes for each class, at most."
    ),
]


def prototypes(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    n: Count = 3,
) -> None:
    """Choose a few rows that stand for their class, or for a quarter of the target's numbers.

    Each next one is the row that most raises the similarity of its class to its prototypes. Unless
    --scheme says otherwise, similarity here is uniform: the share of trees that put two rows in the
    same leaf.
    """
    from leafkernel.cli.work import prototypes as work

    work.prototypes(talk, source, forest, writing, n)
