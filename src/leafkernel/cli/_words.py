"""Explanations as text."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
from rich.cells import cell_len, set_cell_size

from leafkernel.cli._explained import EXACT, Explained, text_of
from leafkernel.cli._train import Study
from leafkernel.tasks.explanation import PredictionExplanation
from leafkernel.tasks.score_explanation import ScoreExplanation, signed, signed_percent

_NAMED = 6  # columns to list for a pair
_CLASSES = 4  # classes to list for a prediction


def say(study: Study, told: Explained, file: str, width: int) -> str:
    """Return the explanation of a row of a file, with tables of at most ``width`` characters."""
    found = told.found
    if isinstance(found, ScoreExplanation):
        lines = [*_head(study, told, file), *_score(study, found)]
        for is_up in (True, False):
            lines += ["", *_pushed_by(study, told, found, width, is_up=is_up)]
    else:
        lines = [*_headlines(study, told, found, file), "", *_made_by(study, told, found, width)]
    for pair in told.about["pairs"]:
        lines += ["", *_say_pair(study, told.about, pair)]
    return "\n".join(lines)


def _call(row: Any, name: Any) -> str:
    return f"row {row}" if name is None else f"row {row} ({text_of(name)})"


def _head(study: Study, told: Explained, file: str) -> list[str]:
    about = told.about
    head = f"R{_call(about['row'], about['id'])[1:]} of {file}"
    if about["target"] is not None:
        head += f", where {study.prepared.target_name} is {text_of(about['target'])}"
    return [head]


def _score(study: Study, found: ScoreExplanation) -> list[str]:
    """Return the sum that makes up the score, and its meaning."""
    sentence, meaning = found.sentence(), found.meaning()
    if found.output is not None:
        sentence = f"class {text_of(found.output)}: {sentence}"
    lines = [text[0].upper() + text[1:] for text in (sentence, meaning) if text]
    trained = "was" if study.model is None else "may have been"
    own = f"The model {trained} trained with this row. Its own contribution is included."
    return lines + [own] * (study.new is None)


def _headlines(study: Study, told: Explained, found: PredictionExplanation, file: str) -> list[str]:
    about = told.about
    (head,) = _head(study, told, file)
    said = _say_prediction(about["prediction"])
    if found.is_of_model:
        kind = "Out-of-bag prediction" if study.new is None else "Prediction"
        return [head, f"{kind}: {said}"]
    if about["model_prediction"] is None:
        note = "The prediction of the model may differ."
    else:
        own = _say_prediction(about["model_prediction"])
        note = f"The model itself predicts: {own}."
        note += " It may have been trained with this row." * (study.new is None)
    return [head, f"Prediction from similar rows: {said}", note]


def _say_prediction(prediction: Any) -> str:
    if not isinstance(prediction, dict):
        return _number(prediction) if isinstance(prediction, float) else text_of(prediction)
    ranked = sorted(prediction.items(), key=lambda item: -item[1])
    ranked = [(name, share) for name, share in ranked if share > 0]
    parts = [f"{text_of(name)} {share:.1%}" for name, share in ranked[:_CLASSES]]
    n_others = len(ranked) - _CLASSES
    if n_others > 0:
        parts.append("1 other class" if n_others == 1 else f"{n_others} other classes")
    return ", ".join(parts)


def _pushed_by(
    study: Study, told: Explained, found: ScoreExplanation, width: int, *, is_up: bool
) -> list[str]:
    """Return the rows that push the score in one direction, with their values."""
    places, head = found.direction(is_up=is_up)
    if not len(places):
        return [head]
    amounts = {"adds": ["", *(signed(x) for x in found.contributions[places])]}
    if found.effects is not None and found.link != "identity":
        write = signed_percent if found.is_probability else signed
        name = "probability" if found.is_probability else "prediction"
        amounts[name] = ["", *(write(x) for x in found.effects[places])]
    amounts["adds"][0] = "(this)"
    return [head, *_beside(study, told, found.rows[places], amounts, width)]


def _made_by(study: Study, told: Explained, found: PredictionExplanation, width: int) -> list[str]:
    """Return the training rows behind a prediction, below the row itself, with their values."""
    n, k = found.n_rows, len(found.rows)
    head = f"This prediction is based on {n:,} training row{'s' * (n != 1)}."
    if k < n:
        these = "This one has the largest share" if k == 1 else f"These {k} have the largest shares"
        head += f" {these}, {found.shown:.1%} in total."
    shares = ["(this)", *(f"{share:.1%}" for share in found.shares)]
    return [head, *_beside(study, told, found.rows, {"share": shares}, width)]


def _beside(
    study: Study, told: Explained, rows: Any, amounts: dict[str, list[str]], width: int
) -> list[str]:
    """Return rows below the row itself, with amounts and as many columns as fit."""
    prepared = study.prepared
    # The row itself comes first in each column.
    row, name, known = (told.about[each] for each in ("row", "id", "target"))
    this = "" if known is None else text_of(known)
    theirs = [text_of(target) for target in study.shown(study.y)[rows]]
    columns = [_Column("row", [str(row), *map(str, prepared.rows[rows])], right=True)]
    if prepared.ids is not None:
        ids = ["" if name is None else text_of(name), *map(text_of, prepared.ids[rows])]
        columns.append(_Column(text_of(prepared.id_name), ids))
    columns += [_Column(head, cells, right=True) for head, cells in amounts.items()]
    target = text_of(prepared.target_name)
    columns.append(_Column(target, [this, *theirs], right=study.judgement.classes is None))
    n_left = 0
    for name in _by_importance(study, told.about):
        values = prepared.shown[name].iloc[rows]
        cells = [text_of(value) for value in (told.values[name], *values)]
        right = pd.api.types.is_numeric_dtype(values.dtype)
        wider = [*columns, _Column(text_of(name), cells, right=right)]
        if n_left or max(map(cell_len, _grid(wider))) > width:
            n_left += 1
        else:
            columns = wider
    more = [f"  {n_left} more column{'s' * (n_left > 1)}: use -o FILE to write all columns."]
    return [*_grid(columns), *more[:n_left]]


def _by_importance(study: Study, about: dict[str, Any]) -> list[str]:
    """Return the columns to show. Columns that explain the first pair come first."""
    names = [str(name) for name in study.prepared.shown.columns if name != study.prepared.id_name]
    first = [reason["column"] for pair in about["pairs"][:1] for reason in pair["together"]]
    return list(dict.fromkeys([*(name for name in first if name in names), *names]))


def _say_pair(study: Study, about: dict[str, Any], pair: dict[str, Any]) -> list[str]:
    row, other = about["row"], pair["neighbor"]
    this, short = _call(row, about["id"]), [f"row {row}", f"row {other}"]
    if study.new is not None:
        this, short[0] = f"the new {this}", f"new row {row}"
    shared, counting, n = pair["trees"], pair["trees_that_count"], study.prox.n_trees_
    some = (
        "" if counting == shared else f" Only {counting:,} of these trees count with this scheme."
    )
    lines = [
        f"Why {this} and {_call(other, pair.get('neighbor_id'))} are similar:",
        f"They share a leaf in {shared:,} of {n:,} trees. "
        f"Their proximity is {_number(pair['proximity'])}.{some}",
    ]
    if pair["together"]:
        lines.append("Columns that keep them together:")
        lines += _list(pair["together"], ["share", "column", *short, "shared range"], ".1%")
    if pair["apart"]:
        trees = "tree" if n - shared == 1 else "trees"
        lines.append(f"Columns that separate them in the other {n - shared:,} {trees}:")
        lines += _list(pair["apart"], ["trees", "column", *short, "split at"], ".0f")
    return lines


def _list(reasons: list[dict[str, Any]], heads: list[str], form: str) -> list[str]:
    lines = []
    for reason in reasons[:_NAMED]:
        column, values, weight, where = reason.values()
        lines.append([format(weight, form), text_of(column), *values, where or ""])
    columns = [
        _Column(head, list(cells), right=head == heads[0])
        for head, cells in zip(heads, zip(*lines, strict=True), strict=True)
    ]
    n_others = len(reasons) - _NAMED
    more = [f"  and {n_others} other column{'s' * (n_others > 1)}"] * (n_others > 0)
    return [*_grid(columns if any(columns[-1].cells) else columns[:-1]), *more]


def _number(value: float) -> str:
    """Return a computed number, rounded for reading."""
    return f"{value:.0f}" if 1e5 <= abs(value) < EXACT else f"{value:.4g}"


class _Column(NamedTuple):
    """A column of text: its header, its cells, and whether they are aligned to the right."""

    head: str
    cells: list[str]
    right: bool = False


def _grid(columns: list[_Column]) -> list[str]:
    """Return columns of text as lines."""
    padded = []
    for column in columns:
        texts = [column.head, *column.cells]
        width = max(map(cell_len, texts))
        padded.append(
            [
                " " * (width - cell_len(text)) + text
                if column.right
                else set_cell_size(text, width)
                for text in texts
            ]
        )
    return ["  " + "  ".join(row).rstrip() for row in zip(*padded, strict=True)]
