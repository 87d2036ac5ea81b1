"""A stand-in for the part of cupyx that leafkernel uses."""

import numpy as np


def empty_pinned(shape, dtype=float):
    return np.full(shape, 0xA5, dtype)
