"""Available memory, and memory sizes as text."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def format_bytes(n_bytes: float) -> str:
    """Return a number of bytes as text: ``1.5 GB``, with 1 GB = 2**30 bytes."""
    for unit, name in ((2**40, "TB"), (2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes:.0f} bytes"


def parse_bytes(limit: Any) -> int:
    """Return a memory limit in bytes, given a number or text such as ``"2.5 GB"``."""
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)i?B?\s*", limit, re.IGNORECASE)
        if match is None or match[1].count(".") > 1 or match[1] == ".":
            raise ValueError(
                f"max_memory must be a number of bytes or text like '2GB'; got {limit!r}."
            )
        return parse_bytes(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(limit, bool) or not isinstance(limit, (int, float, np.integer, np.floating)):
        raise TypeError(f"max_memory must be a number of bytes or text like '2GB'; got {limit!r}.")
    if not limit >= 1:
        raise ValueError(f"max_memory must be positive; got {limit!r}.")
    return int(limit) if limit < sys.maxsize else sys.maxsize


def available_bytes() -> int:
    """Return the memory that is available to this process."""
    platform: str = sys.platform
    if platform.startswith("linux"):
        return min(_linux_available(), _cgroup_available())
    if platform == "win32":
        return _windows_available()
    # macOS reports only the total memory; it compresses and swaps as needed.
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def release(*arrays: Any) -> None:
    """Release the memory of memory-mapped arrays. It is read again when needed.

    Other arrays are not affected.
    """
    for array in arrays:
        if is_mapped(array) and hasattr(mmap, "MADV_DONTNEED"):
            _base_of(array).madvise(mmap.MADV_DONTNEED)


def is_mapped(array: Any) -> bool:
    """Return whether an array is memory-mapped."""
    return isinstance(_base_of(array), mmap.mmap)


def _base_of(array: Any) -> Any:
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def _linux_available() -> int:
    with suppress(OSError):  # some sandboxes have no /proc
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))


def _cgroup_available() -> int:
    """Return the memory left in the limit of a container, or a huge number without a limit."""
    for limit_file, usage_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        limit = _read_count(limit_file)
        usage = _read_count(usage_file)
        if limit is not None and usage is not None:
            # The file cache counts as used, but can be reclaimed.
            return max(limit - usage + _reclaimable(Path(usage_file).with_name("memory.stat")), 0)
    return sys.maxsize


def _reclaimable(statistics: Path) -> int:
    try:
        lines = statistics.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)


def _read_count(path: str) -> int | None:
    """Return the number in a file, or None if there is no file or no number."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def _windows_available() -> int:
    class MemoryStatus(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("memory_load", ctypes.c_ulong),
            ("total_physical", ctypes.c_ulonglong),
            ("available_physical", ctypes.c_ulonglong),
            ("total_page_file", ctypes.c_ulonglong),
            ("available_page_file", ctypes.c_ulonglong),
            ("total_virtual", ctypes.c_ulonglong),
            ("available_virtual", ctypes.c_ulonglong),
            ("available_extended_virtual", ctypes.c_ulonglong),
        )

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    windll: Any = getattr(ctypes, "windll")  # noqa: B009 - exists only on Windows
    windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.available_physical)
