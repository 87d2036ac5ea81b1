"""How a function becomes a command: its groups of options, its voice, its examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer

from leafkernel.cli._options import TableOptions, TalkOptions

Function = Callable[..., None]

_REQUIRED = inspect.Parameter.empty
_TALK = object()  # stands for the class, which takes long to import


def add_command(app: typer.Typer, function: Function, *examples: str) -> None:
    """Make a function a command of the app, with examples at the end of its help."""
    call = _expanded(function)
    parameters = inspect.signature(call).parameters.values()
    epilog = "\n\n".join(f"Example: {example}" for example in examples)
    needs_more = any(parameter.default is _REQUIRED for parameter in parameters)
    # Without the line breaks of the docstring, which would come on top of those of the terminal.
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    about = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(function.__name__, help=about, epilog=epilog, no_args_is_help=needs_more)(call)


def _expanded(function: Function) -> Function:
    """Return the function with options as parameters, as Typer reads them.

    A parameter whose type is a dataclass stands for all of that class's fields, which are
    declared as options there; the function is given an object of the class. A parameter of type
    ``Talk`` stands for :class:`TalkOptions`.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    # Not get_type_hints: before Python 3.11 it takes options with a default of None apart.
    for name, parameter in inspect.signature(
        function, locals={"Talk": _TALK}, eval_str=True
    ).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters += _fields(parameter.annotation)
        elif parameter.annotation is not _TALK:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    parameters += _fields(TalkOptions)

    @wraps(function)
    def call(**values: Any) -> None:
        from leafkernel.cli._guard import guarded  # noqa: PLC0415 - takes long

        made = {name: _taken(group, values) for name, group in groups.items()}
        options = _taken(TalkOptions, values)
        with guarded(function.__name__, options, samples=TableOptions in groups.values()) as talk:
            function(talk=talk, **made, **values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_REQUIRED if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def _taken(group: Any, values: dict[str, Any]) -> Any:
    """Make a group of options from its values, and take them out."""
    return group(**{field.name: values.pop(field.name) for field in fields(group)})
