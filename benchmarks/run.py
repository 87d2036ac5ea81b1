"""Time leafkernel against other installed libraries, and write the results page.

    python -m venv .bench
    .bench/bin/pip install . -r benchmarks/requirements.txt
    .bench/bin/python benchmarks/run.py --data-dir DIR

DIR contains covtype.npz and airlines.npz with arrays X and y. Without it, scikit-learn's
fetch_covtype is used and Airlines is skipped. Every library runs in its own process, which has
touched more memory than it will need and keeps it. Libraries run alternately, and ratios are those
of medians in one run. Peak memory is that of a fresh process that keeps no memory, as counted by
the kernel. Results go to benchmarks/results.json, and benchmarks/report.py converts them to
docs/benchmarks.md and its figures. --only, --rows and --data run some of the cases and keep the
results of the others. --quick runs small cases.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

import datasets
import report

HERE = Path(__file__).parent
SCHEMES = ("uniform", "kerf", "gap", "oob")
UNSORTED = {"sort": False}
LARGE = 100_000
WITH_MEMORY = ("matrix", "neighbors", "higgs")
# Keeps glibc's free() from returning memory to the system. Many virtual machines return freed
# memory to their host, and getting it back can take longer than the computation.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**46),
    "MALLOC_ARENA_MAX": "1",
}


def cases(args):
    """Yield (name, data, rows, forest, task, rivals, repeats)."""
    small, middle = (2048, 4096) if args.quick else (16384, 65536)
    large = () if args.quick else (262144,)
    full = () if args.quick else (522910,)
    data_sets = ["covtype", *(["airlines"] if args.data_dir else [])]

    def case(name, rows, task, rivals, repeats=5, data="covtype", **forest):
        return name, data, rows, forest, task, rivals, repeats

    for rows in (small, middle):
        yield case("leaves", rows, {"measure": "leaves"}, ["ours", "sklearn_apply"], 9)
    for data in data_sets:
        for rows in (small, middle):
            for scheme in SCHEMES:
                task = {"measure": "matrix", "scheme": scheme}
                yield case("matrix", rows, task | UNSORTED, ["ours", "forestgeom_"], 3, data=data)
                yield case("matrix sorted", rows, task, ["ours"], 3, data=data)
    for rows in large:
        for scheme in ("kerf", "gap"):
            task = {"measure": "matrix", "scheme": scheme}
            yield case("matrix", rows, task | UNSORTED, ["ours", "forestgeom_"], 2)
        for scheme in ("uniform", "oob"):
            task = {"measure": "matrix", "scheme": scheme}
            yield case("matrix", rows, task | UNSORTED, ["ours"], 2)
    for rows in full:
        for scheme in ("gap", "oob"):
            task = {"measure": "matrix", "scheme": scheme}
            yield case("matrix", rows, task | UNSORTED, ["ours"], 1)
        yield case(
            "neighbors", rows, {"measure": "neighbors", "scheme": "gap", "k": 50}, ["ours"], 1
        )
    for rows in (middle, *large):
        task = {"measure": "product", "scheme": "uniform"}
        repeats = 5 if rows == middle else 2
        yield case("product", rows, task | UNSORTED, ["ours", "scipy_product"], repeats)
        yield case("product sorted", rows, task, ["ours"], repeats)
        yield case("write", rows, {"measure": "write", "scheme": "uniform"}, ["ours"], repeats)
    for scheme in ("uniform", "gap"):
        for columns in (1, 8, 50):
            task = {"measure": "operator", "scheme": scheme, "columns": columns}
            yield case("operator", middle, task, ["ours", "scipy_product"], 9)
        yield case("blocks", middle, {"measure": "blocks", "scheme": scheme}, ["ours"])
    dense = 1024 if args.quick else 4096
    task = {"measure": "matrix", "scheme": "uniform"} | UNSORTED
    yield case(
        "dense", dense, task, ["ours", "rfproximity_", "quantile_forest_", "r_random_forest"], 3
    )
    for leaf in (1, 5, 20, 100):
        for scheme in ("uniform", "gap"):
            task = {"measure": "matrix", "scheme": scheme} | UNSORTED
            yield case("leaf size", small, task, ["ours", "forestgeom_"], 2, min_samples_leaf=leaf)
    for depth in (24, 16, 12, 8):
        task = {"measure": "matrix", "scheme": "uniform"} | UNSORTED
        yield case("depth", small, task, ["ours", "forestgeom_"], 2, max_depth=depth)
    task = {"measure": "matrix", "scheme": "gap"}
    yield case("iris", 150, task, ["ours", "sklearn_apply"], 21, data="iris")
    if not args.quick:
        yield case("higgs", 1_000_000, task | UNSORTED, ["ours"], 1, data="higgs-like")


class Side:
    """A worker process."""

    def __init__(self, rival, forest, args, *, touch=0):
        command = [sys.executable, HERE / "worker.py", rival, forest, args.n_jobs, "--touch", touch]
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(HERE)} | (KEEP_MEMORY if touch else {}),
        )
        self.alive = self.process.stdout.readline().strip() == "ready"

    def run(self, task):
        """Return the measurements of a task, or None after the process has failed."""
        if not self.alive:
            return None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        self.alive = bool(line)
        return json.loads(line) if line else None

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def measure_all(of_forest, args):
    """Run the cases of one forest, alternating between libraries. Yield one record per library."""
    _, data, rows, params, *_ = of_forest[0]
    forest = datasets.fitted(
        data, rows, params, data_dir=args.data_dir, cache=args.cache, n_jobs=args.n_jobs
    )
    touch = 2 if rows < LARGE else 12
    rivals = dict.fromkeys(rival for case in of_forest for rival in case[5])
    sides = {rival: Side(rival, forest, args, touch=touch) for rival in rivals if rows < LARGE}
    for name, _, _, _, task, taking_part, repeats in of_forest:
        found = {rival: [] for rival in taking_part}
        if rows < LARGE:
            turns = [rival for _ in range(repeats) for rival in taking_part]
        else:  # there is memory for only one library at a time
            turns = [rival for rival in taking_part for _ in range(repeats)]
        for turn, rival in enumerate(turns):
            if rival not in sides or not sides[rival].alive:  # it may succeed at another task
                sides[rival] = Side(rival, forest, args, touch=touch)
            result = sides[rival].run(task)
            if result is not None:
                found[rival].append(result)
            if rows >= LARGE and turns[turn + 1 : turn + 2] != [rival]:
                sides.pop(rival).stop()
        for rival, results in found.items():
            record = {"case": name, "data": data, "rows": rows, "forest": params, "task": task}
            record |= {"rival": rival, "repeats": len(results)}
            if results:
                record["seconds"] = statistics.median(r["seconds"] for r in results)
                record["fastest"] = min(r["seconds"] for r in results)
                first = results[0]
                record |= {key: first[key] for key in ("nonzeros", "bytes") if key in first}
                if name in WITH_MEMORY:
                    record |= peak_memory(rival, task, forest, args)
            yield record
    for side in sides.values():
        side.stop()


def peak_memory(rival, task, forest, args):
    """Return the peak memory of a fresh process, total and beyond the forest and its data."""
    alone = Side(rival, forest, args)
    found = alone.run(task)
    alone.stop()
    return (
        {} if found is None else {"peak": found["peak"], "beyond": found["peak"] - found["before"]}
    )


def machine(args):
    packages = ("leafkernel", "numpy", "scipy", "scikit-learn", "forestgeom", "rfproximity")
    versions = {"Python": platform.python_version()}
    for package in (*packages, "quantile-forest"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": args.n_jobs,
        "system": platform.system(),
        "versions": versions,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--cache", default=HERE / "cache", help="where fitted forests are kept")
    parser.add_argument("--output", default=HERE / "results.json", type=Path)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="cases whose name begins so")
    parser.add_argument("--rows", type=int, nargs="*", help="cases of so many rows")
    parser.add_argument("--data", nargs="*", help="cases on these data sets")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()

    records = json.loads(args.output.read_text())["records"] if args.output.exists() else []
    chosen = [
        case
        for case in cases(args)
        if (not args.only or case[0].startswith(tuple(args.only)))
        and (not args.rows or case[2] in args.rows)
        and (not args.data or case[1] in args.data)
    ]
    chosen.sort(key=lambda case: (case[2], case[1], str(case[3])))
    for _, of_forest in groupby(chosen, key=lambda case: case[1:4]):
        for record in measure_all(list(of_forest), args):
            # A case that runs again replaces its earlier records.
            key = ("case", "data", "rows", "forest", "task", "rival")
            records = [r for r in records if any(r[k] != record[k] for k in key)] + [record]
            print(report.line(record), flush=True)
            args.output.write_text(
                json.dumps({"machine": machine(args), "records": records}, indent=1)
            )
    report.write(args.output)


if __name__ == "__main__":
    main()
