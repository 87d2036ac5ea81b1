"""The Typer app: turns each class of options into a command and reports invalid options."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

import leafkernel
from leafkernel._suggestions import suggest
from leafkernel.cli._options import ResultOptions
from leafkernel.cli._streams import writing_stdout
from leafkernel.cli.commands import COMMANDS
from leafkernel.cli.errors import FileError

_ASKED = "leafkernel.json"


class SayingGroup(TyperGroup):
    """A group of commands that prints option errors as JSON if ``--json`` was given."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Parse the options of the app itself."""
        # Search the raw arguments: parsing may fail before it reaches --json.
        asked = "--json" in args
        with _said(asked=asked):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_ASKED] = asked
        return context

    def invoke(self, ctx: Any) -> Any:
        """Parse the options of a command and run it."""
        with _said(asked=ctx.meta.get(_ASKED, False)):
            return super().invoke(ctx)


@contextmanager
def _said(*, asked: bool) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _improve(error)
        # Check attributes, not the class: newer versions of Typer have their own copy of Click.
        if asked and hasattr(error, "format_message") and hasattr(error, "exit_code"):
            document = {"error": error.format_message(), "exit_code": error.exit_code}
            with suppress(FileError), writing_stdout():  # the first error matters
                typer.echo(json.dumps(document))
        raise


# Weight schemes that --scheme does not offer.
_ONLY_IN_PYTHON = ("boosted", "gradient")


def _improve(error: Exception) -> None:
    """Suggest the closest choice, and remove a prefix that new versions of Typer add."""
    message = getattr(error, "message", None)
    if not isinstance(message, str) or not hasattr(error, "format_message"):
        return
    message = message.removeprefix("Value error, ")
    if found := re.fullmatch(r"'(.*)' is not one of ('.*')\.", message):
        message += suggest(found[1], re.findall(r"'(.*?)'", found[2]))
        if found[1] in _ONLY_IN_PYTHON:
            message += f" The scheme {found[1]!r} is available only in Python."
    error.message = message  # type: ignore[attr-defined]


app = typer.Typer(
    name="leafkernel",
    cls=SayingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 unexpected error, 2 invalid options, 3 a file cannot be read, "
    "cannot be written, or is too large for memory, 4 a table cannot be used, 130 interrupted.",
)


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
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find similar rows in a table with a random forest, and see why they are similar."""


def _add(command: Any) -> None:
    """Add a command to the app. ``command`` is the class of its options."""
    name = command.__name__.lower()
    types = get_type_hints(command)
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[types[field.name], field.metadata["typer"]],
        )
        for field in fields(command)
    ]

    def call(**values: Any) -> None:
        from leafkernel.cli._guard import guarded  # noqa: PLC0415 - slow to import
        from leafkernel.cli._output import check_output  # noqa: PLC0415 - slow to import

        options = command(**values)
        with guarded(name, options) as talk:
            if isinstance(options, ResultOptions):
                check_output(options)
            getattr(import_module(f"leafkernel.cli.work.{name}"), name)(talk, options)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # The terminal wraps lines itself, so remove the line breaks of the docstring.
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    app.command(
        name,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog="\n\n".join(f"Example: {example}" for example in command.examples),
        no_args_is_help=any(field.default is MISSING for field in fields(command)),
    )(call)


for _command in COMMANDS:
    _add(_command)
