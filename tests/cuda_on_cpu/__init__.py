"""Runs the CUDA kernels on the processor, so that the GPU engine is tested on every machine.

``cupy`` and ``cupyx`` in this folder stand in for CuPy: arrays are in main memory, but cannot be
mixed with NumPy arrays by accident, are full of one unlikely byte until they are written, and count
toward the memory of an emulated device. The kernels are compiled with the C++ compiler of this
machine. See emulator.cpp.
"""

import importlib
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

FOLDER = str(Path(__file__).parent)
COMPILER = shutil.which("g++") or shutil.which("clang++")
#: Why kernels cannot be emulated here, or None.
PROBLEM = (
    "needs g++ or clang++"
    if COMPILER is None
    else "needs a POSIX system"
    if sys.platform == "win32"
    else None
)


def _forget():
    """Forget the CuPy that was imported, and everything that was compiled with it."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("cupy", "cupyx")]:
        del sys.modules[name]
    device = importlib.import_module("leafkernel.engines.gpu._device")
    for cached in vars(device).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


@contextmanager
def emulated_device():
    """Let ``import cupy`` import the stand-in."""
    _forget()
    sys.path.insert(0, FOLDER)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(FOLDER)
        _forget()
