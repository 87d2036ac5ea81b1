"""One module for each rival.

Each has ``start(task, forest, X, y, n_jobs)``, which returns what is to be timed: a function that
returns its result, or a dict with seconds of its own.
"""
