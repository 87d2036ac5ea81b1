"""Tree ensembles as supervised similarities: exact forest proximities as sparse kernels P = Q Wᵀ.

:class:`ForestProximity` is the front door.
"""

from leafkernel._validation import LeafkernelWarning
from leafkernel.forecast import Forecast
from leafkernel.proximity import ForestProximity
from leafkernel.schemes import WeightScheme

__all__ = ["Forecast", "ForestProximity", "LeafkernelWarning", "WeightScheme"]

__version__ = "0.1.0"
