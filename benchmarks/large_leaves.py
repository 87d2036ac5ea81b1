"""Time neighbors with large leaves: lists of leaf members, bit planes, and bounds.

    python benchmarks/large_leaves.py --data-dir DIR [--rows 32768 65536]

Covertype, `kneighbors(10)` of all rows on two threads, with all loops in one run. The run fails
unless all give the same neighbors to the last bit. Lists are timed once, because they take minutes
for 65,536 rows. The others are timed three times, and the median counts. More than 32,768 rows are
measured with LightGBM only.
The results go to benchmarks/large_leaves.json after each line, and benchmarks/report.py puts them
on the results page.
"""

import argparse
import json
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import perf_counter

import numpy as np
from datasets import load
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

from leafkernel import ForestProximity
from leafkernel._native import simd
from leafkernel.engines import NativeEngine
from leafkernel.inside import Inside

THREADS = 2
MODELS = {
    "LightGBM, 100 trees of 31 leaves": (
        lambda: LGBMClassifier(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=THREADS),
        ("uniform", "boosted", "kerf"),
    ),
    "random forest, max_depth=8": (
        lambda: RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=THREADS),
        ("uniform", "kerf", "gap"),
    ),
    "random forest, min_samples_leaf=20": (
        lambda: RandomForestClassifier(100, min_samples_leaf=20, random_state=0, n_jobs=THREADS),
        ("uniform", "gap"),
    ),
}


def timed(engine, product, k, repeats):
    """Return the median time of some runs, and the neighbors."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        found = engine.nearest(product, k)
        times.append(perf_counter() - begin)
    return median(times), found


def compare(name, model, schemes, X, y):
    """Yield one record per scheme."""
    for scheme in schemes:
        prox = ForestProximity(model, scheme, n_jobs=THREADS).fit(X, y)
        product = Inside.of(prox).product()
        record = {"forest": name, "scheme": scheme, "rows": len(y), "simd": simd()}
        record["lists"], expected = timed(NativeEngine(THREADS, loop="lists"), product, 10, 1)
        for loop in ("planes", "bounds", "auto"):
            if loop == "bounds" and product.by_leaf is None:
                continue  # all leaves have the same weight, so bounds save nothing
            record[loop], found = timed(NativeEngine(THREADS, loop=loop), product, 10, 3)
            if not all(map(np.array_equal, found, expected)):
                raise SystemExit(f"{name}, {scheme}: the loops find different neighbors")
        print({key: round(v, 3) if isinstance(v, float) else v for key, v in record.items()})
        yield record


def boost_all(X, y):
    """Return a record of all rows with XGBoost. Its lists would take an hour."""
    model = XGBClassifier(n_estimators=300, max_depth=6, n_jobs=THREADS).fit(X, y - y.min())
    prox = ForestProximity(model, "boosted", n_jobs=THREADS).fit(X, y)
    begin = perf_counter()
    prox.kneighbors(n_neighbors=30)
    seconds = perf_counter() - begin
    record = {"forest": "XGBoost, 300 rounds of depth 6", "scheme": "boosted", "rows": len(y)}
    record |= {"auto": seconds, "trees": prox.n_trees_}
    record["peak"] = getrusage(RUSAGE_SELF).ru_maxrss * 1024
    print(record)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz")
    parser.add_argument("--rows", type=int, nargs="+", default=[32_768])
    parser.add_argument("--boost", type=int, default=131_072, help="rows for XGBoost; 0 for none")
    options = parser.parse_args()
    X, y = load("covtype", options.data_dir)
    records = []

    def keep(record):
        records.append(record)
        path = Path(__file__).parent / "large_leaves.json"
        path.write_text(json.dumps(records, indent=1) + "\n")

    for rows in options.rows:
        for name, (make, schemes) in MODELS.items():
            if rows > 32_768 and not name.startswith("Light"):
                continue
            target = (y[:rows] == 2).astype(int) if name.startswith("Light") else y[:rows]
            model = make().fit(X[:rows], target)
            for record in compare(name, model, schemes, X[:rows], target):
                keep(record)
    if options.boost:
        n = options.boost
        keep(boost_all(X[:n], (y[:n] == 2).astype(int)))


if __name__ == "__main__":
    main()
