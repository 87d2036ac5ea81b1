"""Time `leafkernel explore` without the growth of its forest and without UMAP.

    python benchmarks/explore.py --data-dir DIR [--rows 20000] [--trees 500]

DIR holds diamonds.npz (arrays X, y, feature_names, categories_*). It is written as CSV, and the
command runs in this process on a random sample of its rows, as in docs/explorer.md. Prints a line
of JSON: the seconds in total, those of each part without the parts inside it, and how often each
part ran.
"""

import argparse
import importlib
import json
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from functools import wraps
from io import BytesIO, TextIOWrapper
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import umap  # before the clock starts: it takes seconds to import
from sklearn.ensemble import RandomForestRegressor

# Parts that are not ours, and so not in the total.
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
    """Seconds and calls of named parts; time inside another part counts for that one alone."""

    def __init__(self):
        self.seconds, self.calls, self._inside = Counter(), Counter(), []

    def timed(self, part, function):
        """Return the function with its time counted for a part."""

        @wraps(function)
        def run(*args, **kwargs):
            nested = part in self._inside
            self._inside.append(part)
            outside, self._other = getattr(self, "_other", 0.0), 0.0
            begin = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = perf_counter() - begin
                self.seconds[part] += took - self._other
                self.calls[part] += not nested
                self._other = outside + took
                self._inside.pop()

        return run

    def watch(self, part, place):
        """Count the time of a function, given as "module:name" or "module:Class.name"."""
        module, _, name = place.partition(":")
        owner = importlib.import_module(module)
        *classes, name = name.split(".")
        for each in classes:
            owner = getattr(owner, each)
        found = owner.__dict__[name]
        if isinstance(found, classmethod):
            setattr(owner, name, classmethod(self.timed(part, found.__func__)))
        else:
            setattr(owner, name, self.timed(part, found))


def write_diamonds(folder, path):
    """Write the table of diamonds as CSV, with the names of its categories."""
    data = np.load(folder / "diamonds.npz")
    frame = pd.DataFrame(data["X"], columns=data["feature_names"])
    for name in frame.columns:
        if f"categories_{name}" in data:
            frame[name] = data[f"categories_{name}"][frame[name].astype(int)]
    frame["price"] = data["y"].astype(int)
    frame.to_csv(path, index=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()

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
        begin = perf_counter()
        with redirect_stdout(TextIOWrapper(BytesIO())):
            app([*command.split(), "--trees", str(options.trees)], standalone_mode=False)
        whole = perf_counter() - begin
    clock.seconds["rest"] = whole - sum(clock.seconds.values())
    ours = {part: round(s, 2) for part, s in clock.seconds.items() if part not in NOT_OURS}
    left_out = {part: round(clock.seconds[part], 2) for part in NOT_OURS}
    total = round(sum(ours.values()), 2)
    print(json.dumps({"total": total, **ours, "left_out": left_out, "calls": clock.calls}))


if __name__ == "__main__":
    main()
