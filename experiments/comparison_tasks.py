"""The tasks of the comparison: each takes a fitted proximity and returns a score, higher is better.

Ensembles have seen the targets of their training rows, so every score that involves targets is
computed for held-out rows. The exception is the search for wrong labels, which concerns training
rows: schemes that use out-of-bag trees then judge a row by trees that have not seen it.
"""

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness
from sklearn.metrics import adjusted_rand_score, average_precision_score, r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from leafkernel.schemes import Gradient
from leafkernel.tasks import LeafEmbedding, ProximityKMedoids, find_label_errors

NEIGHBORS = 10  # for predictions, and for the quality of planes
FLIPPED, HIDDEN = 0.1, 0.15  # the share of labels that are flipped, and of values that are hidden
# The layout in the plane. Quick runs use t-SNE, because UMAP takes long to compile.
LAYOUTS = {
    False: {"method": "umap", "parameters": {"n_epochs": 200}},
    True: {"method": "tsne", "parameters": {"n_iter": 50, "early_exaggeration_iter": 50}},
}
LAYOUT_NEIGHBORS = 30


def targets(case):
    """Return the numbers to average: class indicators or targets, shape (n, c)."""
    return case.y[:, None] if case.numeric else np.eye(case.n_classes)[case.y]


def means(sums, mass, otherwise):
    """Return sums divided by their mass, and `otherwise` for rows without mass."""
    some = (mass > 0)[:, None]
    return np.where(some, sums / np.where(some, mass[:, None], 1.0), otherwise)


def quality(case, found):
    """Return the accuracy of the classes with the largest means, or R² of the means."""
    if case.numeric:
        return float(r2_score(case.y_held, found[:, 0]))
    return float(np.mean(found.argmax(axis=1) == case.y_held))


def predict(prox, case):
    """Predict held-out rows by the mean target of all training rows, weighted by proximity."""
    values = targets(case)
    if prox.scheme_.signed:
        return quality(case, scores(prox, case))
    sums = prox.weighted_sums(np.column_stack([values, np.ones(len(values))]), case.X_held)
    return quality(case, means(sums[:, :-1], sums[:, -1], values.mean(axis=0)))


def scores(prox, case):
    """Return the raw scores of held-out rows as sums of contributions, one column per class."""
    ones = np.ones(len(case.y))
    if case.n_classes <= 2:
        found = (prox.base_score_ + prox.weighted_sums(ones, case.X_held))[:, None]
        return found if case.numeric else np.hstack([-found, found])
    each = [prox.reweigh(Gradient(output=output)) for output in range(case.n_classes)]
    return np.column_stack([one.base_score_ + one.weighted_sums(ones, case.X_held) for one in each])


def nearest(prox, case):
    """Predict held-out rows from their ten nearest training rows, weighted by proximity."""
    similarity, rows = prox.kneighbors(case.X_held, NEIGHBORS)
    return from_neighbors(case, similarity, rows)


def from_neighbors(case, similarity, rows):
    values = targets(case)
    sums = np.einsum("mk,mkc->mc", similarity, values[rows])
    return quality(case, means(sums, similarity.sum(axis=1), values.mean(axis=0)))


def flip(case, seed):
    """Return a case with a tenth of the labels replaced by others, and a mask of these labels."""
    rng = np.random.default_rng(seed)
    flipped = np.zeros(len(case.y), bool)
    flipped[rng.choice(len(case.y), max(1, round(FLIPPED * len(case.y))), replace=False)] = True
    moved = (case.y + rng.integers(1, case.n_classes, len(case.y))) % case.n_classes
    return case._replace(y=np.where(flipped, moved, case.y)), flipped


def labels(prox, flipped):
    """Find flipped labels of training rows: average precision of the ranking by suspicion."""
    return float(average_precision_score(flipped, find_label_errors(prox).scores))


def hide(case, seed):
    """Return a case with medians for a part of its numbers, and a mask of these numbers."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(case.X.shape) < HIDDEN
    hidden[:, ~case.columns | (case.X.std(axis=0) == 0)] = False
    shown = np.ma.array(case.X, mask=hidden)
    return case._replace(X=np.where(hidden, np.ma.median(shown, axis=0).data, case.X)), hidden


def impute(prox, case, filled, hidden):
    """Fill hidden numbers with the mean of present ones, weighted by proximity."""
    sums = prox.weighted_sums(np.hstack([np.where(hidden, 0.0, case.X), ~hidden]))
    sums, mass = np.hsplit(sums, 2)
    found = np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), filled.X)
    return gain(case, filled, hidden, found)


def gain(case, filled, hidden, found):
    """Return by how much the root mean squared error is lower than that of medians, as a share."""
    scale = case.X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    error, before = (
        np.sqrt(np.mean(((each - case.X) / scale)[hidden] ** 2)) for each in (found, filled.X)
    )
    return float(1 - error / before)


def plane(prox, case, seed, *, quick=False):
    """Embed training rows in the plane, place held-out rows in it, and judge their places."""
    layout = LeafEmbedding(
        prox, source="kernel", n_neighbors=LAYOUT_NEIGHBORS, random_state=seed, **LAYOUTS[quick]
    ).fit(case.X, case.y)
    return judge_plane(case, layout.embedding_, layout.transform(case.X_held))


def judge_plane(case, places, held):
    """Return trustworthiness against the standardized features, and k-NN quality in the plane."""
    features = StandardScaler().fit(case.X).transform(case.X_held)
    kind = KNeighborsRegressor if case.numeric else KNeighborsClassifier
    return {
        "trust": float(trustworthiness(features, held, n_neighbors=NEIGHBORS)),
        "plane": float(kind(NEIGHBORS).fit(places, case.y).score(held, case.y_held)),
    }


def clusters(prox, case, seed):
    """Cluster training rows, assign held-out rows to clusters, and compare them with classes."""
    P, P_held = prox.proximity().toarray(), prox.proximity(case.X_held).toarray()
    found = spectral_clusters(P, P_held, case.n_classes, seed)
    return float(adjusted_rand_score(case.y_held, found))


def spectral_clusters(P, P_held, k, seed):
    """Return the clusters of held-out rows: `ProximitySpectralClustering` for any matrix P."""
    P = (P + P.T) / 2
    np.fill_diagonal(P, 0.0)
    degree = P.sum(axis=1)
    scale = np.sqrt(np.where(degree > 0, degree, 1.0))
    n = len(P)
    values, vectors = eigh(P / scale[:, None] / scale, subset_by_index=[n - k, n - 1])
    places = vectors[:, :-1] / scale[:, None] * scale.mean()
    held = means(P_held @ places, P_held.sum(axis=1), 0.0)
    held /= np.where(np.abs(values[:-1]) > 1e-9, values[:-1], np.inf)
    return KMeans(k, n_init=10, random_state=seed).fit(places).predict(held)


def medoids(prox, case):
    """Cluster training rows around medoids, and compare the clusters of held-out rows."""
    found = ProximityKMedoids(prox, n_clusters=case.n_classes).fit(case.X, case.y)
    return float(adjusted_rand_score(case.y_held, found.predict(case.X_held)))
