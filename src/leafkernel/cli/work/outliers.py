"""Rows that are unlike others of their class, or have unlikely numbers."""

from __future__ import annotations

import pandas as pd

from leafkernel.cli._options import Convention, ForestOptions, OutputOptions, TableOptions
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import begin
from leafkernel.tasks import outlier_scores

# "Generally, if the measure is greater than 10, the case should be carefully inspected" (Breiman).
_DESERVES_A_LOOK = 10


def outliers(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    convention: Convention,
    top: int | None,
) -> None:
    """Rank the rows by their outlier scores."""
    check_output(writing.output, source.table, forest.model)
    study = begin(talk, source, forest)
    talk.step("outliers")
    has_limit = convention not in (Convention.rfgap, Convention.raw)
    score = outlier_scores(study.prox, study.y, X=study.X, convention=convention.value)
    frame = pd.DataFrame(
        {
            **study.names(),
            "target": study.shown(study.y),
            "prediction": study.shown(study.predicted),
            "score": score,
        }
    )
    if has_limit:
        frame["is_outlier"] = score > _DESERVES_A_LOOK
    frame = frame.sort_values("score", ascending=False, kind="stable").head(top or len(frame))
    lines = study.lines()
    if has_limit:
        n = int((score > _DESERVES_A_LOOK).sum())
        lines["outliers"] = f"{n:,} of {len(score):,} rows score above {_DESERVES_A_LOOK}"
    frame = frame.reset_index(drop=True)
    talk.result(frame, writing, lines=lines, about=study.about())
