"""``leafkernel predict``: classes with probabilities, or numbers with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions

if TYPE_CHECKING:
    from leafkernel.cli._output import Talk

EXAMPLES = (
    "leafkernel predict wines.csv --target quality --new more.csv -o predictions.csv",
    "leafkernel predict houses.csv --target price --new more.csv --coverage 0.8",
)


def _check_coverage(coverage: float | None) -> float | None:
    if coverage is not None and not 0 < coverage < 1:
        raise typer.BadParameter(
            f"must be between 0 and 1, such as 0.9 for intervals that hold 90% of the targets; got "
            f"{coverage:g}."
        )
    return coverage


New = Annotated[
    Path | None,
    typer.Option(
        "--new",
        metavar="TABLE",
        help="Rows to predict, from another file with the same columns. If it holds the target, "
        "too, the predictions are scored. By default the rows of TABLE are predicted out of bag.",
        show_default=False,
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        "--coverage",
        metavar="SHARE",
        callback=_check_coverage,
        help="For a target of numbers: the share of targets that the intervals are to hold. By "
        "default 0.9.",
        show_default=False,
    ),
]


def predict(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    new: New = None,
    coverage: Coverage = None,
) -> None:
    """Predict rows: classes with probabilities and trust, or numbers with intervals.

    New rows get the prediction of the forest or of the model. Rows of the training table are
    predicted by the trees that were not trained with them. The trust in a row is the share of its
    similar rows that the forest predicts correctly out of bag. Intervals are calibrated out of bag.
    """
    from leafkernel.cli.work import predict as work

    work.predict(talk, source, forest, writing, new, coverage)
