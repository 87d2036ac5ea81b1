"""Fits and results for data larger than memory."""

from __future__ import annotations

from leafkernel.streaming._fit import BatchFit, BatchFitter
from leafkernel.streaming._results import blocks_of_batches, write_neighbors, write_proximity

__all__ = ["BatchFit", "BatchFitter", "blocks_of_batches", "write_neighbors", "write_proximity"]
