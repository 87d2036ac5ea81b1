"""Wrong options: said to people as Typer does, and with --json to programs too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from leafkernel.cli._streams import writing_stdout
from leafkernel.cli.errors import FileError

_ASKED = "leafkernel.json"


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
