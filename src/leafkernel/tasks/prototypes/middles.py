"""Breiman's class prototypes: medians and quartiles near a typical sample of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from leafkernel._optional import require
from leafkernel._row_labels import label_text, labels_at
from leafkernel._validation import check_count, check_length, column_names
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import Array, check_similarity, labels_of

# Breiman's neighborhoods grow with the smallest class. Larger ones blur the prototypes.
_MOST_NEIGHBORS = 50
# Largest number of features and classes in the text.
_FEATURES_SHOWN = 15
_CLASSES_SHOWN = 4


@dataclass(frozen=True, eq=False, repr=False)
class ClassPrototypes:
    """Medians and quartiles of each class, returned by ``class_prototypes``.

    Print it to see a table.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.
    cases : ndarray of int of shape (n_classes,)
        For each class, the position of the training sample with the most neighbors of this class.
    case_labels : ndarray of shape (n_classes,)
        Their labels in the index of the training data frame, or their positions.
    neighbors : list of ndarray of int
        For each class, the neighbors of the case that belong to the class.
    median, lower, upper : ndarray of shape (n_classes, n_features)
        Median and quartiles of each feature over these neighbors.
    feature_names : list of str
        Names of the features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import class_prototypes
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "uniform").fit(X, y)
    >>> prototypes = class_prototypes(prox, X)
    >>> prototypes.median.shape, bool((prototypes.lower <= prototypes.upper).all())
    ((3, 4), True)
    """

    classes: Array
    cases: npt.NDArray[np.int64]
    case_labels: Array
    neighbors: list[npt.NDArray[np.int64]]
    median: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    feature_names: list[str]

    def to_frame(self) -> Any:
        """Return the prototypes as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each class and feature.
        """
        pandas = require("pandas", extra="cli")

        n_classes, n_features = self.median.shape
        return pandas.DataFrame(
            {
                "class": np.repeat(self.classes, n_features),
                "feature": self.feature_names * n_classes,
                "lower": self.lower.ravel(),
                "median": self.median.ravel(),
                "upper": self.upper.ravel(),
            }
        )

    def __str__(self) -> str:
        names = self.feature_names[:_FEATURES_SHOWN]
        columns = [["", "typical row", *names]]
        for c, label in enumerate(self.classes[:_CLASSES_SHOWN]):
            values = zip(self.median[c], self.lower[c], self.upper[c], strict=True)
            texts = [f"{middle:.4g} ({low:.4g} to {high:.4g})" for middle, low, high in values]
            columns.append([str(label), label_text(self.case_labels[c]), *texts[: len(names)]])
        widths = [max(map(len, column)) for column in columns]
        lines = ["Median of each class (lower to upper quartile), near its most typical row:"]
        for line in zip(*columns, strict=True):
            cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        more = {
            "features": len(self.feature_names) - len(names),
            "classes": len(self.classes) - len(columns) + 1,
        }
        hidden = [f"{count} {what}" for what, count in more.items() if count]
        if hidden:
            lines.append(f"  and {' and '.join(hidden)} more: see to_frame().")
        return "\n".join(lines)

    __repr__ = __str__


def class_prototypes(
    prox: ForestProximity, X: Any, y: Any = None, *, n_neighbors: int | None = None
) -> ClassPrototypes:
    """Return medians and quartiles of typical samples of each class, as R's ``classCenter``.

    Use it to describe a typical sample of each class. For each class, the function finds the
    training sample with the most neighbors of this class. The median and the quartiles of each
    feature are computed over these neighbors. A sample is its own neighbor, and samples with
    proximity 0 are not neighbors. Ties are broken by the total proximity to these neighbors, then
    by position. (R breaks ties at random.)

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    X : {array-like, dataframe} of shape (n, n_features)
        The training samples, with numeric features.
    y : array-like of shape (n,), default=None
        Their classes. By default, those that ``prox`` was fitted on.
    n_neighbors : int, default=None
        Number of neighbors, including the sample itself. By default, one less than the size of the
        smallest class, as in R, but at most 50.

    Returns
    -------
    ClassPrototypes
        Medians and quartiles for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import class_prototypes
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "uniform").fit(X, y)
    >>> class_prototypes(prox, X).median.round(1)[0]
    array([5. , 3.4, 1.5, 0.2])
    """
    prox = check_similarity(prox, "class_prototypes")
    classes, codes = labels_of(prox, y)
    check_length("X", X, prox.n_samples_fit_)
    try:
        table = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must have numeric features, because medians are computed ({error}). Pass only the "
            "numeric columns."
        ) from error
    k = None if n_neighbors is None else check_count("n_neighbors", n_neighbors)
    cases, members = class_cases(prox, codes, len(classes), k)
    quartiles = np.stack([_quartiles(table[rows]) for rows in members])
    return ClassPrototypes(
        classes=classes,
        cases=cases,
        case_labels=labels_at(prox.index_, cases),
        neighbors=members,
        lower=quartiles[:, 0],
        median=quartiles[:, 1],
        upper=quartiles[:, 2],
        feature_names=column_names(X) or [f"x{i}" for i in range(table.shape[1])],
    )


def class_cases(
    prox: ForestProximity,
    codes: npt.NDArray[np.intp],
    n_classes: int,
    k: int | None = None,
    *,
    of_class_itself: bool = False,
) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
    """Return the sample with the most neighbors of each class, and these neighbors.

    As in R, the sample may belong to another class, unless ``of_class_itself`` is true.
    """
    if k is None:
        k = int(np.clip(np.bincount(codes, minlength=n_classes).min() - 1, 1, _MOST_NEIGHBORS))
    nearby, similarity = _neighborhoods(prox, k)
    cases, members = [], []
    for c in range(n_classes):
        of_class = (codes[nearby] == c) & (similarity > 0)
        counts = of_class.sum(axis=1)
        if of_class_itself:
            counts[codes != c] = -1
        tied = np.flatnonzero(counts == counts.max())
        closeness = (similarity[tied] * of_class[tied]).sum(axis=1)
        case = tied[closeness.argmax()]
        cases.append(case)
        members.append(nearby[case][of_class[case]])
    return np.array(cases), members


def _neighborhoods(prox: ForestProximity, k: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the k nearest samples of each training sample, itself first, and proximities."""
    itself = np.arange(prox.n_samples_fit_)
    if min(k, len(itself)) == 1:
        return itself[:, None], np.ones((len(itself), 1))
    similarity, rows = prox.kneighbors(n_neighbors=min(k, prox.n_samples_fit_) - 1)
    return np.insert(rows, 0, itself, axis=1), np.insert(similarity, 0, 1, axis=1)


def _quartiles(values: Array) -> Array:
    return np.asarray(np.nanquantile(values, (0.25, 0.5, 0.75), axis=0))
