"""The tables of docs/comparison.md."""

import numpy as np

from experiments import comparison_ranks as ranks
from experiments import table
from experiments.comparison_data import SOURCES
from experiments.comparison_schemes import ENSEMBLES, FEATURES, FORESTS, MODEL, NONE, SCHEMES, label
from experiments.names import name

BASELINES = (MODEL, FEATURES)


def shown(method):
    """Return a scheme as code, and a baseline in words."""
    return label(method) if method in BASELINES else f"`{method}`"


def heads():
    return [
        name(task) if task in ranks.FOR_CLASSES else f"{name(task)}, {kind}"
        for task, kind in ranks.COLUMNS
    ]


def guide(rows):
    """Return the best scheme of each ensemble for each ranking, and the schemes that are worse."""
    lines = []
    for (task, kind), head in zip(ranks.COLUMNS, heads(), strict=True):
        cells = []
        for ensemble in ENSEMBLES:
            found = ranks.ranking(rows, task, kind, ensemble)
            best = found.schemes()[0]
            cells.append(f"{shown(best)} {found.score_of(best):.3f}")
            cells.append(", ".join(map(shown, found.worse_schemes())) or "-")
        features = ranks.scores(rows, task, kind).get((NONE, FEATURES), {})
        cells.append(f"{np.mean(list(features.values())):.3f}" if features else "-")
        lines.append([head, *cells])
    header = [each for ensemble in ENSEMBLES for each in (f"best, {name(ensemble)}", "worse")]
    return table.markdown(["task", *header, label(FEATURES)], lines)


def pairs(rows):
    """Return the best pairs of an ensemble and a scheme among all pairs, for each ranking."""
    lines = []
    for (task, kind), head in zip(ranks.COLUMNS, heads(), strict=True):
        found = ranks.ranking(rows, task, kind, None)
        cells = [
            f"{name(ensemble) + ', ' if ensemble != NONE else ''}{shown(scheme)} {rank:.1f}"
            for (ensemble, scheme), rank in zip(found.methods[:3], found.ranks[:3], strict=True)
        ]
        lines.append([head, *cells, len(found.methods), f"{found.difference:.1f}"])
    return table.markdown(
        ["task", "best", "second", "third", "pairs", "critical difference"], lines
    )


def by_task(rows, ensemble, line):
    """Return a table with one line per ranking and one column per method.

    `line` returns the cells of a ranking: one for each method, and some more.
    """
    found = {column: ranks.ranking(rows, *column, ensemble) for column in ranks.COLUMNS}
    methods = [
        method
        for method in ranks.methods_of(rows)
        if any(method in each.methods for each in found.values())
    ]
    lines = [
        [head, *line(column, found[column], methods)]
        for head, column in zip(heads(), found, strict=True)
    ]
    return methods, lines


def for_each(ensembles, make):
    return "\n\n".join(f"**{name(each).capitalize()}**\n\n{make(each)}" for each in ensembles)


def best_in_bold(values, digits):
    """Return numbers as text, with the best one in bold. The first of `values` decides which."""
    keys, numbers = values
    best = min(key for key in keys if key is not None)
    return [
        "-"
        if key is None
        else f"**{number:.{digits}f}**"
        if key == best
        else f"{number:.{digits}f}"
        for key, number in zip(keys, numbers, strict=True)
    ]


def mean_ranks(rows):
    def line(column, found, methods):
        values = [found.rank_of(method) for method in methods]
        told = best_in_bold((values, values), 1)
        return [*told, found.n_data, f"{found.difference:.1f}", p_value(found.p_value)]

    def make(ensemble):
        methods, lines = by_task(rows, ensemble, line)
        header = ["mean rank", *map(shown, methods), "data sets", "critical difference", "p"]
        return table.markdown(header, lines)

    return for_each(ENSEMBLES, make)


def p_value(p):
    return "-" if np.isnan(p) else f"{p:.2f}" if p >= 0.01 else f"{p:.0e}"


