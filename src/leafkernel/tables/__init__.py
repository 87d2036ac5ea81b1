"""Tables: one model of a column, one rule for what is missing, and one reader of files.

Arrays and data frames come in through ``_frames`` and ``_values``, which need NumPy alone, and
files through ``files``, which needs the extra "cli".
"""

MIN_ROWS = 10  # fewer are not enough to grow a forest
