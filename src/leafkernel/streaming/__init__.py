"""Fits and results that never hold the table, its leaves or P in memory as a whole."""

from __future__ import annotations

from leafkernel.streaming._fit import BatchFit, BatchFitter
from leafkernel.streaming._results import blocks_of_batches, write_neighbors, write_proximity

__all__ = ["BatchFit", "BatchFitter", "blocks_of_batches", "write_neighbors", "write_proximity"]
