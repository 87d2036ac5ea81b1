"""What can go wrong with a person's file, each with an exit code that a script can test."""

from __future__ import annotations


class CommandError(Exception):
    """A message for people: what was wrong, what was found, and what to do.

    Examples
    --------
    >>> from leafkernel.cli.errors import FileError
    >>> FileError("There is no file 'birds.csv'.").exit_code
    3
    """

    exit_code: int = 1


class FileError(CommandError):
    """The file cannot be read: missing, empty, damaged, unknown, too large, no permission."""

    exit_code = 3


class TableError(CommandError):
    """The table was read but cannot be used: no such column, one class, no rows, no features."""

    exit_code = 4


class OptionError(CommandError):
    """The options do not go together, or one of them needs another."""

    exit_code = 2
