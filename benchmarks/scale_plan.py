"""Estimate the resources for 10 million, 100 million and a billion rows, from measured costs.

    python benchmarks/scale_plan.py --folder DIR

DIR is the folder of benchmarks/scale.py, with kernels of 1 million and of 10 million rows. The
script measures the sizes of the leaves for 1 million rows, and computes the number of leaf
collisions for more rows. The time is proportional to this number. As a check, the script compares
some estimates with measurements. It updates the tables in docs/scale.md.
"""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

from leafkernel import Batches, ForestProximity
from leafkernel.inside import Inside

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "scale.md"
SAMPLE, NEIGHBORS, QUERIES = 20_000, 30, 1_000_000
CORES_OF_A_MACHINE, BYTES_OF_A_NEIGHBOR = 16, 12


@dataclass(frozen=True)
class Costs:
    """Measured costs: seconds of one core, and bytes."""

    fit_row: float  # seconds to read a row, find its leaves and add it to the index
    collision: float  # seconds for a leaf collision, when searching neighbors
    index_row: float  # bytes of a row in the index
    leaves_row: float  # bytes of the leaf ids of a row
    memory_row: float  # bytes of a row that stay in memory

    @classmethod
    def read(cls, records, folder, kernels, per_query):
        fit, nearest = (find(records, step, max(kernels)) for step in ("fit", "neighbors"))
        n, n_trees = max(kernels), kernels[max(kernels)].n_trees_
        data = next((folder / f"kernel-{n}").glob("data-*"))
        lists = sum(path.stat().st_size for path in data.glob("part*.npy"))
        private = [find(records, "fit", rows)["private"] for rows in sorted(kernels)]
        return cls(
            memory_row=(private[-1] - private[0]) / (max(kernels) - min(kernels)),
            fit_row=2 * fit["seconds"] / n,
            collision=2 * nearest["seconds"] / (nearest["queries"] * per_query),
            index_row=lists / n,
            leaves_row=4 * n_trees,
        )


def find(records, step, rows):
    """Return the record of a step with the most queries."""
    found = [r for r in records if r["step"] == step and r["rows"] == rows]
    if not found:
        raise SystemExit(
            f"benchmarks/scale.json has no step {step!r} for {rows:,} rows. Run scale.py first."
        )
    return max(found, key=lambda record: record["queries"])


def collisions(prox, samples):
    """Return the mean number of leaf collisions for a query."""
    inside = Inside.of(prox)
    return inside.engine.collisions(inside.kernel.product(samples)).mean()


def plan(costs, n, per_query):
    """Return a line of the table: costs of the index, of a million queries, and of all rows."""
    index = n * costs.index_row
    of_queries = QUERIES * per_query * costs.collision / 3600
    of_all = n * per_query * costs.collision / 3600
    machines = max(1, -(-index // 64e9))
    network = (
        0
        if machines == 1
        else QUERIES * machines * (costs.leaves_row + NEIGHBORS * BYTES_OF_A_NEIGHBOR)
    )
    return [
        f"{n:,}",
        size(n * costs.memory_row),
        size(n * costs.leaves_row),
        size(index),
        hours(n * costs.fit_row / 3600),
        f"{per_query:,.0f}",
        hours(of_queries),
        size(network) if network else "none",
        hours(of_all),
    ]


def size(n_bytes):
    """Return a number of bytes as text."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {name}"
    return f"{n_bytes:.0f} bytes"


def hours(value):
    """Return core hours as text."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def table(header, lines):
    """Return a Markdown table."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="folder of scale.py")
    options = parser.parse_args()
    records = json.loads((HERE / "scale.json").read_text())
    kernels = {
        n: ForestProximity.load(options.folder / f"kernel-{n}", verify=False)
        for n in (1_000_000, 10_000_000)
    }
    small = kernels[1_000_000]
    queries = Batches.from_parquet(options.folder / "queries.parquet", batch_rows=SAMPLE)
    names = list(small.feature_names_in_)
    samples = Inside.of(small).route(next(iter(queries)).X[names])
    # Queries reach leaves as often as rows do, so a leaf with a share p of the rows adds p².
    shares = small.kernel_.forest.leaf_mass / small.n_samples_fit_
    foreseen = {n: n * float((shares**2).sum()) for n in kernels}
    there = {n: float(collisions(prox, samples)) for n, prox in kernels.items()}
    costs = Costs.read(records, options.folder, kernels, there[10_000_000])
    checks = [
        ["collisions for each query, 10 million rows", foreseen[10_000_000], there[10_000_000]],
    ]
    record = find(records, "neighbors", 1_000_000)
    guess = record["queries"] * there[1_000_000] * costs.collision / 2
    name = f"seconds for {record['queries']:,} queries, 1 million rows"
    checks.append([name, guess, record["seconds"]])
    record = find(records, "fit", 1_000_000)
    checks.append(["seconds for the fit, 1 million rows", 5e5 * costs.fit_row, record["seconds"]])
    checks = [[name, f"{plan:,.3g}", f"{found:,.3g}"] for name, plan, found in checks]
    header = [
        "rows",
        "memory",
        "leaf ids on disk",
        "index on disk",
        "fit, core hours",
        "collisions for each query",
        "1 million queries, core hours",
        "network",
        "all rows, core hours",
    ]
    sizes = (10_000_000, 100_000_000, 1_000_000_000)
    fixed = [plan(costs, n, foreseen[1_000_000] * n / 1e6) for n in sizes]
    grown = [plan(costs, n, foreseen[1_000_000]) for n in sizes]
    measured = [
        [
            r["step"].replace("neighbors", f"30 neighbors of {r['queries']:,} rows"),
            f"{r['rows']:,}",
            f"{r['seconds']:.0f} s",
            size(r["peak"]) if "peak" in r else "-",
            size(r["private"]) if "private" in r else "-",
        ]
        for r in sorted(records, key=lambda r: (r["step"], r["queries"], r["rows"]))
        if "fit" not in r["step"] or r["queries"] == min(other["queries"] for other in records)
    ]
    found = {
        "measured": table(["step", "rows", "time", "peak memory", "private memory"], measured),
        "checks": table(["quantity", "estimated", "measured"], checks),
        "fixed": table(header, fixed),
        "grown": table(header, grown),
        "costs": table(
            ["cost", "measured"],
            [
                ["fit, for each row", f"{1e6 * costs.fit_row:.2g} µs of one core"],
                ["leaf collision", f"{1e9 * costs.collision:.2g} ns of one core"],
                ["index, for each row", f"{costs.index_row:.0f} bytes"],
                ["leaf ids, for each row", f"{costs.leaves_row:.0f} bytes"],
                ["vectors in memory, for each row", f"{costs.memory_row:.0f} bytes"],
            ],
        ),
    }
    text = PAGE.read_text()
    for name, content in found.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text, flags=re.DOTALL)
    PAGE.write_text(text)
    print("\n\n".join(found.values()))


if __name__ == "__main__":
    main()
