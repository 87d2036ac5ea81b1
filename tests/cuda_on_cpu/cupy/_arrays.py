"""Arrays of the emulated device."""

import functools
import types

import numpy as np
from cupy import cuda
from cupy.cuda import memory

_REFUSED = "Implicit conversion to a NumPy array is not allowed. Please use `.get()`."


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):  # noqa: N801 - the name in CuPy
    """An array that NumPy functions refuse, as those of a device."""

    def __init__(self, host, owner=None):
        self._host = host
        # Memory is freed with the last array that uses it.
        self._owner = owner or memory.Allocation(host.nbytes)

    def __array__(self, *args, **kwargs):
        raise TypeError(_REFUSED)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        if method != "__call__":
            return NotImplemented
        if out:
            kwargs["out"] = tuple(_host(one) for one in out)
        return _wrapped(getattr(ufunc, method)(*map(_host, inputs), **kwargs))

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(_REFUSED)

    def __getitem__(self, key):
        found = self._host[_host(key, in_key=True)]
        # CuPy returns an array even for one element.
        is_view = isinstance(found, np.ndarray) and np.may_share_memory(found, self._host)
        return ndarray(np.asarray(found), self._owner if is_view else None)

    def __setitem__(self, key, value):
        self._host[_host(key, in_key=True)] = _host(value)

    @property
    def __cuda_array_interface__(self):
        return self._host.__array_interface__

    def __len__(self):
        return len(self._host)

    def __int__(self):
        return int(self._host)

    def __float__(self):
        return float(self._host)

    def __bool__(self):
        return bool(self._host)

    def get(self, stream=None, order="C", out=None, blocking=True):  # noqa: FBT002 - as in CuPy
        if out is None:
            out = np.empty_like(self._host, order="C")
        if out.dtype != self.dtype or out.shape != self.shape or not out.flags.c_contiguous:
            raise ValueError("out has another shape, dtype or order")

        def copy():
            out[...] = self._host

        stream = stream or cuda.get_current_stream()
        stream.check(self._owner)
        stream.do(copy)
        if blocking:
            stream.synchronize()
        return out

    def set(self, array, stream=None):
        if type(array) is not np.ndarray or array.dtype != self.dtype or array.shape != self.shape:
            raise TypeError("only a NumPy array of the same shape and dtype can be copied")

        def copy():
            self._host[...] = array

        stream = stream or cuda.get_current_stream()
        stream.check(self._owner)
        stream.do(copy)

    def astype(self, dtype, copy=True):  # noqa: FBT002 - as in CuPy
        if not copy and dtype == self.dtype:
            return self
        return ndarray(self._host.astype(dtype))

    def view(self, dtype):
        return ndarray(self._host.view(dtype), self._owner)

    def ravel(self):
        return self._view("ravel")

    def reshape(self, *shape):
        return self._view("reshape", *shape)

    def _view(self, name, *args):
        found = getattr(self._host, name)(*args)
        return ndarray(found, self._owner if np.may_share_memory(found, self._host) else None)

    def __getattr__(self, name):
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "strides", "itemsize"):
            return getattr(self._host, name)
        if name in ("sum", "max", "min", "any", "all", "cumsum", "argsort"):
            method = getattr(self._host, name)
            return lambda **params: ndarray(np.asarray(method(**params)))
        raise AttributeError(f"the stand-in for CuPy has no ndarray.{name}")


def _host(value, *, in_key=False):
    """Return the NumPy array of an argument. NumPy arrays themselves are refused."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (tuple, list)):
        return type(value)(_host(one, in_key=in_key) for one in value)
    return value


def _wrapped(found):
    if isinstance(found, tuple):
        return tuple(map(_wrapped, found))
    return ndarray(np.asarray(found))


def on_device(function):
    """Return a NumPy function for arrays of the device."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        kwargs = {name: _host(value) for name, value in kwargs.items()}
        return _wrapped(function(*(_host(one) for one in args), **kwargs))

    return call


def asarray(array, dtype=None):
    if isinstance(array, ndarray):
        return array if dtype in (None, array.dtype) else array.astype(dtype)
    if hasattr(array, "__cuda_array_interface__"):
        interface = array.__cuda_array_interface__
        array = np.asarray(types.SimpleNamespace(__array_interface__=interface))
        return ndarray(array)  # without a copy
    return ndarray(np.array(array, dtype=dtype, order="C"))


def asnumpy(array):
    return array.get() if isinstance(array, ndarray) else np.asarray(array)
