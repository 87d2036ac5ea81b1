"""Data classes whose pickles contain only their fields."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class FieldsState:
    """Mixin that pickles and copies only the fields of a data class, not its cached values.

    Another thread may add cached values during a copy. A pickle with other fields was written by
    another version and is rejected.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        if {*state} != {field.name for field in fields(self)}:  # type: ignore[arg-type]
            raise ValueError(
                f"This {type(self).__name__} was pickled by another version of leafkernel. Fit "
                "again, or unpickle it with the version that wrote it."
            )
        vars(self).update(state)
