"""Support for calls from before version 0.2, where targets came before samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def took_y_first(samples: str) -> Callable[[Function], Function]:
    """Let a function with the arguments (prox, samples, *, y) also accept (prox, y, samples).

    Old calls have two positional arguments after ``prox``. They can also have one, if the samples
    are given by name or if the argument has one dimension.

    Parameters
    ----------
    samples : str
        The name of the argument for samples.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(prox: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("row") is not None and "y" not in kwargs and _is_new(prox, args, kwargs):
                raise ValueError(
                    f"Pass either {samples} (a new sample) or row (a training sample); got both."
                )
            by_name = samples in kwargs or kwargs.get("row") is not None
            one_dimension = samples == "X" and bool(args) and np.ndim(args[0]) == 1
            is_old = len(args) == 2 or (len(args) == 1 and (by_name or one_dimension))
            if is_old and "y" not in kwargs:
                warnings.warn(
                    f"{function.__name__}(prox, y, {samples}) is deprecated. Use "
                    f"{function.__name__}(prox, {samples}, y=y), or omit y to use the targets that "
                    "the proximity was fitted on.",
                    FutureWarning,
                    stacklevel=2,
                )
                kwargs["y"] = args[0]
                args = args[1:]
            return function(prox, *args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def _is_new(prox: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the only positional argument is a sample, and not the targets of old calls."""
    if not hasattr(prox, "index_") or len(args) != 1 or "x" in kwargs:
        return False
    shape = np.shape(args[0])
    return bool(shape) and shape[0] != len(prox.index_)
