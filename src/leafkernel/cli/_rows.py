"""Rows by what people call them: the name in the id column, or the number in the file."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from leafkernel._validation import shorten
from leafkernel.cli._output import Talk
from leafkernel.cli.errors import TableError
from leafkernel.tables._missing import quote

# "row 3" is a number even where the names of rows are numbers, too.
_NUMBER = re.compile(r"(?:row\s+)?(\d{1,18})", re.IGNORECASE)


def find_row(
    talk: Talk,
    wanted: str,
    rows: npt.NDArray[np.int64],
    ids: npt.NDArray[np.object_] | None,
    *,
    file: str,
    id_name: str,
) -> int:
    """Return the place of a row among those that can be used, or say which rows there are.

    Parameters
    ----------
    talk : Talk
    wanted : str
        A name, a number in the file, or "row" and a number.
    rows : ndarray of shape (n,)
        The number of each row in the file.
    ids : ndarray of shape (n,) or None
        The names of the rows.
    file : str
        What to call the file.
    id_name : str
        The column of the names.
    """
    wanted = wanted.strip()
    names = [] if ids is None else [str(name) for name in ids]
    named = [i for i, name in enumerate(names) if name.strip() == wanted]
    match = _NUMBER.fullmatch(wanted)
    numbered = [] if match is None else np.flatnonzero(rows == int(match[1])).tolist()
    if len(named) == 1:
        if numbered and numbered != named and wanted.isdigit():
            talk.note(
                f"--row {wanted} was taken as a name in column {quote(id_name)}. For the row with "
                f"this number in the file, use --row 'row {wanted}'."
            )
        return named[0]
    if named and not set(numbered) & set(named):
        listed = shorten([f"'row {rows[i]}'" for i in named])
        raise TableError(
            f"--row {wanted}: {len(named):,} rows of {file} have that name in column "
            f"{quote(id_name)}. Give the number of one of them: {listed}."
        )
    if numbered:
        return int(numbered[0])
    last = int(rows.max())
    if match is not None and int(match[1]) <= last:
        raise TableError(
            f"--row {wanted}: this row of {file} was not used for training, because its target is "
            "missing or because --max-rows left it out. Choose another row, or give it with --new."
        )
    known, meant = "", ""
    if names:
        listed = shorten([quote(name) for name in names], most=3)
        known = f", and names in column {quote(id_name)} ({listed})"
        alike = [name for name in names if name.strip().casefold() == wanted.casefold()]
        meant = f" Did you mean {quote(alike[0])}?" if alike else ""
    raise TableError(
        f"--row {wanted}: {file} has no such row. Its rows have the numbers 0 to {last:,}{known}. "
        f"Give one of them.{meant}"
    )
