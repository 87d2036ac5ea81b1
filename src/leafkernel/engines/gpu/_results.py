"""Where results are collected: on the device, or in main memory while the device computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel.engines.gpu._copies import Copier, copier
from leafkernel.engines.gpu._device import load_cupy


class OnDevice:
    """Leaves results on the device."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array for results."""
        return load_cupy().empty(shape, dtype)

    def put(self, array: Any, out: Any) -> None:
        """Write an array of the device to a part of the results."""
        out[...] = array

    def take(self, array: Any) -> Any:
        """Return an array of the device as a result."""
        return array

    def wait(self) -> None:
        """Do nothing. Nothing is copied."""


class InMainMemory:
    """Copies results to main memory in the background."""

    def __init__(self, copies: Copier) -> None:
        self._copies = copies

    def empty(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Return an array for results."""
        return np.empty(shape, dtype)

    def put(self, array: Any, out: npt.NDArray[Any]) -> None:
        """Start to copy an array of the device to a part of the results."""
        self._copies.download(array, out)

    def take(self, array: Any) -> npt.NDArray[Any]:
        """Return an array of the device in main memory. It is filled in the background."""
        out = np.empty(array.shape, array.dtype)
        self.put(array, out)
        return out

    def wait(self) -> None:
        """Wait for all copies."""
        self._copies.wait()


@contextmanager
def in_main_memory() -> Iterator[InMainMemory]:
    """Collect results in main memory. They are complete at the end."""
    with copier() as copies:
        yield InMainMemory(copies)
