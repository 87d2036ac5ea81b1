"""Turn benchmarks/results.json into docs/benchmarks.md and its figures.

python benchmarks/report.py [RESULTS]
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

DOCS = Path(__file__).parent.parent / "docs"
NAMES = {
    "ours": "leafkernel",
    "forestgeom_": "forestgeom",
    "scipy_product": "SciPy",
    "sklearn_apply": "scikit-learn",
    "rfproximity_": "rfproximity",
    "quantile_forest_": "quantile-forest",
    "r_random_forest": "R randomForest",
}
DATA = {"covtype": "Covertype", "airlines": "Airlines", "iris": "iris", "higgs-like": "HIGGS-like"}


def line(record):
    """Return one record as a line of text."""
    what = [
        record["case"],
        record["data"],
        f"{record['rows']:,}",
        *map(str, record["forest"].items()),
    ]
    what += [str(record["task"][key]) for key in ("scheme", "columns") if key in record["task"]]
    took = f"{record['seconds']:.3f} s" if "seconds" in record else "failed"
    return f"{' '.join(what)}: {NAMES[record['rival']]} {took}"


class Results:
    """The records, with methods to look them up."""

    def __init__(self, records):
        self.records = records

    def all(self, case, rival=None, **wanted):
        return [
            r
            for r in self.records
            if r["case"] == case
            and rival in (None, r["rival"])
            and all(r.get(k, r["task"].get(k)) == v for k, v in wanted.items())
        ]

    def one(self, case, rival, **wanted):
        found = self.all(case, rival, **wanted)
        return found[0] if found and "seconds" in found[0] else None


def write(path):
    """Write the page and its figures."""
    known = json.loads(Path(path).read_text())
    results = Results(known["records"])
    plot(results, "seconds", "seconds", "benchmark-time.png")
    plot(results, "beyond", "peak memory, GB", "benchmark-memory.png")
    again = json.loads((Path(__file__).parent / "matrix_again.json").read_text())
    template = (Path(__file__).parent / "page.md").read_text()
    parts = {
        "machine": machine(known["machine"]),
        "matrix": matrix_table(results),
        "machine again": machine(again["machine"]),
        "matrix again": matrix_table(Results(again["records"])),
        "product": product_table(results),
        "leaves": leaves_table(results),
        "memory": memory_table(results),
        "large": large_table(results),
        "slopes": slopes(results),
        "operator": operator_table(results),
        "growing": growing_table(results),
        "dense": dense_table(results),
        "queries": queries_table("few"),
        "all rows": queries_table("all"),
        "explore": explore_table(),
        "planes": planes_table(),
        "paths": path_tables(),
        "full rows": full_rows_table(),
        "parallel fit": fit_table(),
        "gradient": gradient_table(),
        "axil": axil_table(),
        "axil slopes": axil_slopes(),
        "small": small_table(results),
    }
    for name, text in parts.items():
        template = template.replace(f"<!-- {name} -->", text)
    DOCS.mkdir(exist_ok=True)
    (DOCS / "benchmarks.md").write_text(template)


def machine(found):
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"{found['processor']}, {found['cores']} cores, {found['threads']} threads, "
        f"{found['system']}; {versions}."
    )


def table(heads, rows):
    if not rows:
        return "Not measured."
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines)


def seconds(record):
    return "-" if record is None else f"{record['seconds']:.3g} s"


def times(slow, fast):
    return "-" if slow is None or fast is None else f"**{slow['seconds'] / fast['seconds']:.1f}**"


def matrix_table(results):
    rows = []
    for ours in results.all("matrix", "ours"):
        at = {"data": ours["data"], "rows": ours["rows"], "scheme": ours["task"]["scheme"]}
        theirs = results.one("matrix", "forestgeom_", **at)
        ordered = results.one("matrix sorted", "ours", **at)
        per_row = f"{ours['nonzeros'] / ours['rows']:,.0f}"
        rows.append(
            [DATA[at["data"]], f"{at['rows']:,}", at["scheme"], per_row, seconds(ours)]
            + [seconds(ordered), seconds(theirs), times(theirs, ours), times(theirs, ordered)]
        )
    rows.sort(key=lambda row: (row[0] != "Covertype", row[0], int(row[1].replace(",", ""))))
    heads = ["data", "rows", "scheme", "nonzeros per row", "unsorted", "sorted (default)"]
    return table([*heads, "forestgeom", "ratio, unsorted", "ratio, sorted"], rows)


def product_table(results):
    rows = []
    for ours in results.all("product", "ours"):
        n = ours["rows"]
        theirs = results.one("product", "scipy_product", rows=n)
        ordered, blocks, bound = (
            results.one("product sorted", "ours", rows=n),
            results.one("blocks", "ours", rows=n, scheme="uniform"),
            results.one("write", "ours", rows=n),
        )
        rows.append(
            [f"{n:,}", seconds(ours), seconds(ordered), seconds(blocks), seconds(theirs)]
            + [times(theirs, ours)]
            + [times(theirs, ordered), seconds(bound), times(ours, bound)]
        )
    heads = ["rows", "unsorted", "sorted", "sorted, in blocks", "SciPy", "ratio, unsorted"]
    heads += ["ratio, sorted"]
    return table([*heads, "writing P's bytes", "unsorted over writing"], rows)


def leaves_table(results):
    rows = []
    for ours in results.all("leaves", "ours"):
        theirs = results.one("leaves", "sklearn_apply", rows=ours["rows"])
        rows.append([f"{ours['rows']:,}", seconds(ours), seconds(theirs), times(theirs, ours)])
    return table(["rows", "leafkernel", "forest.apply", "ratio"], rows)


def memory_table(results):
    rows = []
    for ours in results.all("matrix", "ours"):
        if "beyond" not in ours:
            continue
        at = {"data": ours["data"], "rows": ours["rows"], "scheme": ours["task"]["scheme"]}
        theirs = results.one("matrix", "forestgeom_", **at)
        size = ours["bytes"]

        def share(record, size=size):
            if record is None or "beyond" not in record:
                return "-"
            return f"{(record['beyond'] - size) / size:.2f}"

        label = [DATA[at["data"]], f"{at['rows']:,}", at["scheme"], f"{size / 2**30:.2f} GB"]
        rows.append([*label, share(ours), share(theirs)])
    rows.sort(key=lambda row: (row[0] != "Covertype", row[0], int(row[1].replace(",", ""))))
    return table(["data", "rows", "scheme", "P", "leafkernel", "forestgeom"], rows)


def large_table(results):
    rows = []
    for record in results.all("neighbors", "ours") + results.all("higgs", "ours"):
        if "seconds" not in record:
            continue
        name = "kneighbors(n_neighbors=50)" if record["case"] == "neighbors" else "proximity()"
        size = f"{record['bytes'] / 2**30:.1f} GB" if "bytes" in record else "-"
        peak = f"{record['peak'] / 2**30:.2f} GB" if "peak" in record else "-"
        label = [f"{name}, {record['task']['scheme']}", DATA[record["data"]], f"{record['rows']:,}"]
        rows.append([*label, seconds(record), size, peak])
    return table(["task", "data", "rows", "time, fit included", "result", "peak of process"], rows)


def slopes(results):
    rows = []
    for scheme in ("gap", "oob"):
        found = results.all("matrix", "ours", data="covtype", scheme=scheme)
        found = sorted((r for r in found if "beyond" in r), key=lambda r: r["rows"])
        if len(found) < 2:
            continue
        n = np.log([r["rows"] for r in found])
        fits = [
            np.polyfit(n, np.log([r[key] for r in found]), 1)[0] for key in ("seconds", "beyond")
        ]
        spans = f"{found[0]['rows']:,} to {found[-1]['rows']:,}"
        rows.append([scheme, spans, f"{fits[0]:.2f}", f"{fits[1]:.2f}"])
    return table(["scheme", "rows", "time", "memory beyond forest and data"], rows)


def operator_table(results):
    rows = []
    for ours in results.all("operator", "ours"):
        task = {key: ours["task"][key] for key in ("scheme", "columns")}
        theirs = results.one("operator", "scipy_product", rows=ours["rows"], **task)
        rows.append(
            [task["scheme"], task["columns"], seconds(ours), seconds(theirs), times(theirs, ours)]
        )
    return table(["scheme", "columns of V", "leafkernel", "SciPy", "ratio"], rows)


def growing_table(results):
    rows = []
    for case, parameter in (("leaf size", "min_samples_leaf"), ("depth", "max_depth")):
        for ours in results.all(case, "ours"):
            scheme, value = ours["task"]["scheme"], ours["forest"][parameter]
            theirs = results.one(case, "forestgeom_", forest=ours["forest"], scheme=scheme)
            per_row = f"{ours['nonzeros'] / ours['rows']:,.0f}"
            rows.append(
                [f"{parameter}={value}", scheme, per_row, seconds(ours), seconds(theirs)]
                + [times(theirs, ours)]
            )
    rows.sort(key=lambda row: (row[0].split("=")[0], row[1], int(row[0].split("=")[1])))
    return table(
        ["forest", "scheme", "nonzeros per row", "leafkernel", "forestgeom", "ratio"], rows
    )


def queries_table(of):
    path = Path(__file__).parent / "queries.json"
    records = json.loads(path.read_text()) if path.exists() else []
    rows = [
        [record["query"], f"{record['rows']:,}", f"{record['before']:.3g}", f"{record['now']:.3g}"]
        for record in records
        if record["of"] == of
    ]
    return table(["work", "training rows", "before, ms", "now, ms"], rows)


def explore_table():
    path = Path(__file__).parent / "explore.json"
    if not path.exists():
        return "Not measured."
    record = json.loads(path.read_text())
    rows = [
        [name, f"{record['before'][key]:.1f} s", f"{record['now'][key]:.1f} s"]
        for name, key in (("time", "total"), ("processor time of all threads", "processor"))
    ]
    return table([f"{record['rows']:,} rows, {record['trees']} trees", "before", "now"], rows)


def planes_table():
    path = Path(__file__).parent / "large_leaves.json"
    if not path.exists():
        return "Not measured."
    rows, loops = [], ("lists", "planes", "bounds", "auto")
    for record in json.loads(path.read_text()):
        shown = [f"{record[loop]:.3g} s" if loop in record else "-" for loop in loops]
        ratio = f"**{record['lists'] / record['auto']:.1f}**" if "lists" in record else "-"
        rows.append([record["forest"], f"{record['rows']:,}", record["scheme"], *shown, ratio])
    return table(["forest", "rows", "scheme", *loops, "lists / auto"], rows)


def path_tables():
    path = Path(__file__).parent / "paths.json"
    if not path.exists():
        return "Not measured."
    records = json.loads(path.read_text())
    products = [r for r in records if r["what"] == "product"]
    rows = [
        [
            f"{r['rows']:,}",
            f"{r['nodes']:,}",
            f"{1000 * r['uniform']:.1f} ms",
            f"{1000 * r['pbk']:.1f} ms",
            f"**{r['pbk'] / r['uniform']:.2f}**",
        ]
        for r in products
    ]
    sizes = np.log([r["rows"] for r in products])
    slopes = {
        name: np.polyfit(sizes, np.log([r[name] for r in products]), 1)[0]
        for name in ("uniform", "pbk")
    }
    found = [r for r in records if r["what"] == "neighbors"]
    shown = [
        [r["scheme"], f"{r['seconds']:.1f} s", f"{r['saved']:.2%}" if "saved" in r else "-"]
        for r in found
    ]
    n_rows = f"{found[0]['rows']:,}" if found else ""
    return "\n\n".join(
        [
            table(["rows", "nodes", "`uniform`", "`pbk`", "`pbk` / `uniform`"], rows),
            f"Time grows with the power {slopes['pbk']:.2f} of the rows (`uniform`: "
            f"{slopes['uniform']:.2f}). Ten neighbors of each of {n_rows} rows, on one thread:",
            table(["scheme", "time", "(pair, tree) combinations that were not looked at"], shown),
        ]
    )


def full_rows_table():
    path = Path(__file__).parent / "full_rows.json"
    if not path.exists():
        return "Not measured."
    rows = []
    for r in json.loads(path.read_text()):
        about = [DATA[r["data"]], f"{r['rows']:,}", r["forest"], r["scheme"]]
        shown = [f"{r[k]:.3g} s" if k in r else "-" for k in ("lists", "auto", "dense", "write")]
        ratios = [f"**{r['lists'] / r['auto']:.1f}**", f"{r['auto'] / r['write']:.1f}"]
        rows.append([*about, f"{r['bytes'] / 2**30:.2f} GB", *shown, *ratios])
    heads = ["data", "rows", "forest", "scheme", "P", "lists", "auto", "dense", "write P"]
    return table([*heads, "lists / auto", "auto / write"], rows)


def fit_table():
    path = Path(__file__).parent / "parallel_fit.json"
    if not path.exists():
        return "Not measured."
    found = json.loads(path.read_text())
    threads = list(found)
    rows = []
    for step in found[threads[0]]:
        of_step = [found[n][step] for n in threads]
        shown = [f"{1000 * seconds:,.0f} ms" for seconds in of_step]
        rows.append([step, *shown, f"{of_step[0] / of_step[-1]:.1f}"])
    heads = [f"{n} thread{'s' * (n != '1')}" for n in threads]
    return table(["step", *heads, f"{threads[-1]} against {threads[0]}"], rows)


def gradient_records(*steps):
    path = Path(__file__).parent / "gradient.json"
    records = json.loads(path.read_text()) if path.exists() else []
    return [record for record in records if record["step"] in steps]


GRADIENT = {
    "train": "training by LightGBM, for comparison",
    "fit": "`fit`",
    "one row": "contributions of all rows to one score, `proximity(x)`",
    "one neighbors": '`kneighbors(x, 50, by="magnitude")`',
    "neighbors": '`kneighbors(X, 50, by="magnitude")` of 1,000 rows',
}

AXIL = ("prepare", "product", "row")


def gradient_table():
    rows = [
        [GRADIENT[record["step"]], f"{record['rows']:,}", duration(record["seconds"])]
        + [f"{record[key] / 2**30:.2f} GB" if key in record else "-" for key in ("loaded", "peak")]
        for record in gradient_records(*GRADIENT)
    ]
    return table(["work", "training rows", "time", "process before", "peak of process"], rows)


def axil_table():
    rows = [
        [f"{record['rows']:,}", *(duration(record[key]) for key in AXIL)]
        + [f"{record['peak'] / 2**30:.2f} GB"]
        for record in gradient_records("axil")
    ]
    heads = ["`AxilAttribution(prox)`", "`operator(X) @ y`, 1,000 rows of X", "one row of G"]
    return table(["training rows", *heads, "peak of process"], rows)


def axil_slopes():
    found = gradient_records("axil")
    if len(found) < 2:
        return "not measured"
    n = np.log([record["rows"] for record in found])
    fits = [np.polyfit(n, np.log([record[key] for record in found]), 1)[0] for key in AXIL]
    return ", ".join(f"{fit:.2f}" for fit in fits[:-1]) + f" and {fits[-1]:.2f}"


def duration(seconds):
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def dense_table(results):
    found = [r for r in results.all("dense") if "seconds" in r]
    ours = next((r for r in found if r["rival"] == "ours"), None)
    rows = [[NAMES[r["rival"]], seconds(r), times(r, ours)] for r in found if r is not ours]
    return table(["library", "time", f"ratio to leafkernel ({seconds(ours)})"], rows)


def small_table(results):
    ours, theirs = results.one("iris", "ours"), results.one("iris", "sklearn_apply")
    if ours is None or theirs is None:
        return "Not measured."
    rows = [[seconds(ours), seconds(theirs), f"{ours['seconds'] / theirs['seconds']:.2f}"]]
    return table(["fit and proximity", "forest.apply", "cost in calls of apply"], rows)


def plot(results, key, label, name):
    schemes = ("uniform", "kerf", "gap", "oob")
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharey=True, layout="constrained")
    scale = 2**30 if key == "beyond" else 1
    for ax, scheme in zip(axes, schemes, strict=True):
        for rival, color, marker in (("ours", "#0072b2", "o"), ("forestgeom_", "#d55e00", "s")):
            found = results.all("matrix", rival, data="covtype", scheme=scheme)
            points = sorted((r["rows"], r[key] / scale) for r in found if key in r)
            if points:
                ax.plot(*zip(*points, strict=True), color=color, marker=marker, label=NAMES[rival])
        ax.set(xscale="log", yscale="log", title=scheme, xlabel="training rows")
        ax.set_xticks([16384, 65536, 262144], ["16k", "66k", "262k"])
        ax.tick_params(axis="x", which="minor", labelbottom=False)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(label)
    if axes[0].lines:
        axes[0].legend(frameon=False)
    (DOCS / "images").mkdir(parents=True, exist_ok=True)
    figure.savefig(DOCS / "images" / name, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "results.json")
