"""Explain predictions by the training samples that they are based on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._row_labels import frame_of, label_text, labels_at
from leafkernel._validation import check_count
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks._base import check_proximity, read_targets, without_self
from leafkernel.tasks._old_calls import took_y_first
from leafkernel.tasks._query import Query, as_one_row, new_sample, number, training_row
from leafkernel.tasks.importance import local_importance  # noqa: F401 - its former place
from leafkernel.tasks.score_explanation import ScoreExplanation, explain_score

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PredictionExplanation:
    """The training samples that a prediction is based on, returned by ``explain_prediction``.

    Print it to see a table of the samples with the largest shares.

    Attributes
    ----------
    sample : str
        Name of the explained sample.
    rows : ndarray of int64 of shape (k,)
        Positions of the listed training samples, the most similar first. Ties are broken by
        position.
    row_labels : ndarray of shape (k,)
        Their labels in the index of the training data frame, or their positions.
    proximities : ndarray of float64 of shape (k,)
        Proximity of the explained sample to each of them.
    shares : ndarray of float64 of shape (k,)
        Proximities divided by the sum over all training samples: the weights in the prediction.
    targets : ndarray of shape (k,)
        Their targets.
    contributions : ndarray of float64 of shape (k,) or (k, n_classes)
        Contribution of each to the prediction: share times target, or the share in the column of
        its class.
    prediction : float or ndarray of float64 of shape (n_classes,)
        The weighted mean of all training targets, or the share of each class.
    classes : ndarray of shape (n_classes,) or None
        The sorted classes; None for numbers.
    shown : float
        Sum of the listed shares.
    n_rows : int
        Number of training samples with a positive share.
    is_of_model : bool
        Whether ``prediction`` equals the prediction of the forest, as with "gap". With other
        schemes it is an average over similar samples, which can differ.
    model_prediction : float or ndarray of float64 of shape (n_classes,) or None
        If ``is_of_model`` is False, the prediction of the model; None if unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import explain_prediction
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> found = explain_prediction(prox, X[0], n=5)
    >>> int(found.predicted), len(found.rows)
    (0, 5)
    """

    sample: str
    rows: npt.NDArray[np.int64]
    row_labels: Array
    proximities: Doubles
    shares: Doubles
    targets: Array
    contributions: Doubles
    prediction: Any
    classes: Array | None
    shown: float
    n_rows: int
    is_of_model: bool = True
    model_prediction: Any = None

    @property
    def predicted(self) -> Any:
        """The predicted number, or the class with the largest share."""
        if self.classes is None:
            return self.prediction
        return self.classes[np.argmax(self.prediction)]

    def to_frame(self) -> Any:
        """Return the listed training samples as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each listed sample, with its label as the index. For classes, there is a
            column ``adds_to_<class>`` for each class.
        """
        columns = {
            "position": self.rows,
            "proximity": self.proximities,
            "share": self.shares,
            "target": self.targets,
        }
        if self.classes is None:
            columns["adds"] = self.contributions
        else:
            parts = zip(self.classes, self.contributions.T, strict=True)
            columns.update({f"adds_to_{name}": part for name, part in parts})
        return frame_of(columns, self.row_labels)

    def _say(self, prediction: Any) -> str:
        if self.classes is None:
            return number(prediction)
        order = np.argsort(-prediction, kind="stable")
        order = order[prediction[order] > 0]
        parts = [f"{self.classes[k]} {prediction[k]:.1%}" for k in order[:4]]
        parts += [f"{len(order) - 4} other classes"] * (len(order) > 4)
        return ", ".join(parts)

    def _headlines(self) -> list[str]:
        said = self._say(self.prediction)
        if self.is_of_model:
            return [f"Prediction for {self.sample}: {said}"]
        lines = [f"Prediction for {self.sample} from similar rows: {said}"]
        if self.model_prediction is None:
            return [*lines, "The prediction of the model may differ. Pass the row as x to see it."]
        return [*lines, f"The model itself predicts: {self._say(self.model_prediction)}"]

    def __str__(self) -> str:
        if self.classes is None:
            heads, cells = ["target", "adds"], [self.targets, self.contributions]
            texts = [[number(value) for value in column] for column in cells]
        else:
            heads, texts = ["class"], [[str(label) for label in self.targets]]
        heads = ["row", "share", *heads]
        labels = [label_text(label) for label in self.row_labels]
        texts = [
            labels,
            [f"{s:.1%}" for s in self.shares],
            *texts,
        ]
        widths = [max(map(len, [head, *text])) for head, text in zip(heads, texts, strict=True)]
        lines = [
            "  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in [heads, *zip(*texts, strict=True)]
        ]
        n_shown = len(self.rows)
        made_by = f"Based on {self.n_rows} training row{'s' * (self.n_rows > 1)}"
        if n_shown < self.n_rows:
            these = f"These {n_shown} have" if n_shown > 1 else "This one has"
            made_by += f". {these} a share of {self.shown:.1%}"
        return "\n".join([*self._headlines(), f"{made_by}:", *lines])

    __repr__ = __str__


@took_y_first("x")
def explain_prediction(
    prox: ForestProximity, x: Any = None, *, row: Any = None, y: Any = None, n: int = 10
) -> PredictionExplanation | ScoreExplanation:
    """Explain a prediction by the training samples that it is based on.

    Use it to see which training samples led to a prediction, and how much each contributes.

    - With the scheme "gap", the shares add up to the prediction of the forest exactly. For a
      training sample, this is the out-of-bag prediction.
    - With "gradient", the result lists the training samples that push the score of a boosted model
      up and those that push it down, exactly.
    - With other schemes, the prediction is an average over similar samples. It can differ from the
      prediction of the model, and both are printed.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity.
    x : {array-like, dataframe} of shape (1, n_features) or (n_features,), default=None
        A new sample. Pass either ``x`` or ``row``.
    row : label, default=None
        A training sample: its label in the index of the training data frame, or its position.
    y : array-like of shape (n_samples,), default=None
        Targets of the training samples: class labels or numbers. Integers are classes unless the
        forest is a regressor. By default, those that ``prox`` was fitted on.
    n : int, default=10
        Largest number of training samples to list. With "gradient", for each direction.

    Returns
    -------
    PredictionExplanation or ScoreExplanation
        The listed training samples and the prediction, or the score with "gradient". Print it, or
        call its ``to_frame()``.

    Raises
    ------
    ValueError
        If the sample has no proximity to any training sample, so that there is no prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import explain_prediction
    >>> data = load_iris()
    >>> prox = ForestProximity(RandomForestClassifier(100, random_state=0))
    >>> prox = prox.fit(data.data, data.target_names[data.target])
    >>> explain_prediction(prox, [6.1, 2.8, 4.9, 1.7], n=3)
    Prediction for a new sample: virginica 60.0%, versicolor 40.0%
    Based on 100 training rows. These 3 have a share of 21.8%:
      row  share       class
       77   8.5%  versicolor
      123   7.6%   virginica
      127   5.7%   virginica

    The score of a boosted model:

    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> model = GradientBoostingClassifier(random_state=0)
    >>> prox = ForestProximity(model, "gradient").fit(data.data, data.target == 2)
    >>> explain_prediction(prox, [6.1, 2.8, 4.9, 1.7], n=2)
    A new sample, class True: score -0.470 = base -0.693 + 0.223 from 150 rows
    Probability of True 38.5%; 33.3% with the base score alone
    50 rows push it up, by 5.817 in total. The 2 largest add up to 51.3% of this:
      row     adds  probability  class
      106   +2.335       +32.8%   True
      126  +0.6513       +13.9%   True
    100 rows push it down, by 5.593 in total. The 2 largest add up to 69.1% of this:
      row    adds  probability  class
       77  -2.102       -45.2%  False
       83  -1.764       -40.0%  False
    """
    prox = check_proximity(prox)
    n = check_count("n", n)
    if (x is None) == (row is None):
        given = "neither" if x is None else "both"
        raise ValueError(
            f"Pass either x (a new sample) or row (a training sample); got {given} of them."
        )
    if prox.scheme_.signed:
        return explain_score(prox, x, row, y, n)
    if row is not None:
        prox = without_self(prox)
    query = new_sample(prox, x, "x") if row is None else training_row(prox, row, "row")
    target = read_targets(prox, y)
    classes = target.classes
    inside = Inside.of(prox)
    is_of_model = inside.predicts
    product = query.product.with_dtype(np.float64)
    found = inside.engine.rows(product)
    mass = float(found.data.sum())
    if mass <= 0:
        raise ValueError(_no_mass(query))
    order = np.argsort(-found.data, kind="stable")
    shares, near = found.data[order] / mass, found.indices[order].astype(np.int64)
    values = target.numbers(near)
    prediction = shares @ values
    contributions = shares[:n, None] * values[:n]
    return PredictionExplanation(
        sample=query.label,
        rows=near[:n],
        row_labels=labels_at(prox.index_, near[:n]),
        proximities=found.data[order[:n]],
        shares=shares[:n],
        targets=target.values[near[:n]],
        contributions=contributions[:, 0] if classes is None else contributions,
        prediction=float(prediction[0]) if classes is None else prediction,
        classes=classes,
        shown=float(shares[:n].sum()),
        n_rows=len(near),
        is_of_model=is_of_model,
        model_prediction=None if is_of_model else _model_prediction(prox, x, classes),
    )


def _model_prediction(prox: ForestProximity, x: Any, classes: Array | None) -> Any:
    """Return the prediction of the model for a new sample; None if unknown."""
    method = "predict" if classes is None else "predict_proba"
    if x is None or not hasattr(prox.forest_, method):
        return None
    try:
        predicted = getattr(prox.forest_, method)(as_one_row(x, "x"))
    except ValueError:  # the model was fitted again on other columns
        return None
    found = np.asarray(predicted, dtype=np.float64).ravel()
    if classes is None:
        return float(found[0]) if len(found) == 1 else None
    # Some libraries use codes for the classes, in the same order.
    return found if len(found) == len(classes) else None


def _no_mass(query: Query) -> str:
    if query.row is None:
        return (
            "x has no proximity to any training row, so there is no prediction to explain. Try "
            "weight_scheme='uniform'."
        )
    return (
        f"{query.label} has no proximity to any other training row, so there is no prediction to "
        "explain. With out-of-bag schemes, this happens if the row is in bag in every tree. Use "
        "more trees, or pass the row as x."
    )
