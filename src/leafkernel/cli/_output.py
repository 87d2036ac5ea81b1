"""The output of a command: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, TextIO

import numpy as np
import pandas as pd
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from leafkernel import LeafkernelWarning
from leafkernel._memory import format_bytes
from leafkernel.cli._options import ResultOptions
from leafkernel.cli._streams import give_up, writing_stdout
from leafkernel.cli.errors import FileError, OptionError
from leafkernel.tables._findings import unique_names
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._writing import (
    TYPED_FORMATS,
    WRITTEN_FORMATS,
    defuse,
    formula_notes,
    write_as,
    write_file,
)

_ROWS_SHOWN = 20
_WIDEST = 40
_WIDTH_OF_PIPE = 100
# Shorter steps, in seconds, do not get a line of their own.
_NOTABLE = 0.1
# Seconds from which the speed is estimated. A few trees of a large forest may take minutes.
_MEMORY_OF_SPEED = 600.0

Write = Callable[[str, BinaryIO], None]


class Talk(AbstractContextManager["Talk"]):
    """Prints the progress, notes, results and errors of one command.

    Parameters
    ----------
    command : str
        The name of the command.
    json : bool
        Whether to print a single JSON document to stdout.
    quiet : bool
        Whether to print only results and errors.
    """

    def __init__(self, command: str, *, json: bool = False, quiet: bool = False) -> None:
        self.command = command
        self.json = json
        self.quiet = quiet
        self.notes: list[str] = []
        #: Explains an otherwise unexpected error if a likely reason is known.
        self.suspect: Callable[[Exception], str] | None = None
        self._out, self._err = _console(sys.stdout), _console(sys.stderr)
        #: Whether both streams are a terminal, so that progress and colors are shown.
        self.lively = self._err.is_terminal and self._out.is_terminal and not (quiet or json)
        self._progress: Progress | None = None
        self._began = 0.0

    def __exit__(self, *error: object) -> None:
        self._stop(finished=error[0] is None)

    def take_warnings(self) -> None:
        """Turn leafkernel's warnings into notes, and hide the warnings of other libraries."""
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LeafkernelWarning)
        warnings.showwarning = lambda message, *_, **__: self.note(str(message))

    def step(self, text: str, total: int | None = None) -> None:
        """Start a step and end the previous one."""
        if not self.lively:
            return
        self._stop()
        self._began = perf_counter()
        self._progress = Progress(
            SpinnerColumn(style="cyan"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            *([] if total is None else [TextColumn("left"), TimeRemainingColumn()]),
            speed_estimate_period=_MEMORY_OF_SPEED,
            console=self._err,
            transient=True,
        )
        self._progress.add_task(clean(text), total=total)
        self._progress.start()

    def advance(self, done: int) -> None:
        """Update the progress of the step."""
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=done)

    def _stop(self, *, finished: bool = True) -> None:
        if self._progress is None:
            return
        self._progress.stop()
        text, seconds = self._progress.tasks[0].description, perf_counter() - self._began
        self._progress = None
        if finished and seconds >= _NOTABLE:
            self._say(Text.assemble(("✓ ", "green"), f"{text:<44}", (f"{seconds:.1f} s", "dim")))

    def note(self, *texts: str) -> None:
        """Print notes for the user, each only once."""
        for text in texts:
            if text in self.notes:
                continue
            self.notes.append(text)
            # In a terminal, the summary lists all notes together.
            if not (self.quiet or self.json or self.lively):
                self._say(f"note: {clean(text)}", soft_wrap=True)

    def summary(self, lines: dict[str, str]) -> None:
        """Print a summary with the notes to the terminal."""
        self._stop()
        if not self.lively:
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold cyan", justify="right", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, text in lines.items():
            grid.add_row(Text(clean(name)), Text(clean(text)))
        for i, text in enumerate(self.notes):
            grid.add_row(Text("notes" if i == 0 else ""), Text("• " + clean(text)))
        self._say("", grid, "", sep="\n")

    def result(
        self,
        frame: pd.DataFrame,
        options: ResultOptions,
        *,
        lines: dict[str, str],
        about: dict[str, Any],
        write: Write | None = None,
    ) -> None:
        """Write a table to a file, or to stdout as a table, CSV or JSON.

        Parameters
        ----------
        frame : DataFrame
            The result.
        options : ResultOptions
            Where to write it.
        lines : dict
            The lines of the summary.
        about : dict
            Further content of the JSON document.
        write : callable or None
            Function that writes the table. Defaults to ``leafkernel.tables._writing.write_as``.
        """
        self._stop()
        output = options.output
        if output is None:
            as_text = not (self.json or self._out.is_terminal)
        else:
            as_text = suffix_of(output) not in TYPED_FORMATS
        if as_text and options.escape_formulas:
            frame = defuse(frame)
        elif as_text:
            self.note(*formula_notes(frame))
        write = write or (lambda suffix, file: write_as(suffix, frame, file))
        self.summary(lines)
        if output is not None:
            self.step(f"writing {output.name}")
            write_file(output, write)
            self._stop()
        if self.json:
            rows = _records(frame) if output is None else None
            self.document({**about, "output": output and str(output)}, result=rows)
        elif output is not None:
            self.written(len(frame), output)
        elif self._out.is_terminal:
            self._show(frame)
        else:
            text = BytesIO()
            write("", text)
            self._print(text.getvalue(), nl=False)

    def written(self, n_rows: int, output: Path) -> None:
        """Print that a file was written, in a terminal only."""
        if self.lively:
            size = format_bytes(output.stat().st_size)
            self._say(f"{n_rows:,} rows written to {clean(str(output))} ({size})")

    def document(self, content: dict[str, Any], **last: Any) -> None:
        """Print the JSON document. The items of ``last`` are long and come after the notes."""
        whole = {"command": self.command, **content, "notes": self.notes, **last}
        self._print(json.dumps(_jsonable(whole), allow_nan=False))

    @property
    def width(self) -> int:
        """The number of characters in a line of output."""
        return self._out.width if self._out.is_terminal else _WIDTH_OF_PIPE

    def text(self, text: str, *, is_path: bool = False) -> None:
        """Print text or a path. In a pipe, a path is written as its exact bytes."""
        self._stop()
        if self._out.is_terminal:
            self._print(clean(text))
        elif is_path:
            self._print(os.fsencode(text) if os.name == "posix" else text)
        else:  # the same bytes on each system
            self._print(clean(text).encode(errors="replace"))

    def error(self, message: str, exit_code: int) -> None:
        """Print an error to stderr and, with --json, also as a document to stdout."""
        self._stop(finished=False)
        label = Text("error: ", style="bold red")
        self._say(label + Text(clean(message)), soft_wrap=not self._err.is_terminal)
        if self.json:
            with suppress(FileError):  # the first error matters
                self._print(json.dumps({"error": message, "exit_code": exit_code}))

    def _print(self, text: str | bytes, *, nl: bool = True) -> None:
        with writing_stdout():
            typer.echo(text, nl=nl)

    def _say(self, *parts: Any, **options: Any) -> None:
        """Print to stderr. A failure to print is ignored."""
        try:
            self._err.print(*parts, **options)
        except OSError:
            give_up(sys.stderr)

    def _show(self, frame: pd.DataFrame) -> None:
        """Print a table to the terminal, with as many columns as fit."""
        table = Table(box=SIMPLE_HEAD, header_style="bold cyan", pad_edge=False)
        columns: list[list[Text]] = []
        room = self._out.width
        for name, column in frame.head(_ROWS_SHOWN).items():
            title, cells = Text(clean(str(name))), [Text(clean(_cell(each))) for each in column]
            room -= min(max(cell.cell_len for cell in [title, *cells]), _WIDEST) + 3
            if columns and room < 0:
                break
            columns.append(cells)
            table.add_column(
                title,
                justify="right" if column.dtype.kind in "iuf" else "left",
                no_wrap=True,
                overflow="ellipsis",
                max_width=_WIDEST,
            )
        for row in zip(*columns, strict=True):
            table.add_row(*row)
        with writing_stdout():
            self._out.print(table)
        left = {"rows": len(frame) - _ROWS_SHOWN, "columns": frame.shape[1] - len(columns)}
        more = [f"{n:,} more {what}" for what, n in left.items() if n > 0]
        if more and not self.quiet:
            said = f"and {' and '.join(more)}. Use -o FILE to write the whole table."
            self._say(Text(said, "dim"))


