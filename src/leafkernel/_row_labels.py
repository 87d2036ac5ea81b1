"""Labels of the training samples: a pandas index, or positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._optional import require
from leafkernel._validation import check_row_numbers, refuse_masked

Array = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]


def index_of(X: Any, n_samples: int) -> Any:
    """Return a copy of the index of a pandas object, or ``range(n_samples)``.

    The default index of pandas, and all other containers, count from 0.
    """
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "get_indexer_for") or len(index) != n_samples:
        return range(n_samples)
    counts = hasattr(index, "step") and (index.start, index.step) == (0, 1)
    return range(n_samples) if counts else index.copy(deep=True)


def join_indexes(first: Any, second: Any) -> Any:
    """Return the labels of samples, followed by those of other samples.

    If only some samples have labels, all are identified by position.
    """
    if isinstance(first, range) or isinstance(second, range):
        return range(len(first) + len(second))
    return first.append(second)


def labels_at(index: Any, positions: npt.ArrayLike) -> Array:
    """Return the labels of rows, given their positions."""
    positions = np.asarray(positions)
    if isinstance(index, range):
        return positions
    labels: Array = np.asarray(index.take(positions.ravel()))
    return labels.reshape(positions.shape)


def frame_of(columns: dict[str, Any], row_labels: Any) -> Any:
    """Return a pandas data frame of training samples, with their labels as index."""
    pandas = require("pandas", extra="cli")
    index = pandas.Index(row_labels, name="row", tupleize_cols=False)
    return pandas.DataFrame(columns, index=index)


def positions_of(index: Any, name: str, labels: Any) -> Positions:
    """Return the positions of rows, given their labels."""
    if isinstance(index, range) or not index.is_unique:
        return check_row_numbers(name, labels, len(index))
    refuse_masked(name, labels)
    labels = list(labels)
    return np.array([_position(index, name, label, many=True) for label in labels], dtype=np.int64)


def position_of(index: Any, name: str, label: Any) -> int:
    """Return the position of one row, given its label.

    If the labels are not unique, positions are used instead.
    """
    if isinstance(index, range) or not index.is_unique:
        if np.ndim(label) != 0:
            raise ValueError(f"{name} must be a single training sample; got {label!r}.")
        last = len(index) - 1
        if not isinstance(index, range) and not isinstance(label, (int, np.integer)):
            raise ValueError(
                f"{name}={_text(label)} is not a position. The index of the training samples is "
                f"not unique, so use a position from 0 to {last} instead of a label."
            )
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)):
            raise TypeError(
                f"{name} must be the position of a training sample, from 0 to {last}; got "
                f"{_text(label)}."
            )
        return int(check_row_numbers(name, np.asarray([label]), len(index))[0])
    return _position(index, name, label)


def _position(index: Any, name: str, label: Any, *, many: bool = False) -> int:
    try:
        places = index.get_indexer_for([label])
    except (TypeError, ValueError):  # a label of another type
        places = np.array([-1])
    places = places[places >= 0]
    if len(places) == 0:
        raise ValueError(_unknown(index, name, label, many=many))
    return int(places[0])


def _unknown(index: Any, name: str, label: Any, *, many: bool) -> str:
    first = ", ".join(_text(each) for each in index[:3])
    known = f"{first}, … ({len(index)} in all)" if len(index) > 3 else first
    found = f"{name} contains {_text(label)}, which" if many else f"{name}={_text(label)}"
    message = f"{found} is not a label of a training sample. The labels are {known}."
    if isinstance(label, (int, np.integer)) and 0 <= label < len(index):
        message += (
            f" For the sample at position {label}, use its label: {_text(index[int(label)])}."
        )
    return message


def label_text(label: Any) -> str:
    """Return a label as text: dates without midnight, tuples separated by commas."""
    if isinstance(label, tuple):
        return ", ".join(map(label_text, label))
    if isinstance(label, np.datetime64):
        return str(np.datetime_as_string(label.astype("datetime64[s]"), unit="auto"))
    text = str(label)
    return text.removesuffix(" 00:00:00")


def _text(label: Any) -> str:
    """Return the repr of a label, without NumPy types."""
    return repr(label.item() if isinstance(label, np.generic) else label)
