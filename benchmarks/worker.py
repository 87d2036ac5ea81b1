"""A process that runs one library on one forest.

    python benchmarks/worker.py RIVAL FOREST N_JOBS [--touch GIGABYTES]

It prints "ready". Then it reads tasks, runs each once and prints its time.
"""

import argparse
import gc
import importlib
import json
import resource
import sys
import time
from pathlib import Path

import joblib
import numpy as np


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rival")
    parser.add_argument("forest")
    parser.add_argument("n_jobs", type=int)
    parser.add_argument("--touch", type=float, default=0)
    args = parser.parse_args()

    forest, X, y = joblib.load(args.forest)
    if args.touch:  # so that no library pays for new memory
        np.ones(int(args.touch * 2**30) // 8).sum()
    module = importlib.import_module(f"rivals.{args.rival}")
    print("ready", flush=True)
    task = run = None
    for text in sys.stdin:
        if text != task:
            run = None  # frees the result of the last task
            task, run = text, module.start(json.loads(text), forest, X, y, args.n_jobs)
            gc.collect()
        before = resident()
        reset_peak()
        begin = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - begin
        found = {"seconds": seconds, "before": before, "peak": peak(), **describe(result)}
        del result
        print(json.dumps(found), flush=True)


def describe(result):
    if isinstance(result, dict):
        return result
    if hasattr(result, "nnz"):
        size = result.data.nbytes + result.indices.nbytes + result.indptr.nbytes
        return {"nonzeros": int(result.nnz), "bytes": int(size)}
    return {}


def resident():
    return status("VmRSS") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak():
    return status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def status(field):
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), None)


def reset_peak():
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


if __name__ == "__main__":
    main()
