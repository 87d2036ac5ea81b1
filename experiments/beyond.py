"""Measure the accuracy of exact OOB, instance hardness and boosted trees (not in the paper).

The accuracy table for proximities that the paper mentions but does not test. A test row is out of
bag in every tree, so S(x, x') = S(x'), and exact and separable OOB are equal. They differ on
training rows. Therefore each training row is predicted from the others too, and compared with the
forest's out-of-bag accuracy. (scaling.py measures how neighbors and products scale.)
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from experiments import parts, table
from experiments.accuracy import LARGEST, SIZES
from leafkernel import ForestProximity
from leafkernel.schemes import InstanceHardness
from leafkernel.tasks import ProximityClassifier

# Instance hardness compares all pairs of rows in each tree's own subspace, which is quadratic. The
# variant within leaves compares fewer pairs, but searches each leaf separately, in Python.
IH_AT_MOST, IH_IN_LEAVES_AT_MOST = 4_096, 16_384
DATASETS = ("airlines", "covtype")
# At most two repeats, and one above this many rows.
REPEATS, MANY = 2, 131_072


def cells(options):
    if options.quick:
        sizes = {"synthetic": [500, 1_000]}
    else:
        sizes = {
            name: options.sizes((IH_AT_MOST, *SIZES), LARGEST[name])
            for name in options.chosen(DATASETS)
        }
    repeats = 1 if options.quick else min(options.repeats, REPEATS)
    return [
        {"dataset": name, "rows": rows, "repeat": repeat}
        for name in sizes
        for rows in sizes[name]
        for repeat in range(repeats if rows <= MANY else 1)
    ]


def compute(cell, path, options):
    X, y, X_test, y_test = parts.train_and_test(**cell, options=options)
    shared = {"random_state": options.seed_of(cell["repeat"])}
    forest = RandomForestClassifier(oob_score=True, n_jobs=options.n_jobs, **shared).fit(X, y)
    found = {"forest": forest.score(X_test, y_test), "forest, out of bag": forest.oob_score_}

    def predictor(ensemble, scheme):
        # Without the diagonal, because a training row must not vote for itself.
        prox = ForestProximity(ensemble, scheme, diagonal="zero", n_jobs=options.n_jobs)
        return ProximityClassifier(prox).fit(X, y)

    for scheme in ("oob", "oob_separable", "gap"):
        model = predictor(forest, scheme)
        found[scheme] = model.score(X_test, y_test)
        found[f"{scheme}, out of bag"] = np.mean(model.predict() == y)
    if cell["rows"] <= IH_AT_MOST:
        found["ih"] = predictor(forest, "ih").score(X_test, y_test)
    if cell["rows"] <= IH_IN_LEAVES_AT_MOST:
        in_leaves = predictor(forest, InstanceHardness(neighbors="leaf"))
        found["ih, in the leaf"] = in_leaves.score(X_test, y_test)
    boosting = HistGradientBoostingClassifier(early_stopping=False, **shared).fit(X, y)
    found["boosting"] = boosting.score(X_test, y_test)
    found["boosted"] = predictor(boosting, "boosted").score(X_test, y_test)
    return [{"predictor": name, "accuracy": float(value)} for name, value in found.items()]


def draw(rows, folder, options):
    """Draw nothing: the page shows a table."""
    print(table.spread(rows, "predictor", "accuracy"))


def claims(rows, options):
    found = table.means(rows, ("dataset", "rows", "predictor"), "accuracy")
    worst = table.farthest(found, "oob", "oob_separable")
    yield f"exact and separable OOB predict test rows equally (differ by {worst:.5f})", worst < 1e-3
    worst = table.farthest(found, "gap, out of bag", "forest, out of bag")
    yield f"GAP's out-of-bag accuracy is the forest's (differs by {worst:.5f})", worst < 2e-3
