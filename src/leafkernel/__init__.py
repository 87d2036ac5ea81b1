"""Tree ensembles as supervised similarities: exact forest proximities as sparse kernels P = Q Wᵀ.

Start with :class:`ForestProximity`.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from leafkernel._validation import LeafkernelWarning
    from leafkernel._versions import show_versions
    from leafkernel.batches import Batches
    from leafkernel.forecast import Forecast
    from leafkernel.proximity import ForestProximity
    from leafkernel.schemes import WeightScheme

__all__ = [
    "Batches",
    "Forecast",
    "ForestProximity",
    "LeafkernelWarning",
    "WeightScheme",
    "show_versions",
]

__version__ = "0.1.0"

_HOMES = {
    "Batches": "leafkernel.batches",
    "Forecast": "leafkernel.forecast",
    "ForestProximity": "leafkernel.proximity",
    "LeafkernelWarning": "leafkernel._validation",
    "WeightScheme": "leafkernel.schemes",
    "show_versions": "leafkernel._versions",
}


def __getattr__(name: str) -> typing.Any:
    """Import public names and modules on first use, so that the command line starts fast."""
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    module = f"{__name__}.{name}"
    try:
        if not name.startswith("_"):
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
