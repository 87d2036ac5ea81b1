"""The commands: their options, their help and examples of them.

The work of each is a function of the same name in :mod:`leafkernel.cli.work`, which takes long to
import.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import typer

from leafkernel.cli._options import (
    MAP_HELP,
    MAPS,
    GrowingOptions,
    Map,
    ReadingOptions,
    ResultOptions,
    StudyOptions,
    TableCommand,
    TalkOptions,
    option,
    output_option,
)
from leafkernel.tables import MIN_ROWS

_LARGE = "Tables larger than memory"


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """How to make a page."""

    embedding: Map = option(
        "--embedding NAME", f"How to draw the map: {MAP_HELP}", default=Map(MAPS[0])
    )
    force: bool = option(
        "--force", "Overwrite a file that is no page of leafkernel.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class Explore(TalkOptions, StudyOptions, PageOptions):
    """Show a table the way a forest sees it, on one HTML page that works offline."""

    examples = (
        "leafkernel explore wines.csv --target quality",
        "leafkernel explore houses.parquet --target price --task regression -o houses.html",
        "leafkernel explore wines.csv --target quality --new more.csv",
    )
    output: Path | None = option(
        "--output -o FILE.html",
        "Where to write the page. By default the table's name with .html, in this folder.",
    )
    new: Path | None = option(
        "--new TABLE",
        "New rows for the map, from another file with the same columns. They need no target.",
    )
    open_page: bool = option("--open/--no-open", "Show the page in a browser.", default=False)


@dataclass(frozen=True, kw_only=True)
class Demo(TalkOptions, GrowingOptions, PageOptions):
    """Make the page of 344 penguins and their species, and show it."""

    examples = ("leafkernel demo",)
    output: Path = option(
        "--output -o FILE.html", "Where to write the page.", default=Path("leafkernel-demo.html")
    )
    open_page: bool | None = option(
        "--open/--no-open",
        "Show the page in a browser. By default if there is a screen and a person.",
    )


def _check_coverage(coverage: float | None) -> float | None:
    if coverage is not None and not 0 < coverage < 1:
        raise typer.BadParameter(
            f"must be between 0 and 1, such as 0.9 for intervals that hold 90% of the targets; got "
            f"{coverage:g}."
        )
    return coverage


@dataclass(frozen=True, kw_only=True)
class Predict(TableCommand):
    """Predict rows: classes with probabilities and trust, or numbers with intervals.

    New rows get the prediction of the forest or of the model. Rows of the training table are
    predicted by the trees that were not trained with them. The trust in a row is the share of its
    similar rows that the forest predicts correctly out of bag. Intervals are calibrated out of bag.
    """

    examples = (
        "leafkernel predict wines.csv --target quality --new more.csv -o predictions.csv",
        "leafkernel predict houses.csv --target price --new more.csv --coverage 0.8",
    )
    new: Path | None = option(
        "--new TABLE",
        "Rows to predict, from another file with the same columns. If it holds the target, too, "
        "the predictions are scored. By default the rows of TABLE are predicted out of bag.",
    )
    coverage: float | None = option(
        "--coverage SHARE",
        "For a target of numbers: the share of targets that the intervals are to hold. By default "
        "0.9.",
        callback=_check_coverage,
    )


@dataclass(frozen=True, kw_only=True)
class Explain(TableCommand):
    """Explain a prediction: which training rows made it, and why they are similar.

    The explanation is printed in words. With -o or --json, the rows that made the prediction are a
    table. Of a boosted model, rows push its score up or down, and both are shown with their
    contributions; with --scheme, similar rows are shown instead.
    """

    examples = (
        "leafkernel explain wines.csv --target quality --row 12",
        "leafkernel explain wines.csv --target quality --new more.csv --row 0 --top 5",
        "leafkernel explain wines.csv --target quality --row 12 --forest lightgbm",
    )
    output: Path | None = output_option(
        "--output -o FILE",
        "The file for the rows that made the prediction, as a table: .csv, .csv.gz, .tsv, .parquet "
        "or .feather. By default the explanation is printed in words.",
    )
    row: str | None = option(
        "--row ROW",
        "The row to explain: its name in the id column, or its number in the file, from 0. A row "
        "of TABLE, or of the table of --new.",
    )
    new: Path | None = option(
        "--new TABLE",
        "Explain rows of another file with the same columns. Without --row, all of its rows.",
    )
    top: int = option(
        "--top N",
        "Rows to show of those that made the prediction; of a boosted model, of either direction.",
        min=1,
        default=10,
    )
    of_class: str | None = option(
        "--class NAME",
        "The class whose score to explain, for a boosted model with several classes. By default "
        "the one that it predicts.",
    )
    pairs: int = option(
        "--pairs N",
        "Rows for which to say why they are similar to the explained row.",
        min=0,
        default=1,
    )


def _check_memory(size: str | None) -> str | None:
    from leafkernel._memory import parse_bytes  # noqa: PLC0415 - takes long

    try:
        parse_bytes(size or 1)
    except ValueError:
        raise typer.BadParameter(f"write a size such as 500MB or 4GB; got {size!r}.") from None
    return size


@dataclass(frozen=True, kw_only=True)
class Neighbors(TableCommand):
    """Find the rows that a forest holds most similar to each row, with their proximities.

    With --max-memory, TABLE may be larger than memory: a Parquet file, or a folder of Parquet files
    with the same columns. A forest is grown on a random sample of the rows, and all rows are
    compared by it. The output has the columns row, neighbor (both are numbers of rows, from 0) and
    proximity, the nearest neighbors first. Rows without a target are compared, too. If the command
    is interrupted, give it again: it goes on where it was. Until it is finished, its work is in a
    folder beside the output, such as out.parquet.work.
    """

    examples = (
        "leafkernel neighbors wines.csv --target quality -k 5 -o neighbors.csv",
        "leafkernel neighbors wines.csv --target quality --new more.csv | head",
        "leafkernel neighbors big.parquet --target y -o out.parquet --max-memory 4GB",
    )
    new: Path | None = option(
        "--new TABLE",
        "Rows to find neighbors for among those of TABLE, from another file with the same columns. "
        "By default for each row of TABLE among the others.",
    )
    k: int = option("--neighbors -k N", "Neighbors for each row.", min=1, default=10)
    max_memory: str | None = option(
        "--max-memory SIZE",
        "Read the table a few rows at a time and use about so much memory, such as 4GB. For "
        "Parquet files, with the schemes kerf (the default here) and uniform.",
        callback=_check_memory,
        panel=_LARGE,
    )
    sample: int | None = option(
        "--sample N",
        "Rows of the random sample that the forest is grown on. By default 100,000, or fewer if "
        "they need too much memory.",
        min=MIN_ROWS,
        panel=_LARGE,
    )


CONVENTIONS = ("auto", "breiman", "rfgap", "raw", "residual")
Convention = Enum("Convention", {name: name for name in CONVENTIONS}, type=str)  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class Outliers(TableCommand):
    """Rank the rows by how unusual they are: for their class, or in their numbers."""

    examples = ("leafkernel outliers wines.csv --target quality --top 20",)
    convention: Convention = option(
        "--convention",
        "auto: residual for numbers, otherwise breiman; scores above 10 deserve a look. breiman: "
        "similar to few rows of its class; rfgap: as the authors of RF-GAP do; raw: not "
        "standardized within classes; residual: a target far from those of similar rows, or "
        "unusual features.",
        default=Convention(CONVENTIONS[0]),
    )
    top: int | None = option("--top N", "Only so many rows. All by default.", min=1)


@dataclass(frozen=True, kw_only=True)
class Prototypes(TableCommand):
    """Choose a few rows that stand for their class, or for a quarter of the target's numbers.

    Each next one is the row that most raises the similarity of its class to its prototypes. Unless
    --scheme says otherwise, similarity here is uniform: the share of trees that put two rows in the
    same leaf.
    """

    examples = ("leafkernel prototypes wines.csv --target quality -n 2 -o prototypes.csv",)
    n: int = option("--prototypes -n N", "Prototypes for each class, at most.", min=1, default=3)


@dataclass(frozen=True, kw_only=True)
class Impute(TalkOptions, ResultOptions, GrowingOptions, ReadingOptions):
    """Fill in missing values from similar rows, and change nothing else.

    Numbers get the mean of similar rows, in the style of their column: whole numbers if all present
    ones are whole. Categories get the most frequent one among similar rows. Names of rows, free
    text and dates are not filled. A text file keeps its encoding and its separators.
    """

    examples = ("leafkernel impute wines.csv --target quality -o filled.csv",)
    trees: int = option(
        "--trees N", "Trees of each forest: one for each column with gaps.", min=1, default=100
    )


@dataclass(frozen=True, kw_only=True)
class Embed(TableCommand):
    """Give each row coordinates, such that rows that the forest holds similar are near."""

    examples = ("leafkernel embed wines.csv --target quality --method pca -n 3 -o map.parquet",)
    method: Map = option(
        "--method -m NAME", f"How to place the rows: {MAP_HELP}", default=Map(MAPS[0])
    )
    n: int = option("--components -n N", "Number of coordinates.", min=1, default=2)


@dataclass(frozen=True, kw_only=True)
class Benchmark(TableCommand):
    """Time the steps on your table, beside the obvious way to the same numbers."""

    examples = ("leafkernel benchmark wines.csv --target quality --trees 100",)
    subset: int = option(
        "--subset N",
        "Rows on which the obvious way is timed, beside leafkernel on the same rows; its time "
        "grows with their square.",
        min=2,
        default=1000,
    )


#: In the order in which people need them.
COMMANDS: tuple[type[TalkOptions], ...] = (
    *(Explore, Demo, Predict, Explain, Neighbors, Outliers, Prototypes, Impute, Embed, Benchmark),
)
