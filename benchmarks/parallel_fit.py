"""Time `fit` and its steps with different numbers of threads.

    python benchmarks/parallel_fit.py --data-dir DIR [--rows 262144] [--threads 1 2 4 8 16]

Covertype, a random forest of 100 deep trees, `gap`. Each round runs every number of threads, in one
process, and the table shows the medians. The last column is the speedup of the most threads over
one. The forest is stored in --cache, because it takes minutes to grow.

To compare two versions, run both on the same machine. `--json` stores the numbers, and `--before`
adds those of another run to the table.
"""

import argparse
import gc
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from time import perf_counter

import joblib
from datasets import fitted

import leafkernel._native as core
from leafkernel import ForestProximity, incidence
from leafkernel.forests import scikit_learn

# The object and function name of each step. Steps that a version lacks are skipped.
STEPS = {
    "pack trees": [(core, "pack_trees")],
    "check X": [(scikit_learn.BaggedForest, "validate")],
    "route": [(core, "route_dense")],
    "draw": [(scikit_learn, "recover_in_bag")],
    "check leaf ids": [(core, "Incidence")],
    "leaf masses": [(core, "leaf_masses")],
    "check leaf masses": [(scikit_learn, "check_leaf_masses")],
    "order rows": [(incidence.Incidence, "locality_order")],
    "list by leaf": [(core, "list_by_leaf")],
}
TOTAL, OTHERS = "fit", "all others"


def watch(seconds):
    """Make each step add its time to a dictionary."""

    def timed(step, call):
        def wrapper(*args, **params):
            begin = perf_counter()
            try:
                return call(*args, **params)
            finally:
                seconds[step] += perf_counter() - begin

        return wrapper

    for step, places in STEPS.items():
        for owner, name in places:
            if hasattr(owner, name):
                setattr(owner, name, timed(step, getattr(owner, name)))


def measure(forest, X, y, threads, rounds):
    """Return the median seconds of each step and of all, for each number of threads."""
    seconds = defaultdict(float)
    watch(seconds)
    runs = {n: defaultdict(list) for n in threads}
    for turn in range(rounds + 1):
        for n in threads:
            seconds.clear()
            begin = perf_counter()
            prox = ForestProximity(forest, "gap", n_jobs=n).fit(X, y)
            total = perf_counter() - begin
            del prox
            gc.collect()
            if turn == 0:  # warm up memory and caches
                continue
            for step in STEPS:
                runs[n][step].append(seconds[step])
            runs[n][OTHERS].append(total - sum(seconds.values()))
            runs[n][TOTAL].append(total)
    return {n: {step: median(times) for step, times in runs[n].items()} for n in threads}


def as_table(found, before):
    """Return the medians in milliseconds as a table in Markdown."""
    threads = list(found)
    least, most = min(threads), max(threads)
    heads = ["step", *(f"{n} thread{'s' * (n > 1)}" for n in threads), f"{most} against {least}"]
    if before:
        heads[1:1] = [f"before, {n}" for n in threads if str(n) in before]
    lines = ["| " + " | ".join(heads) + " |", "| --- " + "| ---: " * (len(heads) - 1) + "|"]
    for step in (*STEPS, OTHERS, TOTAL):
        earlier = [before[str(n)].get(step, 0.0) for n in threads if str(n) in before]
        times = [found[n][step] for n in threads]
        ratio = found[least][step] / max(found[most][step], 1e-9)
        cells = [step, *(f"{1e3 * t:,.1f}" for t in (*earlier, *times)), f"{ratio:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz")
    parser.add_argument("--rows", type=int, default=262_144)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", default="benchmarks/cache", help="where to keep the forest")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    parser.add_argument("--before", type=Path, help="numbers of another run, to put beside these")
    options = parser.parse_args()
    params = {"n_estimators": options.trees}
    source = {"data_dir": options.data_dir, "cache": options.cache, "n_jobs": -1}
    forest, X, y = joblib.load(fitted("covtype", options.rows, params, **source))
    found = measure(forest, X, y, options.threads, options.rounds)
    before = json.loads(options.before.read_text()) if options.before else {}
    print(
        f"Milliseconds, {len(y):,} rows, {options.trees} trees, Python {sys.version.split()[0]}:\n"
    )
    print(as_table(found, before))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
