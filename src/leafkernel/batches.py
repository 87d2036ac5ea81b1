"""Tables that are larger than memory and are read batch by batch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse, vstack

from leafkernel._optional import require
from leafkernel._validation import check_count

Array = npt.NDArray[Any]
Result = TypeVar("Result")
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_ROWS = 65_536
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Batch:
    """Some rows of a table: the samples, and their targets if any."""

    X: Any
    y: Array | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def without_first(self, n_rows: int) -> Batch:
        """Return the rows after the first ``n_rows`` rows."""
        X = self.X.iloc[n_rows:] if hasattr(self.X, "iloc") else self.X[n_rows:]
        return Batch(X, None if self.y is None else self.y[n_rows:])


class Batches:
    """A table that is read batch by batch, so that it never has to fit in memory.

    Create it with :meth:`from_parquet`, :meth:`from_arrays` or :meth:`from_function`, and pass it
    as X to ``ForestProximity.fit`` or to its other methods.

    Attributes
    ----------
    n_rows : int or None
        Number of rows, or None if it is unknown before reading.
    identity : dict or None
        Values that identify the table. Interrupted work resumes only with a table that has the
        same identity, and starts over with a table that has none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from leafkernel import Batches, ForestProximity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + X[:, 1]
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> batches = Batches.from_arrays(X, y, batch_rows=100)  # X may be a numpy.memmap
    >>> prox = ForestProximity(forest, "gap", max_memory="1GB").fit(batches)
    >>> prox.kneighbors(batches, n_neighbors=3)[1].shape
    (1000, 3)
    """

    def __init__(
        self,
        read: Callable[[int], Iterator[Batch]],
        *,
        n_rows: int | None,
        identity: Callable[[], dict[str, Any] | None],
    ) -> None:
        self._read = read
        self.n_rows = n_rows
        self._identity = identity

    @property
    def identity(self) -> dict[str, Any] | None:
        """Values that identify the table, or None if there are none."""
        return self._identity()

    @classmethod
    def from_parquet(
        cls,
        path: Paths,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int = _ROWS,
    ) -> Batches:
        """Read Parquet files. Each batch is a pandas data frame.

        Parameters
        ----------
        path : str or path-like, or a sequence of them
            A file, a folder of files (sorted by name), or several files.
        target : str, default=None
            Name of the target column, if any.
        columns : sequence of str, default=None
            Columns of X. By default, all columns except the target.
        batch_rows : int, default=65536
            Maximum number of rows in a batch.

        Returns
        -------
        Batches
            The table.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> from leafkernel import Batches
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "table.parquet"
        ...     pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [0, 1, 1]}).to_parquet(path)
        ...     Batches.from_parquet(path, target="y").n_rows
        3
        """
        check_count("batch_rows", batch_rows)
        parquet = require("pyarrow.parquet", extra="cli")
        files = parquet_files(path)
        names = parquet.read_schema(files[0]).names
        chosen = [name for name in names if name != target] if columns is None else [*columns]
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names; got {columns!r}.")
        chosen = [name for name in chosen if name != target]
        wanted = chosen if target is None else [*chosen, target]
        for file in files:
            missing = [name for name in wanted if name not in parquet.read_schema(file).names]
            if missing:
                raise ValueError(
                    f"columns or target contains {missing[0]!r}, which is not in {file}. Its "
                    f"columns are {names}."
                )
        sizes = [parquet.read_metadata(file).num_rows for file in files]

        def read(skip: int) -> Iterator[Batch]:
            for found in read_parquet(files, skip, wanted, batch_rows):
                # The metadata of pandas may turn a column into the index.
                frame = found.to_pandas(ignore_metadata=True)
                y = None if target is None else frame.pop(target).to_numpy()
                yield Batch(frame[chosen], y)

        def identity() -> dict[str, Any]:
            return {"parquet": [identity_of(file) for file in files], "columns": wanted}

        return cls(read, n_rows=sum(sizes), identity=identity)

    @classmethod
    def from_arrays(cls, X: Any, y: Any = None, *, batch_rows: int = _ROWS) -> Batches:
        """Read arrays in batches, for example a ``numpy.memmap`` or a sparse matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,), default=None
            Targets.
        batch_rows : int, default=65536
            Maximum number of rows in a batch.

        Returns
        -------
        Batches
            The table.

        Examples
        --------
        >>> import numpy as np
        >>> from leafkernel import Batches
        >>> [len(batch.X) for batch in Batches.from_arrays(np.zeros((5, 2)), batch_rows=2)]
        [2, 2, 1]
        """
        check_count("batch_rows", batch_rows)
        X = X.tocsr() if issparse(X) else X if hasattr(X, "shape") else np.asarray(X)
        n_rows = int(X.shape[0])
        targets = None if y is None else np.asarray(y)
        if targets is not None and len(targets) != n_rows:
            raise ValueError(
                f"y has {len(targets)} rows, but X has {n_rows}. Pass one target for each row."
            )

        def read(skip: int) -> Iterator[Batch]:
            for begin in range(skip, n_rows, batch_rows):
                rows = slice(begin, min(begin + batch_rows, n_rows))
                some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
                yield Batch(some, None if targets is None else targets[rows])

        def identity() -> dict[str, Any]:
            digests = [checksum(part) for batch in read(0) for part in (batch.X, batch.y)]
            return {"arrays": hashlib.sha256("".join(digests).encode()).hexdigest()}

        return cls(read, n_rows=n_rows, identity=identity)

    @classmethod
    def from_function(
        cls,
        read: Callable[[], Iterable[Any]],
        *,
        n_rows: int | None = None,
        name: str = "",
    ) -> Batches:
        """Read the batches that a function returns.

        Parameters
        ----------
        read : callable
            A function without arguments that returns an iterable of batches. Each batch is an X or
            a tuple (X, y). Every call must return a new iterable over the same batches.
        n_rows : int, default=None
            Number of rows, if known. Progress bars then show the remaining time.
        name : str, default=""
            A unique name for the data. Interrupted work resumes only with the same name. Without a
            name, it starts over.

        Returns
        -------
        Batches
            The table.

        Examples
        --------
        >>> import numpy as np
        >>> from leafkernel import Batches
        >>> def read():
        ...     for seed in range(3):
        ...         yield np.random.default_rng(seed).normal(size=(10, 2))
        >>> sum(len(batch.X) for batch in Batches.from_function(read))
        30
        """
        seen: list[Any] = []

        def batches(skip: int) -> Iterator[Batch]:
            found_all = read()
            if any(found_all is earlier for earlier in seen) and iter(found_all) is found_all:
                raise ValueError(
                    "read returned the same iterator twice, so its batches are already consumed. "
                    "It must return a new iterable on every call."
                )
            seen[:] = [found_all]
            for found in found_all:
                X, y = found if isinstance(found, tuple) else (found, None)
                X = X if hasattr(X, "shape") else np.asarray(X)
                batch = Batch(X, None if y is None else np.asarray(y))
                if skip >= batch.n_rows:
                    skip -= batch.n_rows
                    continue
                yield batch.without_first(skip) if skip else batch
                skip = 0

        return cls(batches, n_rows=n_rows, identity=lambda: {"name": name} if name else None)

    def rows_from(self, skip: int) -> Iterator[Batch]:
        """Read the rows after the first ``skip`` rows, batch by batch.

        Parameters
        ----------
        skip : int
            Number of rows to skip.

        Yields
        ------
        Batch
            Rows. No batch is empty.

        Examples
        --------
        >>> import numpy as np
        >>> from leafkernel import Batches
        >>> batches = Batches.from_arrays(np.zeros((5, 2)), batch_rows=2)
        >>> [len(batch.X) for batch in batches.rows_from(3)]
        [2]
        """
        n_rows = skip
        for batch in self._read(skip):
            if batch.y is not None and len(batch.y) != batch.n_rows:
                raise ValueError(
                    f"y of the batch at row {n_rows} has {len(batch.y)} targets, but the batch has "
                    f"{batch.n_rows} rows. Pass one target for each row."
                )
            n_rows += batch.n_rows
            if batch.n_rows:
                yield batch
        if self.n_rows is not None and n_rows != max(self.n_rows, skip):
            raise ValueError(
                f"n_rows={self.n_rows:,}, but {n_rows:,} rows were read. The table may have "
                "changed."
            )

    def __iter__(self) -> Iterator[Batch]:
        return self.rows_from(0)

    def joined(self, compute: Callable[[Any], Result]) -> Result:
        """Compute a result for each batch of X, and concatenate the results.

        Parameters
        ----------
        compute : callable
            A function of X that returns an array, a sparse matrix or a tuple of arrays, with one
            row for each row of X.

        Returns
        -------
        ndarray, csr_array or tuple of ndarray
            The concatenated results.

        Examples
        --------
        >>> import numpy as np
        >>> from leafkernel import Batches
        >>> batches = Batches.from_arrays(np.arange(6.0).reshape(3, 2), batch_rows=2)
        >>> batches.joined(lambda X: X.sum(axis=1)).tolist()
        [1.0, 5.0, 9.0]
        """
        found: list[Any] = [compute(batch.X) for batch in self]
        if not found:
            raise ValueError("X has no rows.")
        if isinstance(found[0], tuple):
            joined: Any = tuple(map(np.concatenate, zip(*found, strict=True)))
        elif issparse(found[0]):
            joined = csr_array(vstack(found, format="csr"))
        else:
            joined = np.concatenate(found)
        return cast("Result", joined)


def parquet_files(path: Paths) -> list[Path]:
    """Return the path itself, or the Parquet files in a folder, sorted by name."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else [*path]
    files = [
        sorted(Path(one).rglob("*.parquet")) if Path(one).is_dir() else [Path(one)] for one in paths
    ]
    found = [*chain.from_iterable(files)]
    if not found:
        raise FileNotFoundError(f"{path} contains no Parquet files (*.parquet).")
    return found


