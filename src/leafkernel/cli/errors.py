"""The errors of a command. Each has its own exit code."""

from __future__ import annotations

from leafkernel.tables.errors import CommandError, FileError, TableError

__all__ = ["CommandError", "FileError", "OptionError", "TableError"]


class OptionError(CommandError):
    """The options cannot be combined, or one of them requires another."""

    exit_code = 2
