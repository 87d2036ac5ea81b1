"""The options that commands share.

Each class is a group of options, and each field is one option. A command is a class that inherits
the groups that it needs. See ``leafkernel.cli.commands``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import typer

from leafkernel.cli.errors import OptionError
from leafkernel.tables import MIN_ROWS
from leafkernel.tables._notation import Stated

KINDS = ("number", "category", "date", "ignore")
Task = Enum("Task", {"classification": "classification", "regression": "regression"}, type=str)
DecimalSign = Enum("DecimalSign", {"point": ".", "comma": ","}, type=str)
ThousandsSign = Enum(
    "ThousandsSign", {"point": ".", "comma": ",", "space": "space", "none": "none"}, type=str
)
# The schemes that work for any table, and the embedding methods. The names are repeated here
# because the library is slow to import.
SCHEMES = (
    "gap",
    "uniform",
    "kerf",
    "oob",
    "oob_separable",
    "ih",
    "purity",
    "learned",
    "pbk",
    "rpk",
)
Scheme = Enum("Scheme", {name: name for name in SCHEMES}, type=str)  # type: ignore[misc]
MAPS = ("auto", "umap", "tsne", "phate", "pca", "spectral", "diffusion", "mds")
# The model to train: a random forest, or a boosted model of one of these libraries.
FORESTS = ("random", "hist", "lightgbm", "xgboost", "catboost")
ForestKind = Enum("ForestKind", {name: name for name in FORESTS}, type=str)  # type: ignore[misc]
Map = Enum("Map", {name: name for name in MAPS}, type=str)  # type: ignore[misc]
MAP_HELP = (
    f"{', '.join(MAPS[1:-1])} or {MAPS[-1]}. auto is umap if umap-learn is installed, else pca."
)


def option(
    form: str, text: str, *, default: Any = None, panel: str | None = None, **more: Any
) -> Any:
    """Return a dataclass field that defines an option.

    Parameters
    ----------
    form : str
        The names and the placeholder of the value: ``"--jobs -j N"``.
    text : str
        The help text.
    default : object, default=None
        The default value. ``MISSING`` for a required option.
    panel : str or None, default=None
        The section of the help page.
    **more
        Further parameters of ``typer.Option``.
    """
    names = [word for word in form.split() if word.startswith("-")]
    metavar = next((word for word in form.split() if word not in names), None)
    shown = default not in (None, MISSING)
    info = typer.Option(
        *names, metavar=metavar, help=text, rich_help_panel=panel, show_default=shown, **more
    )
    return field(default=default, metadata={"typer": info})


_table = partial(option, panel="Table")
_forest = partial(option, panel="Forest")
output_option = partial(option, panel="Output")


def _parse_kinds(given: Iterable[str]) -> dict[str, str]:
    """Return the kind of each column named by ``--as COLUMN=KIND``."""
    kinds: dict[str, str] = {}
    for each in given:
        name, equals, kind = each.rpartition("=")
        if not equals or not name:
            raise typer.BadParameter(
                f"{each!r} is not of the form COLUMN=KIND. Write it like price=number."
            )
        if kind not in KINDS:
            nearest = get_close_matches(kind.lower(), KINDS, n=1)
            meant = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise typer.BadParameter(
                f"{kind!r} is not a kind of column.{meant} Use one of {', '.join(KINDS)}."
            )
        if kinds.setdefault(name, kind) != kind:
            raise typer.BadParameter(
                f"column {name!r} is given twice, as {kinds[name]} and as {kind}. Use one of them."
            )
    return kinds


def _check_kinds(given: list[str] | None) -> list[str]:
    _parse_kinds(given or ())
    return given or []  # Typer 0.12 takes the length of the returned value


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must not be 0. Use -1 for all cores.")
    return jobs


def count_threads(jobs: int) -> int:
    """Return the number of threads for a value of ``--jobs``."""
    from leafkernel import _validation  # noqa: PLC0415 - slow to import

    return _validation.count_threads(jobs)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The table and how to read it."""

    table: Path = field(
        metadata={
            "typer": typer.Argument(
                metavar="TABLE",
                help="File to read: .csv, .csv.gz, .tsv, .parquet or .feather. The first line has "
                "the column names. Use - to read CSV from standard input.",
                show_default=False,
            )
        }
    )
    target: str | None = _table(
        "--target -t COLUMN",
        "Column with the target. It is used to fill other columns, and is not filled itself.",
    )
    task: Task | None = _table(
        "--task",
        "Whether the target has classes (classification) or numbers (regression). Default: "
        "detected from its values.",
    )
    drop: list[str] | None = _table(
        "--drop COLUMN", "Column to leave out of the features. Can be repeated."
    )
    as_kind: list[str] | None = _table(
        "--as COLUMN=KIND",
        "How to read a column: number, category, date or ignore. Can be repeated. Default: "
        "detected.",
        callback=_check_kinds,
    )
    decimal: DecimalSign | None = _table(
        "--decimal", "Decimal separator of the numbers in the table. Default: detected."
    )
    thousands: ThousandsSign | None = _table(
        "--thousands", "Thousands separator, as in 1.234.567. Default: detected."
    )

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of columns that the user gave."""
        return _parse_kinds(self.as_kind or ())

    @property
    def stated(self) -> Stated:
        """The decimal and thousands separators that the user gave. They must differ."""
        signs = [each and each.value for each in (self.decimal, self.thousands)]
        if self.decimal is not None and signs[0] == signs[1]:
            raise OptionError(
                f"--decimal and --thousands are both {signs[0]!r}, but they must differ. Change or "
                "omit one of them."
            )
        return Stated(*signs)


@dataclass(frozen=True, kw_only=True)
class TableOptions(ReadingOptions):
    """The training table and how to read it."""

    target: str = _table(
        "--target -t COLUMN", "Column that the forest learns to predict.", default=MISSING
    )
    id_column: str | None = _table(
        "--id COLUMN",
        "Column with the names of the rows. It is not used as a feature. Default: detected.",
    )
    max_rows: int | None = _table(
        "--max-rows N",
        "Largest number of rows to use. A larger table is sampled at random. Default: all rows, or "
        "100,000 for an HTML page.",
        min=MIN_ROWS,
    )

    @property
    def exact(self) -> set[str]:
        """The columns whose cells are kept exactly as they are written in the file."""
        named = {name for name, kind in self.kinds.items() if kind == "category"}
        return named if self.id_column is None else {*named, self.id_column}


@dataclass(frozen=True, kw_only=True)
class GrowingOptions:
    """Options for training a forest."""

    trees: int | None = _forest(
        "--trees N",
        "Number of trees. Default: 500, or 100 for more than 20,000 rows or a boosted model.",
        min=1,
    )
    seed: int = _forest(
        "--seed N",
        "Random seed. The same seed gives the same result.",
        min=0,
        default=0,
    )
    jobs: int = _forest(
        "--jobs -j N", "Number of threads; -1 uses all cores.", callback=_check_jobs, default=-1
    )

    @property
    def threads(self) -> int:
        """The number of threads."""
        return count_threads(self.jobs)


@dataclass(frozen=True, kw_only=True)
class ForestOptions(GrowingOptions):
    """The forest and the proximities."""

    forest: ForestKind = _forest(
        "--forest NAME",
        "Model to train: random for a random forest, or a boosted model: hist (scikit-learn's "
        "HistGradientBoosting), lightgbm, xgboost or catboost.",
        default=ForestKind(FORESTS[0]),
    )
    scheme: Scheme | None = _forest(
        "--scheme NAME",
        f"Weight scheme of the proximities: {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}. Default: "
        "gap, where the proximities of a row are the weights of the training rows in its "
        "prediction, or kerf for a model without bootstrap.",
    )
    model: Path | None = _forest(
        "--model FILE",
        "Fitted model to use instead of training a forest: a .skops, .joblib or .pkl file. "
        "Requires --trust-model.",
    )
    trust_model: bool = _forest(
        "--trust-model",
        "Allow --model to load its file. Loading a model CAN RUN CODE FROM THE FILE. Use this only "
        "for files from people you trust.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Where and how to write the result."""

    output: Path | None = output_option(
        "--output -o FILE",
        "File for the result: .csv, .csv.gz, .tsv, .parquet or .feather. Default: show a table in "
        "the terminal, or print CSV if the output is piped.",
    )
    escape_formulas: bool = output_option(
        "--escape-formulas",
        "Put an apostrophe before text that a spreadsheet would run as a formula. Default: write "
        "every cell unchanged.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class TalkOptions:
    """How much to print, and in which form."""

    #: Examples for the help page of a command.
    examples: ClassVar[tuple[str, ...]] = ()
    json: bool = output_option("--json", "Print one JSON document instead of text.", default=False)
    quiet: bool = output_option(
        "--quiet -q", "Print only the result and errors: no progress, no notes.", default=False
    )
    traceback: bool = output_option(
        "--traceback", "Print the Python traceback of an error.", default=False
    )


# The help page lists the options of the last base class first.


@dataclass(frozen=True, kw_only=True)
class StudyOptions(ForestOptions, TableOptions):
    """Options of commands that train a forest on a table."""


@dataclass(frozen=True, kw_only=True)
class TableCommand(TalkOptions, ResultOptions, StudyOptions):
    """Options of commands that train a forest on a table and return another table."""
