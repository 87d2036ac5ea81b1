# The compiled core: see cpp/bindings/module.cpp. A Product in, arrays out.
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._progress import OnProgress
from leafkernel.forests._routing import RouteTable
from leafkernel.kernel import Product
from leafkernel.weighting import WeighedLeaves

def pack_trees(
    trees: list[Any], left_bits: int, n_threads: int
) -> tuple[
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint8],
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
]: ...
def route_dense(
    table: RouteTable, X: npt.NDArray[np.float32], wide_leaves: bool, n_threads: int
) -> npt.NDArray[Any]: ...
def route_sparse(
    table: RouteTable,
    data: npt.NDArray[np.float32],
    columns: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int32],
    n_features: int,
    wide_leaves: bool,
    n_threads: int,
) -> npt.NDArray[Any]: ...
def count_draws(
    draws: list[npt.NDArray[np.int32]], n_samples: int, n_threads: int
) -> npt.NDArray[np.uint8] | None: ...
def leaf_masses(
    rows: WeighedLeaves, n_leaves: int, n_threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]: ...
def list_by_leaf(
    rows: WeighedLeaves, sample_at: npt.NDArray[np.int32], n_leaves: int, n_threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[Any] | None]: ...
def csr_rows(
    product: Product,
    sort: bool,
    n_threads: int,
    wide_indices: bool,
    on_progress: OnProgress | None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]: ...
def nearest(
    product: Product, k: int, n_threads: int, on_progress: OnProgress | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]: ...
def sums(
    product: Product,
    values: npt.NDArray[np.float64],
    n_threads: int,
    on_progress: OnProgress | None,
) -> npt.NDArray[np.float64]: ...
def apply(
    product: Product, values: npt.NDArray[np.float64], n_threads: int
) -> npt.NDArray[np.float64]: ...
def nonzeros(
    product: Product, n_threads: int, on_progress: OnProgress | None
) -> npt.NDArray[np.int64]: ...
def collisions(product: Product, n_threads: int) -> npt.NDArray[np.int64]: ...
