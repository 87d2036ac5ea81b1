"""Time all of P with large leaves or many equal rows: lists only, and the automatic choice.

    python benchmarks/full_rows.py --data-dir DIR

The time from a fitted forest and X to P, on two threads. Both variants run alternately, three
times, in one process that has touched the memory before and keeps it. The medians count. "write" is
the time to write as many bytes as P has. The results go to benchmarks/full_rows.json, and
benchmarks/report.py puts them on the results page.
"""

import argparse
import gc
import json
import os
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from datasets import load
from run import KEEP_MEMORY
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel._native import simd
from leafkernel.engines import NativeEngine, twins

THREADS = 2
CASES = [  # data, rows, forest, schemes
    ("covtype", 16_384, {"max_depth": 8}, ("uniform", "kerf", "gap", "oob")),
    ("covtype", 65_536, {"min_samples_leaf": 20}, ("gap",)),
    ("airlines", None, {}, ("uniform", "kerf")),
]


def timed(run):
    """Return the time of a run and its result."""
    gc.collect()
    begin = perf_counter()
    result = run()
    return perf_counter() - begin, result


def write_as_many(n_bytes):
    """Write bytes with NumPy."""
    return np.full(n_bytes // 8, 1.0)


def measure(data, model, X, y, scheme, repeats):
    """Return a record with the medians of all variants."""
    times = {name: [] for name in ("lists", "auto", "fit", "dense", "write")}
    distinct = twins._FEW
    for _ in range(repeats):
        for loop in ("lists", "auto"):
            twins._FEW = distinct if loop == "auto" else 10**9
            prox = ForestProximity(model, scheme, engine=NativeEngine(THREADS, loop=loop))
            fit, prox = timed(lambda prox=prox: prox.set_params(n_jobs=THREADS).fit(X, y))
            seconds, P = timed(prox.proximity)
            nonzeros, size = P.nnz, P.data.nbytes + P.indices.nbytes + P.indptr.nbytes
            del P
            times[loop].append(fit + seconds)
            if loop == "auto":
                times["fit"].append(fit)
        if nonzeros > len(y) ** 2 / 4:
            times["dense"].append(timed(lambda prox=prox: prox.proximity(dense=True))[0])
        times["write"].append(timed(lambda size=size: write_as_many(size))[0])
    record = {"data": data, "rows": len(y), "scheme": scheme, "simd": simd()}
    record |= {"nonzeros": nonzeros, "bytes": size}
    return record | {name: median(found) for name, found in times.items() if found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz and airlines.npz")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-rows", type=int, help="fewer rows, to try it")
    options = parser.parse_args()
    records = []
    for data, rows, params, schemes in CASES:
        if data == "airlines" and not options.data_dir:
            print("airlines is left out: it needs --data-dir")
            continue
        X, y = load(data, options.data_dir)
        n = min(rows or len(y), options.most_rows or len(y))
        X, y = X[:n], y[:n]
        model = RandomForestClassifier(100, random_state=0, n_jobs=-1, **params).fit(X, y)
        write_as_many(6 * 10**9 // (1 if n > 20_000 else 3))
        for scheme in schemes:
            record = measure(data, model, X, y, scheme, options.repeats)
            record["forest"] = ", ".join(f"{k}={v}" for k, v in params.items()) or "default"
            print(
                {k: round(v, 3) if isinstance(v, float) else v for k, v in record.items()},
                flush=True,
            )
            records.append(record)
    path = Path(__file__).parent / "full_rows.json"
    path.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in KEEP_MEMORY.items()):
        # The allocator reads these settings when the process starts.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEP_MEMORY)
    main()
