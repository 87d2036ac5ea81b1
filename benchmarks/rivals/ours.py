"""leafkernel: from a fitted forest to the requested result."""

import ctypes
from threading import Thread

import numpy as np

from leafkernel import ForestProximity
from leafkernel.forests import adapt


def start(task, forest, X, y, n_jobs):
    scheme = task.get("scheme", "uniform")
    if task["measure"] == "matrix":
        sort = task.get("sort", True)
        return lambda: fit(forest, scheme, X, y, n_jobs).proximity(sort=sort)
    if task["measure"] == "leaves":
        packed = adapt(forest, n_threads=n_jobs)  # done once in fit
        return lambda: packed.leaves(X, n_threads=n_jobs)
    if task["measure"] == "neighbors":
        return lambda: fit(forest, scheme, X, y, n_jobs).kneighbors(n_neighbors=task["k"])
    prox = fit(forest, scheme, X, y, n_jobs)
    if task["measure"] == "product":
        return lambda: prox.proximity(sort=task.get("sort", True))
    if task["measure"] == "blocks":
        return lambda: sum(block.nnz for _, block in prox.iter_proximity())
    if task["measure"] == "write":
        n_bytes = 8 * prox.proximity(sort=False).nnz
        return lambda: write(n_bytes, n_jobs)
    operator, V = prox.operator(), vectors(len(X), task["columns"])
    return lambda: operator @ V


def fit(forest, scheme, X, y, n_jobs):
    return ForestProximity(forest, scheme, n_jobs=n_jobs).fit(X, y)


def vectors(n, columns):
    return np.random.default_rng(0).normal(size=(n, columns)).astype(np.float32)


def write(n_bytes, n_threads):
    """Write new memory once, in threads: a lower bound for any product."""
    memory = np.empty(n_bytes, dtype=np.uint8)
    share = n_bytes // n_threads
    threads = [
        Thread(target=ctypes.memset, args=(memory.ctypes.data + i * share, 1, share))
        for i in range(n_threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return memory
