"""Estimate the size and cost of P before it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from leafkernel._memory import format_bytes
from leafkernel.engines import Engine
from leafkernel.leaf_maps import INT32_MAX
from leafkernel.product import Product

# Limits of the sample of rows, so that counting their nonzeros takes less than a second.
_SAMPLED_COLLISIONS = 20_000_000
_SAMPLED_ROWS = 512
_TIMED_RUNS, _TIMED_RUN = 8, 32


TOO_LARGE_ADVICE = (
    "Use kneighbors() for nearest neighbors, operator() for products with vectors, "
    "or iter_proximity() for one block of rows at a time"
)


@dataclass(frozen=True, repr=False)
class Forecast:
    """Estimated cost of ``ForestProximity.proximity``. Print it to read it.

    Attributes
    ----------
    shape : tuple of (int, int)
        Shape of P.
    collisions : int
        Exact number of (query, reference, tree) triples that share a leaf. It measures the work.
    nonzeros : int
        Number of nonzeros of P, estimated from sampled rows. Exact if all rows were sampled.
    nonzeros_error : int
        Twice the standard error of the estimate.
    nonzeros_at_most : int
        Upper bound on the number of nonzeros.
    bytes : int
        Memory of P as a CSR matrix with ``nonzeros + nonzeros_error`` nonzeros.
    seconds : float
        Estimated time, extrapolated from the time for some of the rows.
    limit : int
        Memory limit: ``max_memory``, or the available memory.
    bitmap_bytes : int
        Additional memory for bitmaps of large leaves during the computation.
    engine : str
        The engine that computes P and, with ``engine="auto"``, why it was selected.
    work : str
        The name of ``collisions``. With path kernels, all pairs share the roots of the trees.

    Examples
    --------
    >>> from leafkernel import ForestProximity
    >>> forecast = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]]).forecast()
    >>> forecast.nonzeros, forecast.fits
    (7, True)
    """

    shape: tuple[int, int]
    collisions: int
    nonzeros: int
    nonzeros_error: int
    nonzeros_at_most: int
    bytes: int
    seconds: float
    limit: int
    bitmap_bytes: int = 0
    engine: str = ""
    work: str = "leaf collisions"

    @property
    def nonzeros_at_least(self) -> int:
        """Lower end of the estimated number of nonzeros."""
        return max(self.nonzeros - self.nonzeros_error, 0)

    @property
    def fits(self) -> bool:
        """Whether P and the bitmaps fit in the memory limit."""
        return self.bytes + self.bitmap_bytes <= self.limit

    @property
    def advice(self) -> str:
        """What to use instead if P does not fit."""
        return "proximity() fits." if self.fits else TOO_LARGE_ADVICE

    def __str__(self) -> str:
        m, n = self.shape
        error = f" ± {self.nonzeros_error:,}" if self.nonzeros_error else ""
        per_row = self.nonzeros / max(m, 1)
        size = f"{format_bytes(self.bytes)} of {format_bytes(self.limit)}"
        if self.bitmap_bytes:
            size += f", plus {format_bytes(self.bitmap_bytes)} for bitmaps during the computation"
        return "\n".join(
            [
                f"proximity of {m:,} x {n:,} samples",
                f"  {self.work:<17} {self.collisions:,}",
                f"  nonzeros          {self.nonzeros:,}{error} ({per_row:,.0f} per row; "
                f"at most {self.nonzeros_at_most:,})",
                f"  memory            {size}",
                f"  time              about {format_seconds(self.seconds)}",
                *([f"  engine            {self.engine}"] if self.engine else []),
                f"  advice            {self.advice}",
            ]
        )

    __repr__ = __str__


def forecast(product: Product, engine: Engine, *, limit: int) -> Forecast:
    """Count collisions exactly, and estimate nonzeros from a fixed random sample of rows."""
    m, n = product.shape
    collisions = engine.collisions(product)
    bound = np.minimum(collisions, n)
    if product.diagonal is not None:
        bound = np.minimum(bound + 1, n)  # the diagonal may be nonzero without a shared leaf
    at_most = int(bound.sum())
    rows = _sample_rows(collisions)
    counts = engine.nonzeros(product.take(rows))
    if len(rows) == m:
        nonzeros, error = int(counts.sum()), 0
    else:
        # A ratio estimator: nonzeros / bound varies far less between rows than nonzeros.
        share = counts.sum() / max(int(bound[rows].sum()), 1)
        residuals = counts - share * bound[rows]
        deviation = float(residuals.std(ddof=1)) if len(rows) > 1 else float(at_most)
        nonzeros = round(share * at_most)
        error = min(round(2 * m * deviation / np.sqrt(len(rows))), at_most - nonzeros)
    return Forecast(
        shape=(m, n),
        collisions=int(collisions.sum()),
        nonzeros=nonzeros,
        nonzeros_error=error,
        nonzeros_at_most=at_most,
        bytes=csr_bytes(m, nonzeros + error, product.dtype.itemsize),
        # For some rows, the engine "auto" may choose another engine than for all rows.
        seconds=_seconds(product, getattr(engine, "chosen", lambda _: engine)(product), collisions),
        limit=limit,
        bitmap_bytes=getattr(engine, "bitmap_bytes", lambda _: 0)(product),
        engine=getattr(engine, "describe", lambda _: "")(product),
        work="leaf collisions" if product.nodes is None else "shared roots",
    )


def format_seconds(seconds: float) -> str:
    """Return a time as text, rounded to its precision."""
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.1g} s" if seconds < 10 else f"{seconds:.0f} s"


def csr_bytes(n_rows: int, nonzeros: int, itemsize: int) -> int:
    """Return the memory of a CSR matrix in bytes."""
    index_size = 4 if nonzeros <= INT32_MAX else 8
    return nonzeros * (itemsize + index_size) + (n_rows + 1) * index_size


def most_nonzeros(n_rows: int, itemsize: int, limit: int) -> int:
    """Return the largest number of nonzeros of a CSR matrix within a memory limit."""
    narrow = min((limit - (n_rows + 1) * 4) // (itemsize + 4), INT32_MAX)
    wide = (limit - (n_rows + 1) * 8) // (itemsize + 8)
    return max(narrow, wide, 0)


def _seconds(product: Product, engine: Engine, collisions: npt.NDArray[np.int64]) -> float:
    """Time some groups of consecutive rows, and extrapolate to all rows."""
    m = product.n_rows
    if m == 0:
        return 0.0
    begins = np.linspace(0, max(m - _TIMED_RUN, 0), _TIMED_RUNS).astype(np.int64)
    places = np.unique(np.minimum(begins[:, None] + np.arange(_TIMED_RUN), m - 1))
    order = product.row_order[places]
    affordable = int(np.searchsorted(np.cumsum(collisions[order]), _SAMPLED_COLLISIONS)) + 1
    rows = order[:affordable]
    alone = engine.on_one_thread()

    def time(some: npt.NDArray[np.int64]) -> float:
        sample, took = product.take(some), []
        for _ in range(2):  # the first run includes work that is done only once
            begin = perf_counter()
            alone.rows(sample)
            took.append(perf_counter() - begin)
        return min(took)

    # Separate the fixed cost, such as creating bitmaps, from the cost per row.
    few = rows[: len(rows) // 8]
    once = time(few) if len(few) else 0.0
    more = rows[len(few) :]
    share = int(collisions[more].sum()) / max(int(collisions.sum()), 1)
    of_more = max(time(rows) - once, 0.0)
    return once + of_more / max(share, len(more) / m) / engine.n_threads


def _sample_rows(collisions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a random sample of rows that can be counted quickly, ascending."""
    m = len(collisions)
    if m <= _SAMPLED_ROWS and collisions.sum() <= _SAMPLED_COLLISIONS:
        return np.arange(m)
    order = np.random.default_rng(0).permutation(m)[:_SAMPLED_ROWS]
    affordable = int(np.searchsorted(np.cumsum(collisions[order]), _SAMPLED_COLLISIONS))
    return np.sort(order[: max(affordable, min(m, 8))])
