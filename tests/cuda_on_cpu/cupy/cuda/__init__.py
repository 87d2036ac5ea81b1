"""The emulated device. Its limits are those of an H200, except for its memory."""

from typing import ClassVar

from cupy.cuda import memory, runtime

__all__ = ["Device", "Event", "Stream", "get_current_stream", "memory", "runtime"]


class Device:
    """One device."""

    def __init__(self, number=0):
        self.id = number

    compute_capability = "90"
    attributes: ClassVar = {"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": 232_448}

    @property
    def mem_info(self):
        return memory.size - memory.pool.total_bytes(), memory.size

    def synchronize(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class Stream:
    """Work that is done in order. Only :data:`null` does it at once.

    On all other streams, work waits until somebody waits for it. A program that forgets to wait
    therefore sees old contents.
    """

    def __init__(self, *, null=False, non_blocking=False):
        self._is_null, self._work, self._sees = null, [], 0

    def do(self, work):
        if self._is_null:
            work()
        else:
            self._work.append(work)

    def record(self, event=None):
        return Event(self, len(self._work))

    def wait_event(self, event):
        self._sees = max(self._sees, event.steps)
        self.do(event.synchronize)

    def check(self, allocation):
        """Fail if the stream did not wait for the default stream, which allocated the memory."""
        if not self._is_null and allocation.first_step > self._sees:
            raise RuntimeError("a stream uses memory before the default stream has allocated it")

    def synchronize(self):
        self._finish(len(self._work))

    def _finish(self, n):
        while n > 0 and self._work:
            work, n = self._work.pop(0), n - 1
            self._done += 1
            work()

    _done = 0


class Event:
    """A moment in the work of a stream."""

    def __init__(self, stream, n_waiting):
        self._stream, self._last = stream, stream._done + n_waiting
        self.steps = memory.steps if stream._is_null else 0

    def synchronize(self):
        self._stream._finish(self._last - self._stream._done)


null = Stream(null=True)


def get_current_stream():
    return null
