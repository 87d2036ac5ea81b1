"""What can go wrong with a person's table, each with an exit code that a script can test."""

from __future__ import annotations


class CommandError(Exception):
    """A message for people: what was wrong, what was found, and what to do."""

    exit_code: int = 1


class FileError(CommandError):
    """The file cannot be read: missing, empty, damaged, another format, too large, no access."""

    exit_code = 3


class TableError(CommandError):
    """The table was read but cannot be used: no such column, one class, no rows, no features."""

    exit_code = 4
