"""The training rows behind a prediction, and why they are similar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.cells import cell_len

from leafkernel.cli._models import own_numbers, own_probabilities
from leafkernel.cli._new import NewRows, read_new, taking_rows
from leafkernel.cli._options import ForestOptions, OutputOptions, TableOptions
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._reasons import (
    ColumnNames,
    Reason,
    grid,
    is_missing,
    say_number,
    text_of,
    values_at,
)
from leafkernel.cli._rows import find_row
from leafkernel.cli._train import Plan, Study, fit, plan
from leafkernel.cli.errors import OptionError, TableError
from leafkernel.tables.files import call
from leafkernel.tasks import explain_pair, explain_prediction
from leafkernel.tasks.explanation import PredictionExplanation
from leafkernel.tasks.pair_explanation import PairExplanation

_MOST_ROWS = 100  # of another table that are explained at once
_NAMED = 6  # columns that are named for a pair
_CLASSES = 4  # that are named for a prediction


@dataclass(frozen=True)
class Pair:
    """Why a row is similar to a training row.

    Attributes
    ----------
    position : int
        The training row.
    proximity : float
    found : PairExplanation
        What the library says.
    together, apart : list of Reason
        The same with the columns of the table.
    """

    position: int
    proximity: float
    found: PairExplanation
    together: list[Reason]
    apart: list[Reason]


@dataclass(frozen=True)
class Explained:
    """A row and its explanation.

    Attributes
    ----------
    row : int
        Its number in its file.
    id : str or None
        Its name.
    in_training : bool
        Whether it is a training row.
    values : dict
        Its values by column.
    target : object
        Its target as people see it; None if it is not known.
    found : PredictionExplanation
        The rows that made its prediction.
    own : dict or float or None
        What the model predicts, if that is something else: a number, or shares of classes.
    pairs : list of Pair
    """

    row: int
    id: str | None
    in_training: bool
    values: dict[str, Any]
    target: Any
    found: PredictionExplanation
    own: Any
    pairs: list[Pair]


def explain(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    writing: OutputOptions,
    *,
    row: str | None,
    new: Path | None,
    top: int,
    pairs: int,
) -> None:
    """Explain the predictions of one row, or of all rows of another table."""
    check_output(writing.output, source.table, new, forest.model)
    if row is None and new is None:
        raise OptionError(
            "there is no row to explain. Give a row of the table with --row, or new rows with "
            "--new."
        )
    planned = plan(talk, source, forest)
    # Before the forest is grown, which may take long.
    others = None if new is None else read_new(talk, planned, new, source)
    places = _find(talk, planned, others, row, call(source.table))
    study = fit(talk, source, forest, planned)
    talk.step("explanation")
    columns = ColumnNames(study)
    if not columns.known and pairs:
        talk.note(
            f"{type(study.prox.forest_).__name__} does not tell the splits of its trees, so there "
            "is no explanation of why rows are similar."
        )
    with taking_rows(others):
        told = [_explain(study, others, i, columns, top=top, n_pairs=pairs) for i in places]
    if talk.json or writing.output is not None:
        about = {**study.about(), "explained": [_document(study, each) for each in told]}
        about["new"] = None if others is None else str(others.path)
        talk.result(_table(study, told), writing, lines=study.lines(), about=about)
        return
    file = call(source.table if others is None else others.path)
    talk.summary(study.lines())
    talk.text("\n\n\n".join(_say(study, each, file, talk.width) for each in told))


def _find(
    talk: Talk, planned: Plan, others: NewRows | None, row: str | None, table: str
) -> list[int]:
    """Return the places of the rows to explain, among the training rows or the new ones."""
    prepared = planned.prepared
    if others is None:
        assert row is not None
        found = find_row(
            talk, row, prepared.rows, prepared.ids, file=table, id_name=prepared.id_name
        )
        return [found]
    file, numbers = call(others.path), others.names["row"]
    if row is not None:
        return [find_row(talk, row, numbers, others.ids, file=file, id_name=prepared.id_name)]
    if len(numbers) > _MOST_ROWS:
        raise OptionError(
            f"--new {file} has {len(numbers):,} rows, and at most {_MOST_ROWS} can be explained at "
            "once. Choose one with --row. The command neighbors lists similar rows of all of them."
        )
    return list(range(len(numbers)))


def _explain(
    study: Study, others: NewRows | None, i: int, columns: ColumnNames, *, top: int, n_pairs: int
) -> Explained:
    prepared = study.prepared
    targets: npt.NDArray[Any] | None
    sample: Any
    if others is None:
        _check_known(study, i)
        X, sample = _one(study.X, i), i
        found = explain_prediction(study.prox, row=i, n=top)
        names, shown, targets = study.names(), prepared.shown, study.y
    else:
        X = sample = _one(others.X, i)
        found = explain_prediction(study.prox, X, n=top)
        names, shown, targets = others.names, others.shown(prepared), others.target(prepared)
    target = None if targets is None or is_missing(targets[i]) else study.shown(targets)[i]
    values = values_at(shown, i)
    pairs = []
    for k, position in enumerate(found.rows[: n_pairs if columns.known else 0].tolist()):
        pair, theirs = (
            explain_pair(study.prox, sample, position),
            values_at(prepared.shown, position),
        )
        together, apart = (tell(pair, values, theirs) for tell in (columns.together, columns.apart))
        pairs.append(Pair(position, float(found.proximities[k]), pair, together, apart))
    return Explained(
        row=int(names["row"][i]),
        id=str(names["id"][i]) if "id" in names else None,
        in_training=others is None,
        values=values,
        target=target,
        found=found,
        own=None if found.is_of_model else _own_prediction(study, X),
        pairs=pairs,
    )


def _one(X: Any, i: int) -> Any:
    return X[i : i + 1] if isinstance(X, np.ndarray) else X.iloc[i : i + 1]


def _check_known(study: Study, i: int) -> None:
    if study.judgement.known[i]:
        return
    row = study.prepared.rows[i]
    raise TableError(
        f"Row {row} has no out-of-bag prediction, because every tree was trained with it. Use more "
        "--trees."
        if study.judgement.out_of_bag
        else f"Row {row} has no prediction, because no other row shares a leaf that counts."
    )


def _own_prediction(study: Study, X: Any) -> Any:
    """Return what the model predicts for one row: a number, or the share of each class."""
    model = study.prox.forest_
    if study.judgement.classes is None:
        number = own_numbers(model, X)
        return None if number is None else float(number[0])
    own = own_probabilities(model, X, [str(label) for label in study.judgement.classes])
    return None if own is None else dict(zip(own[0], own[1][0].tolist(), strict=True))


# --- as a table


def _prediction(found: PredictionExplanation) -> Any:
    """Return the prediction: a number, or the share of each class."""
    if found.classes is None:
        return float(found.prediction)
    names = [str(name) for name in found.classes]
    return dict(zip(names, found.prediction.tolist(), strict=True))


def _table(study: Study, told: list[Explained]) -> pd.DataFrame:
    """Return one line for each row that made a prediction, with its values."""
    counts = [len(each.found.rows) for each in told]
    rows = np.concatenate([each.found.rows for each in told])
    names: dict[str, Any] = {"row": np.repeat([each.row for each in told], counts)}
    if any(each.id is not None for each in told):
        names["id"] = np.repeat(np.array([each.id for each in told], dtype=object), counts)
    frame = pd.DataFrame(
        {
            **names,
            "rank": np.concatenate([np.arange(1, count + 1) for count in counts]),
            **study.names(rows, prefix="neighbor"),
            "neighbor_target": study.shown(study.y)[rows],
            "proximity": np.concatenate([each.found.proximities for each in told]),
            "share": np.concatenate([each.found.shares for each in told]),
        }
    )
    return study.beside(frame, rows)


def _document(study: Study, told: Explained) -> dict[str, Any]:
    found = told.found
    return {
        "row": told.row,
        "id": told.id,
        "target": _as_date(told.target),
        "prediction": _shown(study, _prediction(found)),
        "is_of_model": found.is_of_model,
        "model_prediction": _shown(study, told.own),
        "made_by": found.n_rows,
        "shown": found.shown,
        "pairs": [
            {
                **{name: values[0] for name, values in _names(study, pair.position).items()},
                "proximity": pair.proximity,
                "trees": len(pair.found.trees),
                "together": [_reason(reason, "share", "within") for reason in pair.together],
                "apart": [_reason(reason, "trees", "at") for reason in pair.apart],
            }
            for pair in told.pairs
        ],
    }


def _names(study: Study, position: int) -> dict[str, Any]:
    return study.names(np.array([position]), prefix="neighbor")


def _reason(reason: Reason, weight: str, where: str) -> dict[str, Any]:
    return {
        "column": reason.column,
        weight: reason.weight,
        "values": list(reason.values),
        where: reason.where or None,
    }


def _shown(study: Study, prediction: Any) -> Any:
    """Return a prediction as people see it: a date, if the target holds dates."""
    if not isinstance(prediction, float):
        return prediction
    return _as_date(study.shown(np.array([prediction]))[0])


def _as_date(value: Any) -> Any:
    """Return a date as pandas writes it, as in the tables of results."""
    return pd.Timestamp(value) if isinstance(value, np.datetime64) else value


# --- in words


def _say(study: Study, told: Explained, file: str, width: int) -> str:
    lines = [*_headlines(study, told, file), "", *_made_by(study, told, width)]
    for pair in told.pairs:
        lines += ["", *_say_pair(study, told, pair)]
    return "\n".join(lines)


def _call(row: Any, name: Any) -> str:
    return f"row {row}" if name is None else f"row {row} ({text_of(name)})"


def _headlines(study: Study, told: Explained, file: str) -> list[str]:
    found, name = told.found, _call(told.row, told.id)
    target = f"{study.prepared.target_name} is {text_of(told.target)}"
    head = f"R{name[1:]} of {file}" + ("" if told.target is None else f", where {target}")
    said = _say_prediction(study, _prediction(found))
    if found.is_of_model:
        kind = "Out-of-bag prediction" if told.in_training else "Prediction"
        return [head, f"{kind}: {said}"]
    lines = [head, f"Vote of similar rows: {said}"]
    if told.own is None:
        return [*lines, "This is not the prediction of the model, which may differ."]
    again = " It may have been trained with this row." if told.in_training else ""
    own = _say_prediction(study, told.own)
    return [
        *lines,
        f"The vote is not the prediction of the model. The model predicts: {own}.{again}",
    ]


def _say_prediction(study: Study, prediction: Any) -> str:
    if not isinstance(prediction, dict):
        shown = _shown(study, float(prediction))
        return say_number(shown) if isinstance(shown, float) else text_of(shown)
    ranked = sorted(prediction.items(), key=lambda item: -item[1])
    ranked = [(name, share) for name, share in ranked if share > 0]
    parts = [f"{text_of(name)} {share:.1%}" for name, share in ranked[:_CLASSES]]
    n_others = len(ranked) - _CLASSES
    if n_others > 0:
        parts.append("1 other class" if n_others == 1 else f"{n_others} other classes")
    return ", ".join(parts)


def _made_by(study: Study, told: Explained, width: int) -> list[str]:
    """Return the rows that made the prediction, below the row itself, with their values."""
    found, prepared = told.found, study.prepared
    n, k = found.n_rows, len(found.rows)
    what = "prediction" if found.is_of_model else "vote"
    rows = "1 training row" if n == 1 else f"{n:,} training rows"
    head = f"The {what} was made by {rows}."
    if k < n:
        these = "This one has" if k == 1 else f"These {k} have"
        head += f" {these} the largest shares, {found.shown:.1%} in all."
    targets = study.shown(study.y)
    heads = ["row", "share", text_of(prepared.target_name)]
    this = "" if told.target is None else text_of(told.target)
    cells = [[str(told.row), "(this)", this]]
    for position, share in zip(found.rows.tolist(), found.shares, strict=True):
        cells.append([str(prepared.rows[position]), f"{share:.1%}", text_of(targets[position])])
    if prepared.ids is not None:
        heads.insert(1, text_of(prepared.id_name))
        for line, name in zip(cells, [told.id, *prepared.ids[found.rows]], strict=True):
            line.insert(1, "" if name is None else text_of(name))
    right = {"row", "share", *(heads[-1:] if found.classes is None else ())}
    names, n_fit = _by_importance(study, told), 0
    for name in names:
        theirs = [values_at(prepared.shown[[name]], i)[name] for i in found.rows.tolist()]
        column = [text_of(value) for value in (told.values[name], *theirs)]
        wider = [[*line, cell] for line, cell in zip(cells, column, strict=True)]
        title = text_of(name)
        if max(map(cell_len, grid([*heads, title], wider, right))) > width:
            break  # whole columns, as many as there is room for
        heads, cells, n_fit = [*heads, title], wider, n_fit + 1
        if pd.api.types.is_numeric_dtype(prepared.shown[name].dtype):
            right.add(title)
    lines = [head, *grid(heads, cells, right)]
    n_left = len(names) - n_fit
    if n_left:
        lines.append(f"  {n_left} more column{'s' * (n_left > 1)}: write all with -o FILE.")
    return lines


def _by_importance(study: Study, told: Explained) -> list[str]:
    """Return the columns to show: those that make the nearest row similar come first."""
    names = [str(name) for name in study.prepared.shown.columns if name != study.prepared.id_name]
    first = [reason.column for reason in told.pairs[0].together] if told.pairs else []
    first = [name for name in first if name in names]
    return [*first, *(name for name in names if name not in first)]


def _say_pair(study: Study, told: Explained, pair: Pair) -> list[str]:
    names = [values[0] for values in _names(study, pair.position).values()]
    this, other = _call(told.row, told.id), _call(*(names if len(names) == 2 else (*names, None)))
    short = [f"row {told.row}", f"row {names[0]}"]
    if not told.in_training:
        this, short[0] = f"the new {this}", f"new row {told.row}"
    shared, n = len(pair.found.trees), pair.found.n_trees
    counting = int(np.count_nonzero(pair.found.tree_shares))
    through = "" if counting == shared else f", through {counting:,} of these trees"
    lines = [
        f"Why {this} and {other} are similar:",
        f"They share a leaf in {shared:,} of {n:,} trees. "
        f"Their proximity is {say_number(pair.proximity)}{through}.",
    ]
    if pair.together:
        lines.append("Columns that keep them together:")
        lines += _list(pair.together, ["share", "column", *short, "together for"], ".1%")
    if pair.apart:
        n_apart = n - shared
        trees = "tree" if n_apart == 1 else "trees"
        lines.append(f"Columns at which they part, in the other {n_apart:,} {trees}:")
        lines += _list(pair.apart, ["trees", "column", *short, "parted at"], ".0f")
    return lines


def _list(reasons: list[Reason], heads: list[str], form: str) -> list[str]:
    cells = [
        [format(reason.weight, form), text_of(reason.column), *reason.values, reason.where]
        for reason in reasons[:_NAMED]
    ]
    if not any(line[-1] for line in cells):
        heads, cells = heads[:-1], [line[:-1] for line in cells]
    return [*grid(heads, cells, heads[:1]), *_others(len(reasons) - _NAMED)]


def _others(count: int) -> list[str]:
    return [f"  and {count} other column{'s' * (count > 1)}"] * (count > 0)
