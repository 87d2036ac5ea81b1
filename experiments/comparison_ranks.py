"""Ranks over data sets, tests of their differences, and counts of wins and losses."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from experiments import table
from experiments.comparison_data import SOURCES
from experiments.comparison_schemes import ENSEMBLES, FEATURES, FORESTS, MODEL, NONE, SCHEMES
from experiments.names import name

TASKS = ("predict", "nearest", "labels", "impute", "trust", "plane", "clusters", "medoids")
FOR_CLASSES = ("labels", "clusters", "medoids")
KINDS = ("classes", "numbers")
# The rankings: a task and a kind of targets.
COLUMNS = tuple(
    (task, kind) for task in TASKS for kind in KINDS if kind == "classes" or task not in FOR_CLASSES
)
# Scores that differ by less are counted as ties.
TIE = 0.005
LEVEL = 0.05


class Ranking(NamedTuple):
    """Mean ranks and mean scores of methods, best first; 1 is the best rank."""

    methods: tuple
    ranks: np.ndarray
    scores: np.ndarray
    n_data: int
    p_value: float

    @property
    def difference(self):
        return critical_difference(len(self.methods), self.n_data)

    def rank_of(self, method):
        return float(self.ranks[self.methods.index(method)]) if method in self.methods else None

    def score_of(self, method):
        return float(self.scores[self.methods.index(method)]) if method in self.methods else None

    def schemes(self):
        """Return the methods that are not baselines, best first."""
        return [method for method in self.methods if method not in (MODEL, FEATURES)]

    def worse_schemes(self):
        """Return the schemes that are significantly worse than the best scheme."""
        best, *others = self.schemes()
        limit = self.rank_of(best) + self.difference
        return [method for method in others if self.rank_of(method) >= limit]


def kind_of(row):
    return "numbers" if SOURCES[row["dataset"]].numeric else "classes"


def is_repeated(ensemble, scheme, task):
    """Return whether a baseline equals a scheme: `gap` of forests, and `gradient` of boosting."""
    return scheme == MODEL and (task == "predict" or ensemble in FORESTS)


def scores(rows, task, kind):
    """Return {(ensemble, scheme): {data set: mean score over repeats}}."""
    found = table.means(
        [row for row in rows if kind_of(row) == kind], ("ensemble", "scheme", "dataset"), task
    )
    methods = {}
    for (ensemble, scheme, dataset), spread in found.items():
        methods.setdefault((ensemble, scheme), {})[dataset] = spread.mean
    return methods


def ranking(rows, task, kind, ensemble):
    """Rank the schemes of an ensemble and the baselines, or all pairs if `ensemble` is None."""
    found = {
        pair: values
        for pair, values in scores(rows, task, kind).items()
        if not is_repeated(*pair, task)
    }
    if ensemble is not None:
        found = {pair[1]: found[pair] for pair in found if pair[0] in (ensemble, NONE)}
    return rank(found)


def rank(found):
    """Return the ranking for {method: {data set: score}}, over data sets that all methods have."""
    if not found:
        return None
    shared = sorted(set.intersection(*(set(values) for values in found.values())))
    methods = list(found)
    matrix = np.array([[found[method][each] for method in methods] for each in shared])
    # Equal scores share a rank, also if they differ by rounding.
    ranks = rankdata(-matrix.round(9), axis=1).mean(axis=0)
    order = np.lexsort((-matrix.mean(axis=0), ranks))
    p_value = np.nan
    if len(methods) > 2 and len(shared) > 1 and np.ptp(matrix.round(9), axis=1).any():
        p_value = float(friedmanchisquare(*matrix.round(9).T).pvalue)
    return Ranking(
        tuple(methods[at] for at in order),
        ranks[order],
        matrix.mean(axis=0)[order],
        len(shared),
        p_value,
    )


def critical_difference(k, n):
    """Return the difference of mean ranks that Nemenyi's test calls significant at the 5% level.

    k methods are compared on n data sets (Demšar, JMLR 2006).
    """
    return quantile(k) * float(np.sqrt(k * (k + 1) / (6 * n)))


@lru_cache
def quantile(k):
    return float(studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2))


def cliques(ranks, difference):
    """Return the first and last position of each group of sorted ranks within the difference."""
    found = []
    for first, low in enumerate(ranks):
        last = max(at for at, rank in enumerate(ranks) if rank - low < difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def versus(found, one, other):
    """Count the data sets on which a pair (ensemble, scheme) wins, ties and loses.

    `found` is the result of `scores`.
    """
    ours, theirs = found.get(one, {}), found.get(other, {})
    gains = np.array([ours[each] - theirs[each] for each in ours if each in theirs])
    tied = np.abs(gains) < TIE
    return int(np.sum(~tied & (gains > 0))), int(np.sum(tied)), int(np.sum(~tied & (gains < 0)))


def methods_of(rows):
    """Return the schemes and baselines in display order."""
    known = {row["scheme"] for row in rows}
    return [each for each in (*SCHEMES, MODEL, FEATURES) if each in known]


def summary(rows):
    """Return the best methods of each ranking, as a table."""
    lines = []
    for task, kind in COLUMNS:
        for ensemble in ENSEMBLES:
            found = ranking(rows, task, kind, ensemble)
            if found:
                told = ", ".join(
                    f"{method} {rank:.1f}"
                    for method, rank in zip(found.methods, found.ranks, strict=True)
                )
                lines.append([name(task), kind, name(ensemble), told])
    return table.markdown(["task", "targets", "ensemble", "mean ranks"], lines)


def claims(rows):
    """Yield claims that follow from theory."""
    for ensemble, scheme, task, what in (
        ("RF", "gap", "predict", "prediction of gap is that of the random forest"),
        ("ET", "gap", "predict", "prediction of gap is that of the extra trees"),
        ("XGB", "gradient", "predict", "prediction of gradient is that of the boosted model"),
        ("RF", "gap", "labels", "ranking of labels by gap is that of out-of-bag probabilities"),
    ):
        gaps = []
        for kind in KINDS:
            found = scores(rows, task, kind)
            ours, theirs = (found.get((ensemble, each), {}) for each in (scheme, MODEL))
            gaps += [abs(ours[each] - theirs[each]) for each in ours if each in theirs]
        if gaps:
            mean = float(np.mean(gaps))
            yield f"the {what} (scores differ by {mean:.4f} on average)", mean < TIE
