"""Why a boosted model gave this score: the training rows that push it up and down."""

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
    """The training rows that push the score of a boosted model up and down. Print it.

    ``score`` is ``base_score`` plus the contributions of all training rows. Rows are in order of
    their contribution, the largest first: those that push up, then those that push down.

    Attributes
    ----------
    sample : str
        The sample that was asked about.
    output : object or None
        The class that the score speaks for, or the number of the output if there are several; None
        for a model with one number.
    base_score : float
        Raw score before the first tree.
    total : float
        Sum of the contributions of all training rows.
    score : float
        Raw score of the sample: ``base_score + total``.
    n_rows, n_up, n_down : int
        Number of training rows that contribute, that push up, and that push down.
    up_total, down_total : float
        Sums of the positive and of the negative contributions.
    rows : ndarray of int64 of shape (k,)
        Positions of the training rows shown.
    row_labels : ndarray of shape (k,)
        Their labels in the index of the data frame, or their positions if there was none.
    contributions : ndarray of float64 of shape (k,)
        What each adds to the score.
    effects : ndarray of float64 of shape (k,) or None
        By how much the prediction is larger with the contribution of the row than without it, all
        others as they are. For one class, that is its probability.
    targets : ndarray of shape (k,)
        Their targets.
    link : str or None
        How the model turns scores into predictions: "identity", "exp", "square" (with the sign of
        the score), "logistic" or "softmax". None for an objective of your own.
    prediction : float or None
        What the model predicts: the probability of the class ``output``, or a number. None if the
        link is not known.
    base_prediction : float or None
        What it would predict with the base score alone.
    has_classes : bool
        Whether the targets are classes.
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
        """Return the rows as a table.

        Returns
        -------
        pandas.DataFrame
            One line for each row shown, with its label as the index: its position, its
            contribution, the effect on the prediction if that is known, and its target.
        """
        columns = {"position": self.rows, "contribution": self.contributions}
        if self.effects is not None:
            columns["effect"] = self.effects
        return frame_of({**columns, "target": self.targets}, self.row_labels)

    def sentence(self) -> str:
        """Return the sum in one line.

        Returns
        -------
        str
            Such as "score 2.31 = base -0.40 + 2.71 from 4,512 rows".
        """
        digits = _decimals(self.score, self.base_score, self.total)
        base, total = (f"{x:.{digits}f}" for x in (self.base_score, abs(self.total)))
        sign = "-" if self.total < 0 else "+"
        rows = f"{self.n_rows:,} row" + "s" * (self.n_rows != 1)
        what = "prediction" if self.link == "identity" else "score"
        return f"{what} {self.score:.{digits}f} = base {base} {sign} {total} from {rows}"

    def meaning(self) -> str:
        """Return what the score means, in one line.

        Returns
        -------
        str
            Such as "probability of yes 91.0%; 40.1% with the base score alone". Empty if the score
            is the prediction itself, or if the link is not known.
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
        """Return what is explained, in a few words.

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
        """Return the rows of one direction.

        Parameters
        ----------
        is_up : bool
            Whether to return rows that push up.

        Returns
        -------
        places : ndarray of int64
            Their places in ``rows``, the largest contribution first.
        text : str
            How many there are, and what they add, in words.
        """
        sign, word = (1, "up") if is_up else (-1, "down")
        n_all = self.n_up if is_up else self.n_down
        total = self.up_total if is_up else self.down_total
        shown = np.flatnonzero(sign * self.contributions > 0)[::sign]
        if not n_all:
            return shown, f"No row pushes it {word}."
        rows = f"{n_all:,} rows push" if n_all > 1 else "1 row pushes"
        head = f"{rows} it {word}, by {number(abs(total))} in all"
        if len(shown) < n_all:
            part = f"{self.contributions[shown].sum() / total:.1%} of that"
            these = f"The {len(shown)} largest make" if len(shown) > 1 else "The largest makes"
            head += f". {these} up {part}"
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
    """Tell which training rows push the score of a boosted model up and down."""
    if not isinstance(prox.scheme_, Gradient):
        refuse_signed(prox, "explain_prediction", "Use 'gradient' or 'kerf'.")
    if not is_exact(prox):
        prox = prox.reweigh(diagonal="scheme", symmetrize=False)
    query = new_sample(prox, x, "x") if row is None else training_row(prox, row, "row")
    scores = Scores(prox)
    target = read_targets(prox, _targets_of_output(prox, scores) if y is None else y)
    contributions, near = contributions_of(prox, query)
    up, down = contributions > 0, contributions < 0
    # Of equal ones, those that come first.
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
        with np.errstate(invalid="ignore"):  # predictions may be too large for a number
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
    """Return the targets of the output that is explained, if each has its own; else None."""
    several = len(scores.labels) > 1 and np.ndim(prox.y_) == 2
    return np.asarray(prox.y_)[:, scores.output] if several else None


def contributions_of(prox: ForestProximity, query: Query) -> tuple[Doubles, npt.NDArray[np.int64]]:
    """Return the contributions to the score of a sample that are not zero, and their rows."""
    found = Inside.of(prox).engine.rows(query.product.with_dtype(np.float64))
    held = found.data != 0
    return found.data[held], found.indices[held].astype(np.int64)


def _decimals(score: float, base: float, total: float) -> int:
    """Return how many decimals to write: three digits of the largest, and more to add up."""
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
    """Return a probability as one would write it: 100% and 0% only where they are exact."""
    text = f"{value:.1%}"
    if text == "100.0%" and value < 1:
        return ">99.9%"
    return "<0.1%" if text == "0.0%" and value > 0 else text


def signed_percent(value: float) -> str:
    """Return a change of a probability, in points of a percent."""
    digits = int(np.clip(1 - np.floor(np.log10(abs(100 * value) or 1.0)), 1, 4))
    return f"{100 * value:+.{digits}f}%"
