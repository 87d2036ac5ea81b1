"""Time fit and neighbors for Parquet files that are larger than the memory limit.

    python benchmarks/scale.py --folder DIR [--rows 10000000] [--queries 1000000] [--memory 6GB]
    python benchmarks/scale.py --folder DIR --rows 1000000 2000000 5000000 10000000 --queries 100000

Generated HIGGS-like rows are written to Parquet files in DIR, which need about 8 GB of disk for 10
million rows. The scheme is "kerf" with a forest of 50 trees, grown once on 100,000 rows. Each step
runs in its own process, whose peak memory is measured, with and without memory mapped from files.
With --dask, the fit and the neighbors run on a Dask cluster of two processes instead, whose memory
is not measured. The results go to benchmarks/scale.json.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter, sleep

import joblib

TREES, GROWN_ON, NEIGHBORS = 50, 100_000, 30
ROWS_PER_FILE = 1_000_000
NAMES = [f"x{i}" for i in range(28)]


def generate(folder, n_rows):
    """Write missing files, and grow the forest on the first rows."""
    import pandas as pd  # noqa: PLC0415 - the measured steps must not import it here
    from datasets import higgs_like  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(-(-n_rows // ROWS_PER_FILE) + 1):  # the last file contains queries
        path = folder / ("queries.parquet" if i * ROWS_PER_FILE >= n_rows else f"{i:04}.parquet")
        if not path.exists():
            X, y = higgs_like(ROWS_PER_FILE, seed=99_999 if path.stem == "queries" else i)
            frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
            frame.to_parquet(path, row_group_size=100_000)
    if not (folder / "forest.joblib").exists():
        X, y = higgs_like(GROWN_ON, seed=0)
        forest = RandomForestClassifier(TREES, random_state=0, n_jobs=2)
        joblib.dump(forest.fit(pd.DataFrame(X, columns=NAMES), y), folder / "forest.joblib")


class PeakMemory:
    """The largest private memory of this process, sampled twenty times a second."""

    def __init__(self):
        self.private = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.private = max(self.private, int(line.split()[1]) * 1024)
            sleep(0.05)


def step(what, folder, n_rows, n_queries, memory):
    """Run one step and print its time and its peak memory."""
    from leafkernel import Batches, ForestProximity  # noqa: PLC0415

    peak = PeakMemory()
    kernel = folder / f"kernel-{n_rows}"
    forest = joblib.load(folder / "forest.joblib")
    forest.n_jobs = 2
    files = [folder / f"{i:04}.parquet" for i in range(n_rows // ROWS_PER_FILE)]
    begin = perf_counter()
    if what == "fit":
        shutil.rmtree(kernel, ignore_errors=True)  # an existing fit would be opened
        prox = ForestProximity(forest, "kerf", max_memory=memory, n_jobs=2)
        prox.fit(Batches.from_parquet(files, target="y"), folder=kernel)
        parts = len(getattr(prox.kernel_.index, "parts", [0]))
    else:
        prox = ForestProximity.load(kernel, verify=False)
        parts = perf_counter() - begin  # the time to open
        rows = min(n_queries, ROWS_PER_FILE)
        every = Batches.from_parquet(folder / "queries.parquet", columns=NAMES, batch_rows=1 << 16)

        def read():
            left = rows
            for batch in every:
                yield batch.X.iloc[:left]
                left -= batch.n_rows
                if left <= 0:
                    return

        out = folder / "neighbors.parquet"
        out.unlink(missing_ok=True)
        prox.write_neighbors(out, Batches.from_function(read, n_rows=rows), NEIGHBORS)
    record = {
        "step": what,
        "rows": n_rows,
        "queries": n_queries,
        "seconds": perf_counter() - begin,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "private": peak.private,
        "parts" if what == "fit" else "opened": parts,
        "memory": memory,
    }
    print(json.dumps(record))


def step_on_dask(folder, n_rows, n_queries):
    """Run both steps on two worker processes, and print their times."""
    import dask  # noqa: PLC0415
    import dask.dataframe as dd  # noqa: PLC0415
    from distributed import Client, LocalCluster  # noqa: PLC0415

    from leafkernel import ForestProximity  # noqa: PLC0415

    forest = joblib.load(folder / "forest.joblib")
    files = [str(folder / f"{i:04}.parquet") for i in range(n_rows // ROWS_PER_FILE)]
    queries = dd.read_parquet(folder / "queries.parquet")[NAMES].head(n_queries, npartitions=-1)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        begin = perf_counter()
        prox = ForestProximity(forest, "kerf").fit(dd.read_parquet(files)[NAMES])
        fitted = perf_counter()
        dask.compute(*prox.kneighbors(queries, NEIGHBORS))
        found = perf_counter()
    for what, seconds in (("Dask fit", fitted - begin), ("Dask neighbors", found - fitted)):
        print(json.dumps({"step": what, "rows": n_rows, "queries": n_queries, "seconds": seconds}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where to put the data")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--memory", default="6GB", help="max_memory of the fit")
    parser.add_argument("--dask", action="store_true", help="on a cluster of two processes")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "dask":
        step_on_dask(options.folder, options.rows[0], options.queries)
        return
    if options.step:
        step(options.step, options.folder, options.rows[0], options.queries, options.memory)
        return
    target = Path(__file__).parent / "scale.json"
    known = json.loads(target.read_text()) if target.exists() else []
    for n_rows in options.rows:
        generate(options.folder, n_rows)
        for what in ("dask",) if options.dask else ("fit", "neighbors"):
            command = [sys.executable, __file__, "--folder", options.folder, "--step", what]
            command += ["--rows", str(n_rows), "--queries", str(options.queries)]
            command += ["--memory", options.memory]
            for line in subprocess.check_output([*map(str, command)], text=True).splitlines():
                found = json.loads(line)
                print({key: round(v, 2) if isinstance(v, float) else v for key, v in found.items()})
                same = ("step", "rows", "queries")
                known = [old for old in known if any(old[key] != found[key] for key in same)]
                known.append(found)
    target.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
