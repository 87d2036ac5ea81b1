"""Time `leafkernel explore` without the growth of its forest and without UMAP.

    python benchmarks/explore.py --data-dir DIR [--rows 20000] [--trees 500] [--python OLD NEW]

DIR contains diamonds.npz (arrays X, y, feature_names, categories_*). It is written as CSV, and the
command runs in this process on a random sample of its rows, as in docs/explorer.md. Prints a line
of JSON: the total seconds, the processor time of all threads, the seconds of each part without
nested parts, and how often each part ran.

With --python, the interpreters of two environments with two versions of leafkernel take turns three
times. The medians go to benchmarks/explore.json, and benchmarks/report.py puts them on the results
page.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from functools import wraps
from io import BytesIO, TextIOWrapper
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pandas as pd
import umap  # import before the clock starts, because it takes seconds
from sklearn.ensemble import RandomForestRegressor

TURNS = 3
# Parts of other libraries, which are not in the total.
NOT_OURS = ("forest", "umap")
PARTS = {
    "reading": ["leafkernel.cli._train:read_file"],
    "kinds": ["leafkernel.cli._train:prepare"],
    "routing": ["leafkernel.forests._routing:RouteTable.leaves"],
    "predicting": ["leafkernel.explorer._judgement:Judgement.of"],
    "outliers": ["leafkernel.explorer.report:outlier_scores"],
    "prototypes": ["leafkernel.explorer.report:prototypes"],
    "nearest": ["leafkernel.explorer._rows:PageRows.of"],
    "why": ["leafkernel.explorer._rows:explain_neighbors"],
    "map": ["leafkernel.explorer.report:draw_map"],
    "page": ["leafkernel.explorer._blob:Blob.encode", "leafkernel.explorer.report:Report.save"],
}


class Clock:
    """Seconds and calls of named parts. Time in a nested part counts only for that part."""

    def __init__(self):
        self.seconds, self.cpu, self.calls = Counter(), Counter(), Counter()
        self._inside, self._other = [], np.zeros(2)

    def timed(self, part, function):
        """Return the function, wrapped to count its time for a part."""

        @wraps(function)
        def run(*args, **kwargs):
            nested = part in self._inside
            self._inside.append(part)
            outside, self._other = self._other, np.zeros(2)
            begin = _now()
            try:
                return function(*args, **kwargs)
            finally:
                took = _now() - begin
                self.seconds[part] += took[0] - self._other[0]
                self.cpu[part] += took[1] - self._other[1]
                self.calls[part] += not nested
                self._other = outside + took
                self._inside.pop()

        return run

    def watch(self, part, place):
        """Count the time of a function, given as "module:name" or "module:Class.name"."""
        module, _, name = place.partition(":")
        try:
            owner = importlib.import_module(module)
            *classes, name = name.split(".")
            for each in classes:
                owner = getattr(owner, each)
            found = owner.__dict__[name]
        except (ImportError, AttributeError, KeyError):
            return  # missing in this version of leafkernel: counts for the rest
        if isinstance(found, classmethod):
            setattr(owner, name, classmethod(self.timed(part, found.__func__)))
        else:
            setattr(owner, name, self.timed(part, found))


def _now():
    """Return the time, and the processor time of all threads."""
    return np.array([perf_counter(), process_time()])


def write_diamonds(folder, path):
    """Write the table of diamonds as CSV, with the names of its categories."""
    data = np.load(folder / "diamonds.npz")
    frame = pd.DataFrame(data["X"], columns=data["feature_names"])
    for name in frame.columns:
        if f"categories_{name}" in data:
            frame[name] = data[f"categories_{name}"][frame[name].astype(int)]
    frame["price"] = data["y"].astype(int)
    frame.to_csv(path, index=False)


def compare(options):
    """Time two versions alternately, and write the medians."""
    size = ["--rows", str(options.rows), "--trees", str(options.trees)]
    found = [[], []]
    for _ in range(TURNS):
        for python, runs in zip(options.python, found, strict=True):
            command = [python, __file__, "--data-dir", str(options.data_dir), *size]
            runs.append(json.loads(subprocess.check_output(command)))
            print(runs[-1], file=sys.stderr)
    parts = ["total", "processor"]
    medians = [{part: median(run[part] for run in runs) for part in parts} for runs in found]
    record = {"rows": options.rows, "trees": options.trees, "before": medians[0], "now": medians[1]}
    (Path(__file__).parent / "explore.json").write_text(json.dumps(record, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--python", nargs=2, metavar=("OLD", "NEW"), help="the interpreters")
    options = parser.parse_args()
    if options.python:
        compare(options)
        return

    clock = Clock()
    RandomForestRegressor.fit = clock.timed("forest", RandomForestRegressor.fit)
    umap.UMAP.fit = clock.timed("umap", umap.UMAP.fit)
    app = importlib.import_module("leafkernel.cli.app").app
    for part, places in PARTS.items():
        for place in places:
            clock.watch(part, place)
    with tempfile.TemporaryDirectory() as folder:
        table, page = Path(folder) / "diamonds.csv", Path(folder) / "diamonds.html"
        write_diamonds(options.data_dir, table)
        command = f"explore {table} --target price --max-rows {options.rows} -o {page} -q"
        with redirect_stdout(TextIOWrapper(BytesIO())):
            arguments = [*command.split(), "--trees", str(options.trees)]
            clock.timed("rest", app)(arguments, standalone_mode=False)
    seconds = {part: round(float(each), 2) for part, each in clock.seconds.items()}
    left_out = {part: seconds.pop(part) for part in NOT_OURS}
    ours = sum(each for part, each in clock.cpu.items() if part not in NOT_OURS)
    totals = {"total": round(sum(seconds.values()), 2), "processor": round(float(ours), 2)}
    print(json.dumps({**totals, **seconds, "left_out": left_out, "calls": clock.calls}))


if __name__ == "__main__":
    main()
