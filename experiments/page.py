"""Write the pages of the experiments in docs/ from templates and result tables."""

import re

from experiments import comparison_page, influence_page, paper, scaling, table
from experiments.cells import HERE, read_csv
from experiments.names import name

# The pages and their templates.
PAGES = {
    "experiments.md": "page.md",
    "influence.md": "influence.md",
    "comparison.md": "comparison.md",
}


def write():
    for page, words in PAGES.items():
        path = HERE.parent / "docs" / page
        path.write_text(text(words), encoding="utf-8")
        print(f"wrote {path}")


def text(words="page.md"):
    words = (HERE / words).read_text(encoding="utf-8")
    return re.sub(r"<!-- (\w+) -->", fill, words)


def fill(found):
    """Return the table that replaces a comment in the template."""
    make, experiment = TABLES[found[1]]
    path = HERE / "results" / f"{experiment}.csv"
    if not path.exists():
        raise SystemExit(f"there is no {path}: run `python -m experiments {experiment}` first")
    return make(read_csv(path))


def separability(rows):
    fewest, most = (f({row["trees"] for row in rows}) for f in (min, max))
    fields = ("ratio_mean", "ratio_sd", "error_mean", "error_frobenius", "neighbors_shared")
    found = {field: table.means(rows, ("n", "trees"), field) for field in fields}
    lines = []
    for n in sorted({row["n"] for row in rows}):
        at = {field: found[field][n, most].mean for field in fields}
        ratios = [found["ratio_mean"][n, fewest].mean, at["ratio_mean"]]
        ratios.append(next(row["limit"] for row in rows if row["n"] == n))
        lines.append(
            [f"{n:,}", *(f"{ratio:.5f}" for ratio in ratios), f"{at['ratio_sd']:.3f}"]
            + [f"{at['error_mean']:.4f}"]
            + [f"{at[field]:.1%}" for field in ("error_frobenius", "neighbors_shared")]
        )
    header = [
        *("N", f"mean R, T = {fewest}", f"mean R, T = {most}", "limit", f"sd of R, T = {most}"),
        *("mean error where P > 0", "‖error‖ / ‖P‖ (Frobenius)", "10 nearest neighbors shared"),
    ]
    return table.markdown(header, lines)


# Both of our encodings of Airlines are compared with the paper's values.
IN_THE_PAPER = {"airlines_indicators": "airlines"}


def accuracy(rows):
    """Return our values and the paper's, in bold if they differ by over two standard deviations."""
    found = table.means(rows, ("dataset", "rows", "predictor"), "accuracy")
    lines = []
    for dataset, size in dict.fromkeys(key[:2] for key in found):
        cells = []
        for predictor in paper.PREDICTORS:
            ours = found[dataset, size, predictor]
            theirs = paper.ACCURACY.get((IN_THE_PAPER.get(dataset, dataset), size, predictor))
            text = f"{ours} ({theirs[0]:.3f} ± {theirs[1]:.3f})" if theirs else str(ours)
            cells.append(f"**{text}**" if theirs and differs(ours, *theirs) else text)
        lines.append([name(dataset), f"{size:,}", *cells])
    return table.markdown(["data", "rows", *map(name, paper.PREDICTORS)], lines)


def differs(ours, mean, sd):
    """Return whether means differ by over twice the larger deviation, allowing for rounding."""
    return abs(ours.mean - mean) > 2 * max(ours.sd, sd) + 0.0005


def by_proximity(rows):
    kernels = [row for row in rows if row["what"] == "kernel" and plain(row)]
    return curves(kernels, ("dataset", "scheme", "library"), ("data", "proximity", "library"))


def without_kernel(rows):
    ours = [row for row in rows if row["library"] == "leafkernel" and plain(row)]
    ours = [row for row in ours if row["dataset"] in scaling.ABLATED and row["scheme"] == "gap"]
    return curves(ours, ("dataset", "what"), ("data", "task"))


def by_forest(rows):
    """Return the curves for the sizes that all kinds of forests share."""
    ours = [
        row
        for row in rows
        if (row["library"], row["what"], row["scheme"]) == ("leafkernel", "kernel", "gap")
        and row["dataset"] in scaling.ABLATED
        and row["rows"] <= scaling.MANY
    ]
    keys = ("dataset", "ensemble", "min_leaf", "depth")
    return curves(ours, keys, ("data", "forest", "smallest leaf", "depth limit"))


def plain(row):
    return all(row[key] == value for key, value in scaling.PLAIN.items())


MEASURED = ("seconds", "peak_gb")


def curves(rows, keys, header):
    """Return one line per curve: slopes, their range of sizes, and the largest size."""
    time, memory = (scaling.slopes(rows, field) for field in MEASURED)
    lines = []
    for curve, slope in time.items():
        found = [row for row in rows if tuple(row[key] for key in scaling.CURVE) == curve]
        done = [row for row in found if row["seconds"] != ""]
        last = max(done, key=lambda row: row["rows"])
        seconds, peak = (
            table.means(done, ("rows",), field)[last["rows"],].mean for field in MEASURED
        )
        too_large = {row["rows"] for row in found} - {row["rows"] for row in done}
        sizes = f"{min(row['rows'] for row in done):,} to {last['rows']:,}"
        sizes += "".join(f"; {size:,} did not fit" for size in sorted(too_large))
        lines.append(
            [*(name(last[key] or "none") for key in keys), sizes, f"{slope:.2f}"]
            + [f"{memory[curve]:.2f}" if curve in memory else "-"]
            + [f"{seconds:.1f} s", f"{peak:.1f} GB"]
            + [f"{last['numbers'] / last['rows']:,.0f}"]
        )
    measures = ("slope: time", "memory", "largest size: time", "peak", "entries per row")
    return table.markdown([*header, "rows", *measures], lines)


def manifolds(rows):
    lines = [
        [name(row["dataset"]), f"{name(row['method'])} of {name(row['space'])}"]
        + [f"{row[f'accuracy_{k}']:.1%}" for k in (5, 10, 20)]
        + [f"{row['accuracy']:.1%}", f"{row['train_accuracy']:.1%}"]
        + [
            table.seconds(row["fit_s"])
            + (f" + {table.seconds(row['forest_s'])}" if row["forest_s"] else "")
        ]
        + [f"{row['peak_gb']:.1f} GB"]
        for row in rows
    ]
    test = ("test: k = 5", "k = 10", "k = 20", "mean")
    return table.markdown(
        ["data", "embedding", *test, "training, k = 10", "time (+ forest)", "peak"], lines
    )


def beyond(rows):
    return predictors([row for row in rows if "out of bag" not in row["predictor"]])


def beyond_training(rows):
    return predictors([row for row in rows if "out of bag" in row["predictor"]])


def predictors(rows):
    short = [
        {
            **row,
            "data": name(row["dataset"]),
            "predictor": name(row["predictor"].removesuffix(", out of bag")),
        }
        for row in rows
    ]
    return table.spread(short, "predictor", "accuracy", keys=("data", "rows"))


TABLES = (
    influence_page.TABLES
    | comparison_page.TABLES
    | {
        "separability": (separability, "separability"),
        "accuracy": (accuracy, "accuracy"),
        "by_proximity": (by_proximity, "scaling"),
        "by_forest": (by_forest, "scaling"),
        "without_kernel": (without_kernel, "scaling"),
        "manifolds": (manifolds, "manifolds"),
        "beyond": (beyond, "beyond"),
        "beyond_training": (beyond_training, "beyond"),
    }
)
