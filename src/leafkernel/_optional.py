"""Libraries that are used only where they are installed."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional module, or say which extra of leafkernel installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here but could not be imported ({error}); "
            f"install it with: pip install 'leafkernel[{extra}]'"
        ) from error
