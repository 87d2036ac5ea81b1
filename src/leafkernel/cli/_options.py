"""The options that commands share.

Each class is a group of options, one for each field. A command is a class that inherits the groups
that it needs; see :mod:`leafkernel.cli.commands`.
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
# The schemes that work for any table, and the ways to draw a map. These are the names that the
# library has for them, which takes long to import.
SCHEMES = ("gap", "uniform", "kerf", "oob", "oob_separable", "ih")
Scheme = Enum("Scheme", {name: name for name in SCHEMES}, type=str)  # type: ignore[misc]
MAPS = ("auto", "umap", "tsne", "phate", "pca", "spectral", "diffusion", "mds")
# The model to grow: a random forest, or a boosted model of one of these libraries.
FORESTS = ("random", "hist", "lightgbm", "xgboost", "catboost")
ForestKind = Enum("ForestKind", {name: name for name in FORESTS}, type=str)  # type: ignore[misc]
Map = Enum("Map", {name: name for name in MAPS}, type=str)  # type: ignore[misc]
MAP_HELP = (
    f"{', '.join(MAPS[1:-1])} or {MAPS[-1]}. auto is umap where umap-learn is installed, else pca."
)


def option(
    form: str, text: str, *, default: Any = None, panel: str | None = None, **more: Any
) -> Any:
    """Return a field of a dataclass that is an option.

    Parameters
    ----------
    form : str
        How it is written: ``"--jobs -j N"``.
    text : str
        Its help.
    default : object, default=None
        Its default; ``MISSING`` if it must be given.
    panel : str or None, default=None
        The part of the help that it stands in.
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


_table = partial(option, panel="The table")
_forest = partial(option, panel="The forest")
output_option = partial(option, panel="Output")


def _parse_kinds(given: Iterable[str]) -> dict[str, str]:
    """Return the kind of each column that ``--as COLUMN=KIND`` names."""
    kinds: dict[str, str] = {}
    for each in given:
        name, equals, kind = each.rpartition("=")
        if not equals or not name:
            raise typer.BadParameter(f"write {each!r} as COLUMN=KIND, such as price=number.")
        if kind not in KINDS:
            nearest = get_close_matches(kind.lower(), KINDS, n=1)
            meant = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise typer.BadParameter(
                f"there is no kind {kind!r} for {name!r}.{meant} Use one of {', '.join(KINDS)}."
            )
        if kinds.setdefault(name, kind) != kind:
            raise typer.BadParameter(f"{name!r} is given twice, as {kinds[name]} and as {kind}.")
    return kinds


def _check_kinds(given: list[str] | None) -> list[str]:
    _parse_kinds(given or ())
    return given or []  # Typer 0.12 asks for the length of what a callback returns


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must not be 0; use -1 for all cores.")
    return jobs


