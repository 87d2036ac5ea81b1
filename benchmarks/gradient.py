"""Measure time and peak memory of contributions to boosted scores, and of AXIL.

    python benchmarks/gradient.py --data-dir DIR [--rows 262144] [--axil 16384 ... 262144]

Covertype, LightGBM with 200 trees of 31 leaves, two threads. Models are trained once. Each step
runs in a fresh process that loads the model and the rows, fits, and repeats the step at least three
times. Peak memory is that of the whole process. The results go to benchmarks/gradient.json, and
benchmarks/report.py puts them on the results page.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import joblib
import numpy as np
from datasets import load
from lightgbm import LGBMClassifier, LGBMRegressor

from leafkernel import ForestProximity
from leafkernel.tasks import AxilAttribution

THREADS = 2
TREES, LEAVES = 200, 31
QUERIES, NEIGHBORS = 1_000, 50
SIZES = (16_384, 32_768, 65_536, 131_072, 262_144)
STEPS = ("fit", "one row", "one neighbors", "neighbors")


def train(folder, data_dir, n_rows, *, numeric):
    """Train a model on the first rows and store it with them, and with later rows as queries."""
    X, y = load("covtype", data_dir)
    y = (y == 2).astype(np.int64)
    make = LGBMRegressor if numeric else LGBMClassifier
    model = make(n_estimators=TREES, num_leaves=LEAVES, verbose=-1, n_jobs=THREADS)
    begin = perf_counter()
    model.fit(X[:n_rows], y[:n_rows])
    seconds = perf_counter() - begin
    path = folder / f"{'regressor' if numeric else 'classifier'}-{n_rows}.joblib"
    joblib.dump((model, X[:n_rows], y[:n_rows], X[n_rows : n_rows + QUERIES]), path)
    return path, seconds


def timed(work, repeats):
    """Return the result of a function and its median time."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        found = work()
        times.append(perf_counter() - begin)
    return found, median(times)


def peak():
    """Return the peak memory of this process. getrusage would include that of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def step(what, path):
    """Run one step in this process and print its times and peak memory."""
    model, X, y, X_new = joblib.load(path)
    loaded = peak()
    data = (model, X, y, X_new)
    record = axil(*data) if what == "axil" else contributions(what, *data)
    record |= {"step": what, "rows": len(y), "loaded": loaded, "peak": peak()}
    print(json.dumps(record))


def contributions(what, model, X, y, X_new):
    prox, seconds = timed(lambda: ForestProximity(model, "gradient", n_jobs=THREADS).fit(X, y), 1)
    if what == "fit":
        return {"seconds": seconds}
    scores = model.predict(X_new, raw_score=True)
    off = np.abs(prox.weighted_sums(np.ones(len(y)), X_new) + prox.base_score_ - scores).max()
    if off > 1e-5 * np.abs(scores).max():
        raise SystemExit(f"sums of contributions are off by {off:.2g}")
    work = {
        "one row": lambda: prox.proximity(X_new[:1]),
        "one neighbors": lambda: prox.kneighbors(X_new[:1], NEIGHBORS, by="magnitude"),
        "neighbors": lambda: prox.kneighbors(X_new, NEIGHBORS, by="magnitude"),
    }[what]
    return {"seconds": timed(work, 3 if what == "neighbors" else 21)[1], "off": float(off)}


def axil(model, X, y, X_new):
    prox, fit = timed(lambda: ForestProximity(model, "uniform", n_jobs=THREADS).fit(X, y), 1)
    found, prepare = timed(lambda: AxilAttribution(prox), 1)
    operator = found.operator(X_new)
    predicted, product = timed(lambda: operator @ y.astype(np.float64), 3)
    off = np.abs(predicted - model.predict(X_new)).max()
    if off > 1e-4:
        raise SystemExit(f"G @ y is off by {off:.2g}")
    row = timed(lambda: found.weights(X_new[:1]), 3)[1]
    return {"fit": fit, "prepare": prepare, "product": product, "row": row, "off": float(off)}


def fresh(what, path):
    command = [sys.executable, __file__, "--step", what, "--model", str(path)]
    record = json.loads(subprocess.check_output(command, text=True))
    print({key: round(v, 5) if isinstance(v, float) else v for key, v in record.items()})
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory with covtype.npz")
    parser.add_argument("--rows", type=int, nargs="*", default=[SIZES[-1]])
    parser.add_argument("--axil", type=int, nargs="*", default=SIZES)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "gradient.json")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(options.step, options.model)
        return
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in options.rows:
            path, seconds = train(Path(folder), options.data_dir, n_rows, numeric=False)
            records.append({"step": "train", "rows": n_rows, "seconds": seconds})
            records += [fresh(what, path) for what in STEPS]
            path.unlink()
        for n_rows in options.axil:
            path, _ = train(Path(folder), options.data_dir, n_rows, numeric=True)
            records.append(fresh("axil", path))
            path.unlink()
    options.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
