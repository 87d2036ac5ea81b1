"""Explain the score of a boosted model by the contributions of training samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leafkernel._row_labels import frame_of, label_text, labels_at
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.schemes import Gradient
from leafkernel.tasks._base import read_targets, refuse_signed
from leafkernel.tasks._query import Query, new_sample, number, training_row
from leafkernel.tasks._scores import Scores, is_exact

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreExplanation:
    """The training samples that push the score of a boosted model up and down.

    ``explain_prediction`` returns it for the scheme "gradient". ``score`` is ``base_score`` plus
    the contributions of all training samples. Listed samples are sorted by their contributions:
    first those that push the score up, then those that push it down. Print it to see them.

    Attributes
    ----------
    sample : str
        Name of the explained sample.
    output : object or None
        The class of the score, or the number of the output if there are several; None for a model
        with a single number.
    base_score : float
        Raw score before the first tree.
    total : float
        Sum of the contributions of all training samples.
    score : float
        Raw score of the sample: ``base_score + total``.
    n_rows, n_up, n_down : int
        Number of training samples with a nonzero, a positive and a negative contribution.
    up_total, down_total : float
        Sums of the positive and of the negative contributions.
    rows : ndarray of int64 of shape (k,)
        Positions of the listed training samples.
    row_labels : ndarray of shape (k,)
        Their labels in the index of the training data frame, or their positions.
    contributions : ndarray of float64 of shape (k,)
        Contribution of each to the score.
    effects : ndarray of float64 of shape (k,) or None
        Change of the prediction due to each contribution, with all others fixed. For a class, this
        is a change of its probability.
    targets : ndarray of shape (k,)
        Their targets.
    link : str or None
        The link from scores to predictions: "identity", "exp", "square" (with the sign of the
        score), "logistic" or "softmax". None for a custom objective.
    prediction : float or None
        Prediction of the model: the probability of the class ``output``, or a number. None if the
        link is unknown.
    base_prediction : float or None
        Prediction for the base score alone.
    has_classes : bool
        Whether the targets are classes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.tasks import explain_prediction
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> found = explain_prediction(ForestProximity(model, "gradient").fit(X, y), X[0])
    >>> bool(abs(found.base_score + found.total - model.predict(X[:1])[0]) < 1e-6)
    True
    """

    sample: str
    output: Any
    base_score: float
    total: float
    score: float
    n_rows: int
    n_up: int
    n_down: int
    up_total: float
    down_total: float
    rows: npt.NDArray[np.int64]
    row_labels: Array
    contributions: Doubles
    effects: Doubles | None
    targets: Array
    link: str | None
    prediction: float | None
    base_prediction: float | None
    has_classes: bool = False

    @property
    def is_probability(self) -> bool:
        """Whether the prediction is a probability."""
        return self.link in ("logistic", "softmax")

    def to_frame(self) -> Any:
        """Return the listed training samples as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each listed sample, with its label as the index, and columns for its
            position, its contribution, the effect on the prediction (if known) and its target.
        """
        columns = {"position": self.rows, "contribution": self.contributions}
        if self.effects is not None:
            columns["effect"] = self.effects
        return frame_of({**columns, "target": self.targets}, self.row_labels)

    def sentence(self) -> str:
        """Return the score as a sum, in one line of text.

        Returns
        -------
        str
            For example "score 2.31 = base -0.40 + 2.71 from 4,512 rows".
        """
        digits = _decimals(self.score, self.base_score, self.total)
        base, total = (f"{x:.{digits}f}" for x in (self.base_score, abs(self.total)))
        sign = "-" if self.total < 0 else "+"
        rows = f"{self.n_rows:,} row" + "s" * (self.n_rows != 1)
        what = "prediction" if self.link == "identity" else "score"
        return f"{what} {self.score:.{digits}f} = base {base} {sign} {total} from {rows}"

    def meaning(self) -> str:
        """Return the prediction that belongs to the score, in one line of text.

        Returns
        -------
        str
            For example "probability of yes 91.0%; 40.1% with the base score alone". Empty if the
            score is the prediction, or if the link is unknown.
        """
        if self.prediction is None or self.base_prediction is None or self.link == "identity":
            return ""
        if self.is_probability:
            name = "" if self.output is None else f" of {self.output}"
            both = f"{percent(self.prediction)}; {percent(self.base_prediction)}"
            return f"probability{name} {both} with the base score alone"
        both = f"{number(self.prediction)}; {number(self.base_prediction)}"
        return f"prediction {both} with the base score alone"

    def about(self) -> str:
        """Return the name of what is explained.

        Returns
        -------
        str
            The sample, and the class or output if there are several.
        """
        found = self.sample[0].upper() + self.sample[1:]
        if self.output is None:
            return found
        return f"{found}, {'class' if self.has_classes else 'output'} {self.output}"

    def _headlines(self) -> list[str]:
        meaning = self.meaning()
        lines = [f"{self.about()}: {self.sentence()}"]
        return [*lines, meaning[0].upper() + meaning[1:]] if meaning else lines

    def direction(self, *, is_up: bool) -> tuple[Array, str]:
        """Return the listed training samples of one direction.

        Parameters
        ----------
        is_up : bool
            Whether to return samples that push the score up.

        Returns
        -------
        places : ndarray of int64
            Their positions in ``rows``, the largest contribution first.
        text : str
            A sentence with their number and total contribution.
        """
        sign, word = (1, "up") if is_up else (-1, "down")
        n_all = self.n_up if is_up else self.n_down
        total = self.up_total if is_up else self.down_total
        shown = np.flatnonzero(sign * self.contributions > 0)[::sign]
        if not n_all:
            return shown, f"No row pushes it {word}."
        rows = f"{n_all:,} rows push" if n_all > 1 else "1 row pushes"
        head = f"{rows} it {word}, by {number(abs(total))} in total"
        if len(shown) < n_all:
            part = f"{self.contributions[shown].sum() / total:.1%} of this"
            these = f"The {len(shown)} largest add up to" if len(shown) > 1 else "The largest is"
            head += f". {these} {part}"
        return shown, f"{head}:"

    def _lines(self, *, is_up: bool) -> list[str]:
        shown, head = self.direction(is_up=is_up)
        if not len(shown):
            return [head]
        heads = ["row", "adds", "class" if self.has_classes else "target"]
        texts = [
            [label_text(label) for label in self.row_labels[shown]],
            [signed(x) for x in self.contributions[shown]],
            [
                str(x) if self.has_classes else number(float(x))
                for x in self.targets[shown].tolist()
            ],
        ]
        if self.effects is not None and self.link != "identity":
            say = signed_percent if self.is_probability else signed
            heads.insert(2, "probability" if self.is_probability else "prediction")
            texts.insert(2, [say(x) for x in self.effects[shown]])
        widths = [max(map(len, [name, *text])) for name, text in zip(heads, texts, strict=True)]
        return [head] + [
            "  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in [heads, *zip(*texts, strict=True)]
        ]

    def __str__(self) -> str:
        lines = [*self._headlines(), *self._lines(is_up=True), *self._lines(is_up=False)]
        return "\n".join(lines)

    __repr__ = __str__


def explain_score(prox: ForestProximity, x: Any, row: Any, y: Any, n: int) -> ScoreExplanation:
    """Explain the score of a boosted model by the contributions of training samples."""
    if not isinstance(prox.scheme_, Gradient):
        refuse_signed(prox, "explain_prediction", "Use 'gradient' or 'kerf'.")
    if not is_exact(prox):
        prox = prox.reweigh(diagonal="scheme", symmetrize=False)
    query = new_sample(prox, x, "x") if row is None else training_row(prox, row, "row")
    scores = Scores(prox)
    target = read_targets(prox, _targets_of_output(prox, scores) if y is None else y)
    contributions, near = contributions_of(prox, query)
    up, down = contributions > 0, contributions < 0
    # Ties are broken by position.
    rising, falling = (np.argsort(sign * contributions, kind="stable") for sign in (1, -1))
    ends = np.r_[falling[up[falling]][:n], rising[down[rising]][:n][::-1]]
    shown, adds = near[ends], contributions[ends]
    k, base = scores.output, scores.base_scores
    total = float(contributions.sum())
    all_scores = scores.of_leaves(query.leaf[None, :])[0]
    all_scores[k] = base[k] + total
    several = len(scores.labels) > 1
    has_classes = target.classes is not None
    prediction = base_prediction = effects = None
    if scores.link is not None:
        without = np.tile(all_scores, (len(ends), 1))
        without[:, k] -= adds
        prediction = float(scores.link.predictions(all_scores[None, :])[0, k])
        base_prediction = float(scores.link.predictions(base[None, :])[0, k])
        with np.errstate(invalid="ignore"):  # predictions may overflow
            effects = prediction - scores.link.predictions(without)[:, k]
    return ScoreExplanation(
        sample=query.label,
        output=scores.labels[k] if several or has_classes else None,
        base_score=float(base[k]),
        total=total,
        score=float(base[k] + total),
        n_rows=len(near),
        n_up=int(up.sum()),
        n_down=int(down.sum()),
        up_total=float(contributions[up].sum()),
        down_total=float(contributions[down].sum()),
        rows=shown,
        row_labels=labels_at(prox.index_, shown),
        contributions=adds,
        effects=effects,
        targets=target.values[shown],
        link=None if scores.link is None else scores.link.name,
        prediction=prediction,
        base_prediction=base_prediction,
        has_classes=has_classes,
    )


def _targets_of_output(prox: ForestProximity, scores: Scores) -> Any:
    """Return the targets of the explained output if each output has its own; else None."""
    several = len(scores.labels) > 1 and np.ndim(prox.y_) == 2
    return np.asarray(prox.y_)[:, scores.output] if several else None


def contributions_of(prox: ForestProximity, query: Query) -> tuple[Doubles, npt.NDArray[np.int64]]:
    """Return the nonzero contributions to the score of a sample, and their rows."""
    found = Inside.of(prox).engine.rows(query.product.with_dtype(np.float64))
    held = found.data != 0
    return found.data[held], found.indices[held].astype(np.int64)


def _decimals(score: float, base: float, total: float) -> int:
    """Return the number of decimals: three digits of the largest, or more if sums are off."""
    size = max(abs(score), abs(base), abs(total))
    if size == 0:
        return 2
    least = int(np.clip(2 - np.floor(np.log10(size)), 0, 12))
    for digits in range(least, least + 3):
        if abs(round(base, digits) + round(total, digits) - round(score, digits)) < 0.1**digits / 2:
            return digits
    return least


def signed(value: float) -> str:
    """Return a number with its sign."""
    return f"{value:+.4g}"


def percent(value: float) -> str:
    """Return a probability as text. 100% and 0% are used only if they are exact."""
    text = f"{value:.1%}"
    if text == "100.0%" and value < 1:
        return ">99.9%"
    return "<0.1%" if text == "0.0%" and value > 0 else text


def signed_percent(value: float) -> str:
    """Return a change of a probability in percentage points."""
    digits = int(np.clip(1 - np.floor(np.log10(abs(100 * value) or 1.0)), 1, 4))
    return f"{100 * value:+.{digits}f}%"
