"""Time kernels that compare whole paths: products with a vector, and neighbors.

    python benchmarks/paths.py --data-dir DIR [--rows 16384 ... 522910] [--threads 1]

Covertype, random forests of 100 trees with default settings. A product with `pbk` is timed in turns
with a product with `uniform`, and medians of seven count. Neighbors of all rows are timed once, and
the share of (pair, tree) combinations that the search did not look at is counted. The results go to
benchmarks/paths.json after each line, and benchmarks/report.py puts them on the results page.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from datasets import load
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.inside import Inside
from leafkernel.schemes import PathDecay, RandomPartition

TREES, REPEATS, NEIGHBORS = 100, 7, 10
SIZES = (16_384, 32_768, 65_536, 131_072, 262_144, 522_910)
SCHEMES = (PathDecay(2.0), PathDecay(1.0), PathDecay(0.5), PathDecay(0.1), RandomPartition())


def products(uniform, pbk, n_rows):
    """Return the median times of a product with each kernel, timed in turns."""
    vector = np.random.default_rng(0).normal(size=n_rows)
    operators = {"uniform": uniform.operator(), "pbk": pbk.operator()}
    times = {name: [] for name in operators}
    for repeat in range(REPEATS + 1):
        for name, operator in operators.items():
            begin = perf_counter()
            operator @ vector
            if repeat:  # the first one prepares the index
                times[name].append(perf_counter() - begin)
    return {name: median(found) for name, found in times.items()}


def neighbors(prox):
    """Return the time for the neighbors of all rows, and the share of the work that was saved."""
    inside = Inside.of(prox)
    product = inside.product()
    begin = perf_counter()
    looks = inside.engine.nearest_and_looks(product, NEIGHBORS)[2]
    seconds = perf_counter() - begin
    all_looks = product.shape[0] * product.shape[1] * prox.n_trees_
    return {"seconds": seconds, "saved": 1 - int(looks.sum()) / all_looks}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz")
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--neighbors", type=int, default=65_536, help="rows for neighbors")
    options = parser.parse_args()
    X, y = load("covtype", options.data_dir)
    records = []

    def keep(**record):
        records.append(record | {"threads": options.threads})
        print({key: round(v, 5) if isinstance(v, float) else v for key, v in record.items()})
        path = Path(__file__).parent / "paths.json"
        path.write_text(json.dumps(records, indent=1) + "\n")

    for rows in sorted({*options.rows, options.neighbors} - {0}):
        forest = RandomForestClassifier(TREES, random_state=0, n_jobs=2).fit(X[:rows], y[:rows])
        prox = ForestProximity(forest, "uniform", n_jobs=options.threads).fit(X[:rows], y[:rows])
        path = prox.reweigh("pbk")
        n_nodes = path.kernel_.nodes.trees.n_nodes
        if rows in options.rows:
            keep(what="product", rows=rows, nodes=n_nodes, **products(prox, path, rows))
        if rows == options.neighbors:
            begin = perf_counter()
            prox.kneighbors(n_neighbors=NEIGHBORS)
            seconds = perf_counter() - begin
            keep(what="neighbors", rows=rows, scheme="uniform", seconds=seconds)
            for scheme in SCHEMES:
                name = f"pbk, λ = {scheme.decay:g}" if scheme.name == "pbk" else scheme.name
                keep(what="neighbors", rows=rows, scheme=name, **neighbors(prox.reweigh(scheme)))


if __name__ == "__main__":
    main()
