# The compiled core: see cpp/bindings/module.cpp. A Product in, arrays out.
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._progress import OnProgress
from leafkernel.kernel import Product

def csr_rows(
    product: Product, n_threads: int, wide_indices: bool, on_progress: OnProgress | None
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
def nonzeros(
    product: Product, n_threads: int, on_progress: OnProgress | None
) -> npt.NDArray[np.int64]: ...
