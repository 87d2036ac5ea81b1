"""P as a dense array, from any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from leafkernel._progress import OnProgress
from leafkernel.product import Product

if TYPE_CHECKING:
    from leafkernel.engines import Engine


def dense_rows(
    engine: Engine, product: Product, on_progress: OnProgress | None = None
) -> npt.NDArray[Any]:
    """Return P as a dense array, shape (m, n), with ``engine.dense`` if it exists."""
    make = getattr(engine, "dense", None)
    if make is not None:
        made: npt.NDArray[Any] = make(product, on_progress)
        return made
    return engine.rows(product, on_progress).toarray()  # type: ignore[no-any-return]
