"""scikit-learn's own way to the leaves."""


def start(task, forest, X, y, n_jobs):
    forest.n_jobs = n_jobs
    return lambda: forest.apply(X)
