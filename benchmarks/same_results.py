"""Check that results in memory, mapped from files, out of core and on Dask are equal.

    python benchmarks/same_results.py --data-dir DIR [--rows 20000]

Covertype, 50 trees, all training rows and 2,000 new ones, four schemes. Proximities, neighbors
and their order must agree to the last bit. Sums are added in another order, so they agree up to
rounding. Prints one line per scheme and variant, and fails if anything differs.
"""

import argparse
import tempfile
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from datasets import load
from sklearn.ensemble import RandomForestClassifier

from leafkernel import Batches, ForestProximity

SCHEMES = ("gap", "kerf", "uniform", "oob")
TREES, NEW, NEIGHBORS = 50, 2_000, 30


def ways(forest, scheme, X, y, folder):
    """Yield a name and a proximity for each variant of fit."""
    whole = ForestProximity(forest, scheme, n_jobs=2).fit(X, y)
    yield "in memory", whole
    yield "mapped", ForestProximity.load(whole.save(folder / f"{scheme}-mapped"))
    few = ForestProximity(forest, scheme, n_jobs=2, max_memory="16MB")
    few.fit(Batches.from_arrays(X, y, batch_rows=3_000), folder=folder / f"{scheme}-batches")
    few.max_memory = None
    yield f"out of core, {len(few.kernel_.index.parts)} parts", few
    lazy = ForestProximity(forest, scheme)
    yield "Dask, 5 parts", lazy.fit(da.from_array(X, chunks=(len(X) // 5, X.shape[1])), y)


def results(prox, X_new, values):
    """Return the results to compare: exact ones and sums."""
    exact, sums = [], []
    for X in (None, X_new):
        P, nearest, average = dask.compute(  # leaves results that are not lazy unchanged
            prox.proximity(X), prox.kneighbors(X, NEIGHBORS), prox.weighted_average(values, X)
        )
        exact += [P.indptr, P.indices, P.data, *nearest]
        sums.append(average)
    return exact, sums


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz")
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    X, y = load("covtype", options.data_dir)
    n = options.rows
    X, y, new = X[:n], y[:n], X[n : n + NEW]
    forest = RandomForestClassifier(TREES, random_state=0, n_jobs=2).fit(X, y)
    values = (y[:, None] == np.unique(y)).astype(float)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for scheme in SCHEMES:
            expected = None
            for name, prox in ways(forest, scheme, X, y, Path(folder)):
                found = results(prox, new, values)
                expected = expected or found
                same = all(map(np.array_equal, found[0], expected[0]))
                off = max(np.abs(a - b).max() for a, b in zip(found[1], expected[1], strict=True))
                failed |= not same or not off < 1e-12
                entries = f"{len(found[0][2]):,} proximities"
                print(
                    f"{scheme:8} {name:24} {entries}: {'same' if same else 'OTHER'}, sums {off:.0e}"
                )
    if failed:
        raise SystemExit("results differ")


if __name__ == "__main__":
    main()
