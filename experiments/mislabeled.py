"""Flip a tenth of the labels and measure which rankings of the training rows find them."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from experiments import influence, influence_figure, problems, table
from experiments.removal import seeds
from leafkernel import ForestProximity
from leafkernel.tasks import find_label_errors

FLIPPED = 0.1


def cells(options):
    if options.quick:
        return [{"dataset": "wine", "library": "XGBoost"}]
    names = problems.available(options.chosen(problems.CLASSES), options.data)
    return [
        {"dataset": name, "library": library} for name in names for library in influence.LIBRARIES
    ]


def compute(cell, path, options):
    records = []
    with threadpool_limits(1):
        for seed in seeds(options):
            number = options.seed_of(seed)
            most = 120 if options.quick else problems.MOST_ROWS
            known = problems.problem(cell["dataset"], options.data, number, most)
            records += [
                {"seed": seed, "method": method, **found}
                for method, found in measure(cell["library"], known, number).items()
            ]
    return records


def flip(y, rng):
    """Return labels with a tenth of them flipped, and a mask of the flipped ones."""
    flipped = np.zeros(len(y), bool)
    flipped[rng.choice(len(y), max(1, round(FLIPPED * len(y))), replace=False)] = True
    return np.where(flipped, 1 - y, y), flipped


def measure(library, known, seed):
    """Return {method: share of flipped rows found, and area under the ROC curve}."""
    rng = np.random.default_rng(seed)
    y, flipped = flip(known.y, rng)
    noisy, _ = flip(known.y_held, rng)
    found = suspicions(library, known._replace(y=y), {"clean": known.y_held, "noisy": noisy}, seed)
    n = flipped.sum()
    return {
        method: {
            "found": float(flipped[np.argsort(-score, kind="stable")[:n]].mean()),
            "auc": float(roc_auc_score(flipped, score)),
        }
        for method, score in found.items()
    }


def suspicions(library, known, held, seed):
    """Return {method: how suspicious the label of each training row is}."""
    X, y, X_held = known.X, known.y, known.X_held
    model = influence.train(library, X, y, numeric=False)
    proxes = influence.fitted(model, X, y)
    gradient = proxes["gradient"]
    boostin = influence.BoostIn(model, library, gradient, X, y, numeric=False)
    # Each row pushes its own score toward its label, so magnitudes are comparable across classes.
    found = {"gradient_self": np.abs(np.asarray(gradient.reference_map().sum(axis=1)).ravel())}
    scores = influence.raw_scores(model, X_held)
    for kind, labels in held.items():
        slopes, _ = influence.derivatives(labels, scores, numeric=False)
        # Positive if a row pushes the scores of held-out rows away from their labels.
        found[f"gradient_held_{kind}"] = gradient.operator(X_held).T @ slopes
    found["boostin_self"] = boostin.on_itself()
    for kind, labels in held.items():
        found[f"boostin_held_{kind}"] = -boostin.on_losses(X_held, labels)
    for scheme in ("uniform", "boosted"):
        found[f"errors_{scheme}"] = find_label_errors(proxes[scheme]).scores
    forest = RandomForestClassifier(random_state=seed).fit(X, y)
    found["errors_gap"] = find_label_errors(ForestProximity(forest, "gap").fit(X, y)).scores
    found["loss"] = losses(y, influence.raw_scores(model, X))
    apart = np.empty(len(y))
    for rest, fold in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        again = influence.train(library, X[rest], y[rest], numeric=False)
        apart[fold] = influence.raw_scores(again, X[fold])
    found["loss_apart"] = losses(y, apart)
    return found


def losses(y, scores):
    return np.logaddexp(0.0, np.where(y == 1, -scores, scores))


def draw(rows, folder, options):
    influence_figure.draw(
        rows,
        "found",
        "share of flipped labels among as many first rows",
        options.figures / "influence-labels.png",
    )
    print(table.spread(rows, "method", "found", keys=("dataset", "library")))


def claims(rows, options):
    found = table.means(rows, ("method",), "auc")
    for method in ("gradient_self", "gradient_held_noisy"):
        mean = found[method,].mean
        yield f"{method} ranks flipped labels first (area under the curve {mean:.3f})", mean > 0.5
