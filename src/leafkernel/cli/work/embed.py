"""The ``embed`` command."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from leafkernel.cli._output import Talk
from leafkernel.cli._train import begin
from leafkernel.cli.commands import Embed
from leafkernel.explorer._map import map_model


def embed(talk: Talk, options: Embed) -> None:
    """Compute the coordinates of each row."""
    # --scheme applies to the embedding only, not to the score of the forest.
    study = begin(talk, replace(options, scheme=None))
    prox = study.prox if options.scheme is None else study.similarity(options.scheme.value)
    talk.step(f"embedding {len(study.y):,} rows")
    chosen, model = map_model(
        prox,
        study.X,
        options.method.value,
        n_components=options.n,
        random_state=options.seed,
        keep_scheme=options.scheme is not None,
    )
    if model.random_state is None:
        talk.note("UMAP runs on all cores for this many rows, so each run differs a little.")
    columns = {f"{chosen}_{i + 1}": points for i, points in enumerate(model.embedding_.T)}
    frame = pd.DataFrame({**study.prepared.names(), **columns, "target": study.shown(study.y)})
    scheme = model.proximity.scheme_.name
    about = {**study.about(scheme), "method": chosen}
    talk.result(frame, options, lines=study.lines(scheme), about=about)