def count_threads(jobs: int) -> int:
    """Return the number of threads that --jobs asks for."""
    from leafkernel import _validation  # noqa: PLC0415 - takes long

    return _validation.count_threads(jobs)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Which table, and how to read it."""

    table: Path = field(
        metadata={
            "typer": typer.Argument(
                metavar="TABLE",
                help="The file: .csv, .csv.gz, .tsv, .parquet or .feather, with the names of the "
                "columns in its first line. A dash reads CSV from the standard input.",
                show_default=False,
            )
        }
    )
    target: str | None = _table(
        "--target -t COLUMN",
        "The column to predict later. It helps to fill other columns, and is not filled itself.",
    )
    task: Task | None = _table(
        "--task", "Whether the target holds classes or numbers. Seen from its values by default."
    )
    drop: list[str] | None = _table(
        "--drop COLUMN", "A column that is to be no feature. May be given several times."
    )
    as_kind: list[str] | None = _table(
        "--as COLUMN=KIND",
        "Read a column as number, category or date, or ignore it. May be given several times. "
        "Detected by default.",
        callback=_check_kinds,
    )
    decimal: DecimalSign | None = _table(
        "--decimal", "The decimal sign of the numbers in the table. Detected by default."
    )
    thousands: ThousandsSign | None = _table(
        "--thousands", "The sign between thousands, as in 1.234.567. Detected by default."
    )

    @property
    def kinds(self) -> dict[str, str]:
        """What columns are, as the user says."""
        return _parse_kinds(self.as_kind or ())

    @property
    def stated(self) -> Stated:
        """The signs in numbers, as the options name them; they must differ."""
        signs = [each and each.value for each in (self.decimal, self.thousands)]
        if self.decimal is not None and signs[0] == signs[1]:
            raise OptionError(
                f"--decimal and --thousands are both {signs[0]!r}. A sign can have one meaning "
                "only; change or leave out one of the two."
            )
        return Stated(*signs)


@dataclass(frozen=True, kw_only=True)
class TableOptions(ReadingOptions):
    """Which table to learn from, and how to read it."""

    target: str = _table(
        "--target -t COLUMN", "The column that the forest learns to predict.", default=MISSING
    )
    id_column: str | None = _table(
        "--id COLUMN",
        "The column that names the rows; it is no feature. By default one that looks like it.",
    )
    max_rows: int | None = _table(
        "--max-rows N",
        "Of a larger table, a random sample of so many rows is used. All by default; a page shows "
        "at most 100,000.",
        min=MIN_ROWS,
    )

    @property
    def exact(self) -> set[str]:
        """The columns whose cells are needed as they are written."""
        named = {name for name, kind in self.kinds.items() if kind == "category"}
        return named if self.id_column is None else {*named, self.id_column}


@dataclass(frozen=True, kw_only=True)
class GrowingOptions:
    """How to grow a forest."""

    trees: int | None = _forest(
        "--trees N",
        "Number of trees. By default 500, and 100 for more than 20,000 rows or a boosted model.",
        min=1,
    )
    seed: int = _forest(
        "--seed N",
        "Seed of all that is random: the same seed gives the same result.",
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
    """Which forest."""

    forest: ForestKind = _forest(
        "--forest NAME",
        "The model to grow: random, a random forest; or a boosted model: hist (of scikit-learn), "
        "lightgbm, xgboost or catboost.",
        default=ForestKind(FORESTS[0]),
    )
    scheme: Scheme | None = _forest(
        "--scheme NAME",
        f"How a shared leaf counts: {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}. By default gap, "
        "whose proximities are shares of the forest's own prediction (kerf for a model without "
        "bootstrap).",
    )
    model: Path | None = _forest(
        "--model FILE",
        "A fitted model to use instead of a new forest: a .skops, .joblib or .pkl file. Needs "
        "--trust-model.",
    )
    trust_model: bool = _forest(
        "--trust-model",
        "Allow --model to load its file. Loading a model CAN RUN CODE FROM THE FILE: use it only "
        "for files from people you trust.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Where the result goes, and how it is written."""

    output: Path | None = output_option(
        "--output -o FILE",
        "The file for the result: .csv, .csv.gz, .tsv, .parquet or .feather. By default the result "
        "is shown, or printed as CSV in a pipe.",
    )
    escape_formulas: bool = output_option(
        "--escape-formulas",
        "Put an apostrophe in front of text that a spreadsheet would run as a formula. By default "
        "every cell is written as it is.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class TalkOptions:
    """How much is said, and in which form."""

    #: Of each command, for its help.
    examples: ClassVar[tuple[str, ...]] = ()
    json: bool = output_option(
        "--json", "Print one JSON document in place of anything else.", default=False
    )
    quiet: bool = output_option(
        "--quiet -q", "Print the result and errors only: no progress, no notes.", default=False
    )
    traceback: bool = output_option(
        "--traceback", "After an error, show where in the code it came from.", default=False
    )


# Of the bases of a class, the last comes first in the help.


@dataclass(frozen=True, kw_only=True)
class StudyOptions(ForestOptions, TableOptions):
    """A table, and a forest that learns it."""


@dataclass(frozen=True, kw_only=True)
class TableCommand(TalkOptions, ResultOptions, StudyOptions):
    """A table, a forest that learns it, and a result that is a table, too."""
