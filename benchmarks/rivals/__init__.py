"""One module per library.

Each has ``start(task, forest, X, y, n_jobs)``, which returns the function to time. This function
returns its result, or a dict with its own measured seconds.
"""
