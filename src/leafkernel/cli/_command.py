"""How a class of options becomes a command, and how wrong options are reported."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from leafkernel.cli._streams import writing_stdout
from leafkernel.cli.errors import FileError

_ASKED = "leafkernel.json"


def add_command(app: typer.Typer, command: Any) -> None:
    """Add a command to the app, given as a class of :mod:`leafkernel.cli.commands`."""
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
        from leafkernel.cli._guard import guarded  # noqa: PLC0415 - takes long

        options = command(**values)
        with guarded(name, options) as talk:
            getattr(import_module(f"leafkernel.cli.work.{name}"), name)(talk, options)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # Without the line breaks of the docstring, which would come on top of those of the terminal.
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    app.command(
        name,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog="\n\n".join(f"Example: {example}" for example in command.examples),
        no_args_is_help=any(field.default is MISSING for field in fields(command)),
    )(call)


class SayingGroup(TyperGroup):
    """Commands whose wrong options are a JSON document on stdout where --json is among them."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Read the options of the app itself."""
        # As given, for what is wrong may be the very option that --json stands behind.
        asked = "--json" in args
        with _said(asked=asked):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_ASKED] = asked
        return context

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command, and run it."""
        with _said(asked=ctx.meta.get(_ASKED, False)):
            return super().invoke(ctx)


@contextmanager
def _said(*, asked: bool) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # By what it has, for newer versions of Typer bring their own Click along.
        if asked and hasattr(error, "format_message") and hasattr(error, "exit_code"):
            document = {"error": error.format_message(), "exit_code": error.exit_code}
            with suppress(FileError), writing_stdout():  # the first error matters
                typer.echo(json.dumps(document))
        raise
