"""Remove the rows that caused a score, train again, and measure how far the score falls.

For some held-out rows of each seed, every method ranks the training rows. The first 1% or 5% are
removed, the model is trained on the rest, and the fall of the raw score is measured, in log-odds or
in standard deviations of the target. A larger fall means that the method found more important rows.
If a method splits the score into parts, the sum of the removed parts is stored too.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from experiments import influence, influence_figure, problems, table

SHARES = (0.01, 0.05)
QUERIES = 3
# Methods whose numbers are on the scale of scores.
STATED = ("gradient", "boostin_score", "axil")


def cells(options):
    if options.quick:
        return [{"dataset": name, "library": "LightGBM"} for name in ("wine", "diabetes")]
    names = problems.available(options.chosen(problems.SOURCES), options.data)
    return [
        {"dataset": name, "library": library} for name in names for library in influence.LIBRARIES
    ]


def seeds(options):
    """Return the seeds: fifteen by default."""
    return range(1 if options.quick else 3 * options.repeats)


def compute(cell, path, options):
    records = []
    with threadpool_limits(1):
        for seed in seeds(options):
            most = 120 if options.quick else problems.MOST_ROWS
            known = problems.problem(cell["dataset"], options.data, options.seed_of(seed), most)
            found = measure(cell["library"], known, np.random.default_rng(options.seed_of(seed)))
            for (method, share), pairs in found.items():
                fall, stated = np.mean(pairs, axis=0)
                record = {"seed": seed, "share": share, "method": method, "fall": float(fall)}
                records.append(record | ({"stated": float(stated)} if method in STATED else {}))
    return records


def measure(library, known, rng):
    """Return {(method, share): the fall and the removed sum, for each queried row}."""
    X, y, numeric = known.X, known.y, known.numeric
    model = influence.train(library, X, y, numeric=numeric)
    queries = known.X_held[rng.permutation(len(known.X_held))[:QUERIES]]
    scores = influence.raw_scores(model, queries)
    toward, found = influence.pushes(library, model, known, queries, rng)
    falls = {}
    for method, pushes in found.items():
        for share in SHARES:
            k = max(1, round(share * len(y)))
            for q, query in enumerate(queries):
                order = np.argsort(-pushes[q], kind="stable")
                left = np.sort(order[k:])
                again = influence.train(library, X[left], y[left], numeric=numeric)
                fall = toward[q] * (scores[q] - influence.raw_scores(again, query[None])[0])
                falls.setdefault((method, share), []).append((fall, pushes[q, order[:k]].sum()))
    return falls


def draw(rows, folder, options):
    influence_figure.draw(
        [row for row in rows if row["share"] == SHARES[-1]],
        "fall",
        f"fall of the score without {SHARES[-1]:.0%} of the training rows",
        options.figures / "influence-removal.png",
    )
    print(table.spread(rows, "method", "fall", keys=("dataset", "library", "share")))


def claims(rows, options):
    for share in SHARES:
        found = table.means([row for row in rows if row["share"] == share], ("method",), "fall")
        ours, chance = found["gradient",].mean, found["random",].mean
        yield (
            f"scores fall further without the first {share:.0%} of rows by contribution than "
            f"without random rows ({ours:.2f} against {chance:.2f})",
            ours > chance,
        )
