"""Time ``proximity()`` against SciPy's product of the same two maps, in one process.

    python benchmarks/product.py --data-dir DIR [--rows 16384 65536] [--n-jobs 2]

DIR holds covtype.npz with arrays X and y; without it, scikit-learn's fetch_covtype is used. Memory
is touched and freed first, the two sides take turns, and the ratio is that of medians.
"""

import argparse
import os
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.datasets import fetch_covtype, load_iris
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity

SCHEMES = ("uniform", "kerf", "gap", "oob_separable")


def load(data_dir):
    if data_dir is None:
        return fetch_covtype(return_X_y=True)
    with np.load(Path(data_dir) / "covtype.npz") as data:
        return data["X"], data["y"]


def seconds(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def compare(name, forest, X, y, args):
    for scheme in SCHEMES:
        prox = ForestProximity(forest, scheme, n_jobs=args.n_jobs).fit(X, y)
        Q, Wt = prox.query_map(), prox.reference_map().T.tocsr()
        ours, theirs = [], []
        for _ in range(args.repeat):
            took, P = seconds(prox.proximity)
            ours.append(took)
            nonzeros = P.nnz
            del P
            took, P = seconds(lambda Q=Q, Wt=Wt: Q @ Wt)
            theirs.append(took)
            assert P.nnz >= nonzeros
            del P
        a, b = statistics.median(ours), statistics.median(theirs)
        print(
            f"| {name} | {len(y):,} | {scheme} | {nonzeros / len(y):,.0f} | {a:.4f} s | {b:.4f} s "
            f"| {b / a:.1f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--rows", type=int, nargs="+", default=[16384, 65536])
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()

    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"{args.n_jobs} threads, float32, 100 trees, median of {args.repeat}\n"
    )
    print("| data | rows | scheme | nonzeros a row | leafkernel | SciPy | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    np.ones(400_000_000).sum()  # touch 3 GB, so that no side pays for fresh pages
    X, y = load_iris(return_X_y=True)
    compare("iris", RandomForestClassifier(random_state=0).fit(X, y), X, y, args)
    X, y = load(args.data_dir)
    order = np.random.default_rng(0).permutation(len(y))
    for n_rows in args.rows:
        rows = order[:n_rows]
        sample = np.ascontiguousarray(X[rows], dtype=np.float32)
        forest = RandomForestClassifier(n_jobs=args.n_jobs, random_state=0).fit(sample, y[rows])
        compare("Covertype", forest, sample, y[rows], args)


if __name__ == "__main__":
    main()
