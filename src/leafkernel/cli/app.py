"""The app: its commands, in the order in which people need them."""

from __future__ import annotations

from typing import Annotated

import typer

import leafkernel
from leafkernel.cli._command import SayingGroup, add_command
from leafkernel.cli.commands import COMMANDS

app = typer.Typer(
    name="leafkernel",
    cls=SayingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 unexpected error, 2 wrong options, 3 a file that cannot be "
    "read or written or does not fit in memory, 4 a table that cannot be used, 130 interrupted.",
)
for _command in COMMANDS:
    add_command(app, _command)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it
    if wanted:
        typer.echo(f"leafkernel {leafkernel.__version__}")
        raise typer.Exit


@app.callback()
def _about(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """See your table the way a random forest sees it: which rows are alike, and why."""
