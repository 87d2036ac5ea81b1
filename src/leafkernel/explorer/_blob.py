"""Store arrays and text in one base64 string."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Reference = dict[str, Any]

# Typed arrays of JavaScript must start at a multiple of their item size.
_ALIGNMENT = 8
_DTYPES = ("uint8", "uint16", "uint32", "int32", "float32", "float64")


@dataclass
class Blob:
    """The data of a page: concatenated arrays, and a header with references to them."""

    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    def add(self, array: npt.ArrayLike, dtype: str) -> Reference:
        """Append an array, and return a reference for the header."""
        if dtype not in _DTYPES:
            raise ValueError(f"dtype={dtype!r} is not supported by the page.")
        flat = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).ravel()
        reference = {"offset": self._size, "length": flat.size, "dtype": dtype}
        self._append(flat.tobytes())
        return reference

    def add_codes(self, codes: Array, n_categories: int) -> Reference:
        """Append category codes (-1 if missing) in the smallest possible type."""
        dtype = next(
            name for name in ("uint8", "uint16", "uint32") if n_categories < np.iinfo(name).max
        )
        return self.add(np.where(codes < 0, np.iinfo(dtype).max, codes), dtype)

    def encode(self, header: dict[str, Any]) -> str:
        """Return the header and the arrays, compressed with gzip and encoded as base64."""
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(4 + len(text)) % _ALIGNMENT)
        length = np.array(len(text), dtype="<u4").tobytes()
        packed = gzip.compress(b"".join([length, text, *self._parts]), compresslevel=6, mtime=0)
        return base64.b64encode(packed).decode("ascii")

    def _append(self, data: bytes) -> None:
        data += bytes(-len(data) % _ALIGNMENT)
        self._parts.append(data)
        self._size += len(data)
