"""What can go wrong with a command, each with an exit code that a script can test."""

from __future__ import annotations

from leafkernel.tables.errors import CommandError, FileError, TableError

__all__ = ["CommandError", "FileError", "OptionError", "TableError"]


class OptionError(CommandError):
    """The options do not go together, or one of them needs another."""

    exit_code = 2
