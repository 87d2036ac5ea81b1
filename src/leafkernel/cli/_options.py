"""The options that commands share, each once.

A command asks for a group of them by a parameter of one of the classes here; see
:mod:`leafkernel.cli._command` for how its fields become options.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from leafkernel.cli._limits import MIN_ROWS
from leafkernel.cli._wanted import parse_kinds
from leafkernel.cli.errors import OptionError
from leafkernel.tables._signs import Stated

_TABLE, _FOREST, _OUTPUT = "The table", "The forest", "Output"


class Task(str, Enum):
    """What the target is."""

    classification = "classification"
    regression = "regression"


class DecimalSign(str, Enum):
    """The sign before decimals."""

    point = "."
    comma = ","


class ThousandsSign(str, Enum):
    """The sign between thousands."""

    point = "."
    comma = ","
    space = "space"
    none = "none"


class Scheme(str, Enum):
    """The weight schemes that work for any table."""

    gap = "gap"
    uniform = "uniform"
    kerf = "kerf"
    oob = "oob"
    oob_separable = "oob_separable"
    ih = "ih"


class Convention(str, Enum):
    """How proximities become scores."""

    auto = "auto"
    breiman = "breiman"
    rfgap = "rfgap"
    raw = "raw"
    residual = "residual"


# Ways to draw a map, by the names that the explorer has for them, which takes long to import.
MAPS = ("auto", "umap", "tsne", "phate", "pca", "spectral", "diffusion", "mds")
Map = Enum("Map", {name: name for name in MAPS}, type=str)  # type: ignore[misc]
AUTO_MAP = Map("auto")
MAP_HELP = (
    f"{', '.join(MAPS[1:-1])} or {MAPS[-1]}. auto is umap where umap-learn is installed, else pca."
)

TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="The file: .csv, .csv.gz, .tsv, .parquet or .feather, with the names of the columns "
        "in its first line. A dash reads CSV from the standard input.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="The column that the forest learns to predict.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
TaskOption = Annotated[
    Task | None,
    typer.Option(
        "--task",
        help="Whether the target holds classes or numbers. Seen from its values by default.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="The column that names the rows; it is no feature. By default one that looks like it.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="A column that is to be no feature. May be given several times.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]


def _check_kinds(given: list[str] | None) -> list[str]:
    try:
        parse_kinds(given or ())
    except OptionError as error:
        raise typer.BadParameter(str(error)) from None
    return given or []  # Typer 0.12 asks for the length of what a callback returns


AsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="COLUMN=KIND",
        callback=_check_kinds,
        help="Read a column as number, category or date, or ignore it. May be given several "
        "times. Detected by default.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
MaxRowsOption = Annotated[
    int | None,
    typer.Option(
        "--max-rows",
        metavar="N",
        min=MIN_ROWS,
        help="Of a larger table, a random sample of so many rows is used. All by default; a page "
        "shows at most 100,000.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
DecimalOption = Annotated[
    DecimalSign | None,
    typer.Option(
        "--decimal",
        help="The decimal sign of the numbers in the table. Detected by default.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
ThousandsOption = Annotated[
    ThousandsSign | None,
    typer.Option(
        "--thousands",
        help="The sign between thousands, as in 1.234.567. Detected by default.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="Seed of all that is random: the same seed gives the same result.",
        rich_help_panel=_FOREST,
    ),
]
TreesOption = Annotated[
    int | None,
    typer.Option(
        "--trees",
        metavar="N",
        min=1,
        help="Number of trees. By default 500, and 100 for more than 20,000 rows.",
        rich_help_panel=_FOREST,
        show_default=False,
    ),
]
SchemeOption = Annotated[
    Scheme | None,
    typer.Option(
        "--scheme",
        metavar="NAME",
        help="How a shared leaf counts: gap, uniform, kerf, oob, oob_separable or ih. By default "
        "gap, whose proximities are shares of the forest's own prediction (kerf for a model "
        "without bootstrap).",
        rich_help_panel=_FOREST,
        show_default=False,
    ),
]


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must not be 0; use -1 for all cores.")
    return jobs


def count_threads(jobs: int) -> int:
    """Return the number of threads that --jobs asks for."""
    from leafkernel import _validation  # noqa: PLC0415 - takes long

    return _validation.count_threads(jobs)


JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        callback=_check_jobs,
        help="Number of threads; -1 uses all cores.",
        rich_help_panel=_FOREST,
    ),
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FILE",
        help="A fitted model to use instead of a new forest: a .skops, .joblib or .pkl file. Needs "
        "--trust-model.",
        rich_help_panel=_FOREST,
        show_default=False,
    ),
]
TrustModelOption = Annotated[
    bool,
    typer.Option(
        "--trust-model",
        help="Allow --model to load its file. Loading a model CAN RUN CODE FROM THE FILE: use it "
        "only for files from people you trust.",
        rich_help_panel=_FOREST,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The file for the result: .csv, .csv.gz, .tsv, .parquet or .feather. By default the "
        "result is shown, or printed as CSV in a pipe.",
        rich_help_panel=_OUTPUT,
        show_default=False,
    ),
]
EscapeOption = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe in front of text that a spreadsheet would run as a formula. By "
        "default every cell is written as it is.",
        rich_help_panel=_OUTPUT,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON document in place of anything else.",
        rich_help_panel=_OUTPUT,
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print the result and errors only: no progress, no notes.",
        rich_help_panel=_OUTPUT,
    ),
]
TracebackOption = Annotated[
    bool,
    typer.Option(
        "--traceback",
        help="After an error, show where in the code it came from.",
        rich_help_panel=_OUTPUT,
    ),
]


def state_signs(decimal: DecimalSign | None, thousands: ThousandsSign | None) -> Stated:
    """Return the signs that two options name, which must differ."""
    signs = [each and each.value for each in (decimal, thousands)]
    if decimal is not None and signs[0] == signs[1]:
        raise OptionError(
            f"--decimal and --thousands are both {signs[0]!r}. A sign can have one meaning only; "
            "change or leave out one of the two."
        )
    return Stated(*signs)


@dataclass(frozen=True)
class TableOptions:
    """Which table, and how to read it."""

    table: TableArgument
    target: TargetOption
    task: TaskOption = None
    id_column: IdOption = None
    drop: DropOption = None
    as_kind: AsOption = None
    max_rows: MaxRowsOption = None
    decimal: DecimalOption = None
    thousands: ThousandsOption = None

    @property
    def kinds(self) -> dict[str, str]:
        """What columns are, as the user says."""
        return parse_kinds(self.as_kind or ())

    @property
    def exact(self) -> set[str]:
        """The columns whose cells are needed as they are written."""
        named = {name for name, kind in self.kinds.items() if kind == "category"}
        return named if self.id_column is None else {*named, self.id_column}

    @property
    def stated(self) -> Stated:
        """The signs in numbers, as the options name them."""
        return state_signs(self.decimal, self.thousands)


@dataclass(frozen=True)
class ForestOptions:
    """Which forest."""

    trees: TreesOption = None
    scheme: SchemeOption = None
    model: ModelOption = None
    trust_model: TrustModelOption = False
    seed: SeedOption = 0
    jobs: JobsOption = -1

    @property
    def threads(self) -> int:
        """The number of threads."""
        return count_threads(self.jobs)


@dataclass(frozen=True)
class OutputOptions:
    """Where the result goes, and how it is written."""

    output: OutputOption = None
    escape_formulas: EscapeOption = False


@dataclass(frozen=True)
class TalkOptions:
    """How much is said, and in which form."""

    json: JsonOption = False
    quiet: QuietOption = False
    traceback: TracebackOption = False
