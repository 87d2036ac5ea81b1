"""Run one experiment or all of them.

    python -m experiments accuracy --data DIR
    python -m experiments all --data DIR
    python -m experiments all --quick

Each experiment writes experiments/results/NAME.csv and figures in docs/images/, and checks its
claims. `page` writes docs/experiments.md, docs/influence.md and docs/comparison.md from the
results. A partial run (selected data sets, sizes, repeats or seeds, or scaling without forestgeom)
writes to results/ and figures/ in the cache instead.
--quick uses small data sets from scikit-learn and needs no DIR.
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from experiments import cells, datasets

EXPERIMENTS = (
    *("separability", "scaling", "accuracy", "manifolds", "beyond"),
    *("removal", "mislabeled", "cost"),
    "comparison",
)


def load(name):
    """Import one experiment only, because forestgeom's environment may lack packages of others."""
    return importlib.import_module(f"experiments.{name}")


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def parse():
    known = cells.Options()
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    names = [name for name in datasets.LOADERS if name != "digits"]
    choices = [*EXPERIMENTS, "all", "page"]
    add("experiment", choices=choices, metavar="EXPERIMENT", help=", ".join(choices))
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder with the data sets; see experiments/datasets.py",
    )
    add("--quick", action="store_true", help="use small data; takes a minute or two")
    add(
        "--datasets",
        nargs="+",
        choices=names,
        default=(),
        metavar="NAME",
        help=f"only these of {', '.join(names)}",
    )
    add("--max-rows", type=positive, metavar="N", help="skip larger sizes")
    add(
        "--repeats",
        type=positive,
        default=known.repeats,
        metavar="N",
        help="largest number of repeats, default %(default)s; large sizes use fewer",
    )
    add("--seed", type=int, default=known.seed, metavar="N", help="default %(default)s")
    add(
        "--n-jobs",
        type=positive,
        default=known.n_jobs,
        metavar="N",
        help="threads, default %(default)s",
    )
    add(
        "--forestgeom",
        type=Path,
        metavar="PYTHON",
        help="a Python interpreter with forestgeom, to time it as well",
    )
    add(
        "--cache",
        type=Path,
        metavar="DIR",
        help="folder for finished cells; use another one for other data or another machine",
    )
    add("--results", type=Path, metavar="DIR", help="folder for CSV files")
    add("--figures", type=Path, metavar="DIR", help="folder for figures")
    args = parser.parse_args()
    if args.forestgeom and not args.forestgeom.exists():
        parser.error(f"--forestgeom: there is no {args.forestgeom}")
    if args.forestgeom:
        asked = [args.forestgeom, "-c", "import forestgeom"]
        if subprocess.run(asked, check=False, stderr=subprocess.DEVNULL).returncode:
            parser.error(f"--forestgeom: {args.forestgeom} cannot import forestgeom")
    if args.data and not args.data.is_dir():
        parser.error(f"--data: there is no folder {args.data}")
    if args.quick and (args.data or args.datasets or args.max_rows or args.forestgeom):
        parser.error("--quick has data and sizes of its own")
    return args


def options_of(names, args):
    """Return the options. A partial run does not overwrite the results of a full run."""
    args = dict(args)
    known = cells.Options()
    quick = args["quick"]
    if args["cache"] is None:
        args["cache"] = Path(tempfile.mkdtemp(prefix="experiments-")) if quick else known.cache
    part = quick or args["datasets"] or args["max_rows"]
    part = part or any(args[key] != getattr(known, key) for key in ("repeats", "seed"))
    part = part or ("scaling" in names and not args["forestgeom"])
    for where in ("results", "figures"):
        whole = args["cache"] / where if part else getattr(known, where)
        args[where] = args[where] or whole
    if part:
        print(f"partial run: results go to {args['results']}")
    for key in cells.PATHS:
        # Each cell runs in its own process, in the root of the clone.
        args[key] = args[key].absolute() if args[key] else None
    return cells.Options(**{**args, "datasets": tuple(args["datasets"])})


def main():
    if sys.argv[1:2] == ["cell"]:
        name, *rest = sys.argv[2:]
        cells.compute_here(load(name), *rest)
        return
    args = vars(parse())
    name = args.pop("experiment")
    if name == "page":
        load("page").write()
        return
    names = EXPERIMENTS if name == "all" else (name,)
    options = options_of(names, args)
    failed = []
    for each in names:
        begin = time.perf_counter()
        try:
            if not cells.run(each, load(each), options) and name != "all":
                failed.append(f"{each} knows none of {', '.join(options.datasets)}")
        except cells.MissingDataError as error:
            failed.append(str(error))
            continue
        except cells.ClaimError as error:
            failed.append(str(error))
        print(f"{each}: done in {time.perf_counter() - begin:.0f} s", flush=True)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        told = "stopped; finished cells are kept. Run the same command again to continue"
        # The process of a cell is interrupted too, and prints nothing.
        raise SystemExit(130 if sys.argv[1:2] == ["cell"] else told) from None
