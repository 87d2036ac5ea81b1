"""Measure the GPU engine, and write the results to ``benchmarks/gpu.json``.

    python benchmarks/gpu.py --data-dir DIR [--only kernels] [--forestgeom]

Needs CuPy and an NVIDIA GPU. Times are medians of repeated calls after a first one, and the GPU is
synchronized before and after each. ``--forestgeom`` compares with forestgeom, which takes a minute.
``python benchmarks/gpu_page.py`` writes the tables of docs/gpu.md from the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import resource
import time
from functools import partial
from operator import matmul
from pathlib import Path

import cupy
import lightgbm
import numpy as np
from cupyx.scipy import sparse
from datasets import higgs_like
from sklearn.ensemble import RandomForestClassifier

import leafkernel
from leafkernel import ForestProximity
from leafkernel.engines import NativeEngine
from leafkernel.engines.gpu import GpuEngine, _rows
from leafkernel.engines.gpu._device import Kernel
from leafkernel.inside import Inside

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "gpu.json"
SCHEMES = ("uniform", "gap", "kerf", "oob")
STEPS = ("kernels", "boosted", "whole", "many", "profile", "tune")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--only", nargs="*", default=STEPS, choices=STEPS)
    parser.add_argument("--forestgeom", action="store_true")
    parser.add_argument("--many-rows", type=int, default=10_000_000)
    parser.add_argument("--n-jobs", type=int, default=16)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    results["machine"] = machine(options.n_jobs)
    for step in options.only:
        results[step] = globals()[f"measure_{step}"](options)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
        print(step, json.dumps(results[step]), flush=True)


def machine(n_jobs):
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "gpu": properties["name"].decode(),
        "cupy": cupy.__version__,
        "cuda": cupy.cuda.runtime.runtimeGetVersion(),
        "python": platform.python_version(),
        "leafkernel": leafkernel.__version__,
        "threads": n_jobs,
    }


def covertype(options, n_rows):
    data = np.load(options.data_dir / "covtype.npz")
    order = np.random.default_rng(0).permutation(len(data["y"]))[:n_rows]
    return data["X"].astype(np.float32)[order], data["y"][order]


def grown(options, X, y, **params):
    return RandomForestClassifier(100, n_jobs=options.n_jobs, random_state=0, **params).fit(X, y)


def timed(run, repeats=7):
    """Return the median time of a call, in milliseconds. The first call is not counted."""
    synchronize = cupy.cuda.Device().synchronize
    run()
    took = []
    for _ in range(repeats):
        synchronize()
        begin = time.perf_counter()
        result = run()
        synchronize()
        took.append(1e3 * (time.perf_counter() - begin))
        del result
    return float(np.median(took))


def measure_kernels(options):
    """Full CSR rows and neighbors, from an index that is on the GPU."""
    found, engine = [], GpuEngine(output="cupy")
    for n_rows in (65_536, 262_144):
        X, y = covertype(options, n_rows)
        forest = grown(options, X, y)
        for scheme in SCHEMES:
            prox = ForestProximity(forest, scheme, n_jobs=options.n_jobs).fit(X, y)
            product = Inside.of(prox).product()
            P = engine.rows(product)
            record = {
                "rows": n_rows,
                "scheme": scheme,
                "nonzeros": int(P.nnz),
                "csr_ms": timed(partial(engine.rows, product)),
                "nearest_ms": timed(partial(engine.nearest, product, 10)),
                "native_nearest_ms": timed(
                    partial(NativeEngine(options.n_jobs).nearest, product, 10), 1
                ),
            }
            del P
            if n_rows == 65_536 and scheme in ("uniform", "kerf"):
                Q = sparse.csr_matrix(prox.query_map())
                transposed = sparse.csr_matrix(Q.T)
                record["cusparse_ms"] = timed(partial(matmul, Q, transposed), 2)
                del Q, transposed
            found.append(record)
            print(record, flush=True)
            cupy.get_default_memory_pool().free_all_blocks()
    return found


def measure_boosted(options):
    """Neighbors under LightGBM, whose leaves are large."""
    found = []
    for n_rows in (65_536, 262_144):
        X, y = covertype(options, n_rows)
        model = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=31, verbose=-1).fit(X, y == 2)
        for scheme in ("uniform", "boosted"):
            if scheme == "boosted" and n_rows > 65_536:
                continue
            engine = GpuEngine()
            prox = ForestProximity(model, scheme, engine=engine, n_jobs=options.n_jobs)
            prox.fit(X, y == 2)
            took = timed(prox.kneighbors, 3)
            found.append({"rows": n_rows, "scheme": scheme, "nearest_ms": took})
            print(found[-1], flush=True)
    return found


def measure_whole(options):
    """From a fitted forest and X in main memory to the answer there, or to P on the GPU."""
    X, y = covertype(options, 522_910)
    forest = grown(options, X, y)

    def neighbors(engine):
        begin = time.perf_counter()
        prox = ForestProximity(forest, "gap", engine=engine, n_jobs=options.n_jobs).fit(X, y)
        fitted = time.perf_counter()
        prox.kneighbors(n_neighbors=50)
        end = time.perf_counter()
        return [fitted - begin, end - fitted]

    record = {"rows": len(X), "gpu_first_s": neighbors("gpu")}
    record["gpu_s"] = np.median([neighbors("gpu") for _ in range(3)], axis=0).tolist()
    record["native_s"] = np.median([neighbors("native") for _ in range(2)], axis=0).tolist()
    print(record, flush=True)
    X, y = covertype(options, 262_144)
    forest = grown(options, X, y)

    def matrix():
        engine = GpuEngine(output="cupy")
        prox = ForestProximity(forest, "kerf", engine=engine, n_jobs=options.n_jobs).fit(X, y)
        return prox.proximity()

    cupy.get_default_memory_pool().free_all_blocks()
    record["kerf_matrix_s"] = timed(matrix, 3) / 1e3
    print(record, flush=True)
    if options.forestgeom:
        from rivals.forestgeom_ import start  # noqa: PLC0415 - not everyone has forestgeom

        run = start({"scheme": "kerf"}, forest, X, y, options.n_jobs)
        begin = time.perf_counter()
        run()
        record["forestgeom_kerf_s"] = time.perf_counter() - begin
    return record


def measure_many(options):
    """RF-GAP neighbors of many rows that resemble HIGGS."""
    n_rows = options.many_rows
    begin = time.perf_counter()
    X, y = higgs_like(n_rows)
    X = X.astype(np.float32)
    forest = grown(options, X, y, max_samples=60_000)
    record = {"rows": n_rows, "grow_s": time.perf_counter() - begin}
    print(record, flush=True)
    begin = time.perf_counter()
    prox = ForestProximity(forest, "gap", engine="gpu", n_jobs=options.n_jobs).fit(X, y)
    record["fit_s"] = time.perf_counter() - begin
    print(record, flush=True)
    begin = time.perf_counter()
    prox.kneighbors(n_neighbors=30)
    record["nearest_s"] = time.perf_counter() - begin
    record["gpu_bytes"] = int(cupy.get_default_memory_pool().total_bytes())
    record["process_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return record


def measure_profile(options):
    """The time of each CUDA function, and the time between them."""
    found, engine = [], GpuEngine(output="cupy")
    for n_rows in (65_536, 262_144):
        X, y = covertype(options, n_rows)
        forest = grown(options, X, y)
        for scheme in ("uniform", "gap"):
            prox = ForestProximity(forest, scheme, engine=engine, n_jobs=options.n_jobs)
            works = {
                "fit": partial(prox.fit, X, y),
                "rows": prox.proximity,
                "nearest": partial(prox.kneighbors, n_neighbors=10),
            }
            for work, run in works.items():
                record = {"rows": n_rows, "scheme": scheme, "work": work, **profiled(run)}
                found.append(record)
                print(record, flush=True)
    return found


def measure_tune(options):
    """The time of P with other sizes of thread blocks and parts."""
    X, y = covertype(options, 65_536)
    forest = grown(options, X, y)
    products = {
        scheme: Inside.of(
            ForestProximity(forest, scheme, n_jobs=options.n_jobs).fit(X, y)
        ).product()
        for scheme in ("uniform", "gap")
    }
    names = ("_FILL_THREADS", "_BLOCKS_PER_UNIT", "_LANES_OF_LEAF")
    usual = {name: getattr(_rows, name) for name in names}
    found = []
    for part_size, (threads, blocks), lanes in itertools.product(
        (65_536, 32_768), ((256, 3), (256, 6), (512, 3), (1024, 2)), (2, 4, 8)
    ):
        for name, value in zip(names, (threads, blocks, lanes), strict=True):
            setattr(_rows, name, value)
        engine = GpuEngine(output="cupy", part_size=part_size)
        record = {"part_size": part_size, "threads": threads, "blocks": blocks, "lanes": lanes}
        for scheme, some in products.items():
            record[f"{scheme}_ms"] = timed(partial(engine.rows, some), 5)
        found.append(record)
        print(record, flush=True)
    for name, value in usual.items():
        setattr(_rows, name, value)
    return found


def profiled(run):
    """Return the milliseconds of a call, of each CUDA function in it, and of the rest."""
    run()
    launches, start = [], Kernel.__call__

    def watched(self, *arguments, **options):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        start(self, *arguments, **options)
        after.record()
        launches.append((self.name, before, after))

    Kernel.__call__ = watched
    try:
        total = timed(run, 1)
    finally:
        Kernel.__call__ = start
    last = launches[len(launches) // 2 :]  # timed() calls it twice
    of_function = {}
    for name, before, after in last:
        took = cupy.cuda.get_elapsed_time(before, after)
        of_function[name] = of_function.get(name, 0.0) + took
    rest = total - sum(of_function.values())
    return {"total_ms": total, "functions_ms": of_function, "between_ms": rest}


if __name__ == "__main__":
    main()
