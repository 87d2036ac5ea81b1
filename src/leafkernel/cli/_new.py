"""Rows of another table: read, checked and encoded before a forest is grown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel.cli._models import Encode, name_classes, show_columns
from leafkernel.cli._options import TableOptions
from leafkernel.cli._output import Talk
from leafkernel.cli.columns import Prepared, row_names
from leafkernel.cli.errors import TableError
from leafkernel.tables._findings import Findings, clean_names
from leafkernel.tables._kinds import as_numbers
from leafkernel.tables._values import read_feature
from leafkernel.tables.files import call, read_file


@dataclass(frozen=True)
class NewRows:
    """Rows that the forest was not trained with.

    Attributes
    ----------
    path : Path
        The file.
    frame : DataFrame of shape (m, n_columns)
        The table as it was read, with clean names of columns.
    X : {dataframe, ndarray} of shape (m, n_features)
        The rows as the forest takes them.
    names : dict
        The columns ``row`` (the number in the file) and, where the table has names, ``id``.
    """

    path: Path
    frame: Any
    X: Any
    names: dict[str, Any]

    @property
    def ids(self) -> npt.NDArray[np.object_] | None:
        """The names of the rows; None if they have only numbers."""
        return self.names.get("id")

    def target(self, prepared: Prepared) -> npt.NDArray[Any] | None:
        """Return the targets of the rows, None or NaN where missing; None if there are none.

        Classes are written as in the first table, where they are among its classes.
        """
        if prepared.target_name not in self.frame:
            return None
        values = read_feature(self.frame[prepared.target_name])
        if values.missing().all():
            return None
        if prepared.task == "regression":
            return as_numbers(values, prepared.target_form, prepared.target_style).numbers
        found = np.empty(len(self.frame), dtype=object)
        found[:] = name_classes(values.labels(), np.unique(prepared.target))
        return found

    def shown(self, prepared: Prepared) -> pd.DataFrame:
        """Return the columns that people see, as in the first table; None where missing."""
        present = [name for name in prepared.shown.columns if name in self.frame]
        shown = show_columns(prepared, self.frame, present)
        return shown.reindex(columns=list(prepared.shown.columns))


def read_new(
    talk: Talk, path: Path, options: TableOptions, prepared: Prepared, encode: Encode
) -> NewRows:
    """Read the table of --new, and encode its rows as the forest takes them."""
    talk.step(f"reading {call(path)}")
    frame = read_file(
        path,
        remedy="Give fewer rows at a time with --new.",
        stated=options.stated,
        exact={*options.exact, prepared.id_name},
    )
    if len(frame) == 0:
        raise TableError(f"{call(path)} has names of columns but no rows below them.")
    if path.exists() and options.table.exists() and path.samefile(options.table):
        talk.note(
            f"--new is the training table itself, {call(path)}. Its rows are treated as new, "
            "though the forest was trained with them. Leave --new out to compare each row with the "
            "others."
        )
    frame.columns = clean_names(frame.columns, Findings())
    names: dict[str, Any] = {"row": np.arange(len(frame))}
    if prepared.ids is not None and prepared.id_name in frame:
        names["id"] = row_names(frame[prepared.id_name], names["row"])
    try:
        X = encode(frame)
    except TableError as error:
        raise TableError(f"{call(path)}: {error}") from error
    notes = getattr(X, "attrs", frame.attrs).get("notes", ())
    talk.note(*(f"{call(path)}: {note}" for note in notes))
    return NewRows(path, frame, X, names)


@contextmanager
def taking_rows(new: NewRows | None) -> Iterator[None]:
    """Explain that a model refuses new rows, such as a category that its encoder has not seen."""
    try:
        yield
    except ValueError as error:
        if new is None:
            raise
        raise TableError(f"{call(new.path)}: the model does not take its rows. {error}") from error
