"""Time and memory against rows (the paper's Fig. 3 and its appendix).

As in the paper, the measurement includes all steps after fitting the forest: routing, the leaf maps
and the sparse kernel of the training rows. It varies the data set, the proximity, the kind of
forest, the smallest leaf and the depth. Not in the paper: all nearest neighbors, and one product
with the kernel, neither of which forms the kernel. With --forestgeom, the paper's own library runs
on the same forests.
"""

import time

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from experiments import datasets, memory, parts, table

SIZES = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144)
# Rows of the training part. HIGGS and SUSY go to a million, as in the paper's text, and Epsilon to
# as many as a laptop can grow forests on. Data sets that are not in the folder are skipped.
LARGEST = {
    "covtype": 522_910,
    "airlines": 485_444,
    "fashion_mnist": 60_000,
    "sign_mnist": 27_455,
    "higgs": 1_000_000,
    "susy": 1_000_000,
    "epsilon": 65_536,
    "tv_news": 116_716,
    "pbmc": 61_000,
    "path_mnist": 89_996,
    "tissue_mnist": 165_466,
}
ABLATED = ("covtype", "airlines", "synthetic")
SCHEMES = ("original", "kerf", "oob_separable", "oob", "gap")
# Sizes for which forestgeom's result and intermediate arrays fit in 24 GB.
FORESTGEOM_TO = 262_144
FORESTGEOM = {"original": "uniform", "kerf": "kerf", "oob": "oob", "gap": "gap"}
PLAIN = {"ensemble": "RF", "min_leaf": 1, "depth": 0}
VARIANTS = [
    {**PLAIN, "ensemble": "ET"},
    *({**PLAIN, "min_leaf": leaf} for leaf in (5, 20, 50)),
    *({**PLAIN, "depth": depth} for depth in (8, 14, 20)),
]
# Above this many rows, a cell has one size, with the plain forest only and a single repeat.
MANY = 65_536
REPEATS = 2
# A measurement runs three to five times, until the total time reaches this many seconds. The
# fastest counts, because the first may include the time to allocate new memory.
AT_LEAST_S, RUNS = 1.0, (3, 5)


def cells(options):
    """Return the cells. A cell grows one forest after another, from few rows to many."""
    if options.quick:
        forests = [PLAIN, {**PLAIN, "ensemble": "ET"}, {**PLAIN, "depth": 6}]
        return [cell("synthetic", "leafkernel", forest, 500, 4_000, 0) for forest in forests]
    result = []
    for name in options.chosen(LARGEST):
        if not datasets.available(name, options.data):
            print(f"{name}: not in {options.data or 'scikit-learn'}, left out")
            continue
        sizes = options.sizes(SIZES, LARGEST[name])
        few, many = ([s for s in sizes if (s > MANY) == large] for large in (False, True))
        variants = VARIANTS if name in ABLATED else []
        repeats = range(min(options.repeats, REPEATS))
        result += [cell(name, "leafkernel", PLAIN, few[0], few[-1], repeat) for repeat in repeats]
        result += [cell(name, "leafkernel", PLAIN, size, size, 0) for size in many]
        result += [cell(name, "leafkernel", forest, few[0], few[-1], 0) for forest in variants]
        if options.forestgeom:
            result.append(cell(name, "forestgeom", PLAIN, few[0], few[-1], 0))
            result += [cell(name, "forestgeom", PLAIN, s, s, 0) for s in many if s <= FORESTGEOM_TO]
    return result


def cell(dataset, library, forest, smallest, largest, repeat):
    whose = {"dataset": dataset, "library": library, **forest}
    return {**whose, "from_rows": smallest, "to_rows": largest, "repeat": repeat}


