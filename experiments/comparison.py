"""Compare all weight schemes on real data sets, on the tasks that proximities are used for.

A cell is one scheme on one ensemble and one data set, or a baseline. All cells run in one process
with one thread, so that cells of one ensemble share the fitted ensembles.
"""

import time
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from experiments import comparison_baselines as baselines
from experiments import comparison_data, comparison_figure, comparison_ranks
from experiments import comparison_tasks as tasks
from experiments.comparison_schemes import (
    ENSEMBLES,
    FEATURES,
    MODEL,
    NONE,
    SCHEMES,
    schemes_of,
    train,
)
from leafkernel import ForestProximity

IN_PROCESS = True
REPEATS = 2
# The number of rows and of trees. Quick runs use the second.
SIZES = {False: (comparison_data.MOST_ROWS, 100), True: (80, 40)}


def cells(options):
    names = ["wine", "diabetes"] if options.quick else list(comparison_data.SOURCES)
    found = []
    for name in comparison_data.available(options.chosen(names), options.data):
        numeric = comparison_data.SOURCES[name].numeric
        found.append({"dataset": name, "ensemble": NONE, "scheme": FEATURES})
        for ensemble in ENSEMBLES:
            schemes = [MODEL, *schemes_of(ensemble, numeric=numeric)]
            found += [{"dataset": name, "ensemble": ensemble, "scheme": each} for each in schemes]
    return found


class Fitted(NamedTuple):
    """A case, its versions with flipped labels and with hidden values, and their ensembles."""

    case: object
    model: object
    train_s: float
    noisy: object
    flipped: np.ndarray
    noisy_model: object
    filled: object
    hidden: np.ndarray
    filled_model: object


@lru_cache(maxsize=REPEATS)
def fitted(name, ensemble, data, seed, n_rows, n_trees):
    case = comparison_data.case(name, data, seed, n_rows)
    fit = partial(train, ensemble, seed=seed, numeric=case.numeric, n_trees=n_trees)
    begin = time.perf_counter()
    model = fit(case.X, case.y)
    train_s = time.perf_counter() - begin
    if model is not None:
        # The first fit of a model takes longer. It must not count for the first scheme.
        proximity("uniform", model, case.X, case.y).kneighbors(case.X_held)
    noisy, flipped = (None, None) if case.numeric else tasks.flip(case, seed)
    filled, hidden = tasks.hide(case, seed)
    return Fitted(
        case,
        model,
        train_s,
        noisy,
        flipped,
        None if case.numeric else fit(case.X, noisy.y),
        filled,
        hidden,
        fit(filled.X, case.y),
    )


def compute(cell, path, options):
    records = []
    sizes = SIZES[options.quick]
    measure = {FEATURES: of_features, MODEL: of_model}.get(cell["scheme"], of_scheme)
    with threadpool_limits(1):
        for repeat in range(1 if options.quick else min(REPEATS, options.repeats)):
            seed = options.seed_of(repeat)
            known = fitted(cell["dataset"], cell["ensemble"], options.data, seed, *sizes)
            found = measure(cell["scheme"], known, seed, quick=options.quick)
            records.append({"repeat": repeat, **found})
    return records


def of_features(scheme, known, seed, *, quick):
    case = known.case
    found = {
        "rows": len(case.X) + len(case.X_held),
        "columns": case.X.shape[1],
        "classes": case.n_classes,
        "nearest": baselines.features_nearest(case),
        "impute": baselines.features_impute(case, known.filled, known.hidden),
        **baselines.features_plane(case, seed, quick=quick),
    }
    if not case.numeric:
        found["labels"] = baselines.features_labels(known.noisy, known.flipped)
        found["clusters"] = found["medoids"] = baselines.features_clusters(case, seed)
    return found


def of_model(scheme, known, seed, *, quick):
    found = {"predict": baselines.model_predict(known.model, known.case), "train_s": known.train_s}
    if not known.case.numeric:
        found["labels"] = baselines.model_labels(known.noisy_model, known.noisy, known.flipped)
    return found


def of_scheme(scheme, known, seed, *, quick):
    case, found = known.case, {}
    several = scheme == "gradient" and case.n_classes > 2
    with timed(found, "fit_s"):
        prox = proximity(scheme, known.model, case.X, case.y, several=several)
    with timed(found, "predict_s"):
        found["predict"] = tasks.predict(prox, case)
    if SCHEMES[scheme].signed:
        return found
    with timed(found, "nearest_s"):
        found["nearest"] = tasks.nearest(prox, case)
    found.update(tasks.plane(prox, case, seed, quick=quick))
    filling = proximity(scheme, known.filled_model, known.filled.X, case.y)
    found["impute"] = tasks.impute(filling, case, known.filled, known.hidden)
    if not case.numeric:
        noisy = proximity(scheme, known.noisy_model, case.X, known.noisy.y)
        found["labels"] = tasks.labels(noisy, known.flipped)
        found["clusters"] = tasks.clusters(prox, case, seed)
        found["medoids"] = tasks.medoids(prox, case)
    return found


def proximity(scheme, model, X, y, *, several=False):
    made = tasks.Gradient(output=0) if several else SCHEMES[scheme].make()
    return ForestProximity(model, made, n_jobs=1).fit(X, y)


@contextmanager
def timed(found, key):
    begin = time.perf_counter()
    yield
    found[key] = time.perf_counter() - begin


def draw(rows, folder, options):
    comparison_figure.draw(rows, options.figures)
    print(comparison_ranks.summary(rows))


def claims(rows, options):
    return comparison_ranks.claims(rows)
