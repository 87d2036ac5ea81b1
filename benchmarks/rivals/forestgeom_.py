"""forestgeom: the paper's own implementation."""

from forestgeom import Proximity


def start(task, forest, X, y, n_jobs):
    forest.n_jobs = n_jobs
    return lambda: Proximity(forest, weight_scheme=task["scheme"]).fit(X, y).training_proximity()
