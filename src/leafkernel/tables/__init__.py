"""Read tables from files, data frames and arrays.

``_frames`` and ``_values`` read arrays and data frames and require only NumPy. ``files`` reads
files and requires the extra ``cli``.
"""

MIN_ROWS = 10  # fewer rows are not enough to train a forest
