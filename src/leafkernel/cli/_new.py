"""Rows of another table: read, checked and encoded before a forest is grown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leafkernel.cli._models import Encode
from leafkernel.cli._options import TableOptions
from leafkernel.cli._output import Talk
from leafkernel.cli.errors import TableError
from leafkernel.tables.files import call, read_file
from leafkernel.tables.preparation import Prepared, Rows


@dataclass(frozen=True)
class NewRows(Rows):
    """Rows that the forest was not trained with: their file, and as the forest takes them."""

    path: Path
    X: Any


def read_new(
    talk: Talk,
    path: Path,
    options: TableOptions,
    prepared: Prepared,
    needed: list[str] | None,
    encode: Encode,
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
    try:
        rows = prepared.read(frame, needed)
    except TableError as error:
        raise TableError(f"{call(path)}: {error}") from error
    talk.note(*(f"{call(path)}: {note}" for note in rows.notes))
    return NewRows(**vars(rows), path=path, X=encode(rows))


@contextmanager
def taking_rows(new: NewRows | None) -> Iterator[None]:
    """Explain that a model refuses new rows, such as a category that its encoder has not seen."""
    try:
        yield
    except ValueError as error:
        if new is None:
            raise
        raise TableError(f"{call(new.path)}: the model does not take its rows. {error}") from error
