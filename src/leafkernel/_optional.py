"""Optional dependencies."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_TABLES = ("pandas", "pyarrow")


def is_dask(data: object) -> bool:
    """Return whether data is a Dask collection, without importing Dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(data))


def is_on_gpu(array: object) -> bool:
    """Return whether an array is on a GPU, such as those of CuPy and PyTorch."""
    return hasattr(array, "__cuda_array_interface__")


def as_cupy(array: Any) -> Any:
    """Return an array that is on a GPU as a CuPy array, without a copy."""
    return array if hasattr(array, "get") else require("cupy", extra="gpu").asarray(array)


def in_main_memory(array: Any) -> Any:
    """Return an array that may be on a GPU in main memory."""
    return as_cupy(array).get() if is_on_gpu(array) else array


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional module, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        # The extra "cli" has more packages than a table needs.
        install = package if package in _TABLES else f'"leafkernel[{extra}]"'
        raise ImportError(
            f"This needs the package {package}, which could not be imported ({error}). "
            f"Install it with: pip install {install}"
        ) from error
