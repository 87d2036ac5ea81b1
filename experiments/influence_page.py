"""The tables of docs/influence.md."""

from experiments import intervals, table
from experiments.names import METHODS, name
from experiments.problems import CLASSES, SOURCES


def shown(mean_and_half, digits=2):
    mean, half = mean_and_half
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def methods_of(rows, value):
    """Return the methods, best first."""
    means = {
        method: intervals.over_seeds(found, value)[0]
        for (method,), found in intervals.groups(rows, ("method",)).items()
    }
    return sorted(means, key=lambda method: -means[method])


def of(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def shares_of(rows):
    return sorted({row["share"] for row in rows})


def falls(rows, names):
    """Return one line per method: falls, ranks, and how often contributions are better."""
    rows = [row for row in rows if row["dataset"] in names]
    shares = shares_of(rows)
    at = [of(rows, share=share) for share in shares]
    ranks = [intervals.ranks(part, "fall") for part in at]
    lines = []
    for method in methods_of(at[-1], "fall"):
        line = [name(method)]
        line += [shown(intervals.over_seeds(of(part, method=method), "fall")) for part in at]
        line += [f"{rank[method]:.1f}" for rank in ranks]
        line += [
            "-"
            if method == "gradient"
            else counts(intervals.versus(part, "fall", "gradient", method))
            for part in at
        ]
        lines.append(line)
    shares = [f"{share:.0%}" for share in shares]
    heads = [f"fall without {shares[0]}", f"without {shares[1]}"]
    heads += [f"mean rank, {shares[0]}", shares[1]]
    heads += [f"`gradient` better / same / worse, {shares[0]}", shares[1]]
    return table.markdown(["rows removed by", *heads], lines)


def counts(found):
    return " / ".join(map(str, found))


def falls_of_classes(rows):
    return falls(rows, CLASSES)


def falls_of_numbers(rows):
    return falls(rows, set(SOURCES) - set(CLASSES))


def spread(rows, value, column, digits=2):
    """Return a table with one line per method and one column per value of `column`."""
    values = list(dict.fromkeys(row[column] for row in rows))
    lines = []
    for method in sorted({row["method"] for row in rows}, key=METHODS.index):
        cells = []
        for each in values:
            found = of(rows, method=method, **{column: each})
            cells.append(shown(intervals.over_seeds(found, value), digits) if found else "-")
        lines.append([name(method), *cells])
    return table.markdown(["", *map(name, values)], lines)


def falls_by_data(rows):
    return spread(of(rows, share=shares_of(rows)[-1]), "fall", "dataset")


def falls_by_library(rows):
    chosen = [row for row in of(rows, share=shares_of(rows)[-1]) if row["dataset"] in CLASSES]
    return spread(chosen, "fall", "library")


def stated(rows):
    """Compare the removed sum with the fall, for methods on the scale of scores."""
    lines = []
    for kind, names in (("classes", CLASSES), ("numbers", set(SOURCES) - set(CLASSES))):
        for method in METHODS:
            found = [row for row in of(rows, method=method) if row["dataset"] in names]
            if not found or found[0]["stated"] == "":
                continue
            line = [name(method), kind]
            for share in shares_of(rows):
                sums, fell = (
                    intervals.over_seeds(of(found, share=share), key)[0]
                    for key in ("stated", "fall")
                )
                line += [f"{sums:.2f}", f"{fell:.2f}", f"{fell / sums:.2f}"]
            lines.append(line)
    heads = [
        each
        for share in shares_of(rows)
        for each in (f"sum of the first {share:.0%}", "fall", "ratio")
    ]
    return table.markdown(["method", "targets", *heads], lines)


def labels(rows):
    ranks = intervals.ranks(rows, "found")
    lines = []
    for method in methods_of(rows, "found"):
        found = of(rows, method=method)
        against = intervals.versus(rows, "found", "gradient_self", method)
        lines.append(
            [name(method), shown(intervals.over_seeds(found, "found"), 3)]
            + [shown(intervals.over_seeds(found, "auc"), 3), f"{ranks[method]:.1f}"]
            + ["-" if method == "gradient_self" else counts(against)]
        )
    heads = ["found among the first 10%", "area under the curve", "mean rank"]
    return table.markdown(["ranked by", *heads, "self better / same / worse"], lines)


def labels_by_data(rows):
    return spread(rows, "found", "dataset")


def cost(rows):
    lines = [
        [name(row["method"])] + [duration(row[key]) for key in ("prepare", "one", "all")]
        for row in rows
    ]
    return table.markdown(["method", "prepare, once", "one new row", "all training rows"], lines)


def duration(seconds):
    if seconds == 0:
        return "-"
    return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s"


TABLES = {
    "falls_of_classes": (falls_of_classes, "removal"),
    "falls_of_numbers": (falls_of_numbers, "removal"),
    "falls_by_data": (falls_by_data, "removal"),
    "falls_by_library": (falls_by_library, "removal"),
    "stated": (stated, "removal"),
    "labels": (labels, "mislabeled"),
    "labels_by_data": (labels_by_data, "mislabeled"),
    "cost": (cost, "cost"),
}
