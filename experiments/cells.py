"""Run experiments, which are lists of cells. Finished cells are stored and not run again."""

import csv
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments import datasets

HERE = Path(__file__).parent
PATHS = ("data", "forestgeom", "cache", "results", "figures")  # options that are paths


class ClaimError(Exception):
    """A claim of an experiment does not hold."""


class MissingDataError(Exception):
    """A data set of an experiment is missing."""


@dataclass(frozen=True)
class Options:
    """The options of every experiment."""

    data: Path | None = None
    quick: bool = False
    repeats: int = 5
    seed: int = 0
    n_jobs: int = 2
    max_rows: int | None = None
    datasets: tuple = ()
    forestgeom: Path | None = None
    cache: Path = HERE / "cache"
    results: Path = HERE / "results"
    figures: Path = HERE.parent / "docs" / "images"

    def seed_of(self, repeat):
        """Return the seed of a repeat, which determines the split, the sample and the forest."""
        return 1000 * self.seed + repeat

    def chosen(self, names):
        """Return the selected data sets, out of those that an experiment supports."""
        return [name for name in names if not self.datasets or name in self.datasets]

    def sizes(self, sizes, largest):
        """Return the sizes of a data set in ascending order, up to `max_rows`."""
        limit = min(largest, self.max_rows or largest)
        return [*(size for size in sizes if size < limit), limit]


def run(name, experiment, options):
    """Run unfinished cells, write the CSV file and the figure, and check the claims.

    Return False if there was nothing to run.
    """
    cells = experiment.cells(options)
    if not cells:
        print(f"{name}: none of its data sets was asked for", flush=True)
        return False
    needed = dict.fromkeys(cell["dataset"] for cell in cells)
    missing = [each for each in needed if not datasets.available(each, options.data)]
    if missing:
        told = "\n".join(datasets.wanted(each, options.data) for each in missing)
        raise MissingDataError(f"{name} needs {', '.join(missing)}:\n{told}")
    folder = options.cache / ("quick" if options.quick else f"seed-{options.seed}") / name
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, cell in enumerate(cells, 1):
        path = folder / f"{label(cell)}.json"
        print(f"[{number}/{len(cells)}] {name}: {describe(cell)}", end=" ... ", flush=True)
        if path.exists():
            print("kept", flush=True)
        else:
            begin = time.perf_counter()
            compute(name, experiment, cell, path, options)
            print(f"{time.perf_counter() - begin:.1f} s", flush=True)
        rows += [{**cell, **record} for record in json.loads(path.read_text())]
    write_csv(rows, options.results / f"{name}.csv")
    experiment.draw(rows, folder, options)
    check(name, experiment, rows, options)
    return True


def compute(name, experiment, cell, path, options):
    """Compute one cell in its own process. Quick cells run in this process.

    So do the cells of an experiment with `IN_PROCESS`, which share fitted models.
    """
    if options.quick or getattr(experiment, "IN_PROCESS", False):
        keep(experiment.compute(cell, path, options), path)
        return
    python = options.forestgeom if cell.get("library") == "forestgeom" else sys.executable
    told = {key: value for key, value in asdict(options).items() if value is not None}
    words = [json.dumps(cell), json.dumps(told, default=str), str(path)]
    command = [str(python), "-m", "experiments", "cell", name, *words]
    code = subprocess.run(command, check=False, cwd=HERE.parent).returncode
    if code:
        why = "failed, see above"
        if code < 0:  # Linux kills processes that use too much memory
            why = f"was killed by signal {-code}; if it took too much memory, use --max-rows"
        raise SystemExit(f"{name}: {describe(cell)} {why}. Finished cells are kept")


def compute_here(experiment, cell, told, path):
    """Compute a cell in this process."""
    told = json.loads(told)
    for key in PATHS:
        told[key] = Path(told[key]) if told.get(key) else None
    options = Options(**{**told, "datasets": tuple(told.get("datasets", ()))})
    keep(experiment.compute(json.loads(cell), Path(path), options), Path(path))


def keep(records, path):
    """Write the file in one step, so that an interrupted cell leaves no file."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(records, indent=1))
    part.replace(path)


def label(cell):
    return "-".join(f"{key}={value}" for key, value in cell.items())


def describe(cell):
    return ", ".join(
        f"{key} {value:,}" if isinstance(value, int) else str(value) for key, value in cell.items()
    )


def write_csv(rows, path):
    """Write one line per record, with six significant digits."""
    fields = list(dict.fromkeys(key for row in rows for key in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _short(value) for key, value in row.items()})


def read_csv(path):
    """Return the rows of a CSV file, with numbers converted."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(file)]


def check(name, experiment, rows, options):
    """Print which claims of the experiment hold, and raise an error if one does not."""
    failed = []
    for claim, holds in experiment.claims(rows, options):
        print(f"  {'holds' if holds else 'FAILS'}: {claim}", flush=True)
        failed += [] if holds else [claim]
    if failed:
        raise ClaimError(f"{name}: {len(failed)} of the claims above do not hold")


def _short(value):
    return f"{value:.6g}" if isinstance(value, float) else value


def _number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
