"""Targets of the training samples: their type, and class indices."""

from __future__ import annotations

from math import isnan
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.multiclass import type_of_target

from leafkernel._lazy import lazy
from leafkernel._validation import check_length, refuse_masked

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.intp]
Target = Literal["classes", "numbers", "none"]

# Floats with more distinct values than this are numbers, not classes.
_MOST_FLOAT_CLASSES = 20


class Targets:
    """The targets that a proximity was fitted on. Classes are encoded once, when needed.

    Parameters
    ----------
    y : array-like or None
        The targets. They are copied.
    """

    def __init__(self, y: Any) -> None:
        self.values: Any = None
        if y is not None:
            self.values = y.copy() if issparse(y) else np.array(y)
            if isinstance(self.values, np.ndarray):
                self.values.flags.writeable = False

    @lazy
    def kind(self) -> Target:
        """Return the type of the targets: classes, numbers or none."""
        return target_of(self.values)

    @lazy
    def labels(self) -> tuple[Array, Codes]:
        """Return the sorted classes, and the class index of each sample."""
        return check_labels(self.values, self.values.shape[0])


def join_targets(known: Any, new: Any, n_new: int) -> Any:
    """Return the targets of samples, followed by those of new samples."""
    if (known is None) != (new is None):
        raise ValueError(
            "y is missing. fit got targets, so the new samples need targets too."
            if new is None
            else "y was passed, but fit got no targets. Omit it."
        )
    if known is None:
        return None
    refuse_masked("y", new)
    values = np.asarray(new)
    if values.shape != (n_new, *known.shape[1:]):
        raise ValueError(
            f"y must have shape {(n_new, *known.shape[1:])} for {n_new} new samples; got "
            f"{values.shape}."
        )
    if (known.dtype.kind in "biufc") != (values.dtype.kind in "biufc"):
        raise TypeError(
            f"y has dtype {values.dtype}, but the targets of fit have dtype {known.dtype}. Pass "
            "the same type."
        )
    return np.concatenate([known, values])


def target_of(y: Any) -> Target:
    """Return the type of targets: classes, numbers or none."""
    if y is None:
        return "none"
    refuse_missing(y)
    values = np.asarray(y)
    # scikit-learn treats any number of integral floats as classes.
    many = values.dtype.kind == "f" and len(np.unique(values)) > _MOST_FLOAT_CLASSES
    return "numbers" if many or type_of_target(y).startswith("continuous") else "classes"


def check_labels(y: Any, n_samples: int) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return the sorted classes, and the class index of each training sample."""
    refuse_missing(y)
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y must contain one label for each sample; got shape {labels.shape}.")
    check_length("y", labels, n_samples)
    if labels.dtype.kind == "f" and target_of(labels) == "numbers":
        raise ValueError(
            f"y contains numbers ({len(np.unique(labels))} different values), but classes are "
            "required. Pass a class for each sample, as an integer or text."
        )
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.astype(np.intp)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def refuse_missing(y: Any) -> None:
    """Raise an error for targets that are missing, masked or infinite."""
    refuse_masked("y", y)
    values = np.asarray(y)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("Input y contains NaN or infinity. Pass a target for each sample.")
    if values.dtype.kind == "O" and any(map(_is_missing, values.flat)):
        raise ValueError("Input y contains missing values. Pass a target for each sample.")


def indicators(codes: npt.NDArray[np.intp], n_classes: int) -> npt.NDArray[np.float64]:
    """Return class indicators: a column for each class, with 1 for its samples."""
    table: npt.NDArray[np.float64] = np.zeros((len(codes), n_classes))
    table[np.arange(len(codes)), codes] = 1.0
    return table
