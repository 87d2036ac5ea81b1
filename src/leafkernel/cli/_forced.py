"""Columns that are read as the user says, with --as."""

from __future__ import annotations

from leafkernel.cli._kinds import quote
from leafkernel.cli._signs import Signs
from leafkernel.cli._values import Values, force_dates, force_numbers
from leafkernel.cli.errors import TableError


def read_as(values: Values, kind: str, name: str, signs: Signs | None) -> Values:
    """Return the values of a column as numbers, dates or categories, as the user says.

    Raises
    ------
    TableError
        If no value is of that kind, or if the values do not tell how they are to be read.
    """
    if kind == "category":
        return Values(texts=values.labels(), order=values.order)
    try:
        found = force_numbers(values, signs) if kind == "number" else force_dates(values)
    except ValueError as error:
        raise TableError(
            f"--as {name}=date: {error}, so write them as ISO dates, such as 2024-12-31."
        ) from None
    if found.units:
        raise TableError(
            f"--as {name}=number: the column has amounts in several currencies "
            f"({', '.join(found.units)}). Convert them to one currency."
        )
    is_date = "date" in found.form
    if found.numbers is None or found.missing().all() or is_date != (kind == "date"):
        examples = ", ".join(
            quote(text) for text in list(dict.fromkeys(values.labels()))[:3] if text
        )
        raise TableError(
            f"--as {name}={kind}: no value of the column is a {kind}. It holds "
            f"{examples or 'nothing'}."
        )
    return found
