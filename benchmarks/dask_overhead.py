"""Measure the overhead of Dask: two worker processes against two threads in one process.

Both find the nearest neighbors of all training rows, with the same forest on the same rows. The
data resemble HIGGS: 28 columns and two overlapping classes. Prints seconds and ratios as JSON.

    python benchmarks/dask_overhead.py --rows 300000 --trees 50
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import import_module
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity


def make_rows(n_rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows that resemble HIGGS: 28 columns and two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 28)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) - X[:, 3] ** 2 / 2 + rng.normal(size=n_rows)
    return X, (signal > np.median(signal)).astype(int)


def timed(work: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--neighbors", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheme", default="gap")
    parser.add_argument("--min-leaf", type=int, default=5)
    parser.add_argument("--grown-on", type=int, help="rows to grow the forest on, for 'kerf'")
    parser.add_argument("--scheduler", help="address of a running scheduler, instead of a new one")
    given = parser.parse_args()

    X, y = make_rows(given.rows)
    forest = RandomForestClassifier(
        given.trees, min_samples_leaf=given.min_leaf, n_jobs=given.workers, random_state=0
    ).fit(X[: given.grown_on], y[: given.grown_on])
    k = given.neighbors

    alone = ForestProximity(forest, given.scheme, n_jobs=given.workers)
    fit_alone, _ = timed(lambda: alone.fit(X, y))
    find_alone, expected = timed(lambda: alone.kneighbors(n_neighbors=k))

    cluster = None
    if given.scheduler is None:
        cluster = LocalCluster(
            n_workers=given.workers, threads_per_worker=1, dashboard_address=None
        )
    with Client(given.scheduler or cluster) as client:
        size = -(-given.rows // given.partitions)
        rows = da.from_array(X, chunks=(size, -1)).persist()
        targets = da.from_array(y, chunks=size).persist()
        wait([rows, targets])
        client.run(import_module, "leafkernel.dask")  # do not measure the import
        spread = ForestProximity(forest, given.scheme)
        fit_spread, _ = timed(lambda: spread.fit(rows, targets))
        find_spread, found = timed(lambda: dask.compute(*spread.kneighbors(n_neighbors=k)))
        n_workers = len(client.scheduler_info()["workers"])
    if cluster is not None:
        cluster.close()

    result = {
        **vars(given),
        "n_workers": n_workers,
        "same": all(map(np.array_equal, expected, found)),
        "seconds": {
            "threads": {"fit": fit_alone, "kneighbors": find_alone},
            "workers": {"fit": fit_spread, "kneighbors": find_spread},
        },
        "ratio": {
            "fit": fit_spread / fit_alone,
            "kneighbors": find_spread / find_alone,
            "both": (fit_spread + find_spread) / (fit_alone + find_alone),
        },
    }
    print(json.dumps(result, indent=2, default=lambda value: round(float(value), 3)))


if __name__ == "__main__":
    main()
