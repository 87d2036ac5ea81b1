"""Tables that are read batch by batch, because they are larger than memory."""

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
    """Some rows of a table: the samples, and their targets if there are any."""

    X: Any
    y: Array | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def without_first(self, n_rows: int) -> Batch:
        """Return the rows behind the first ones."""
        X = self.X.iloc[n_rows:] if hasattr(self.X, "iloc") else self.X[n_rows:]
        return Batch(X, None if self.y is None else self.y[n_rows:])


class Batches:
    """A table that is read batch by batch, so that it never has to be in memory as a whole.

    Pass one as X to :meth:`ForestProximity.fit` or to its methods. Make it with
    :meth:`from_parquet`, :meth:`from_arrays` or :meth:`from_function`.

    Attributes
    ----------
    n_rows : int or None
        Number of rows, if it is known before they are read.
    identity : dict or None
        What tells this table from others. Work that was interrupted goes on only for a table with
        the same identity, and not at all for one without.

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
        """What tells this table from others; None where nothing does."""
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
        """Read Parquet files. Batches of X are pandas data frames.

        Parameters
        ----------
        path : str or path-like, or a sequence of them
            A file, a folder of files (taken in the order of their names), or several files.
        target : str, default=None
            The column that holds the targets, if there is one.
        columns : sequence of str, default=None
            The columns of X, by default all but the target.
        batch_rows : int, default=65536
            Most rows in a batch.

        Returns
        -------
        Batches
            The table.
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
                raise ValueError(f"{file} has no column {missing[0]!r}; its columns are {names}.")
        sizes = [parquet.read_metadata(file).num_rows for file in files]

        def read(skip: int) -> Iterator[Batch]:
            for found in read_parquet(files, skip, wanted, batch_rows):
                # Without what pandas noted in the file, which may make an index of a column.
                frame = found.to_pandas(ignore_metadata=True)
                y = None if target is None else frame.pop(target).to_numpy()
                yield Batch(frame[chosen], y)

        def identity() -> dict[str, Any]:
            return {"parquet": [identity_of(file) for file in files], "columns": wanted}

        return cls(read, n_rows=sum(sizes), identity=identity)

    @classmethod
    def from_arrays(cls, X: Any, y: Any = None, *, batch_rows: int = _ROWS) -> Batches:
        """Read arrays piece by piece: a ``numpy.memmap``, say, or a sparse matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,), default=None
            Targets.
        batch_rows : int, default=65536
            Most rows in a batch.

        Returns
        -------
        Batches
            The table.
        """
        check_count("batch_rows", batch_rows)
        X = X.tocsr() if issparse(X) else X if hasattr(X, "shape") else np.asarray(X)
        n_rows = int(X.shape[0])
        targets = None if y is None else np.asarray(y)
        if targets is not None and len(targets) != n_rows:
            raise ValueError(f"X has {n_rows} rows, but y has {len(targets)}.")

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
        """Read whatever a function yields.

        Parameters
        ----------
        read : callable
            Returns a new iterable of batches whenever it is called, always the same ones: each an
            X, or a tuple (X, y).
        n_rows : int, default=None
            Number of rows, if it is known. Progress bars then tell the time left.
        name : str, default=""
            A name for the data, which other data must not have. Work that was interrupted goes on
            only under the same name; without a name it begins anew.

        Returns
        -------
        Batches
            The table.
        """
        seen: list[Any] = []

        def batches(skip: int) -> Iterator[Batch]:
            found_all = read()
            if any(found_all is earlier for earlier in seen) and iter(found_all) is found_all:
                raise ValueError(
                    "read returned the same iterator twice, and its first batches are gone; it "
                    "must return a new one whenever it is called."
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
        """Read the rows behind the first ones, batch by batch.

        Parameters
        ----------
        skip : int
            Number of rows to leave out.

        Yields
        ------
        Batch
            Rows. No batch is empty.
        """
        n_rows = skip
        for batch in self._read(skip):
            if batch.y is not None and len(batch.y) != batch.n_rows:
                raise ValueError(
                    f"the batch at row {n_rows} has {batch.n_rows} rows, but {len(batch.y)} "
                    "targets; give one for each row."
                )
            n_rows += batch.n_rows
            if batch.n_rows:
                yield batch
        if self.n_rows is not None and n_rows != max(self.n_rows, skip):
            raise ValueError(
                f"{n_rows:,} rows were read, but there should be {self.n_rows:,}: has the table "
                "changed?"
            )

    def __iter__(self) -> Iterator[Batch]:
        return self.rows_from(0)

    def joined(self, compute: Callable[[Any], Result]) -> Result:
        """Compute a result for each batch of X, and join the results.

        Parameters
        ----------
        compute : callable
            Takes X, and returns an array, a sparse matrix or a tuple of arrays with a row for each
            of its rows.

        Returns
        -------
        ndarray, csr_array or tuple of ndarray
            The results, one below the other.
        """
        found: list[Any] = [compute(batch.X) for batch in self]
        if not found:
            raise ValueError("the table has no rows.")
        if isinstance(found[0], tuple):
            joined: Any = tuple(map(np.concatenate, zip(*found, strict=True)))
        elif issparse(found[0]):
            joined = csr_array(vstack(found, format="csr"))
        else:
            joined = np.concatenate(found)
        return cast("Result", joined)


def parquet_files(path: Paths) -> list[Path]:
    """Return the files of a path: itself, or those in the folder in the order of their names."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else [*path]
    files = [
        sorted(Path(one).rglob("*.parquet")) if Path(one).is_dir() else [Path(one)] for one in paths
    ]
    found = [*chain.from_iterable(files)]
    if not found:
        raise FileNotFoundError(f"{path} holds no Parquet file (*.parquet).")
    return found


def read_parquet(
    files: Sequence[Path], skip: int, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[Any]:
    """Yield the rows of Parquet files behind the first ones, as Arrow record batches."""
    parquet = require("pyarrow.parquet", extra="cli")
    for file in files:
        # Through a buffer, because a file may be a single row group.
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
    """Return what changes when a file does: its path, its size and its time."""
    known = file.stat()
    return [str(file.resolve()), known.st_size, known.st_mtime_ns]


def checksum(values: Any) -> str:
    """Return a checksum of an array, a sparse matrix, a data frame, or nothing."""
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
