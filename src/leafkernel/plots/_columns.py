"""Read the columns of samples as numbers or categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from leafkernel._validation import column_names, shorten
from leafkernel.tables._frames import read_table
from leafkernel.tables._values import Array, Mask


@dataclass(frozen=True)
class Column:
    """One feature of all samples.

    Attributes
    ----------
    name : str
        Name of the column.
    values : ndarray of shape (n,)
        Numbers (NaN if missing), or categories as objects.
    missing : ndarray of bool of shape (n,)
        Mask of missing values.
    is_category : bool
        Whether values are categories.
    """

    name: str
    values: Array
    missing: Mask
    is_category: bool

    @property
    def spread(self) -> float:
        """Standard deviation of the numbers, or 1 if it is zero."""
        found = self.values[~self.missing].astype(float)
        spread = float(found.std()) if len(found) else 0.0
        return spread if spread > 0 else 1.0

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        present = self.values[~self.missing]
        return len(present) == 0 or bool((present == present[0]).all())


class Columns:
    """The features of samples, read on demand."""

    def __init__(self, X: Any, name: str = "X") -> None:
        if issparse(X):
            raise TypeError(f"{name} is sparse. Pass the columns to draw as a dense array.")
        self._table = read_table(X, mixed=True, estimator="leafkernel.plots")
        self.shape: tuple[int, int] = self._table.shape
        self.names = column_names(X) or [f"x{j}" for j in range(self.shape[1])]

    def __getitem__(self, j: int) -> Column:
        values = self._table.values[j]
        is_category = values.numbers is None
        found = values.objects if values.numbers is None else values.numbers
        assert found is not None
        return Column(self.names[j], found, values.missing(), is_category=is_category)

    def positions(self, features: Any, what: str = "features") -> list[int]:
        """Return the positions of columns that are given by name or position."""
        found = []
        for feature in features:
            if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool):
                if not 0 <= feature < self.shape[1]:
                    raise ValueError(
                        f"{what} must be between 0 and {self.shape[1] - 1}; got {feature}."
                    )
                found.append(int(feature))
            elif str(feature) in self.names:
                found.append(self.names.index(str(feature)))
            else:
                raise ValueError(
                    f"{what}={feature!r} is not a column. The columns are "
                    f"{shorten(self.names, 10)}."
                )
        return found

    def rename(self, names: Any) -> None:
        """Set the names of the columns."""
        if names is None:
            return
        if len(names) != self.shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} entries, but X has {self.shape[1]} columns."
            )
        self.names = [str(name) for name in names]
