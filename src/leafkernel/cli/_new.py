"""New rows, from a second table with the same columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leafkernel.cli._kinds import Findings, clean_names
from leafkernel.cli._models import as_people_see
from leafkernel.cli._options import TableOptions
from leafkernel.cli._output import Talk
from leafkernel.cli._table import row_names
from leafkernel.cli._train import Plan
from leafkernel.cli.errors import TableError
from leafkernel.cli.files import call, read_file


@dataclass(frozen=True)
class NewRows:
    """Rows of a second table.

    Attributes
    ----------
    X : {dataframe, ndarray} of shape (m, n_features)
        What the forest takes.
    shown : DataFrame of shape (m, d)
        The rows as people know them.
    names : dict of str to ndarray
        "row", the row numbers in the file, and "id", the names, if the table has some.
    """

    X: Any
    shown: Any
    names: dict[str, Any]


def read_new(talk: Talk, planned: Plan, path: Path, source: TableOptions) -> NewRows:
    """Read new rows for a forest that is planned."""
    talk.step(f"reading {call(path)}")
    prepared = planned.prepared
    frame = read_file(
        path,
        remedy="Give fewer rows at a time with --new.",
        stated=source.stated,
        exact={*source.exact, prepared.id_name},
    )
    if len(frame) == 0:
        raise TableError(f"{call(path)} has names of columns but no rows below them.")
    names: dict[str, Any] = {"row": np.arange(len(frame))}
    columns, id_name = clean_names(frame.columns, Findings()), prepared.id_name
    if prepared.ids is not None and id_name in columns:
        names["id"] = row_names(frame.iloc[:, columns.index(id_name)], names["row"])
    try:
        X = planned.encode(frame)
    except TableError as error:
        raise TableError(f"{call(path)}: {error}") from error
    for note in getattr(X, "attrs", frame.attrs).get("notes", ()):
        talk.note(f"{call(path)}: {note}")
    known = [name for name in prepared.shown.columns if name in columns]
    return NewRows(X, as_people_see(prepared, frame, known), names)


@contextmanager
def explain_refusal(path: Path | None) -> Iterator[None]:
    """Say of which file the rows are that a model refuses; of the training table if None."""
    try:
        yield
    except ValueError as error:
        if path is None:
            raise
        # Such as a category that a pipeline's encoder has not seen.
        raise TableError(f"{call(path)}: the model does not take its rows. {error}") from error
