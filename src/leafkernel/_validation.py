"""Validation of user input, with its error messages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count, effective_n_jobs
from sklearn.utils.validation import _num_samples, check_consistent_length

from leafkernel._optional import in_main_memory
from leafkernel._suggestions import suggest

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn < 1.6
    validate_data = None


# A number of threads that is fine on any machine.
_FEW_THREADS = 8


class LeafkernelWarning(UserWarning):
    """Warning about the data. The result is still as documented.

    Examples
    --------
    Turn these warnings into errors:

    >>> import warnings
    >>> from leafkernel import LeafkernelWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", LeafkernelWarning)
    """


def warn(message: str) -> None:
    """Issue a warning that points to the calling line outside of leafkernel."""
    frame, stacklevel = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("leafkernel.", "sklearn.")
    ):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, LeafkernelWarning, stacklevel=stacklevel)


def check_choice(name: str, value: object, options: Iterable[str]) -> None:
    """Raise an error if a value is not one of the options."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.{suggest(value, options)}")


def check_same_lengths(X: Any, y: Any, sample_weight: Any = None) -> None:
    """Raise an error if the targets or weights do not have one value for each sample."""
    try:
        check_consistent_length(X, y, sample_weight)
    except ValueError:
        n_samples = _num_samples(X)
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and _num_samples(values) != n_samples:
                raise ValueError(
                    f"X has {n_samples} rows, but {name} has {_num_samples(values)}. Pass one "
                    "value for each row of X."
                ) from None
        raise


def check_count(name: str, value: Any, *, at_least: int = 1) -> int:
    """Return an integer that is not below a minimum."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer; got {value!r} of type {type(value).__name__}.")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}; got {value}.")
    return int(value)


def check_share(name: str, value: Any, *, example: float) -> float:
    """Return a number between 0 and 1, both excluded."""
    number = float(value) if isinstance(value, Real) else -1.0
    if isinstance(value, bool) or not 0 < number < 1:
        raise ValueError(
            f"{name} must be a number between 0 and 1, for example {example}; got {value!r}."
        )
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a finite number greater than 0."""
    number = float(value) if isinstance(value, Real) else -1.0
    if isinstance(value, bool) or not 0 < number < np.inf:
        raise ValueError(f"{name} must be a finite number greater than 0; got {value!r}.")
    return number


def check_nonnegative(name: str, value: Any) -> float:
    """Return a finite number that is not negative."""
    number = float(value) if isinstance(value, Real) else -1.0
    if isinstance(value, bool) or not (np.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")
    return number


def check_flag(name: str, value: Any) -> None:
    """Raise an error if a value is not True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}.")


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64 as a NumPy dtype."""
    message = f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}."
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(message) from error
    if dtype is None or found not in (np.float32, np.float64):  # None would mean float64
        raise ValueError(message)
    return found


def check_row_numbers(name: str, rows: Any, n_samples: int) -> npt.NDArray[np.int64]:
    """Return positions of training samples as int64."""
    refuse_masked(name, rows)
    array = np.asarray(rows)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1D list of positions; got shape {array.shape}.")
    if array.size and array.dtype.kind not in "ui":
        first = array.tolist()[0]
        raise TypeError(f"{name} must be integers, the positions of samples; got {first!r}.")
    if array.size and (array.min() < 0 or array.max() >= n_samples):
        raise ValueError(
            f"{name} must be between 0 and {n_samples - 1}, the positions of the training samples; "
            f"got {array[(array < 0) | (array >= n_samples)][0]}."
        )
    return array.astype(np.int64)


def check_values(values: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Return numbers for the training samples, as float64 of shape (n,) or (n, c)."""
    refuse_masked("values", values)
    array = np.asarray(in_main_memory(values))
    if array.dtype.kind not in "buif":
        raise TypeError(
            f"values must be numeric; got dtype {array.dtype}. For class labels, use class "
            "indicators: values = (labels[:, None] == classes)."
        )
    if array.ndim not in (1, 2):
        raise ValueError(f"values must have 1 or 2 dimensions; got {array.ndim}.")
    if array.shape[0] != n_samples:
        raise ValueError(
            f"values has {array.shape[0]} rows, but there are {n_samples} training samples. Pass "
            "one value (or row of values) for each training sample."
        )
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("values contains NaN or infinity. Fill or drop these values first.")
    return array


def check_n_neighbors(n_neighbors: Any, n_samples: int, *, itself: bool) -> int:
    """Return the number of neighbors. ``itself`` is whether training samples are the queries."""
    asked: int = check_count("n_neighbors", n_neighbors)
    available = n_samples - itself
    if asked > available:
        other = "other " if itself else ""
        raise ValueError(
            f"n_neighbors={asked} is too large: there are only {available} {other}training "
            "samples. Use a smaller value."
        )
    return asked


def check_length(name: str, values: Any, n_samples: int) -> None:
    """Raise an error if there is not one row for each training sample."""
    n_rows = values.shape[0] if hasattr(values, "shape") else len(np.asarray(values, dtype=object))
    if n_rows != n_samples:
        raise ValueError(
            f"{name} has {n_rows} rows, but there are {n_samples} training samples. Pass one row "
            "for each, in the same order as in fit."
        )


def refuse_masked(name: str, values: Any) -> None:
    """Raise an error for arrays with masked values. NumPy functions would ignore the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        n_masked = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array with {n_masked} masked values, which is not supported. Fill "
            "or drop them first."
        )


