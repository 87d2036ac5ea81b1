"""``leafkernel benchmark``: how long the steps take on a table, beside the obvious way."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from leafkernel import ForestProximity
from leafkernel._memory import format_bytes
from leafkernel.cli._output import Talk, check_output
from leafkernel.cli._train import Study, begin
from leafkernel.cli.commands import Benchmark
from leafkernel.explorer._judgement import Judgement

# What takes less is timed again, and the median counts.
_SHORT, _TIMES = 0.5, 3

Result = TypeVar("Result")


def benchmark(talk: Talk, options: Benchmark) -> None:
    """Time the steps on a table."""
    check_output(options)
    study = begin(talk, options)
    lines = [*_of_all(talk, study), *_of_some(talk, study, options)]
    talk.result(pd.DataFrame(lines), options, lines=study.lines(), about=study.about())


def _of_all(talk: Talk, study: Study) -> list[dict[str, Any]]:
    """Time what people ask for, on all rows."""
    prox, n = study.prox, len(study.y)

    def fit() -> ForestProximity:
        return ForestProximity(**prox.get_params(deep=False)).fit(study.X, study.y)

    talk.step("leafkernel on all rows")
    expected = prox.forecast()
    lines = [] if study.seconds is None else [_line("growing the forest", n, study.seconds)]
    steps: dict[str, Callable[[], Any]] = {
        "fit, from a grown forest": fit,
        "10 nearest rows of each": lambda: prox.kneighbors(None, min(10, n - 1)),
        "predictions of each by the others": lambda: Judgement.of(prox, study.y),
    }
    lines += [_line(step, n, _timed(run)[0]) for step, run in steps.items()]
    if expected.fits:
        seconds, P = _timed(prox.proximity)
        lines.append(_line("all proximities, sparse", n, seconds, _size(P)))
    else:
        talk.note(
            f"All proximities would take about {format_bytes(expected.bytes)}, more than is free; "
            "their time is a forecast from some of the rows."
        )
        lines.append(
            _line("all proximities, sparse (forecast)", n, expected.seconds, expected.bytes)
        )
    return lines


def _of_some(talk: Talk, study: Study, options: Benchmark) -> list[dict[str, Any]]:
    """Time Breiman's proximity of some rows, made by us and tree by tree with NumPy."""
    model, n = study.prox.forest_, len(study.y)
    if not hasattr(model, "apply"):
        talk.note(f"{type(model).__name__} has no apply(), so there is no obvious way to time.")
        return []
    rows = np.sort(np.random.default_rng(options.seed).permutation(n)[: options.subset])
    X = study.X[rows] if isinstance(study.X, np.ndarray) else study.X.iloc[rows]
    y = study.y[rows]

    def ours() -> Any:
        prox = ForestProximity(model, "uniform", dtype=np.float32, n_jobs=options.threads)
        return prox.fit(X, y).proximity()

    talk.step(f"leafkernel on {len(rows):,} rows")
    our_time, P = _timed(ours)
    talk.step(f"NumPy on {len(rows):,} rows")
    their_time, dense = _timed(lambda: _tree_by_tree(np.asarray(model.apply(X))))
    off = float(np.abs(P.toarray() - dense).max())
    if off > 1e-4:
        raise AssertionError(f"the two ways differ by {off}")
    talk.note(
        f"On the same {len(rows):,} rows leafkernel is {their_time / our_time:.3g} times as fast "
        f"as NumPy, with the same numbers. For all {n:,} rows the dense matrix would take "
        f"{format_bytes(4 * n * n)}."
    )
    return [
        _line("all proximities (uniform), leafkernel", len(rows), our_time, _size(P)),
        _line("all proximities (uniform), NumPy", len(rows), their_time, dense.nbytes),
    ]


def _tree_by_tree(leaf: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the share of trees in which two rows reach the same leaf, shape (m, m)."""
    leaf = leaf.reshape(len(leaf), -1)
    shared = np.zeros((len(leaf), len(leaf)), dtype=np.float32)
    for column in leaf.T:
        shared += column[:, None] == column[None, :]
    shared /= np.float32(leaf.shape[1])
    return shared


def _timed(run: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds that something takes, and its result."""
    times: list[float] = []
    while True:
        begin_at = perf_counter()
        result = run()
        times.append(perf_counter() - begin_at)
        if len(times) == _TIMES or sum(times) > _SHORT:
            return median(times), result


def _size(P: Any) -> int:
    return int(P.data.nbytes + P.indices.nbytes + P.indptr.nbytes)


def _line(step: str, n_rows: int, seconds: float, size: int | None = None) -> dict[str, Any]:
    memory = None if size is None else format_bytes(size)
    return {"step": step, "rows": n_rows, "seconds": seconds, "memory": memory}
