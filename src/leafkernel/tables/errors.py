"""Errors of reading tables. Each has its own exit code."""

from __future__ import annotations


class CommandError(Exception):
    """An error with a message for the user: what is wrong, what was found, and what to do."""

    exit_code: int = 1


class FileError(CommandError):
    """A file cannot be read or written, for example because it is missing or damaged."""

    exit_code = 3


class TableError(CommandError):
    """A table was read but cannot be used, for example because a column is missing."""

    exit_code = 4
