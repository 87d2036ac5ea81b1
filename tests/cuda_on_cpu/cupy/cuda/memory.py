"""The memory of the emulated device, which can be used up."""

import threading

_lock = threading.RLock()
#: Bytes. Tests may set it.
size = 2**32


class OutOfMemoryError(MemoryError):
    """The memory is used up."""


class Pool:
    """Counts the bytes in use."""

    def __init__(self):
        self.used = self.most = 0

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.used

    def free_all_blocks(self):
        pass


pool = Pool()
#: Number of steps of the default stream so far.
steps = 0


def next_step():
    """Return the number of the next step of the default stream."""
    global steps  # noqa: PLW0603 - there is one device
    with _lock:
        steps += 1
        return steps


class Allocation:
    """Some bytes that are in use while this object exists."""

    def __init__(self, n_bytes):
        self.n_bytes = 0
        if pool.used + n_bytes > size:
            raise OutOfMemoryError(
                f"Out of memory allocating {n_bytes:,} bytes (allocated so far: {pool.used:,})."
            )
        self.n_bytes = n_bytes
        self.first_step = next_step()
        with _lock:
            pool.used += n_bytes
            pool.most = max(pool.most, pool.used)

    def __del__(self):
        with _lock:
            pool.used -= self.n_bytes
