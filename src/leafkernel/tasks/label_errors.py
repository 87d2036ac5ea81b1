"""Find labels that are probably wrong, because similar training samples have other labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from leafkernel._row_labels import frame_of, label_text, labels_at
from leafkernel._targets import indicators
from leafkernel._validation import check_share
from leafkernel.inside import weighted_means
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import (
    Array,
    check_similarity,
    labels_of,
    without_self,
)

Doubles = npt.NDArray[np.float64]

# Consider this share of all pairs of a sample and another class, those with the smallest class
# shares. How often the class is still the label tells how many labels are wrong.
_CERTAIN = 0.5
_FEWEST_PAIRS = 30
_MOST_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class LabelErrors:
    """Training samples whose labels are probably wrong, returned by ``find_label_errors``.

    Print it to see the samples with the highest scores.

    Attributes
    ----------
    rows : ndarray of int64 of shape (k,)
        Positions of the samples, the highest score first.
    row_labels : ndarray of shape (k,)
        Their labels in the index of the training data frame, or their positions.
    labels, suggested : ndarray of shape (k,)
        Their labels, and the most frequent other label of similar samples.
    scores : ndarray of float64 of shape (n,)
        For each training sample, the share of its proximity to samples with other labels: from 0 to
        1, higher for wrong labels.
    probabilities : ndarray of float64 of shape (n,)
        For each training sample, the estimated probability that its label is wrong.
    threshold : float
        The smallest score among ``rows``, or 1 if there are no rows.
    false_discovery_rate : float
        The estimated share of ``rows`` whose labels are correct.
    expected_errors : float
        The estimated number of wrong labels among all training samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import find_label_errors
    >>> X, y = load_iris(return_X_y=True)
    >>> y[3] = 1
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> errors = find_label_errors(prox)
    >>> 3 in errors.rows, errors.scores.shape
    (True, (150,))
    """

    rows: npt.NDArray[np.int64]
    row_labels: Array
    labels: Array
    suggested: Array
    scores: Doubles
    probabilities: Doubles
    threshold: float
    false_discovery_rate: float
    expected_errors: float

    def to_frame(self) -> Any:
        """Return the samples whose labels are probably wrong as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each sample, with its label in the training data frame as the index.
        """
        columns = {
            "position": self.rows,
            "label": self.labels,
            "suggested": self.suggested,
            "score": self.scores[self.rows],
            "probability": self.probabilities[self.rows],
        }
        return frame_of(columns, self.row_labels)

    def __str__(self) -> str:
        n = len(self.scores)
        n_wrong = len(self.rows)
        if not n_wrong:
            return f"None of the {n} labels looks wrong."
        right = self.false_discovery_rate * n_wrong
        lines = [
            f"{n_wrong} of {n} labels look wrong. About {right:.0f} of them "
            f"{'is' if round(right) == 1 else 'are'} expected to be correct, and more if classes "
            "overlap.",
            *(
                f"  row {label_text(name)}: label {label}, but {self.scores[row]:.0%} of its "
                f"proximity is to rows with other labels, mostly {other}"
                for row, name, label, other in zip(
                    self.rows[:_MOST_SHOWN],
                    self.row_labels,
                    self.labels,
                    self.suggested,
                    strict=False,
                )
            ),
        ]
        if len(self.rows) > _MOST_SHOWN:
            lines.append(f"  and {len(self.rows) - _MOST_SHOWN} more: see to_frame().")
        return "\n".join(lines)

    __repr__ = __str__


def find_label_errors(
    prox: ForestProximity, y: Any = None, *, false_discovery_rate: float = 0.3
) -> LabelErrors:
    r"""Find training samples whose labels are probably wrong.

    Use it to find annotation errors before you train a final model. It reports samples for which
    another label is more frequent among similar samples. The score of a sample is one minus the
    share of its proximity to other samples with the same label. With "gap", this is one minus the
    out-of-bag probability of the label.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity. On average over 21 data sets, "uniform" and "kerf" found more wrong
        labels than "gap", whose scores are those of the out-of-bag prediction.
    y : array-like of shape (n,), default=None
        Labels of the training samples. By default, those that ``prox`` was fitted on.
    false_discovery_rate : float, default=0.3
        The accepted share of correct labels among the reported ones. Smaller values report fewer
        samples.

    Returns
    -------
    LabelErrors
        The reported samples, and the scores and probabilities of all samples.

    Notes
    -----
    The probabilities are estimated in two steps. First, isotonic regression on all pairs of a
    sample and a class gives :math:`\eta`, the probability that the class is the label, as a
    function of its share. Second, the pairs with the smallest shares give the rate :math:`a` at
    which a label is a certain wrong class. If this rate is the same for all K classes, the share of
    wrong labels is :math:`\rho = (K - 1)\,a`, and

    .. math:: P(\text{wrong}) = 1 - \frac{1 - \rho}{\eta} \cdot \frac{\eta - a}{1 - \rho - a}

    The estimate assumes that a label is wrong if similar samples do not have it. If classes
    overlap, so that no model predicts them well, many of these labels are correct.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import find_label_errors
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 25, 140]] = [1, 2, 0]
    >>> prox = ForestProximity(RandomForestClassifier(200, random_state=0)).fit(X, y)
    >>> sorted(find_label_errors(prox).rows[:3].tolist())
    [3, 25, 140]
    """
    prox = without_self(check_similarity(prox, "find_label_errors"))
    accepted = check_share("false_discovery_rate", false_discovery_rate, example=0.3)
    classes, codes = labels_of(prox, y)
    if len(classes) < 2:
        raise ValueError("y must have at least two classes for find_label_errors; got one.")
    shares = _shares(prox, codes, len(classes))
    everyone = np.arange(len(codes))
    own = shares[everyone, codes]
    scores = 1.0 - own
    probabilities = _probabilities(shares, codes)
    others = shares.copy()
    others[everyone, codes] = -1.0
    # Only samples for which another label is more frequent among similar samples.
    order = np.lexsort((own, -probabilities))
    order = order[(others.max(axis=1) > own)[order]]
    right = np.cumsum(1.0 - probabilities[order]) / np.arange(1, len(order) + 1)
    reported = np.flatnonzero(right <= accepted)
    n_reported = int(reported[-1]) + 1 if len(reported) else 0
    rows = order[:n_reported]
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    return LabelErrors(
        rows=rows.astype(np.int64),
        row_labels=labels_at(prox.index_, rows),
        labels=classes[codes[rows]],
        suggested=classes[others[rows].argmax(axis=1)],
        scores=scores,
        probabilities=probabilities,
        threshold=float(scores[rows].min()) if n_reported else 1.0,
        false_discovery_rate=float(right[n_reported - 1]) if n_reported else 0.0,
        expected_errors=float(probabilities.sum()),
    )


def _shares(prox: ForestProximity, codes: npt.NDArray[np.intp], n_classes: int) -> Doubles:
    """Return the share of each class in the proximity of each training sample to the others."""
    table = indicators(codes, n_classes)
    sums = prox.weighted_sums(table)
    # A sample without similar samples gets the class frequencies.
    return weighted_means(sums, sums.sum(axis=1), table.mean(axis=0))


def _probabilities(shares: Doubles, codes: npt.NDArray[np.intp]) -> Doubles:
    """Return the probability that each label is wrong."""
    n, n_classes = shares.shape
    is_label = indicators(codes, n_classes).ravel()
    flat = shares.ravel()
    calibrated = IsotonicRegression(out_of_bounds="clip").fit_transform(flat, is_label)
    own = calibrated.reshape(n, n_classes)[np.arange(n), codes]
    n_certain = max(_FEWEST_PAIRS, int(_CERTAIN * n * (n_classes - 1)))
    certain = np.argsort(flat, kind="stable")[:n_certain]
    wrong = min((n_classes - 1) * float(is_label[certain].mean()), 0.5)
    each = wrong / (n_classes - 1)
    true = np.clip((own - each) / max(1.0 - wrong - each, 1e-9), 0.0, 1.0)
    right = (1.0 - wrong) * true / np.maximum(own, 1e-9)
    return np.asarray(1.0 - np.clip(right, 0.0, 1.0))