def read_parquet(
    files: Sequence[Path], skip: int, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[Any]:
    """Yield the rows of Parquet files after the first ``skip`` rows, as Arrow record batches."""
    parquet = require("pyarrow.parquet", extra="cli")
    for file in files:
        # Buffered, because a file may consist of a single large row group.
        with parquet.ParquetFile(file, buffer_size=_BUFFER) as table:
            groups = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
            first = 0
            while first < len(groups) and skip >= groups[first]:
                skip -= groups[first]
                first += 1
            if first == len(groups):
                continue
            for batch in table.iter_batches(
                batch_rows, row_groups=range(first, len(groups)), columns=columns
            ):
                if skip < batch.num_rows:
                    yield batch.slice(skip)
                skip = max(skip - batch.num_rows, 0)


def identity_of(file: Path) -> list[Any]:
    """Return the path, size and modification time of a file, to detect changes."""
    known = file.stat()
    return [str(file.resolve()), known.st_size, known.st_mtime_ns]


def checksum(values: Any) -> str:
    """Return a checksum of an array, a sparse matrix, a data frame or None."""
    digest = hashlib.sha256()
    if values is None:
        return digest.hexdigest()
    if issparse(values):
        arrays = [values.data, values.indices, values.indptr]
    else:
        arrays = [np.asarray(values)]
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        plain = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        digest.update(plain)
    return digest.hexdigest()
