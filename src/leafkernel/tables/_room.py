"""Options for reading files, checks of the memory, and errors of damaged files."""

from __future__ import annotations

import contextlib
import errno
import gzip
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow

from leafkernel import _memory
from leafkernel.tables._notation import UNSTATED, Stated
from leafkernel.tables.errors import FileError

# A cell needs memory for its value, a copy as a feature, and a temporary copy.
CELL_BYTES = 24
# The memory of a Python string without its characters.
TEXT_BYTES = 50

Rows = npt.NDArray[np.int64]

_SAMPLE = "Use a random sample of the rows"


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file."""

    max_rows: int | None = None  # size of a random sample of the rows, in the order of the file
    random_state: int = 0  # seed of the sample
    # Advice if the table does not fit in memory. None: use --max-rows.
    remedy: str | None = None
    as_text: bool = False  # keep the text of cells of a text file, except missing values
    stated: Stated = UNSTATED  # the signs in numbers given by the user
    # Columns of a text file that stay text. Columns that are named like ids always do.
    exact: Collection[str] = ()


def check_room(name: str, needed: float, n_rows: float, options: ReadOptions) -> None:
    """Raise an error if the rows of a file, ``needed`` bytes, do not fit in memory."""
    max_rows = options.max_rows
    if max_rows is not None:
        needed *= min(1.0, max_rows / max(n_rows, 1))
    available = _memory.available_bytes()
    if needed <= available:
        return
    fitting = max(int(0.5 * available / needed * min(n_rows, max_rows or n_rows)), 1)
    fitting = int(float(f"{fitting:.0e}"))  # rounded to one digit, because it is an estimate
    wanted = "" if max_rows is None else f" for {max_rows:,} rows"
    raise FileError(
        f"{name} has about {n_rows:,.0f} rows and needs about {_memory.format_bytes(needed)} of "
        f"memory{wanted}, but only {_memory.format_bytes(available)} is free. "
        + (options.remedy or f"{_SAMPLE}, for example with --max-rows {fitting}.")
    )


def choose_rows(n_rows: int, options: ReadOptions) -> Rows:
    """Return the sorted numbers of the rows to keep: all, or a random sample."""
    if options.max_rows is None or n_rows <= options.max_rows:
        return np.arange(n_rows)
    rng = np.random.default_rng(options.random_state)
    return np.sort(rng.choice(n_rows, options.max_rows, replace=False, shuffle=False))


def take_rows(batches: Iterable[Any], schema: Any, rows: Rows) -> Any:
    """Return the chosen rows of all batches as an Arrow table. Check the batches for damage."""
    taken, start = [], 0
    for batch in batches:
        batch.validate(full=True)
        first, last = np.searchsorted(rows, [start, start + batch.num_rows])
        taken.append(batch.take(pyarrow.array(rows[first:last] - start)))
        start += batch.num_rows
    return pyarrow.Table.from_batches(taken, schema=schema)


def finish(frame: Any, rows: Rows, n_rows: int, notes: list[str]) -> Any:
    """Set the row numbers as the index of a frame, and the notes as ``attrs["notes"]``."""
    if len(rows) < n_rows:
        read = f"A random sample of {len(rows):,} of them is used."
        notes = [*notes, f"The file has {n_rows:,} rows. {read}"]
    frame.index = rows
    frame.attrs["notes"] = notes
    return frame


@contextlib.contextmanager
def explain_damage(name: str, remedy: str | None = None) -> Iterator[None]:
    """Turn Python's errors for an unreadable file into FileError.

    ``remedy`` is the advice for a file that does not fit in memory. None: use --max-rows.
    """
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(
            f"{name} is a truncated or damaged gzip file ({error}). Copy or download it again."
        ) from error
    except PermissionError as error:
        raise FileError(f"{name} cannot be read: {error.strerror}.") from error
    except OSError as error:
        why = "it is closed" if error.errno == errno.EBADF else error.strerror or error
        raise FileError(f"{name} could not be read: {why}.") from error
    except MemoryError as error:
        raise FileError(
            f"{name} does not fit in memory. {remedy or f'{_SAMPLE} with --max-rows.'}"
        ) from error
