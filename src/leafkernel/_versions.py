"""Installed versions, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import leafkernel._native as core

_PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "lightgbm", "xgboost", "catboost"),
    *("dask", "distributed", "umap-learn", "skops", "matplotlib"),
)


def show_versions() -> None:
    """Print the versions of leafkernel, Python and other packages.

    Include the output in bug reports.

    Returns
    -------
    None
        The versions are printed.

    Examples
    --------
    >>> import leafkernel
    >>> leafkernel.show_versions()  # doctest: +ELLIPSIS
    leafkernel ...
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = {
        "leafkernel": version("leafkernel"),
        "Python": sys.version.split()[0],
        "system": platform.platform(),
        "processor": f"{platform.machine()}, {cores} cores",
        "compiler": core.compiler(),
        "instruction set": f"{core.simd()} (set LEAFKERNEL_SIMD to use another)",
        **{name: _version(name) for name in _PACKAGES},
    }
    for name, value in lines.items():
        print(f"{name:16} {value}")  # noqa: T201 - this function prints


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
