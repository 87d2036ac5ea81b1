"""A stand-in for CuPy: the part that leafkernel uses, in main memory.

Every function here must exist in CuPy, with the same arguments.
"""

import numpy as np
from cupy import cuda
from cupy._arrays import asarray, asnumpy, ndarray, on_device
from cupy._compiler import RawModule

__version__ = "emulated"
__all__ = ["RawModule", "asarray", "asnumpy", "cuda", "ndarray"]


def empty(shape, dtype=float):
    found = np.empty(shape, dtype)
    found.view(np.uint8 if found.ndim else found.dtype).fill(0xA5)
    return ndarray(found)


def empty_like(array):
    return empty(array.shape, array.dtype)


def argsort(a, axis=-1):
    return ndarray(np.argsort(a._host, axis=axis, kind="stable"))


def lexsort(keys):
    if not isinstance(keys, ndarray):
        raise TypeError("keys must be a CuPy array")
    return ndarray(np.lexsort(keys._host))


def get_default_memory_pool():
    return cuda.memory.pool


_SAME = (
    "abs all any arange ascontiguousarray bincount concatenate cumsum diff divmod flatnonzero full "
    "maximum minimum ones repeat searchsorted stack take_along_axis unique where zeros"
)
for _name in _SAME.split():
    globals()[_name] = on_device(getattr(np, _name))
