"""``leafkernel outliers``: rows that are unlike others of their class."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import pandas as pd
import typer

from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import begin
from leafkernel.tasks import outlier_scores

EXAMPLES = ("leafkernel outliers wines.csv --target quality --top 20",)

# "Generally, if the measure is greater than 10, the case should be carefully inspected" (Breiman).
_DESERVES_A_LOOK = 10


class Convention(str, Enum):
    """How proximities become scores."""

    breiman = "breiman"
    rfgap = "rfgap"
    raw = "raw"


ConventionOption = Annotated[
    Convention,
    typer.Option(
        "--convention",
        help="breiman: scores above 10 deserve a look; rfgap: as the authors of RF-GAP do; raw: "
        "not standardised within classes, often best to look for wrong labels.",
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
    convention: ConventionOption = Convention.breiman,
    top: Top = None,
) -> None:
    """Rank the rows by how unlike they are to others of their class, or to all for numbers."""
    check_output(writing.output, source.table, forest.model)
    study = begin(talk, source, forest)
    talk.step("outliers")
    labels = study.y if study.prepared.task == "classification" else None
    score = outlier_scores(study.prox, labels, convention=convention.value)
    frame = pd.DataFrame(
        {
            **study.names(),
            "target": study.shown(study.y),
            "prediction": study.shown(study.predicted),
            "score": score,
        }
    )
    if convention is Convention.breiman:
        frame["is_outlier"] = score > _DESERVES_A_LOOK
    frame = frame.sort_values("score", ascending=False, kind="stable").head(top or len(frame))
    lines = study.lines()
    if convention is Convention.breiman:
        n = int((score > _DESERVES_A_LOOK).sum())
        lines["outliers"] = f"{n:,} of {len(score):,} rows score above {_DESERVES_A_LOOK}"
    frame = frame.reset_index(drop=True)
    talk.result(frame, writing, lines=lines, about=study.about())
