"""Training samples that stand for others: chosen greedily, or in the middle."""

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
    """Training samples that stand for their class. Print it.

    Attributes
    ----------
    rows : ndarray of int of shape (k,)
        Positions of the samples, in the order in which they were chosen.
    row_labels : ndarray of shape (k,)
        Their labels in the index of the data frame, or their positions if there was none.
    labels : ndarray of shape (k,)
        Their classes.
    gains : ndarray of shape (k,)
        By how much each raised the total proximity of its class to its prototypes.
    coverage : dict
        For each class the mean proximity of its samples to the nearest of its prototypes.
    """

    rows: npt.NDArray[np.int64]
    row_labels: Array
    labels: Array
    gains: npt.NDArray[np.float64]
    coverage: dict[Any, float]

    def to_frame(self) -> Any:
        """Return the prototypes as a table.

        Returns
        -------
        pandas.DataFrame
            One line for each, in the order in which they were chosen, with its label in your data
            frame as the index.
        """
        columns = {"position": self.rows, "class": self.labels, "gain": self.gains}
        return frame_of(columns, self.row_labels)

    def __str__(self) -> str:
        lines = [
            f"{len(self.rows)} prototypes, and how similar the rows of their class are to them:"
        ]
        for label, coverage in self.coverage.items():
            rows = [label_text(row) for row in self.row_labels[self.labels == label]]
            some = f"row{'s' * (len(rows) > 1)} {shorten(rows, 10)}"
            lines.append(f"  {label}: {some} (mean proximity {coverage:.2g})")
        return "\n".join(lines)

    __repr__ = __str__


class Medoids(dict[Any, int]):
    """The position of each class's medoid in the training data.

    Attributes
    ----------
    row_labels : dict
        From each class to the label of its medoid in the index of the data frame, or its position
        if there was none.
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
        """Return the medoids as a table.

        Returns
        -------
        pandas.DataFrame
            One line for each class, with the label of its medoid as the index.
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
    """Choose training samples that together are near to all others of their class.

    Greedily, the next prototype is the sample that most raises the sum, over the samples of its
    class, of the proximity to the nearest prototype [1]_. The sum is submodular, so what is chosen
    is within 1 - 1/e of the best. Gains are evaluated only where they may win, from single columns
    of P.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    y : array-like of shape (n,), default=None
        Classes of the training samples. By default those that ``prox`` was fitted on.
    n_prototypes : int or "auto", default="auto"
        Prototypes for each class. "auto" goes on as long as the next one adds at least a share of
        ``min_gain`` to what those of its class have reached, so that classes of many kinds get
        more.
    min_gain : float, default=0.02
        For "auto": the smallest share that is worth a prototype.
    max_prototypes : int, default=50
        For "auto": the most for any class.

    Returns
    -------
    Prototypes
        The chosen samples.

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
    """Return for each class the training sample that its samples are most similar to in all.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    labels : array-like of shape (n,), default=None
        Classes, or clusters, of the training samples. By default the classes that ``prox`` was
        fitted on.

    Returns
    -------
    Medoids
        A dict from each class to the position of its medoid, the first of equals. Its
        ``row_labels`` has the labels of your data frame.

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
    """Return the medoid of each class, by class code."""
    sums = column_sums(with_constant_diagonal(prox), indicators(codes, n_classes))
    found = []
    for c in range(n_classes):
        members = np.flatnonzero(codes == c)
        found.append(int(members[sums[members, c].argmax()]))
    return found
