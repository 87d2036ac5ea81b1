"""Copies between main memory and the device that run while the device computes.

A copy runs at the full speed of the bus, and beside kernels, only if main memory is *pinned*: its
pages cannot move. Ordinary arrays are therefore copied through two small pinned buffers. While one
is copied to or from the device, a thread copies the other from or to the array.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.engines.gpu._device import load_cupy

#: Size of a pinned buffer.
_BUFFER_BYTES = 16 * 2**20
#: Up to this size, an array is copied at once.
_SMALL_BYTES = 2**20

#: Streams and pinned buffers of each device that no thread uses. Creating them takes long.
_UNUSED: dict[int, list[tuple[Any, Any]]] = {}


class Copier:
    """A thread that copies arrays, on a stream of its own."""

    def __init__(self) -> None:
        # The thread itself starts with the first copy.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="leafkernel-copies")
        self._started: list[Future[None]] = []
        self._device = load_cupy().cuda.Device()

    def download(self, array: Any, out: npt.NDArray[Any]) -> None:
        """Start to copy an array of the device to main memory.

        The copy begins when the work that was given to the device so far is done.
        """
        if array.nbytes <= _SMALL_BYTES:
            array.get(out=out)
            return
        before = load_cupy().cuda.get_current_stream().record()
        self._started.append(self._thread.submit(_download, array, out, before, self._device))

    def upload(self, array: npt.NDArray[Any]) -> Future[Any]:
        """Start to copy an array to the device, and return a future of the copy."""
        return self._thread.submit(_upload, array, *_room_for(array), self._device)

    def wait(self) -> None:
        """Wait for the downloads, and raise the error of one that failed."""
        while self._started:
            self._started.pop(0).result()

    def close(self) -> None:
        """Stop the thread after its current copy. Copies that have not started are canceled."""
        self._thread.shutdown(cancel_futures=True)


@contextmanager
def copier() -> Iterator[Copier]:
    """Copy in the background. On exit, wait for all downloads."""
    made = Copier()
    try:
        yield made
        made.wait()
    finally:
        made.close()


def to_device(array: Any) -> Any:
    """Return an array on the device.

    CuPy copies through pinned memory of the size of the array, and keeps that memory. Large arrays
    are therefore copied through the small buffers of this module.
    """
    cupy = load_cupy()
    if not isinstance(array, np.ndarray) or array.nbytes <= 2 * _BUFFER_BYTES:
        return cupy.asarray(array)
    return _upload(array, *_room_for(array), cupy.cuda.Device())


def _room_for(array: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Return an empty array on the device, and the event after which it can be written."""
    cupy = load_cupy()
    # Allocated on the stream of the kernels: its memory may still be in use there.
    return cupy.empty(array.shape, array.dtype), cupy.cuda.get_current_stream().record()


def _download(array: Any, out: npt.NDArray[Any], before: Any, device: Any) -> None:
    source, target = array.ravel(), out.reshape(-1)
    waiting: tuple[Any, Any, slice] | None = None
    with _resources(device) as (stream, buffers):
        stream.wait_event(before)
        for i, piece in enumerate(_pieces(source.size, source.itemsize)):
            buffer = _part_of(buffers[i % 2], source.dtype, piece)
            source[piece].get(stream=stream, out=buffer, blocking=False)
            copied = stream.record()
            if waiting is not None:
                _finish(target, *waiting)
            waiting = copied, buffer, piece
        if waiting is not None:
            _finish(target, *waiting)


def _finish(target: npt.NDArray[Any], copied: Any, buffer: Any, piece: slice) -> None:
    copied.synchronize()
    target[piece] = buffer


def _upload(array: npt.NDArray[Any], on_device: Any, before: Any, device: Any) -> Any:
    source, target = np.ascontiguousarray(array).reshape(-1), on_device.ravel()
    copied: list[Any] = [None, None]
    with _resources(device) as (stream, buffers):
        stream.wait_event(before)
        for i, piece in enumerate(_pieces(source.size, source.itemsize)):
            buffer = _part_of(buffers[i % 2], source.dtype, piece)
            if copied[i % 2] is not None:
                copied[i % 2].synchronize()
            buffer[...] = source[piece]
            target[piece].set(buffer, stream=stream)
            copied[i % 2] = stream.record()
        stream.synchronize()  # the copy is complete, and the buffers can be used again
    return on_device


def _pieces(size: int, itemsize: int) -> Iterator[slice]:
    step = _BUFFER_BYTES // itemsize
    for begin in range(0, size, step):
        yield slice(begin, min(begin + step, size))


def _part_of(buffer: npt.NDArray[np.uint8], dtype: Any, piece: slice) -> npt.NDArray[Any]:
    n_bytes = (piece.stop - piece.start) * np.dtype(dtype).itemsize
    return buffer[:n_bytes].view(dtype)


@contextmanager
def _resources(device: Any) -> Iterator[tuple[Any, Any]]:
    """Use a stream and two pinned buffers of a device."""
    unused = _UNUSED.setdefault(device.id, [])
    with device:
        try:
            found = unused.pop()
        except IndexError:
            stream = load_cupy().cuda.Stream(non_blocking=True)
            empty_pinned = import_module("cupyx").empty_pinned
            found = stream, [empty_pinned(_BUFFER_BYTES, np.uint8) for _ in range(2)]
        yield found
        # After an error, a copy may still be running, so they are not used again.
        unused.append(found)
