# The compiled core: see cpp/bindings/module.cpp. A Product in, arrays out.
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._progress import OnProgress
from leafkernel.incidence import WeighedRows
from leafkernel.product import Product

class TooManyEntriesError(MemoryError): ...

class Incidence:
    def __init__(
        self,
        columns: npt.NDArray[Any],
        first: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64] | None,
        n_threads: int,
    ) -> None: ...
    @property
    def columns(self) -> npt.NDArray[Any]: ...
    @property
    def first(self) -> npt.NDArray[np.int64]: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64] | None: ...
    def rows(self, begin: int, end: int) -> Incidence: ...

class LeafIndex:
    def __init__(
        self, lists: LeafLists, by_place: npt.NDArray[np.float64] | None, rows: WeighedRows | None
    ) -> None: ...

class LeafLists:
    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        members: npt.NDArray[np.int32],
        weights: npt.NDArray[Any] | None,
        sample_at: npt.NDArray[np.int32],
    ) -> None: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def members(self) -> npt.NDArray[np.int32]: ...
    @property
    def weights(self) -> npt.NDArray[Any] | None: ...
    @property
    def sample_at(self) -> npt.NDArray[np.int32]: ...
    def with_samples(self, sample_at: npt.NDArray[np.int32]) -> LeafLists: ...

class PackedTrees:
    def __init__(
        self,
        nodes: npt.NDArray[np.uint64],
        missing_go_left: npt.NDArray[np.uint8],
        leaf_of_node: npt.NDArray[np.int32],
        tree_offsets: npt.NDArray[np.int64],
        leaf_offsets: npt.NDArray[np.int64],
        left_bits: int,
        n_features: int,
    ) -> None: ...
    @property
    def nodes(self) -> npt.NDArray[np.uint64]: ...
    @property
    def missing_go_left(self) -> npt.NDArray[np.uint8]: ...
    @property
    def leaf_of_node(self) -> npt.NDArray[np.int32]: ...
    @property
    def tree_offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def leaf_offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def left_bits(self) -> int: ...
    @property
    def n_features(self) -> int: ...

class WeightedNodes:
    def __init__(
        self,
        first: npt.NDArray[np.int64],
        parent: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float64],
        decay: float,
    ) -> None: ...
    @property
    def norms(self) -> npt.NDArray[np.float64]: ...

def pack_trees(trees: list[Any], n_features: int, n_threads: int) -> PackedTrees | None: ...
def find_other_masses(
    trees: list[Any],
    masses: npt.NDArray[np.float64],
    leaf_offsets: npt.NDArray[np.int64],
    n_threads: int,
) -> int: ...
def route_dense(
    trees: PackedTrees, X: npt.NDArray[np.float32], wide_leaves: bool, n_threads: int
) -> npt.NDArray[Any]: ...
def route_sparse(
    trees: PackedTrees,
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
def count_seeded_draws(
    seeds: npt.NDArray[np.uint32], n_samples: int, n_draws: int, n_threads: int
) -> npt.NDArray[np.uint8] | None: ...
def zeros(table: npt.NDArray[np.uint8], n_threads: int) -> npt.NDArray[np.bool_]: ...
def count_flags(table: npt.NDArray[np.bool_], n_threads: int) -> npt.NDArray[np.int64]: ...
def locality_order(rows: Incidence) -> npt.NDArray[np.int64]: ...
def leaf_masses(
    rows: WeighedRows, n_threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]: ...
def centered_tree_products(rows: WeighedRows, n_threads: int) -> npt.NDArray[np.float64]: ...
def list_by_leaf(
    rows: WeighedRows, sample_at: npt.NDArray[np.int32], n_threads: int
) -> LeafLists: ...
def csr_rows(
    product: Product,
    index: LeafIndex,
    sort: bool,
    most_entries: int,
    loop: str,
    n_threads: int,
    wide_indices: bool,
    on_progress: OnProgress | None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]: ...
def nearest(
    product: Product,
    index: LeafIndex,
    k: int,
    by_magnitude: bool,
    loop: str,
    n_threads: int,
    on_progress: OnProgress | None,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]: ...
def sums(
    product: Product,
    index: LeafIndex,
    values: npt.NDArray[np.float64],
    loop: str,
    n_threads: int,
    on_progress: OnProgress | None,
) -> npt.NDArray[np.float64]: ...
def dense_rows(
    product: Product, index: LeafIndex, loop: str, n_threads: int, on_progress: OnProgress | None
) -> npt.NDArray[Any]: ...
def apply(
    product: Product, index: LeafIndex, values: npt.NDArray[np.float64], n_threads: int
) -> npt.NDArray[np.float64]: ...
def nearest_by_paths(
    product: Product, index: LeafIndex, k: int, n_threads: int, on_progress: OnProgress | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
def nonzeros(
    product: Product, index: LeafIndex, loop: str, n_threads: int, on_progress: OnProgress | None
) -> npt.NDArray[np.int64]: ...
def collisions(product: Product, index: LeafIndex, n_threads: int) -> npt.NDArray[np.int64]: ...
def bitmap_bytes(product: Product, index: LeafIndex, loop: str) -> int: ...
def twins(rows: WeighedRows, n_threads: int) -> npt.NDArray[np.int64]: ...
def repeat_rows(
    values: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    offsets: npt.NDArray[Any],
    rows: npt.NDArray[np.int64],
    n_threads: int,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]: ...
def simd() -> str: ...
def compiler() -> str: ...
