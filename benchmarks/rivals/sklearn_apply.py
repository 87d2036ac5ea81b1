"""scikit-learn: forest.apply(X)."""


def start(task, forest, X, y, n_jobs):
    forest.n_jobs = n_jobs
    return lambda: forest.apply(X)
