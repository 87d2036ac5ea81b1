"""The ``prototypes`` command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from leafkernel.cli._output import Talk
from leafkernel.cli._train import begin
from leafkernel.cli.commands import Prototypes
from leafkernel.explorer._prototypes import target_groups
from leafkernel.tasks import select_prototypes


def prototypes(talk: Talk, options: Prototypes) -> None:
    """Choose the prototypes of each class."""
    # --scheme applies to the prototypes only, not to the score of the forest.
    study = begin(talk, replace(options, scheme=None))
    talk.step("prototypes")
    codes, labels = target_groups(study.judgement)
    # The share of trees in which two rows share a leaf is the easiest to interpret.
    scheme = "uniform" if options.scheme is None else options.scheme.value
    prox = study.similarity(scheme)
    found = select_prototypes(prox, codes, n_prototypes=options.n)
    sizes = np.bincount(codes)[found.labels]
    gains = pd.Series(found.gains).groupby(found.labels)
    frame = pd.DataFrame(
        {
            "class": np.array(labels, dtype=object)[found.labels],
            "rank": gains.cumcount() + 1,
            **study.prepared.names(found.rows),
            "stands_for": _share_out(prox, codes, found),
            "class_size": sizes,
            # Mean proximity of the rows of the class to their nearest prototype up to this one.
            "coverage": gains.cumsum() / sizes,
        }
    )
    order = np.lexsort([frame["rank"], found.labels])
    frame = study.beside(frame, found.rows).iloc[order].reset_index(drop=True)
    talk.result(frame, options, lines=study.lines(scheme), about=study.about(scheme))


def _share_out(prox: Any, codes: Any, found: Any) -> Any:
    """Return the number of rows in its class for which each prototype is the nearest."""
    nearness = prox.proximity_to(found.rows).toarray()
    nearness[found.rows, np.arange(len(found.rows))] = np.inf  # each represents itself
    nearness[codes[:, None] != found.labels[None, :]] = 0
    nearest = nearness.argmax(axis=1)
    some = nearness[np.arange(len(codes)), nearest] > 0
    return np.bincount(nearest[some], minlength=len(found.rows))
