"""Accuracy of proximity-weighted prediction (the paper's appendix table).

A forest of 100 trees is grown on some of the training rows. For each proximity, the predicted class
of a test row has the largest weight in P y. The forest's own accuracy is given for comparison.
"""

from sklearn.ensemble import RandomForestClassifier

from experiments import parts, table
from leafkernel import ForestProximity
from leafkernel.tasks import ProximityClassifier

SIZES = (16_384, 32_768, 65_536, 131_072, 262_144)
LARGEST = {"airlines": 485_444, "airlines_indicators": 485_444, "covtype": 522_910}
# Above this many rows, there are at most three repeats.
MANY = 131_072
SCHEMES = ("gap", "oob_separable", "kerf", "original")


def cells(options):
    if options.quick:
        sizes, repeats = {"synthetic": (1_000, 4_000)}, 2
    else:
        sizes = {name: options.sizes(SIZES, LARGEST[name]) for name in options.chosen(LARGEST)}
        repeats = options.repeats
    return [
        {"dataset": name, "rows": rows, "repeat": repeat}
        for name in sizes
        for rows in sizes[name]
        for repeat in range(repeats if rows <= MANY else min(repeats, 3))
    ]


def compute(cell, path, options):
    X, y, X_test, y_test = parts.train_and_test(**cell, options=options)
    forest = RandomForestClassifier(
        random_state=options.seed_of(cell["repeat"]), n_jobs=options.n_jobs
    ).fit(X, y)
    records = [{"predictor": "forest", "accuracy": forest.score(X_test, y_test)}]
    for scheme in SCHEMES:
        prox = ForestProximity(forest, scheme, n_jobs=options.n_jobs)
        model = ProximityClassifier(prox).fit(X, y)
        records.append({"predictor": scheme, "accuracy": model.score(X_test, y_test)})
    return records


def draw(rows, folder, options):
    """Draw nothing: the page shows a table."""
    print(table.spread(rows, "predictor", "accuracy"))


def claims(rows, options):
    found = table.means(rows, ("dataset", "rows", "predictor"), "accuracy")
    worst = table.farthest(found, "gap", "forest")
    yield f"GAP's test accuracy is the forest's (largest difference {worst:.4f})", worst <= 0.002