def _console(stream: TextIO) -> Console:
    # Rich treats a pipe as a terminal if FORCE_COLOR is set, as in many CI systems.
    return Console(
        file=stream, force_terminal=stream.isatty(), markup=False, highlight=False, emoji=False
    )


def clean(text: str) -> str:
    """Return text with control characters replaced, so that they cannot affect a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def check_output(options: ResultOptions) -> None:
    """Reject an output file that cannot be written, before the work starts."""
    if options.output is not None:
        if suffix_of(options.output) not in WRITTEN_FORMATS:
            raise OptionError(
                f"--output {options.output} has an unknown file type. The name must end in one of "
                f"{', '.join(WRITTEN_FORMATS)}."
            )
        check_place(options.output, options)


def check_place(output: Path, options: Any) -> None:
    """Reject a missing or read-only folder, and a file that is also an input."""
    place = Path(os.path.realpath(output))  # a symbolic link is followed
    if place.is_dir():
        raise FileError(f"--output {output} is a folder. Use the name of a file.")
    if not place.parent.is_dir():
        raise FileError(
            f"--output {output} cannot be written: the folder {place.parent} does not exist. "
            "Create it, or use another folder."
        )
    is_special = place.exists() and not place.is_file()  # a pipe or a device
    if not is_special and not os.access(place.parent, os.W_OK):
        raise FileError(
            f"--output {output} cannot be written: the folder {place.parent} is read-only. Use "
            "another folder."
        )
    for name in ("table", "new", "model"):
        read: Path | None = getattr(options, name, None)
        if read is not None and output.exists() and read.exists() and output.samefile(read):
            what = "the input table" if name == "table" else f"the same file as --{name}"
            raise OptionError(f"--output {output} is {what}. Use another name.")


def _cell(value: Any) -> str:
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return "-"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}" if abs(value) < 1e6 else f"{value:.6g}"
    return str(value).replace("\n", " ")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    columns = [frame.iloc[:, j].tolist() for j in range(frame.shape[1])]
    names = unique_names(frame.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _jsonable(value: Any) -> Any:
    """Return a value in JSON's types, with null for missing values."""
    if isinstance(value, dict):
        return {str(name): _jsonable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, (np.bool_, np.number)):
        value = value.item()
    if value is pd.NA or value is pd.NaT or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)
