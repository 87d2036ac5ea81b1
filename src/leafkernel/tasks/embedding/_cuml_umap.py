"""UMAP on the GPU with cuML, for a graph of neighbors that is already computed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

Array = npt.NDArray[Any]

# Older versions cannot start from given coordinates.
_OLDEST_VERSION = (26, 2)
# Parameters with the same meaning in cuML and umap-learn. local_connectivity is left out: if a
# sample has fewer nonzero distances than this, cuML rounds the largest one down to an integer.
_PARAMETERS = {"n_components", "init", "n_epochs", "learning_rate", "random_state", "verbose"}
_PARAMETERS |= {"min_dist", "spread", "a", "b", "repulsion_strength", "negative_sample_rate"}
_PARAMETERS |= {"set_op_mix_ratio", "n_jobs"}  # cuML needs no n_jobs
# Noise that is added to a start, relative to its width. UMAP adds as much to its own starts.
_NOISE = 1e-5


class CumlUmap:
    """cuML's UMAP, called like umap-learn's. Get the class with :func:`find_cuml_umap`."""

    def __init__(self, *, n_jobs: Any = None, **parameters: Any) -> None:
        init = parameters.get("init", "spectral")
        if not isinstance(init, str):
            parameters["init"] = _apart(init, parameters.get("random_state"))
        self._cuml = import_module("cuml")
        self._model = self._cuml.manifold.UMAP(**parameters)

    def fit_transform(self, X: Array) -> Array:
        """Return the coordinates of the samples, in main memory."""
        # cuML does not allocate from CuPy's pool, so return the unused part of it to the device.
        import_module("cupy").get_default_memory_pool().free_all_blocks()
        with self._cuml.using_output_type("numpy"):  # overrides a setting of the user
            return np.asarray(self._model.fit_transform(X))


def find_cuml_umap(engine: Any, parameters: dict[str, Any]) -> type[CumlUmap] | None:
    """Return cuML's UMAP if it is installed and supports the parameters, and the engine is a GPU.

    Otherwise, return None. cuML is imported only for the GPU engine.
    """
    if not (_is_gpu(engine) and _supports(parameters) and find_spec("cuml")):
        return None
    try:
        cuda = import_module("cupy").cuda
        allocator = cuda.get_allocator()
        try:
            cuml = import_module("cuml")
        finally:
            # cuML replaces CuPy's allocator, but the GPU engine relies on CuPy's memory pool.
            cuda.set_allocator(allocator)
    # A part of it is missing, such as a CUDA library, or the user has set an allocator for a while.
    except (ImportError, OSError, ValueError):
        return None
    version = tuple(int(part) for part in cuml.__version__.split(".")[:2])
    return CumlUmap if version >= _OLDEST_VERSION else None


def _is_gpu(engine: Any) -> bool:
    if isinstance(engine, str):
        return engine == "gpu"
    return isinstance(engine, import_module("leafkernel.engines.gpu").GpuEngine)


def _supports(parameters: dict[str, Any]) -> bool:
    """Return whether cuML has all parameters and supports their values."""
    init, n_epochs = parameters.get("init", "spectral"), parameters.get("n_epochs")
    return (
        parameters.keys() <= _PARAMETERS
        and (not isinstance(init, str) or init in ("random", "spectral"))
        and (n_epochs is None or (isinstance(n_epochs, (int, np.integer)) and int(n_epochs) > 0))
    )


def _apart(start: Any, random_state: Any) -> Array:
    """Return a start with noise. cuML would move samples at the same point in one direction."""
    start = np.asarray(start, dtype=np.float32)
    noise = check_random_state(random_state).standard_normal(start.shape)
    width = float(np.abs(start).max()) or 1.0
    return np.ascontiguousarray(start + _NOISE * width * noise, dtype=np.float32)
