"""Choose representative training samples: greedy prototypes and medoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from leafkernel._row_labels import frame_of, label_text, labels_at
from leafkernel._targets import indicators
from leafkernel._validation import check_count, check_share, shorten
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import (
    Array,
    check_similarity,
    labels_of,
    with_constant_diagonal,
)
from leafkernel.tasks._facility import choose_facilities, column_sums


@dataclass(frozen=True, eq=False, repr=False)
class Prototypes:
    """Representative training samples of each class, returned by ``select_prototypes``.

    Print it to see them.

    Attributes
    ----------
    rows : ndarray of int of shape (k,)
        Positions of the prototypes, class by class, in the order of choice.
    row_labels : ndarray of shape (k,)
        Their labels in the index of the training data frame, or their positions.
    labels : ndarray of shape (k,)
        Their classes.
    gains : ndarray of shape (k,)
        Increase of the total proximity of the class to its prototypes.
    coverage : dict
        For each class, the mean proximity of its samples to their nearest prototype.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import select_prototypes
    >>> X, y = load_wine(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "uniform").fit(X, y)
    >>> prototypes = select_prototypes(prox, n_prototypes=1)
    >>> prototypes.labels, len(prototypes.coverage)
    (array([0, 1, 2]), 3)
    """

    rows: npt.NDArray[np.int64]
    row_labels: Array
    labels: Array
    gains: npt.NDArray[np.float64]
    coverage: dict[Any, float]

    def to_frame(self) -> Any:
        """Return the prototypes as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each prototype, with its label in the training data frame as the index.
        """
        columns = {"position": self.rows, "class": self.labels, "gain": self.gains}
        return frame_of(columns, self.row_labels)

    def __str__(self) -> str:
        lines = [
            f"{len(self.rows)} prototypes, with the mean proximity of the rows of each class to "
            "their nearest prototype:"
        ]
        for label, coverage in self.coverage.items():
            rows = [label_text(row) for row in self.row_labels[self.labels == label]]
            some = f"row{'s' * (len(rows) > 1)} {shorten(rows, 10)}"
            lines.append(f"  {label}: {some} (mean proximity {coverage:.2g})")
        return "\n".join(lines)

    __repr__ = __str__


class Medoids(dict[Any, int]):
    """A dict from each class to the position of its medoid in the training samples.

    Attributes
    ----------
    row_labels : dict
        For each class, the label of its medoid in the index of the training data frame, or its
        position.
    """

    def __init__(self, rows: dict[Any, int], row_labels: dict[Any, Any]) -> None:
        super().__init__(rows)
        self.row_labels = row_labels

    def __repr__(self) -> str:
        lines = [
            f"  {name}: row {label_text(label)}"
            + ("" if label_text(label) == str(row) else f" (position {row})")
            for (name, row), label in zip(self.items(), self.row_labels.values(), strict=True)
        ]
        return "\n".join(["Medoid of each class:", *lines])

    def to_frame(self) -> Any:
        """Return the medoids as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each class, with the label of its medoid as the index.
        """
        columns = {"position": list(self.values()), "class": list(self)}
        return frame_of(columns, list(self.row_labels.values()))


def select_prototypes(
    prox: ForestProximity,
    y: Any = None,
    *,
    n_prototypes: int | Literal["auto"] = "auto",
    min_gain: float = 0.02,
    max_prototypes: int = 50,
) -> Prototypes:
    """Choose a few training samples that represent their class.

    Use it to summarize each class by a few real samples. Prototypes are chosen greedily. The next
    one is the sample that most increases the sum of the proximities of its class to their nearest
    prototypes [1]_. This sum is submodular, so the result is at least 1 - 1/e of the optimum. Only
    some columns of P are computed.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    y : array-like of shape (n,), default=None
        Classes of the training samples. By default, those that ``prox`` was fitted on.
    n_prototypes : int or "auto", default="auto"
        Number of prototypes of each class. With "auto", prototypes are added as long as the gain is
        at least ``min_gain`` times the previous gains of the class, so diverse classes get more.
    min_gain : float, default=0.02
        Smallest relative gain of a prototype, for "auto".
    max_prototypes : int, default=50
        Largest number of prototypes of a class, for "auto".

    Returns
    -------
    Prototypes
        The prototypes.

    References
    ----------
    .. [1] Tan, Soloviev, Hooker and Wells, Tree space prototypes: another look at making tree
       ensembles interpretable, FODS 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import select_prototypes
    >>> X, y = load_wine(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "uniform").fit(X, y)
    >>> select_prototypes(prox, y, n_prototypes=2).labels
    array([0, 0, 1, 1, 2, 2])
    """
    prox = check_similarity(prox, "select_prototypes")
    classes, codes = labels_of(prox, y)
    if n_prototypes == "auto":
        most = check_count("max_prototypes", max_prototypes)
        enough = check_share("min_gain", min_gain, example=0.02)
    else:
        most, enough = check_count("n_prototypes (or 'auto')", n_prototypes), 0.0
    rows, gains = choose_facilities(prox, codes, most=most, min_gain=enough)
    sizes = np.bincount(codes)
    return Prototypes(
        rows=rows,
        row_labels=labels_at(prox.index_, rows),
        labels=classes[codes[rows]],
        gains=gains,
        coverage={
            label: float(gains[codes[rows] == c].sum() / sizes[c])
            for c, label in enumerate(classes.tolist())
        },
    )


def medoids(prox: ForestProximity, labels: Any = None) -> Medoids:
    """Return the medoid of each class: the training sample most similar to all of its class.

    Use it to represent each class or cluster by a single sample.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    labels : array-like of shape (n,), default=None
        Classes or clusters of the training samples. By default, the classes that ``prox`` was
        fitted on.

    Returns
    -------
    Medoids
        A dict from each class to the position of its medoid. Ties go to the first sample. Its
        attribute ``row_labels`` has the labels in the training data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import medoids
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "uniform").fit(X, y)
    >>> [int(y[row]) for row in medoids(prox, y).values()]
    [0, 1, 2]
    """
    prox = check_similarity(prox, "medoids")
    classes, codes = labels_of(prox, labels)
    names, rows = classes.tolist(), medoid_rows(prox, codes, len(classes))
    labels = labels_at(prox.index_, rows).tolist()
    return Medoids(dict(zip(names, rows, strict=True)), dict(zip(names, labels, strict=True)))


def medoid_rows(prox: ForestProximity, codes: npt.NDArray[np.intp], n_classes: int) -> list[int]:
    """Return the position of the medoid of each class."""
    sums = column_sums(with_constant_diagonal(prox), indicators(codes, n_classes))
    found = []
    for c in range(n_classes):
        members = np.flatnonzero(codes == c)
        found.append(int(members[sums[members, c].argmax()]))
    return found
