"""The ``explain`` command."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from leafkernel._validation import shorten
from leafkernel.cli._explained import ColumnNames, Explained, explain_rows
from leafkernel.cli._output import Talk
from leafkernel.cli._train import Plan, Study, fit, plan, taking_rows
from leafkernel.cli._words import say
from leafkernel.cli.commands import Explain
from leafkernel.cli.errors import OptionError, TableError
from leafkernel.tables._missing import quote
from leafkernel.tables.files import call
from leafkernel.tables.preparation import Rows
from leafkernel.tasks.explanation import PredictionExplanation
from leafkernel.tasks.score_explanation import ScoreExplanation

# "row 3" is always a row number, even if the names of the rows are numbers.
_NUMBER = re.compile(r"(?:row\s+)?(\d{1,18})", re.IGNORECASE)
_MOST_ROWS = 100  # rows of --new to explain in one run


def explain(talk: Talk, options: Explain) -> None:
    """Explain the predictions of one row, or of all rows of another table."""
    if options.row is None and options.new is None:
        raise OptionError(
            "explain requires --row, --new or both. Choose a row of the table with --row, or new "
            "rows with --new."
        )
    planned = plan(talk, options)
    file = call(options.new or options.table)
    places = _find(talk, planned, options.row, file)
    study = fit(talk, options, planned)
    talk.step("explanation")
    columns = ColumnNames(study)
    if not columns.known and options.pairs:
        talk.note(
            f"The splits of {type(study.prox.forest_).__name__} cannot be read, so there is no "
            "explanation of why rows are similar."
        )
    exact = study.exact(talk) if options.scheme is None else None
    if options.of_class is not None and exact is None:
        raise OptionError(
            f"--class {options.of_class} cannot be combined with --scheme {options.scheme.value}. "
            "Leave out one of them."
            if options.scheme
            else f"--class {options.of_class} requires a boosted model, but this model is not "
            "boosted. Leave out --class, or use a boosted model, such as --forest hist."
        )
    with taking_rows(study.new):
        told = explain_rows(
            study,
            places,
            columns,
            top=options.top,
            n_pairs=options.pairs,
            exact=exact,
            of_class=options.of_class,
        )
    if talk.json or options.output is not None:
        about = {**study.about(), "explained": [each.about for each in told]}
        about["new"] = options.new and str(options.new)
        talk.result(_table(study, told), options, lines=study.lines(), about=about)
    else:
        talk.summary(study.lines())
        talk.text("\n\n\n".join(say(study, each, file, talk.width) for each in told))


def _find(talk: Talk, planned: Plan, row: str | None, file: str) -> list[int]:
    """Return the positions of the rows to explain, among the training rows or the new rows."""
    prepared, asked = planned.prepared, planned.rows
    if row is not None:
        return [_find_row(talk, row, asked, file=file, id_name=prepared.id_name)]
    if len(asked.rows) > _MOST_ROWS:
        raise OptionError(
            f"--new {file} has {len(asked.rows):,} rows, but at most {_MOST_ROWS} can be explained "
            "at once. Choose one with --row, or list the similar rows of all of them with "
            "`leafkernel neighbors`."
        )
    return list(range(len(asked.rows)))


def _find_row(talk: Talk, row: str, rows: Rows, *, file: str, id_name: str) -> int:
    """Return the position of a row among the usable rows, or raise an error that lists rows.

    ``row`` is a name in the column ``id_name``, a row number in the file, or "row" and a number.
    """
    row, column = row.strip(), quote(id_name)
    names = [] if rows.ids is None else [str(name) for name in rows.ids]
    named = [i for i, name in enumerate(names) if name.strip() == row]
    match = _NUMBER.fullmatch(row)
    numbered = [] if match is None else np.flatnonzero(rows.rows == int(match[1])).tolist()
    if len(named) == 1:
        if numbered and numbered != named and row.isdigit():
            talk.note(
                f"--row {row} is a name in column {column}. For the row with this number in the "
                f"file, use --row 'row {row}'."
            )
        return named[0]
    if named and not set(numbered) & set(named):
        listed = shorten([f"'row {rows.rows[i]}'" for i in named])
        raise TableError(
            f"--row {row} is ambiguous: {len(named):,} rows of {file} have this name in column "
            f"{column}. Use the number of one of them: {listed}."
        )
    if numbered:
        return int(numbered[0])
    last = int(rows.rows.max())
    if match is not None and int(match[1]) <= last:
        raise TableError(
            f"--row {row}: this row of {file} was not used for training, because its target is "
            "missing or because --max-rows left it out. Choose another row, or pass the row with "
            "--new."
        )
    known, meant = "", ""
    if names:
        listed = shorten([quote(name) for name in names], most=3)
        known = f", and names in column {column} ({listed})"
        alike = [name for name in names if name.strip().casefold() == row.casefold()]
        meant = f" Did you mean {quote(alike[0])}?" if alike else ""
    raise TableError(
        f"--row {row} was not found in {file}. Its rows have the numbers 0 to {last:,}{known}. "
        f"Use one of them.{meant}"
    )


def _amounts(found: PredictionExplanation | ScoreExplanation) -> dict[str, Any]:
    if isinstance(found, PredictionExplanation):
        return {"proximity": found.proximities, "share": found.shares}
    effects = {} if found.effects is None else {"effect": found.effects}
    return {"contribution": found.contributions, **effects}


def _table(study: Study, told: list[Explained]) -> pd.DataFrame:
    """Return a table with one line for each listed training row, with its values."""
    parts = [
        pd.DataFrame(
            {
                **{name: each.about[name] for name in study.rows.names()},
                "rank": np.arange(1, len(each.found.rows) + 1),
                **study.prepared.names(each.found.rows, prefix="neighbor"),
                "neighbor_target": study.shown(study.y)[each.found.rows],
                **_amounts(each.found),
            }
        )
        for each in told
    ]
    rows = np.concatenate([each.found.rows for each in told])
    return study.beside(pd.concat(parts, ignore_index=True), rows)
