"""SciPy's sparse products of leafkernel's maps."""

from rivals.ours import fit, vectors


def start(task, forest, X, y, n_jobs):
    prox = fit(forest, task.get("scheme", "uniform"), X, y, n_jobs)
    Q, Wt = prox.query_map(), prox.reference_map().T.tocsr()
    if task["measure"] == "product":
        return lambda: Q @ Wt
    V = vectors(len(X), task["columns"])
    return lambda: Q @ (Wt @ V)
