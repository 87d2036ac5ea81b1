"""The commands: their options, help texts and examples.

The function that runs a command has the same name and is in ``leafkernel.cli.work``, which is slow
to import.
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
    """Options for the HTML page."""

    embedding: Map = option(
        "--embedding NAME", f"Method that draws the map: {MAP_HELP}", default=Map(MAPS[0])
    )
    force: bool = option(
        "--force",
        "Overwrite the output file even if leafkernel did not write it.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class Explore(TalkOptions, StudyOptions, PageOptions):
    """Explore a table on an interactive HTML page: one file that works offline.

    The page has a map of the rows, the most similar rows of each row, predictions, outliers,
    prototypes and columns.
    """

    examples = (
        "leafkernel explore wines.csv --target quality",
        "leafkernel explore houses.parquet --target price --task regression -o houses.html",
        "leafkernel explore wines.csv --target quality --new more.csv",
    )
    output: Path | None = option(
        "--output -o FILE.html",
        "File for the page. Default: the table's name with .html, in the current folder.",
    )
    new: Path | None = option(
        "--new TABLE",
        "File with new rows to add to the map. It needs the same columns; the target is optional.",
    )
    open_page: bool = option("--open/--no-open", "Open the page in a browser.", default=False)


@dataclass(frozen=True, kw_only=True)
class Demo(TalkOptions, GrowingOptions, PageOptions):
    """Make an example page from a table of 344 penguins, and open it."""

    examples = ("leafkernel demo",)
    output: Path = option(
        "--output -o FILE.html", "File for the page.", default=Path("leafkernel-demo.html")
    )
    open_page: bool | None = option(
        "--open/--no-open",
        "Open the page in a browser. Default: only in an interactive terminal with a display.",
    )


def _check_coverage(coverage: float | None) -> float | None:
    if coverage is not None and not 0 < coverage < 1:
        raise typer.BadParameter(
            f"{coverage:g} is not between 0 and 1. For example, use 0.9 for intervals that contain "
            "90% of the targets."
        )
    return coverage


@dataclass(frozen=True, kw_only=True)
class Predict(TableCommand):
    """Predict classes with probabilities and trust scores, or numbers with intervals.

    New rows (--new) get the prediction of the forest or of the model. Without --new, each row of
    TABLE gets its out-of-bag prediction, from the trees that were not trained with it. The trust
    score of a row is the share of its similar rows that the forest predicts correctly out of bag.
    Intervals are calibrated out of bag.
    """

    examples = (
        "leafkernel predict wines.csv --target quality --new more.csv -o predictions.csv",
        "leafkernel predict houses.csv --target price --new more.csv --coverage 0.8",
    )
    new: Path | None = option(
        "--new TABLE",
        "File with rows to predict. It needs the same columns. If it also has the target, the "
        "predictions are scored. Default: predict the rows of TABLE out of bag.",
    )
    coverage: float | None = option(
        "--coverage SHARE",
        "For a numeric target: the share of targets that the intervals should contain. Default: "
        "0.9.",
        callback=_check_coverage,
    )


@dataclass(frozen=True, kw_only=True)
class Explain(TableCommand):
    """Explain a prediction: which training rows it is based on, and why they are similar.

    The explanation is printed as text. With -o or --json, it is a table of training rows instead.
    For a boosted model, the explanation lists the training rows that push the score up and those
    that push it down. With --scheme, it lists similar rows instead.
    """

    examples = (
        "leafkernel explain wines.csv --target quality --row 12",
        "leafkernel explain wines.csv --target quality --new more.csv --row 0 --top 5",
        "leafkernel explain wines.csv --target quality --row 12 --forest lightgbm",
    )
    output: Path | None = output_option(
        "--output -o FILE",
        "File for the table of training rows: .csv, .csv.gz, .tsv, .parquet or .feather. Default: "
        "print the explanation as text.",
    )
    row: str | None = option(
        "--row ROW",
        "Row to explain: its name in the id column, or its number in the file, counted from 0. "
        "It is a row of TABLE, or of the --new table if there is one.",
    )
    new: Path | None = option(
        "--new TABLE",
        "File with new rows to explain. It needs the same columns. Without --row, all of its rows "
        "are explained.",
    )
    top: int = option(
        "--top N",
        "Number of training rows to list. For a boosted model: in each direction.",
        min=1,
        default=10,
    )
    of_class: str | None = option(
        "--class NAME",
        "For a boosted model with several classes: the class whose score to explain. Default: the "
        "predicted class.",
    )
    pairs: int = option(
        "--pairs N",
        "Number of listed rows for which to explain why they are similar to the row.",
        min=0,
        default=1,
    )


def _check_memory(size: str | None) -> str | None:
    from leafkernel._memory import parse_bytes  # noqa: PLC0415 - slow to import

    try:
        parse_bytes(size or 1)
    except ValueError:
        raise typer.BadParameter(f"{size!r} is not a size. Write it like 500MB or 4GB.") from None
    return size


@dataclass(frozen=True, kw_only=True)
class Neighbors(TableCommand):
    """Find the most similar rows of each row, with their proximities.

    With --max-memory, TABLE can be larger than memory. It is a Parquet file, or a folder of Parquet
    files with the same columns. A forest is trained on a random sample of the rows and compares all
    rows, including rows without a target. The output has the columns row, neighbor and proximity.
    Rows are numbered from 0, and the most similar neighbors come first. If the command is
    interrupted, run it again to continue. Intermediate results are kept in a folder next to the
    output, such as out.parquet.work, until the command finishes.
    """

    examples = (
        "leafkernel neighbors wines.csv --target quality -k 5 -o neighbors.csv",
        "leafkernel neighbors wines.csv --target quality --new more.csv | head",
        "leafkernel neighbors big.parquet --target y -o out.parquet --max-memory 4GB",
    )
    new: Path | None = option(
        "--new TABLE",
        "File with new rows. It needs the same columns. Their neighbors are rows of TABLE. "
        "Default: find the neighbors of each row of TABLE.",
    )
    k: int = option("--neighbors -k N", "Number of neighbors of each row.", min=1, default=10)
    max_memory: str | None = option(
        "--max-memory SIZE",
        "Memory to use, such as 4GB. The table is read in small parts. Only for Parquet files and "
        "for the schemes kerf (the default here) and uniform.",
        callback=_check_memory,
        panel=_LARGE,
    )
    sample: int | None = option(
        "--sample N",
        "Number of rows in the random sample that the forest is trained on. Default: 100,000, or "
        "fewer if they need too much memory.",
        min=MIN_ROWS,
        panel=_LARGE,
    )


CONVENTIONS = ("auto", "breiman", "rfgap", "raw", "residual")
Convention = Enum("Convention", {name: name for name in CONVENTIONS}, type=str)  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class Outliers(TableCommand):
    """Rank rows by an outlier score: how unusual they are for their class or target."""

    examples = ("leafkernel outliers wines.csv --target quality --top 20",)
    convention: Convention = option(
        "--convention",
        "How to score. auto: residual for a numeric target, otherwise breiman; scores above 10 "
        "deserve a look. breiman: high if a row is similar to few rows of its class. rfgap: as "
        "defined by the authors of RF-GAP. raw: like breiman, but not standardized within "
        "classes. residual: high if the target is far from the targets of similar rows, or if the "
        "features are unusual.",
        default=Convention(CONVENTIONS[0]),
    )
    top: int | None = option("--top N", "Number of rows to list. Default: all.", min=1)


@dataclass(frozen=True, kw_only=True)
class Prototypes(TableCommand):
    """Choose a few representative rows for each class, or for each quarter of a numeric target.

    Prototypes are chosen one by one. The next one is the row that most increases the similarity of
    the class to its nearest prototypes. The default --scheme here is uniform: the share of trees
    in which two rows are in the same leaf.
    """

    examples = ("leafkernel prototypes wines.csv --target quality -n 2 -o prototypes.csv",)
    n: int = option(
        "--prototypes -n N", "Largest number of prototypes of a class.", min=1, default=3
    )


@dataclass(frozen=True, kw_only=True)
class Impute(TalkOptions, ResultOptions, GrowingOptions, ReadingOptions):
    """Fill in missing values from similar rows. All other cells stay as they are.

    Missing numbers get the mean of similar rows, rounded if the column has only whole numbers.
    Missing categories get the most frequent category of similar rows. Row names, free text and
    dates are not filled. A text file keeps its encoding and separators.
    """

    examples = ("leafkernel impute wines.csv --target quality -o filled.csv",)
    trees: int = option(
        "--trees N",
        "Number of trees of each forest. There is one forest for each column with missing values.",
        min=1,
        default=100,
    )


@dataclass(frozen=True, kw_only=True)
class Embed(TableCommand):
    """Embed the rows: compute coordinates that place similar rows near each other."""

    examples = ("leafkernel embed wines.csv --target quality --method pca -n 3 -o map.parquet",)
    method: Map = option("--method -m NAME", f"Embedding method: {MAP_HELP}", default=Map(MAPS[0]))
    n: int = option("--components -n N", "Number of coordinates.", min=1, default=2)


@dataclass(frozen=True, kw_only=True)
class Benchmark(TableCommand):
    """Time leafkernel on your table, and compare it with a plain NumPy computation."""

    examples = ("leafkernel benchmark wines.csv --target quality --trees 100",)
    subset: int = option(
        "--subset N",
        "Number of rows for the comparison with NumPy, whose time grows with the square of this "
        "number.",
        min=2,
        default=1000,
    )


#: In the order of the help page: the most useful commands first.
COMMANDS: tuple[type[TalkOptions], ...] = (
    *(Explore, Demo, Predict, Explain, Neighbors, Outliers, Prototypes, Impute, Embed, Benchmark),
)
