"""Columns with missing values, and how to fill them in the style of the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from leafkernel.tables._dates import DATE_FORMS
from leafkernel.tables._frames import PandasTable
from leafkernel.tables._kinds import understand
from leafkernel.tables._notation import NUMBER_FORMS, Signs
from leafkernel.tables._values import Mask, Values, object_array, read_values

_PLAIN = re.compile(r"[-+]?\d*(\.\d+)?")
_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
_MOST_DECIMALS = 6  # in a column with more decimals, means get six significant digits
_LIKE = 100  # cells that are searched for the thousands separator

# Means of dates and durations cannot be written in the form of the file.
_NOT_FILLED = (*DATE_FORMS, "durations")


@dataclass(frozen=True)
class GappyColumn:
    """A column to impute, or to impute others from."""

    name: str
    raw: Any  # the Series as read from the file
    values: Values  # its values as numbers or text
    gaps: Mask  # which values are missing in the file

    @classmethod
    def of(
        cls, name: str, raw: Any, signs: Signs | None, wanted: str | None = None
    ) -> GappyColumn | None:
        """Read a column; None if it has neither numbers nor categories.

        ``wanted`` is the kind given by the user. If given, text among numbers is missing.
        """
        values, kind = understand(name, raw, signs, np.asarray(raw.index), wanted)
        if kind not in ("number", "category", "constant"):
            return None
        # Infinity and text among numbers are missing for the forest, but are not filled.
        gaps = read_values(raw).missing() if wanted is None else values.missing()
        return cls(name, raw, values, gaps)

    def typed(self) -> GappyColumn:
        """Return the column converted to numbers, if all of its text is numbers."""
        numbers, form = self.values.numbers, self.values.form
        is_text = not pd.api.types.is_numeric_dtype(self.raw.dtype)
        if numbers is None or not is_text or form not in NUMBER_FORMS or self.values.counts:
            return self
        whole = bool((numbers == np.round(numbers)).all())
        raw = pd.Series(numbers, index=self.raw.index)
        return replace(self, raw=raw.astype("int64") if whole else raw)

    @property
    def fillable(self) -> bool:
        """Whether missing values of this column can be filled."""
        return self.values.form not in _NOT_FILLED

    def for_imputer(self) -> Any:
        """Return the column as input for the imputer."""
        if self.values.numbers is not None:
            return self.values.numbers
        return pd.Categorical(self.values.labels(), categories=list(self.values.categories()))

    def filled(self, found: Any, *, as_text: bool) -> Any:
        """Return the column as read from the file, with its missing values filled.

        Parameters
        ----------
        found : array-like of shape (n,)
            The completed column of the imputer.
        as_text : bool
            Whether the column comes from a text file, where integers with missing values were
            read as floats.
        """
        here = np.asarray(found)[self.gaps]
        numbers, is_text = self.values.numbers, not pd.api.types.is_numeric_dtype(self.raw.dtype)
        whole = False
        if numbers is None:  # map labels back to values of the file, such as "True" to True
            known = zip(self.values.labels()[~self.gaps], self.raw[~self.gaps], strict=True)
            here = object_array(map(dict(known).get, here))
        else:
            present = numbers[~np.isnan(numbers)]
            whole = bool((present == np.round(present)).all())
            here = here.astype(np.float64)
            here = np.round(here) if whole else here
            if is_text:
                here = object_array(self._written(here))
            elif not whole:
                here = np.array([float(f"{x:.6g}") for x in here])
        filled = PandasTable(self.raw.to_frame()).completed({0: (self.gaps, here)}).iloc[:, 0]
        if whole and as_text and not is_text and bool(np.isfinite(filled.to_numpy()).all()):
            return filled.astype("int64")
        return filled

    def _written(self, numbers: Any) -> list[str]:
        """Return numbers in the style of the column: decimals, thousands separator, currency."""
        notation = self.values.notation
        texts = [text.strip() for text in self.raw[~self.gaps] if isinstance(text, str)]
        plain = [notation.plain(text) for text in texts]
        like = [notation.bare(text) for text in texts[:_LIKE]]
        decimals = {len(text.partition(".")[2]) for text in plain if _PLAIN.fullmatch(text)}
        most = max(decimals, default=0)
        is_short = most > _MOST_DECIMALS or any(map(_EXPONENT.fullmatch, plain))
        written = []
        for number in numbers:
            text = _short(number) if is_short else f"{number:.{most}f}"
            if len(decimals) > 1 and "." in text:
                text = text.rstrip("0").rstrip(".")
            text = text.removeprefix("-") if float(text) == 0 else text
            written.append(notation.write(text, like))
        return written


def _short(number: float) -> str:
    return np.format_float_positional(float(f"{number:.6g}"), trim="-")
