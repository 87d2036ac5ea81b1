"""Kernels, compiled for the processor."""

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np
from cupy._arrays import ndarray
from cupy.cuda import Device

_FOLDER = Path(__file__).parent.parent
_COMPILER = shutil.which("g++") or shutil.which("clang++")
_OPTIONS = ["-std=c++17", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing"]
_CACHE = Path(tempfile.gettempdir()) / f"leafkernel-cuda-on-cpu-{os.getuid()}"
_WITHOUT_ASKING = 48 * 1024
_lock = threading.Lock()  # the emulator runs one kernel at a time


class _Argument(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("n_bytes", ctypes.c_uint64),
        ("element_size", ctypes.c_int32),
    ]


def _built(sources, *options):
    """Compile a shared library, unless another process has done it before."""
    parts = [*options, *(path.read_text() for path in _FOLDER.glob("*.?pp")), sources]
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    library = _CACHE / f"{name}.so"
    if not library.exists():
        _CACHE.mkdir(exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=_CACHE) as work:
            source, built = Path(work) / "source.cpp", Path(work) / "built.so"
            source.write_text(sources)
            command = [
                _COMPILER,
                *_OPTIONS,
                *options,
                f"-I{_FOLDER}",
                str(source),
                "-o",
                str(built),
            ]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                raise RuntimeError(run.stderr)
            built.replace(library)
    return library


@functools.cache
def _emulator():
    path = _built((_FOLDER / "emulator.cpp").read_text(), "-O2")
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emulator_error.restype = ctypes.c_char_p
    library.emulator_seed.argtypes = [ctypes.c_uint64]
    return library


@functools.cache
def nvrtc():
    """Return NVIDIA's compiler, or None if it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in [] if spec is None else spec.submodule_search_locations:
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    return None


def _check_with_nvrtc(code, options):
    """Compile a source with NVIDIA's compiler, for the oldest supported device."""
    options = [*options, "-ftz=true", "-arch=compute_80", "-w"]  # CuPy adds -ftz=true
    parts = "\0".join(["nvrtc", code, *options])
    known = _CACHE / hashlib.sha256(parts.encode()).hexdigest()[:24]
    library = nvrtc()
    if library is None or known.exists():
        return
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"kernel.cu", 0, None, None)
    passed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), passed)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise RuntimeError(log.value.decode())
    known.touch()


def seed(number):
    """Choose the order in which threads run."""
    _emulator().emulator_seed(number)


class RawModule:
    """The kernels of a source."""

    def __init__(self, *, code, options=()):
        _emulator()
        _check_with_nvrtc(code, options)
        names = re.findall(
            r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)', code
        )
        code = re.sub(
            r"extern __shared__ (\w+) (\w+)\[\];",
            r"\1* const \2 = (\1*)emulator_dynamic_shared();",
            code,
        )
        parameters = (
            "int n, const EmulatorArgument* arguments, unsigned blocks, unsigned threads, "
            "unsigned long long shared"
        )
        starts = [
            f'extern "C" int start_{name}({parameters}) '
            f"{{ return emulator_start({name}, n, arguments, blocks, threads, shared); }}"
            for name in names
        ]
        macros = [option for option in options if option.startswith("-D")]
        source = "\n".join(['#include "cuda.hpp"', code, *starts])
        self._library = ctypes.CDLL(str(_built(source, "-O1", "-w", *macros)))

    def get_function(self, name):
        return _Function(self._library, name)


class _Function:
    """A kernel that can be started."""

    max_dynamic_shared_size_bytes = _WITHOUT_ASKING

    def __init__(self, library, name):
        self._start = getattr(library, f"start_{name}")
        self._name = name

    def __call__(self, grid, block, args, *, shared_mem=0):
        most = min(
            self.max_dynamic_shared_size_bytes, Device.attributes["MaxSharedMemoryPerBlockOptin"]
        )
        if shared_mem > most or not 0 < block[0] <= 1024 or not 0 < grid[0] < 2**31:
            raise ValueError(f"{self._name} cannot start: {grid}, {block}, {shared_mem}")
        passed = (_Argument * len(args))()
        numbers = []
        for one, argument in zip(passed, args, strict=True):
            if isinstance(argument, ndarray):
                host = argument._host
                if not host.flags.c_contiguous:
                    raise ValueError(f"an argument of {self._name} is not contiguous")
                one.data, one.n_bytes = host.ctypes.data, host.nbytes
                one.element_size = host.itemsize
            elif isinstance(argument, np.intp) and argument == 0:
                numbers.append(np.array(argument))
                one.data, one.n_bytes = None, 8
            elif isinstance(argument, np.generic):
                numbers.append(np.array(argument))
                one.data, one.n_bytes = numbers[-1].ctypes.data, argument.nbytes
            else:
                raise TypeError(f"unsupported argument of {self._name}: {type(argument)}")
        sizes = (
            ctypes.c_uint(grid[0]),
            ctypes.c_uint(block[0]),
            ctypes.c_ulonglong(shared_mem),
        )
        with _lock:
            if self._start(len(args), passed, *sizes):
                raise RuntimeError(f"{self._name}: {_emulator().emulator_error().decode()}")
