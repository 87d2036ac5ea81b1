"""Reference samples in parts, each with its own index.

P = Q Wᵀ splits by reference samples: P = [Q W₁ᵀ | Q W₂ᵀ | …]. Every leaf collision belongs to one
part, so nothing is computed twice. Rows are placed side by side, sums are added, and the nearest
neighbors are selected from those of each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import leafkernel._native as core
from leafkernel._lazy import lazy
from leafkernel._memory import release
from leafkernel._state import FieldsState
from leafkernel.incidence import WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product

Array = npt.NDArray[Any]
Nearest = tuple[Array, npt.NDArray[np.int64]]
#: Returns the lists of a part, given its number and its rows, or None to list them when needed.
ListPart = Callable[[int, WeighedRows], "core.LeafLists | None"]


@dataclass(frozen=True)
class PartedIndex(FieldsState):
    """The reference samples in consecutive parts.

    It replaces :class:`LeafIndex`. Use it with :class:`leafkernel.engines.PartedEngine`.

    Parameters
    ----------
    parts : tuple of LeafIndex
        The index of each part. All parts have the same leaf factors and scale, which are based on
        the leaf sizes of all parts together.
    """

    parts: tuple[LeafIndex, ...]

    @classmethod
    def of(
        cls,
        rows: WeighedRows,
        cuts: Sequence[slice],
        list_part: ListPart,
        *,
        n_threads: int = 1,
    ) -> LeafIndex | PartedIndex:
        """List samples by leaf, part by part. With a single part, return a LeafIndex."""
        parts = []
        for i, some in enumerate(cuts):
            of_part = rows.rows(some)
            lists = list_part(i, of_part)
            parts.append(
                LeafIndex.unlisted(of_part, n_threads=n_threads)
                if lists is None
                else LeafIndex.from_lists(of_part, lists)
            )
        return parts[0] if len(parts) == 1 else cls(tuple(parts))

    def like(self, rows: WeighedRows, *, n_threads: int = 1) -> PartedIndex:
        """Return an index of other rows, with the same parts and places."""
        parts = zip(self.columns, self.parts, strict=True)
        return PartedIndex(
            tuple(
                LeafIndex.of(rows.rows(some), part.sample_at, n_threads=n_threads)
                for some, part in parts
            )
        )

    @lazy
    def columns(self) -> tuple[slice, ...]:
        """Return the range of samples of each part."""
        return tuple(cuts_of([part.n_samples for part in self.parts]))

    @property
    def n_samples(self) -> int:
        """Number of reference samples, n."""
        return int(self.columns[-1].stop)

    @lazy
    def sample_at(self) -> npt.NDArray[np.int64]:
        """Return the reference sample at each place, shape (n,)."""
        return self._joined("sample_at")

    @lazy
    def place_of(self) -> npt.NDArray[np.int64]:
        """Return the place of each sample, shape (n,)."""
        return self._joined("place_of")

    @property
    def by_leaf(self) -> npt.NDArray[np.float64] | None:
        """Factor of each leaf."""
        return self.parts[0].by_leaf

    @property
    def scale(self) -> float:
        """Factor of all entries."""
        return self.parts[0].scale

    @property
    def leaf_sizes(self) -> npt.NDArray[np.int64]:
        """Number of reference samples with a nonzero weight in each leaf, shape (L,)."""
        sizes: npt.NDArray[np.int64] = np.sum([part.leaf_sizes for part in self.parts], axis=0)
        return sizes

    def _joined(self, name: str) -> npt.NDArray[np.int64]:
        parts = zip(self.columns, self.parts, strict=True)
        joined = np.concatenate(
            [some.start + getattr(part, name).astype(int) for some, part in parts]
        )
        joined.flags.writeable = False
        return joined


def cut(n_rows: int, size: int) -> list[slice]:
    """Split rows into pieces of a given size. There is at least one piece."""
    begins = range(0, max(n_rows, 1), size)
    return [slice(begin, min(begin + size, n_rows)) for begin in begins]


def parts_of(index: LeafIndex | PartedIndex) -> tuple[LeafIndex, ...]:
    """Return the parts of an index. A LeafIndex is a single part."""
    return index.parts if isinstance(index, PartedIndex) else (index,)


def cuts_of(sizes: Sequence[int]) -> list[slice]:
    """Return consecutive slices of the given sizes."""
    ends = np.cumsum(sizes).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def cuts_with(sizes: Sequence[int], n_more: int, most: int | None = None) -> list[slice]:
    """Return slices for parts of the given sizes, followed by more rows.

    A part that is at least half as large as the part before it is joined with it, unless both
    together have more than ``most`` rows. The number of parts therefore stays small, and most rows
    are indexed only a few times, even if rows are added often.
    """
    joined = [*sizes, n_more]
    while len(joined) > 1 and 2 * joined[-1] >= joined[-2]:
        if most is not None and joined[-1] + joined[-2] > most:
            break
        joined[-2:] = [joined[-2] + joined[-1]]
    return cuts_of(joined)


def products(product: Product) -> Iterator[tuple[slice, Product]]:
    """Yield the columns of each part of the reference samples, and the product with the part."""
    index = product.reference
    if not isinstance(index, PartedIndex):
        yield slice(0, index.n_samples), product
        return
    for columns, part in zip(index.columns, index.parts, strict=True):
        own, diagonal, oob = None, None, product.reference_oob
        if product.own is not None:
            place = product.own.astype(np.int64) - columns.start
            is_here = (place >= 0) & (place < part.n_samples)
            if is_here.any():
                own, diagonal = np.where(is_here, place, -1).astype(np.int32), product.diagonal
        with_part = replace(
            product,
            reference=part,
            own=own,
            diagonal=diagonal,
            reference_oob=None if oob is None else oob[columns],
        )
        vars(with_part)["by_leaf"] = product.by_leaf
        yield columns, with_part
        if part.listed is not None:
            release(part.members, part.weights, part.offsets)


def nearest_of_both(first: Nearest, second: Nearest, k: int, *, by_magnitude: bool) -> Nearest:
    """Return the k nearest of two lists for each row, with ties by index. Sample -1 means none."""
    similarity, samples = (np.concatenate(pair, axis=1) for pair in zip(first, second, strict=True))
    rank = np.where(samples < 0, -np.inf, np.abs(similarity) if by_magnitude else similarity)
    order = np.lexsort((samples, -rank), axis=1)[:, :k]
    return tuple(np.take_along_axis(a, order, axis=1) for a in (similarity, samples))  # type: ignore[return-value]
