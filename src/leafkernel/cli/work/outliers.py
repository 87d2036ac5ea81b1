"""The ``outliers`` command."""

from __future__ import annotations

import pandas as pd

from leafkernel.cli._output import Talk
from leafkernel.cli._train import begin
from leafkernel.cli.commands import Outliers
from leafkernel.tasks import outlier_scores

# "Generally, if the measure is greater than 10, the case should be carefully inspected" (Breiman).
_DESERVES_A_LOOK = 10
_WITHOUT_LIMIT = ("rfgap", "raw")  # conventions on another scale


def outliers(talk: Talk, options: Outliers) -> None:
    """Rank the rows by outlier score."""
    study = begin(talk, options)
    talk.step("outliers")
    score = outlier_scores(study.prox, study.y, X=study.X, convention=options.convention.value)
    frame = pd.DataFrame(
        {
            **study.prepared.names(),
            "target": study.shown(study.y),
            "prediction": study.shown(study.predicted),
            "score": score,
        }
    )
    lines = study.lines()
    if options.convention.value not in _WITHOUT_LIMIT:
        frame["is_outlier"] = score > _DESERVES_A_LOOK
        n = frame["is_outlier"].sum()
        lines["outliers"] = f"{n:,} of {len(score):,} rows score above {_DESERVES_A_LOOK}"
    frame = frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    frame = frame.head(options.top or len(frame))
    talk.result(frame, options, lines=lines, about=study.about())
