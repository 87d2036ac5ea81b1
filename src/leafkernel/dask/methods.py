"""The methods of ForestProximity that return lazy Dask arrays."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import dask.array as da
import numpy as np
from scipy.sparse import csr_array

from leafkernel._validation import (
    check_choice,
    check_flag,
    check_n_neighbors,
    check_values,
)
from leafkernel.dask import pieces
from leafkernel.dask.engine import DaskEngine
from leafkernel.dask.graph import grid, known, persist, stack, task
from leafkernel.dask.inside import DaskInside, routed
from leafkernel.dask.kernel import DaskKernel, DaskProduct
from leafkernel.engines import PartedEngine
from leafkernel.inside import Inside, check_averages, warn_of_nan
from leafkernel.leaf_index import Samples


@dataclass(frozen=True)
class Ask:
    """Rows of P to compute, and the engine.

    Attributes
    ----------
    kernel : DaskKernel
        The reference samples.
    product : DaskProduct
        The rows.
    engine : DaskEngine
        The engine.
    """

    kernel: DaskKernel
    product: DaskProduct
    engine: DaskEngine

    @classmethod
    def of(cls, inside: Inside, X: Any) -> Ask:
        """Return the rows of new samples, or of the training samples if X is None."""
        kernel = inside.kernel if isinstance(inside, DaskInside) else _in_one_part(inside)
        if X is None:
            product = kernel.training_product()
        else:
            product = kernel.product(routed(inside, kernel, X))
        # A kernel in memory may have parts.
        return cls(kernel, product, DaskEngine(PartedEngine(inside.host_engine())))

    @property
    def sizes(self) -> list[float]:
        """Number of rows in each block; NaN if unknown."""
        return [asked.size for asked in self.product.queries]


def _in_one_part(inside: Inside) -> DaskKernel:
    """Return a kernel in memory as a single part, for queries on Dask workers."""
    kernel = inside.kernel
    part, router = persist(
        known("part", pieces.Part(kernel, inside.samples, 0)),
        known("forest", inside.forest.for_workers()),
    )
    return DaskKernel(
        scheme=kernel.scheme,
        parts=(part,),
        sizes=(kernel.n_samples,),
        router=router,
        forest=kernel.forest,
        dtype=kernel.dtype,
        symmetrize=kernel.symmetrize,
        diagonal=inside.fitted_with["diagonal"],
    )


def route(inside: Inside, X: Any) -> Samples:
    """Return the leaves of new samples for a kernel in memory. Features stay on the workers."""
    kernel = _in_one_part(inside)
    return Samples.unseen(routed(inside, kernel, X).leaf)


def proximity(inside: Inside, X: Any = None, *, sort: bool = True, dense: bool = False) -> da.Array:
    """Return P as a Dask array of sparse or dense blocks, one for each block of X and each part."""
    check_flag("sort", sort)
    check_flag("dense", dense)
    ask = Ask.of(inside, X)
    blocks = ask.engine.lazy_rows(ask.product, sort=sort)
    matrix = grid(blocks, ask.sizes, ask.kernel.sizes, ask.kernel.dtype)
    if not dense:
        return matrix
    return matrix.map_blocks(csr_array.toarray, meta=np.empty((0, 0), ask.kernel.dtype))


def kneighbors(
    inside: Inside, X: Any = None, n_neighbors: int = 10, *, by: str = "value"
) -> tuple[da.Array, da.Array]:
    """Return the most similar training samples. Compute both arrays in one call of dask.compute."""
    check_choice("by", by, ("value", "magnitude"))
    k = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
    ask = Ask.of(inside, X)
    found = ask.engine.lazy_nearest(ask.product, k, by_magnitude=by == "magnitude")
    similarity, samples = (
        stack(
            [task("nearest", itemgetter(place), both) for both in found],
            ask.sizes,
            np.empty((0, k), dtype=dtype),
        )
        for place, dtype in enumerate((ask.kernel.dtype, np.int64))
    )
    return similarity, samples


def weighted_sums(inside: Inside, values: Any, X: Any = None) -> da.Array:
    """Return P @ values."""
    ask = Ask.of(inside, X)
    columns, shape = _values(ask.kernel, values)
    sums = ask.engine.lazy_sums(ask.product, columns)
    width = shape[1] if len(shape) == 2 else 1
    found = stack(sums, ask.sizes, np.empty((0, width)))
    return found if len(shape) == 2 else found[:, 0]


def weighted_average(inside: Inside, values: Any, X: Any = None) -> da.Array:
    """Return the averages of values, weighted by proximity. Rows without proximities are NaN.

    The warning about such rows is issued for each block, when it is computed.
    """
    check_averages(inside.scheme)
    ask = Ask.of(inside, X)
    columns, shape = _values(ask.kernel, values)
    columns = [task("values", _with_ones, some) for some in columns]
    sums = ask.engine.lazy_sums(ask.product, columns)
    width = shape[1] if len(shape) == 2 else 1
    means = [task("average", _divide, some) for some in sums]
    found = stack(means, ask.sizes, np.empty((0, width)))
    return found if len(shape) == 2 else found[:, 0]


def query_map(inside: Inside, X: Any = None) -> da.Array:
    """Return the query map Q as a Dask array of sparse blocks."""
    inside.require_maps("query_map()")
    ask = Ask.of(inside, X)
    kernel = ask.kernel
    if X is None:
        maps = [task("map", pieces.query_map_of, pieces.Own(), part) for part in kernel.parts]
    else:
        rule = task("scheme", pieces.without_samples, kernel.parts[0])
        maps = [task("map", pieces.query_map_of, a.block, rule) for a in ask.product.queries]
    return stack(maps, ask.sizes, csr_array((0, kernel.n_columns), dtype=kernel.dtype))


def reference_map(inside: Inside) -> da.Array:
    """Return the reference map W as a Dask array of sparse blocks."""
    inside.require_maps("reference_map()")
    kernel = Ask.of(inside, None).kernel
    maps = [task("map", pieces.reference_map_of, part) for part in kernel.parts]
    return stack(maps, kernel.sizes, csr_array((0, kernel.n_columns), dtype=kernel.dtype))


def _values(kernel: DaskKernel, values: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the values of each part as tasks, and the shape of all values."""
    n = kernel.n_samples
    if isinstance(values, da.Array):
        if values.ndim not in (1, 2) or values.shape[0] != n:
            raise ValueError(
                f"values has shape {values.shape}, but there are {n} training samples. Pass one "
                "value (or row of values) for each training sample."
            )
        columns = values[:, None] if values.ndim == 1 else values
        columns = columns.rechunk({0: kernel.sizes, 1: -1})
        blocks = columns.to_delayed().ravel().tolist()
        checked = zip(blocks, kernel.sizes, strict=True)
        return [task("values", check_values, some, size) for some, size in checked], values.shape
    numbers = check_values(values, n)
    table = numbers.reshape(n, -1)
    return [known("values", table[some]) for some in kernel.cuts()], numbers.shape


def _with_ones(values: Any) -> Any:
    return np.column_stack([values, np.ones(len(values))])


def _divide(sums: Any) -> Any:
    mass = sums[:, -1:]
    warn_of_nan(mass)
    return np.where(mass == 0, np.nan, sums[:, :-1] / np.where(mass == 0, 1.0, mass))
