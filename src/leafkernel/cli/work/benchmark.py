"""The ``benchmark`` command."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import issparse

from leafkernel import ForestProximity
from leafkernel._memory import format_bytes
from leafkernel.cli._output import Talk
from leafkernel.cli._train import begin
from leafkernel.cli.commands import Benchmark
from leafkernel.explorer._judgement import Judgement

# Shorter steps, in seconds, are timed up to three times, and the median is used.
_SHORT, _TIMES = 0.5, 3


def benchmark(talk: Talk, options: Benchmark) -> None:
    """Time common steps on all rows, and compare with NumPy on a subset of the rows."""
    study = begin(talk, options)
    prox, model, n = study.prox, study.prox.forest_, len(study.y)
    lines: list[tuple[Any, ...]] = []
    if study.seconds is not None:
        lines.append(("training the forest", n, study.seconds, None))

    def add(step: str, n_rows: int, run: Callable[[], Any]) -> Any:
        """Time a step, and return its result."""
        times: list[float] = []
        while len(times) < _TIMES and sum(times) <= _SHORT:
            began = perf_counter()
            result = run()
            times.append(perf_counter() - began)
        lines.append((step, n_rows, median(times), _size(result)))
        return result

    talk.step("leafkernel on all rows")
    add("fitting the proximities", n, lambda: _again(prox).fit(study.X, study.y))
    add("10 nearest neighbors of each row", n, lambda: prox.kneighbors(None, min(10, n - 1)))
    add("predictions from the other rows", n, lambda: Judgement.of(prox, study.y))
    expected = prox.forecast()
    if expected.fits:
        add("all proximities, sparse", n, prox.proximity)
    else:
        size = format_bytes(expected.bytes)
        lines.append(("all proximities, sparse (forecast)", n, expected.seconds, size))
        talk.note(
            f"All proximities would need about {size}, more than the free memory. Their time is "
            "estimated from some of the rows."
        )
    if hasattr(model, "apply"):
        rows = np.sort(np.random.default_rng(options.seed).permutation(n)[: options.subset])
        X = study.X[rows] if isinstance(study.X, np.ndarray) else study.X.iloc[rows]
        uniform = ForestProximity(model, "uniform", dtype=np.float32, n_jobs=options.threads)
        talk.step(f"leafkernel and NumPy on {len(rows):,} rows")
        step = "all proximities (uniform)"
        P = add(f"{step}, leafkernel", len(rows), lambda: uniform.fit(X).proximity())
        dense = add(f"{step}, NumPy", len(rows), lambda: _tree_by_tree(np.asarray(model.apply(X))))
        off = float(np.abs(P.toarray() - dense).max())
        if off > 1e-4:
            raise AssertionError(f"the results of leafkernel and NumPy differ by {off}")
        talk.note(
            f"On {len(rows):,} rows, leafkernel is {lines[-1][2] / lines[-2][2]:.3g} times as fast "
            f"as NumPy, with the same result. For all {n:,} rows the dense matrix would need "
            f"{format_bytes(4 * n * n)}."
        )
    else:
        talk.note(
            f"{type(model).__name__} has no method apply(), so there is no comparison with NumPy."
        )
    frame = pd.DataFrame(lines, columns=["step", "rows", "seconds", "memory"])
    talk.result(frame, options, lines=study.lines(), about=study.about())


def _again(prox: ForestProximity) -> ForestProximity:
    return ForestProximity(**prox.get_params(deep=False))


def _tree_by_tree(leaf: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the share of trees in which two rows are in the same leaf, shape (m, m)."""
    leaf = leaf.reshape(len(leaf), -1)
    shared = np.zeros((len(leaf), len(leaf)), dtype=np.float32)
    for column in leaf.T:
        shared += column[:, None] == column[None, :]
    shared /= np.float32(leaf.shape[1])
    return shared


def _size(result: Any) -> str | None:
    """Return the memory of a matrix, dense or sparse; None for other results."""
    if isinstance(result, np.ndarray):
        return format_bytes(result.nbytes)
    if not issparse(result):
        return None
    return format_bytes(result.data.nbytes + result.indices.nbytes + result.indptr.nbytes)
