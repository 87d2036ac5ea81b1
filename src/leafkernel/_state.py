"""Data classes whose pickles hold their fields and nothing else."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class FieldsState:
    """Pickles and copies the fields of a data class, and none of the values that it computed.

    Computed values may be added by one thread while another one copies the object. A pickle with
    other fields is of another version, and is refused.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        if {*state} != {field.name for field in fields(self)}:  # type: ignore[arg-type]
            raise ValueError(
                f"this {type(self).__name__} was pickled by another version of leafkernel; fit "
                "again, or unpickle it with the version that wrote it."
            )
        vars(self).update(state)
