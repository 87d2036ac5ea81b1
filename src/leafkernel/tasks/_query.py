"""A single query: a training sample by its label, or a new sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._row_labels import label_text, position_of
from leafkernel.inside import Inside
from leafkernel.product import Product
from leafkernel.proximity import ForestProximity


@dataclass(frozen=True)
class Query:
    """A sample and its row of P.

    Attributes
    ----------
    label : str
        Name for messages.
    row : int or None
        Position of a training sample; None for a new sample.
    product : Product
        Its row of P, not computed yet.
    """

    label: str
    row: int | None
    product: Product
    leaf: npt.NDArray[Any]


def is_row_label(prox: ForestProximity, sample: Any) -> bool:
    """Return whether an object is the label of a training sample, not a new sample."""
    if isinstance(sample, bool):
        return False
    if isinstance(sample, tuple):  # a label of a hierarchical index, or values of a new sample
        return getattr(prox.index_, "nlevels", 1) == len(sample) != prox.n_features_in_
    return np.ndim(sample) == 0


def training_row(prox: ForestProximity, row: Any, name: str) -> Query:
    """Return a training sample, compared using its out-of-bag trees."""
    position = position_of(prox.index_, name, row)
    inside, rows = Inside.of(prox), slice(position, position + 1)
    label = f"training row {label_text(row)}"
    if not isinstance(prox.index_, range):
        label += f" (position {position})"
    leaf = inside.training_leaves(np.array([position]))[0]
    return Query(label, position, inside.kernel.training_product(rows), leaf)


def as_one_row(sample: Any, name: str) -> Any:
    """Return one sample as a table of one row."""
    if hasattr(sample, "to_frame") and getattr(sample, "ndim", 2) == 1:
        sample = sample.to_frame().T.infer_objects()  # a row of a pandas data frame
    if not hasattr(sample, "shape"):
        sample = np.asarray(sample)
    if len(sample.shape) == 1:
        sample = sample.reshape(1, -1)
    if len(sample.shape) != 2 or sample.shape[0] != 1:
        raise ValueError(
            f"{name} must be one sample, of shape (1, n_features) or (n_features,); got shape "
            f"{tuple(sample.shape)}."
        )
    return sample


def new_sample(prox: ForestProximity, sample: Any, name: str) -> Query:
    """Return a sample as new data."""
    inside = Inside.of(prox)
    samples = inside.route(as_one_row(sample, name))
    return Query("a new sample", None, inside.kernel.product(samples), samples.leaf[0])


def number(value: float) -> str:
    """Return a number with four digits."""
    return f"{value:.4g}"