def check_tree_weights(given: Any, n_trees: int) -> npt.NDArray[np.float64]:
    """Return tree weights, which must be finite and nonnegative."""
    refuse_masked("tree_weights", given)
    tree_weights = np.array(given, dtype=np.float64)
    if tree_weights.shape != (n_trees,):
        raise ValueError(
            f"tree_weights has shape {tree_weights.shape}, but the forest has {n_trees} trees. "
            "Pass one weight for each tree."
        )
    if not (np.isfinite(tree_weights).all() and (tree_weights >= 0).all()):
        raise ValueError("tree_weights must be finite and nonnegative.")
    if not tree_weights.any():
        raise ValueError(
            "tree_weights are all zero, so all proximities would be zero. Pass at least one "
            "positive weight."
        )
    return tree_weights


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Store (reset) or check the number and names of the columns of X, as scikit-learn does."""
    refuse_masked("X", X)
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got an array of shape {shape} instead. Reshape your data: "
            "array.reshape(1, -1) if it is a single sample, array.reshape(-1, 1) if it has a "
            "single feature."
        )
    if validate_data is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    else:  # scikit-learn < 1.6
        estimator._check_feature_names(X, reset=reset)
        estimator._check_n_features(X, reset=reset)


def column_names(X: Any) -> list[str]:
    """Return the column names of a data frame, or an empty list."""
    return [str(name) for name in getattr(X, "columns", [])]


def check_names(trained_on: list[str], given: list[str], model: str) -> None:
    """Raise an error if a data frame has other columns, or another order, than the model."""
    if not given or given == trained_on:
        return
    missing = [repr(name) for name in trained_on if name not in given]
    unexpected = [repr(name) for name in given if name not in trained_on]
    found = f" Missing: {shorten(missing)}." if missing else ""
    found += f" Unexpected: {shorten(unexpected)}." if unexpected else ""
    raise ValueError(
        f"X must have the same columns in the same order as the training data of {model}."
        f"{found or ' The order differs.'}"
    )


def shorten(names: list[str], most: int = 5) -> str:
    """Return the first names of a list as text."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


def check_numbers(estimator: Any, X: Any, *, missing: bool = False) -> Any:
    """Return X as a float32 array for a fitted estimator. NaN is rejected unless allowed."""
    options = {"dtype": np.float32, "accept_sparse": "csr", "reset": False}
    finite = "allow-nan" if missing else True
    if validate_data is not None:
        return validate_data(estimator, X, ensure_all_finite=finite, **options)
    return estimator._validate_data(X, force_all_finite=finite, **options)  # scikit-learn < 1.6


def check_names_out(estimator: Any, input_features: Any) -> None:
    """Check ``input_features`` of ``get_feature_names_out``. They are not used otherwise."""
    if input_features is None:
        return
    given = np.asarray(input_features, dtype=object)
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and not np.array_equal(known, given):
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(given) != estimator.n_features_in_:
        raise ValueError(
            "input_features should have length equal to number of features "
            f"({estimator.n_features_in_}), got {len(given)}"
        )


def count_threads(n_jobs: Any) -> int:
    """Return the number of threads for ``n_jobs``, as in scikit-learn."""
    if n_jobs is None:
        n_jobs = effective_n_jobs(None)  # 1, unless in a joblib context
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)):
        raise TypeError(f"n_jobs must be an integer or None; got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0. Use 1 for one thread or -1 for all cores.")
    if n_jobs < 0:
        return max(1, int(cpu_count()) + 1 + int(n_jobs))
    # More threads than cores only waste memory. Counting cores is slow, so small numbers are kept.
    return (
        int(n_jobs) if n_jobs <= _FEW_THREADS else min(int(n_jobs), max(cpu_count(), _FEW_THREADS))
    )


def describe(estimator: object, **settings: object) -> str:
    """Return the name of an estimator for messages, with some of its settings."""
    listed = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return f"{type(estimator).__name__}({listed})" if listed else type(estimator).__name__
