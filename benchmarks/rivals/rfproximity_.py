"""rfproximity: Breiman's proximity, tree by tree."""

from rfproximity import TreeProximity


def start(task, forest, X, y, n_jobs):
    forest.n_jobs = n_jobs
    return lambda: TreeProximity(forest.apply(X)).proximity_matrix()