def mean_scores(rows):
    def line(column, found, methods):
        values = [found.score_of(method) for method in methods]
        return best_in_bold(([None if each is None else -each for each in values], values), 3)

    def make(ensemble):
        methods, lines = by_task(rows, ensemble, line)
        return table.markdown(["mean score", *map(shown, methods)], lines)

    return for_each(ENSEMBLES, make)


def against(rows, other, ensembles):
    """Return wins / ties / losses of each scheme against another one of the same ensemble."""
    found = {column: ranks.scores(rows, *column) for column in ranks.COLUMNS}

    def make(ensemble):
        def line(column, ranking, methods):
            return [count(column, method) for method in methods if method != other]

        def count(column, method):
            pair = (NONE if method == FEATURES else ensemble, method)
            counts = ranks.versus(found[column], pair, (ensemble, other))
            return " / ".join(map(str, counts)) if any(counts) else "-"

        methods, lines = by_task(rows, ensemble, line)
        header = [shown(method) for method in methods if method != other]
        return table.markdown([f"against `{other}`", *header], lines)

    return for_each(ensembles, make)


def against_uniform(rows):
    return against(rows, "uniform", ENSEMBLES)


def against_gap(rows):
    return against(rows, "gap", FORESTS)


STEPS = {"fit_s": "fit", "predict_s": "prediction", "nearest_s": "neighbors"}


def cost(rows):
    """Return times relative to `uniform` on the same data: geometric means over data sets."""
    found = {step: table.means(rows, ("ensemble", "scheme", "dataset"), step) for step in STEPS}
    schemes = [method for method in ranks.methods_of(rows) if method in SCHEMES]
    lines = []
    for ensemble in ENSEMBLES:
        for step, told in STEPS.items():
            values = [relative(found[step], ensemble, scheme) for scheme in schemes]
            texts = ["-" if value is None else f"{value:.1f}" for value in values]
            lines.append([f"{name(ensemble)}, {told}", *texts])
    return table.markdown(["time / time of `uniform`", *map(shown, schemes)], lines)


def relative(found, ensemble, scheme):
    ratios = [
        spread.mean / found[ensemble, "uniform", dataset].mean
        for (its, one, dataset), spread in found.items()
        if (its, one) == (ensemble, scheme)
    ]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def times(rows):
    """Return medians over data sets, in milliseconds: training, and the steps of `uniform`."""
    lines = []
    for ensemble in ENSEMBLES:
        values = [
            np.median([row[key] for row in rows if row["ensemble"] == ensemble and is_of(row, key)])
            for key in ("train_s", *STEPS)
        ]
        lines.append([name(ensemble), *(f"{1000 * value:.1f}" for value in values)])
    header = ["median time in ms", "training the ensemble", "`uniform`: fit", "prediction"]
    return table.markdown([*header, "neighbors"], lines)


def is_of(row, key):
    return row["scheme"] == (MODEL if key == "train_s" else "uniform") and row.get(key) != ""


def data(rows):
    """Return the data sets as used: rows, columns after encoding, classes and sources."""
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        found = [row for row in rows if row["dataset"] == dataset and row["scheme"] == FEATURES]
        rows_used, columns, classes = (found[0][key] for key in ("rows", "columns", "classes"))
        line = [name(dataset), f"{rows_used:,}", f"{columns:,}", classes or "numbers"]
        lines.append([*line, str(SOURCES[dataset])])
    return table.markdown(["data", "rows used", "columns", "classes", "source"], lines)


TABLES = {
    "comparison_guide": (guide, "comparison"),
    "comparison_pairs": (pairs, "comparison"),
    "comparison_ranks": (mean_ranks, "comparison"),
    "comparison_scores": (mean_scores, "comparison"),
    "comparison_against_uniform": (against_uniform, "comparison"),
    "comparison_against_gap": (against_gap, "comparison"),
    "comparison_cost": (cost, "comparison"),
    "comparison_times": (times, "comparison"),
    "comparison_data": (data, "comparison"),
}
