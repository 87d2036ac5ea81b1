"""The baselines of the comparison: the ensemble itself, and Euclidean distances of features."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer
from sklearn.metrics import adjusted_rand_score, average_precision_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from experiments import comparison_tasks as tasks


def model_predict(model, case):
    """Score the prediction of the ensemble for held-out rows."""
    return float(model.score(case.X_held, case.y_held))


def model_labels(model, case, flipped):
    """Rank training labels by one minus their probability: out of bag, or of the model if boosted.

    Rows that are in bag in all trees get the prior.
    """
    shares = getattr(model, "oob_decision_function_", None)
    shares = model.predict_proba(case.X) if shares is None else shares
    shares = np.where(np.isnan(shares), 1 / case.n_classes, shares)
    suspicion = 1 - shares[np.arange(len(case.y)), case.y]
    return float(average_precision_score(flipped, suspicion))


def standardized(case):
    scaler = StandardScaler().fit(case.X)
    return scaler.transform(case.X), scaler.transform(case.X_held)


def features_nearest(case):
    """Predict held-out rows from their ten nearest training rows, weighted equally."""
    X, X_held = standardized(case)
    rows = NearestNeighbors(n_neighbors=tasks.NEIGHBORS).fit(X).kneighbors(X_held)[1]
    return tasks.from_neighbors(case, np.ones(rows.shape), rows)


def features_labels(case, flipped):
    """Rank training labels by the share of other labels among the ten nearest rows."""
    X, _ = standardized(case)
    rows = NearestNeighbors(n_neighbors=tasks.NEIGHBORS).fit(X).kneighbors()[1]
    suspicion = np.mean(case.y[rows] != case.y[:, None], axis=1)
    return float(average_precision_score(flipped, suspicion))


def features_impute(case, filled, hidden):
    """Fill hidden numbers with scikit-learn's KNNImputer on standardized features."""
    scaler = StandardScaler().fit(np.where(hidden, np.nan, case.X))
    holes = scaler.transform(np.where(hidden, np.nan, case.X))
    found = KNNImputer(n_neighbors=tasks.NEIGHBORS, keep_empty_features=True).fit_transform(holes)
    return tasks.gain(case, filled, hidden, scaler.inverse_transform(found))


def features_plane(case, seed, *, quick=False):
    """Embed standardized features with the library of the layout, and its own transform."""
    X, X_held = standardized(case)
    layout = tasks.LAYOUTS[quick]
    if layout["method"] == "umap":
        import umap  # noqa: PLC0415

        near = min(tasks.LAYOUT_NEIGHBORS, len(X) - 1)
        options = {"n_neighbors": near, "random_state": seed, "n_jobs": 1, **layout["parameters"]}
        model = umap.UMAP(**options).fit(X)
        return tasks.judge_plane(case, model.embedding_, model.transform(X_held))
    import openTSNE  # noqa: PLC0415

    near = min(tasks.LAYOUT_NEIGHBORS, (len(X) - 1) / 3)
    options = {"perplexity": near, "random_state": seed, "n_jobs": 1, **layout["parameters"]}
    places = openTSNE.TSNE(**options).fit(X)
    return tasks.judge_plane(case, np.asarray(places), np.asarray(places.transform(X_held)))


def features_clusters(case, seed):
    """Run k-means on standardized features, with the true number of classes."""
    X, X_held = standardized(case)
    found = KMeans(case.n_classes, n_init=10, random_state=seed).fit(X).predict(X_held)
    return float(adjusted_rand_score(case.y_held, found))