def compute(cell, path, options):
    seed = options.seed_of(cell["repeat"])
    whole = parts.whole(cell["dataset"], options)
    X_all, y_all, _, _ = datasets.split(whole, seed)
    kind = {"RF": RandomForestClassifier, "ET": ExtraTreesClassifier}[cell["ensemble"]]
    known = (500, 1_000, 2_000, 4_000) if options.quick else (*SIZES, cell["to_rows"])
    sizes = [min(s, len(y_all)) for s in known if cell["from_rows"] <= s <= cell["to_rows"]]
    records = []
    # A file may contain fewer rows than the published data set.
    for rows in dict.fromkeys(size for size in sizes if size >= cell["from_rows"]):
        X, y = datasets.draw(X_all, y_all, rows, seed)
        forest = kind(
            bootstrap=True,
            min_samples_leaf=cell["min_leaf"],
            max_depth=cell["depth"] or None,
            random_state=seed,
            n_jobs=options.n_jobs,
        ).fit(X, y)
        for what, scheme in asked(cell, rows):
            act = action(cell["library"], what, scheme, forest, X, y, options.n_jobs)
            records.append(
                {
                    "rows": len(y),
                    "what": what,
                    "scheme": scheme,
                    **measure(act, (2, 2) if options.quick else RUNS),
                }
            )
    return records


def asked(cell, rows):
    """Return the measurements: all proximities for the plain forest of the ablated data sets."""
    plain = cell["dataset"] in ABLATED and all(cell[key] == PLAIN[key] for key in PLAIN)
    if cell["library"] == "forestgeom":
        schemes = [s for s in SCHEMES if s in FORESTGEOM and (s == "gap" or rows <= MANY)]
        return [("kernel", scheme) for scheme in (schemes if plain else ["gap"])]
    schemes = SCHEMES if plain else ["gap"]
    beyond = [("neighbors", "gap"), ("product", "gap")] if plain else []
    return [("kernel", scheme) for scheme in schemes] + beyond


def action(library, what, scheme, forest, X, y, n_jobs):
    """Return a function that computes the result from the fitted forest."""
    if library == "forestgeom":
        from forestgeom import Proximity  # noqa: PLC0415

        def kernel():
            return (
                Proximity(forest, weight_scheme=FORESTGEOM[scheme]).fit(X, y).training_proximity()
            )

        return kernel
    from leafkernel import ForestProximity  # noqa: PLC0415

    def fitted():
        return ForestProximity(forest, scheme, n_jobs=n_jobs).fit(X, y)

    return {
        "kernel": lambda: fitted().proximity(),
        "neighbors": lambda: fitted().kneighbors(n_neighbors=10)[0],
        "product": lambda: fitted().operator() @ np.ones(len(y)),
    }[what]


def measure(act, runs):
    """Return the shortest time, the additional peak memory and the size of the result."""
    seconds, peaks = [], []
    while len(seconds) < runs[0] or (sum(seconds) < AT_LEAST_S and len(seconds) < runs[1]):
        before = memory.reset_peak()
        begin = time.perf_counter()
        try:
            result = act()
        except MemoryError:
            return {"seconds": "", "peak_gb": "", "numbers": "", "note": "does not fit"}
        seconds.append(time.perf_counter() - begin)
        peaks.append(memory.peak() - before)
        numbers = getattr(result, "nnz", None) or result.size
        del result
    return {"seconds": min(seconds), "peak_gb": max(peaks) / 1e9, "numbers": int(numbers)}


def draw(rows, folder, options):
    from experiments import scaling_figure  # noqa: PLC0415

    scaling_figure.draw(rows, options.figures)


CURVE = ("dataset", "library", *PLAIN, "what", "scheme")


def slopes(rows, field="seconds"):
    """Return {the values of `CURVE`: slope against rows}, over all sizes that were measured."""
    found = table.means(rows, (*CURVE, "rows"), field)
    result = {}
    for curve in dict.fromkeys(key[:-1] for key in found):
        points = {key[-1]: spread.mean for key, spread in found.items() if key[:-1] == curve}
        if len(points) > 2:
            result[curve] = table.slope(list(points), list(points.values()))
    return result


def claims(rows, options):
    for field, what in (("seconds", "time"), ("peak_gb", "memory")):
        deep = {
            curve: slope
            for curve, slope in slopes(rows, field).items()
            if curve[1] == "leafkernel" and curve[3:5] == (1, 0)
        }
        if not deep:
            print(f"  no slope of {what}: fewer than three sizes, or this system does not tell it")
            continue
        worst = max(deep, key=deep.get)
        told = f"{deep[worst]:.2f} for {worst[6]} on {worst[0]}, {worst[2]}, {worst[5]}"
        yield f"slopes of {what} under 1.5 for deep forests (largest {told})", deep[worst] < 1.5
