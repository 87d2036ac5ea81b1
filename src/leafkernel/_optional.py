"""Optional dependencies."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

_TABLES = ("pandas", "pyarrow")


def is_dask(data: object) -> bool:
    """Return whether data is a Dask collection, without importing Dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(data))


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
