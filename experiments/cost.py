"""Measure the cost of contributions and other methods: setup, one new row, all training rows.

The model is a regression, because AXIL supports no classes. Runs on one thread. Times are medians.
"""

import time
from statistics import median

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from experiments import influence, problems
from leafkernel import ForestProximity
from leafkernel.tasks import AxilAttribution

ROWS, RUNS = 4_096, 5
LIBRARY = "LightGBM"


def cells(options):
    if options.quick:
        return [{"dataset": "diabetes", "rows": 200}]
    names = options.chosen(["diamonds"])
    return [{"dataset": name, "rows": ROWS} for name in problems.available(names, options.data)]


def timed(work, runs):
    """Return the result of a function and its median time."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - begin)
    return found, median(times)


def compute(cell, path, options):
    whole = round(cell["rows"] / (1 - problems.HELD_OUT))
    known = problems.problem(cell["dataset"], options.data, options.seed, whole)
    with threadpool_limits(1):
        return list(measure(known._replace(X=known.X[: cell["rows"]], y=known.y[: cell["rows"]])))


def measure(known):
    """Yield a record for each method."""
    X, y, x = known.X, known.y, known.X_held[:1]

    def train():
        return influence.train(LIBRARY, X, y, numeric=True)

    model, training = timed(train, RUNS)
    shared = {"dtype": np.float64, "n_jobs": 1}
    for scheme in ("gradient", "uniform", "boosted"):
        fit = ForestProximity(model, scheme, **shared).fit
        prox, prepare = timed(lambda fit=fit: fit(X, y), RUNS)
        one = timed(lambda prox=prox: prox.proximity(x), RUNS)[1]
        every = timed(lambda prox=prox: prox.proximity(), 1)[1]
        yield {"method": scheme, "prepare": prepare, "one": one, "all": every}
        if scheme == "gradient":
            base = prox
    axil, prepare = timed(lambda: AxilAttribution(base), RUNS)
    one, every = timed(lambda: axil.weights(x), RUNS)[1], timed(axil.weights, 1)[1]
    yield {"method": "axil", "prepare": prepare, "one": one, "all": every}
    boostin, prepare = timed(
        lambda: influence.BoostIn(model, LIBRARY, base, X, y, numeric=True), RUNS
    )
    one = timed(lambda: boostin.on_loss(x, y[:1]), RUNS)[1]
    every = timed(lambda: boostin.on_loss(X, y), 1)[1]
    yield {"method": "boostin", "prepare": prepare, "one": one, "all": every}
    scaler = StandardScaler().fit(X)
    placed, prepare = timed(lambda: scaler.transform(X), RUNS)
    one = timed(lambda: cdist(scaler.transform(x), placed), RUNS)[1]
    every = timed(lambda: cdist(placed, placed), 1)[1]
    yield {"method": "features", "prepare": prepare, "one": one, "all": every}
    # One training per row. It is not run: the time of one training is multiplied.
    yield {"method": "retrain", "prepare": 0.0, "one": training * len(y), "all": training * len(y)}


def draw(rows, folder, options):
    """Draw nothing: the page shows a table."""
    for row in rows:
        print({key: round(v, 5) if isinstance(v, float) else v for key, v in row.items()})


def claims(rows, options):
    times = {row["method"]: row["one"] for row in rows}
    yield (
        "an explanation costs less than training once for each row",
        (times["gradient"] < times["retrain"]),
    )
