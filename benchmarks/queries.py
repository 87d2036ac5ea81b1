"""Time a few new rows, and all training rows, before and after a change.

    python benchmarks/queries.py --data-dir DIR --python OLD NEW

OLD and NEW are Python interpreters of environments with two versions of leafkernel. They run
alternately, three times each: a few new rows on one thread, all rows on two. The medians go to
benchmarks/queries.json, and benchmarks/report.py puts them on the results page.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import perf_counter

import joblib
import numpy as np

ROWS = (65_536, 131_072)
TREES = 50
TURNS, REPEATS = 3, 20
SCHEMES = ("uniform", "kerf", "gap", "oob", "oob_separable")


def measure(path):
    """Return the milliseconds of each query, by name."""
    from leafkernel import ForestProximity  # noqa: PLC0415 - of the version to measure
    from leafkernel.tasks import ProximityClassifier, explain_prediction  # noqa: PLC0415

    forest, X, y, new = joblib.load(path)
    forest.n_jobs = 1
    gap, kerf = (ForestProximity(forest, scheme).fit(X, y) for scheme in ("gap", "kerf"))
    classifier = ProximityClassifier(gap).fit(X, y)
    one, values = new[:1], y.astype(float)
    targets = {} if hasattr(gap, "y_") else {"y": y}  # old versions do not store them
    queries = {
        "`weighted_average`, gap, 1 row": lambda: gap.weighted_average(values, one),
        "`explain_prediction`, gap, 1 row": lambda: explain_prediction(gap, x=one, **targets),
        "`ProximityClassifier.predict_proba`, gap, 1 row": lambda: classifier.predict_proba(one),
        "`kneighbors`, gap, 1 row": lambda: gap.kneighbors(one),
        "`kneighbors`, kerf, 1 row": lambda: kerf.kneighbors(one),
        "`weighted_average`, gap, 100 rows": lambda: gap.weighted_average(values, new),
        "`ProximityClassifier.predict_proba`, gap, 100 rows": lambda: classifier.predict_proba(new),
    }
    return {name: 1000 * _time(query) for name, query in queries.items()}


def measure_all(path):
    """Return the milliseconds of work on all training rows, by name, and the peak memory in MB."""
    from leafkernel import ForestProximity  # noqa: PLC0415 - of the version to measure

    forest, X, y, _ = joblib.load(path)
    vectors = np.random.default_rng(0).random((len(X), 4))
    found = {}
    for scheme in SCHEMES:
        prox = ForestProximity(forest, scheme, n_jobs=2)
        work = {
            "fit": lambda prox=prox: prox.fit(X, y),
            "proximity": lambda prox=prox: prox.proximity(),
            "kneighbors": lambda prox=prox: prox.kneighbors(),
        }
        for name, run in work.items():
            found[f"`{name}`, {scheme}"] = 1000 * _time(run, 3)
        if scheme != "oob":  # it has no operator
            product = prox.operator()
            found[f"`operator`, 4 vectors, {scheme}"] = 1000 * _time(
                lambda p=product: p @ vectors, 9
            )
    found["peak memory, MB"] = getrusage(RUSAGE_SELF).ru_maxrss / 1000
    return found


def _time(query, repeats=REPEATS):
    query()
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        query()
        times.append(perf_counter() - begin)
    return median(times)


def compare(pythons, what, path, rows):
    """Return the medians of both versions, which run alternately."""
    found = [[], []]
    for _ in range(TURNS):
        for python, runs in zip(pythons, found, strict=True):
            command = [python, __file__, "--worker", what, str(path)]
            runs.append(json.loads(subprocess.check_output(command)))
    records = []
    for name in found[0][0]:
        before, now = (median(run[name] for run in runs) for runs in found)
        records.append({"of": what, "query": name, "rows": rows, "before": before, "now": now})
        print(f"{rows:>8,}  {before:7.2f}  {now:7.2f}  {name}", file=sys.stderr)
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz")
    parser.add_argument("--python", nargs=2, metavar=("OLD", "NEW"), help="the interpreters")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        what, path = options.worker
        print(json.dumps((measure_all if what == "all" else measure)(path)))
        return
    if not options.python:
        parser.error("give the interpreters of two environments with --python")
    from datasets import load  # noqa: PLC0415 - the workers need no data
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    X, y = load("covtype", options.data_dir)
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS:
            forest = RandomForestClassifier(TREES, random_state=0, n_jobs=-1)
            path = Path(folder) / f"{rows}.joblib"
            new = X[rows : rows + 100]
            joblib.dump((forest.fit(X[:rows], y[:rows]), X[:rows], y[:rows], new), path)
            for what in ("few", "all") if rows == ROWS[0] else ("few",):
                records += compare(options.python, what, path, rows)
    target = Path(__file__).parent / "queries.json"
    target.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
