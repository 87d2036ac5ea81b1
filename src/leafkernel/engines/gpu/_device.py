"""CuPy, the device, and the kernels that are compiled for it at first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np

_KERNELS = Path(__file__).parent / "kernels"
_NULL = np.intp(0)
#: Number of threads in a block, for kernels that use one warp per item.
_THREADS = 256
#: Ampere. Older devices lack instructions that the kernels use.
_OLDEST_CAPABILITY = 80
#: Share of the free memory that a computation uses.
_SHARE_OF_MEMORY = 0.6
#: Asking the driver for the free memory takes a millisecond, so it is asked again after this time.
_SECONDS_OF_MEMORY = 1.0
_SHARED_WITHOUT_ASKING = 48 * 1024
_LOCK = Lock()


@cache
def load_cupy() -> Any:
    """Return CuPy, or raise an error that says why the GPU cannot be used."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise ImportError(
            f'engine="gpu" needs CuPy and an NVIDIA GPU, but cupy could not be imported ({error}). '
            'Install it with: pip install "leafkernel[gpu]", or with older drivers (before CUDA '
            '13): pip install "leafkernel[gpu-cuda12]". Without a GPU, use engine="native".'
        ) from error
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        n_devices, reason = 0, str(error)
    else:
        reason = "no device was found"
    if not n_devices:
        raise RuntimeError(
            f'engine="gpu" needs an NVIDIA GPU and its driver, but CUDA reports: {reason}. '
            'Use engine="native" to compute on the CPU.'
        )
    capability = int(cupy.cuda.Device().compute_capability)
    if capability < _OLDEST_CAPABILITY:
        raise RuntimeError(
            f'engine="gpu" needs a GPU of compute capability {_OLDEST_CAPABILITY / 10} or later, '
            f'but this one has {capability / 10}. Use engine="native" to compute on the CPU.'
        )
    return cupy


def gpu_problem() -> str | None:
    """Return why the GPU cannot be used, or None if it can."""
    try:
        load_cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return None


def attribute(name: str) -> int:
    """Return an attribute of the current device."""
    return _attribute(name, load_cupy().cuda.Device().id)


@cache
def _attribute(name: str, device: int) -> int:
    return int(load_cupy().cuda.Device(device).attributes[name])


#: Values of macros that views.cuh needs and a kernel does not use. Fewer variants are compiled.
_UNUSED = {
    "Value": "float",
    "Column": "int",
    "ListOffset": "int",
    "QueryWeight": "float",
    "MemberWeight": "float",
}


@cache
def _source(file: str) -> str:
    return (_KERNELS / file).read_text(encoding="utf-8")


@cache
def _module(file: str, macros: tuple[tuple[str, str], ...]) -> Any:
    """Compile the kernels of a file. CuPy keeps the result on disk for later processes."""
    source = _source(file).replace('#include "views.cuh"', _source("views.cuh"))
    # Fused multiplications would round differently from the CPU.
    options = ("-std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros))
    return load_cupy().RawModule(code=source, options=options)


class Kernel:
    """A kernel, compiled for the types of its arguments. Get it with :func:`kernel`."""

    def __init__(self, name: str, function: Any) -> None:
        self.name, self._function = name, function
        self._shared_bytes: dict[int, int] = {}  # by device

    def __call__(
        self,
        *arguments: Any,
        n_blocks: int | None = None,
        n_warps: int | None = None,
        n_threads: int = _THREADS,
        shared_bytes: int = 0,
    ) -> None:
        """Start the kernel with a number of blocks, or with enough blocks for one warp per item.

        Blocks loop over the items, so more items than blocks are fine. None is passed as a null
        pointer.
        """
        if n_warps is not None:
            n_blocks = -(-n_warps * 32 // n_threads)
        most = 16 * attribute("MultiProcessorCount")
        n_blocks = max(1, min(most, n_blocks or 1))
        self._allow(shared_bytes)
        passed = tuple(_NULL if argument is None else argument for argument in arguments)
        self._function((n_blocks,), (n_threads,), passed, shared_mem=shared_bytes)

    def _allow(self, shared_bytes: int) -> None:
        """Ask for shared memory beyond the size that every kernel may use."""
        device = load_cupy().cuda.Device().id
        if shared_bytes <= self._shared_bytes.get(device, _SHARED_WITHOUT_ASKING):
            return
        with _LOCK:  # another thread may have asked for more
            if shared_bytes > self._shared_bytes.get(device, _SHARED_WITHOUT_ASKING):
                self._function.max_dynamic_shared_size_bytes = shared_bytes
                self._shared_bytes[device] = shared_bytes


def kernel(file: str, name: str, **macros: Any) -> Kernel:
    """Return a kernel.

    Parameters
    ----------
    file : str
        Name of the source file.
    name : str
        Name of the function.
    **macros
        Macros: types or numbers. Those that the file does not use are ignored.

    Returns
    -------
    Kernel
        The kernel, compiled at first use.
    """
    return _variant(file, name, tuple(macros.items()))


@cache
def _variant(file: str, name: str, macros: tuple[tuple[str, Any], ...]) -> Kernel:
    used = {key: str(value) for key, value in macros if key in _source(file)}
    return _kernel(file, name, tuple(sorted({**_UNUSED, **used}.items())))


@cache
def _kernel(file: str, name: str, macros: tuple[tuple[str, str], ...]) -> Kernel:
    return Kernel(name, _module(file, macros).get_function(name))


_C_NAMES = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "int32": "int",
    "int64": "long long",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}


def c_name(dtype: Any) -> str:
    """Return the name of a NumPy type in the kernels."""
    return _C_NAMES[np.dtype(dtype).name]


def offsets_of(sizes: Any) -> Any:
    """Return where items of these sizes begin, and the end of the last one, as int64."""
    cupy = load_cupy()
    offsets = cupy.zeros(sizes.size + 1, np.int64)
    cupy.cumsum(sizes.ravel(), dtype=np.int64, out=offsets[1:])
    return offsets


@contextmanager
def clear_memory_errors() -> Iterator[None]:
    """Raise a MemoryError that says what to do if the memory of the device is used up."""
    try:
        yield
    except MemoryError as error:
        if not type(error).__module__.startswith("cupy"):
            raise
        raise MemoryError(
            f"The GPU has too little free memory ({error}). Free memory, limit the size of a block "
            'with GpuEngine(max_bytes=...), or use engine="native".'
        ) from error


def usable_bytes() -> int:
    """Return the memory of the device that a computation may use.

    Memory that CuPy keeps for later use counts as free.
    """
    cupy = load_cupy()
    pool, device = cupy.get_default_memory_pool(), cupy.cuda.Device()
    asked_at, free = _FREE.get(device.id, (-_SECONDS_OF_MEMORY, 0))
    now = monotonic()
    if now - asked_at >= _SECONDS_OF_MEMORY:
        free = int(device.mem_info[0] + pool.total_bytes())
        _FREE[device.id] = now, free
    return max(int(_SHARE_OF_MEMORY * (free - pool.used_bytes())), 0)


#: When the driver was asked, and the free memory of the device plus the memory that CuPy had.
_FREE: dict[int, tuple[float, int]] = {}


def finished(result: Any) -> Any:
    """Wait for the device, and return a result. It can then be used on every stream."""
    load_cupy().cuda.get_current_stream().synchronize()
    return result
