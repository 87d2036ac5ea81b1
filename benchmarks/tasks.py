"""Run every task on all of Covertype, each in its own process, and write docs/tasks.md.

    python benchmarks/tasks.py --data-dir DIR [--rows 522910] [--only NAME ...]

DIR contains covtype.npz (arrays X and y). Without it, scikit-learn's fetch_covtype is used. The
forest is fitted once and stored in --cache. Times are those of the task only; the time to fit the
proximity is given separately. Peak memory is that of the process, with the forest and the data.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
from datasets import fitted, load
from run import machine
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel import tasks as lk

HERE = Path(__file__).parent
N_TEST = 10_000


def classify(prox, X, y, X_test, y_test):
    model = lk.ProximityClassifier(prox).fit(X, y)
    return f"test accuracy {model.score(X_test, y_test):.4f}"


def classify_by_neighbors(prox, X, y, X_test, y_test):
    model = lk.ProximityClassifier(prox, n_neighbors=10).fit(X, y)
    return f"test accuracy {model.score(X_test, y_test):.4f}"


def quantiles(prox, X, y, X_test, y_test):
    heights = X[:, 0].astype(float)  # elevation, a target that the forest was not trained on
    model = lk.ProximityRegressor(prox).fit(X, heights)
    low, high = model.predict_interval(X_test, coverage=0.9).T
    inside = (low <= X_test[:, 0]) & (X_test[:, 0] <= high)
    return f"90% intervals cover {inside.mean():.1%} of the test samples"


def trust(prox, X, y, X_test, y_test):
    scores = lk.trust_scores(prox, X_test)
    right = prox.forest_.predict(X_test) == y_test
    where = [scores[right].mean(), scores[~right].mean()]
    return "mean trust {:.2f} where the forest is right, {:.2f} where wrong".format(*where)


def leaf_pca(solver):
    def task(prox, X, y, X_test, y_test):
        model = lk.LeafPCA(prox, n_components=50, solver=solver, random_state=0).fit(X, y)
        model.transform(X_test)
        return f"50 components, {model.explained_variance_ratio_.sum():.1%} of the variance"

    return task


def embedding(**params):
    def task(prox, X, y, X_test, y_test):
        model = lk.LeafEmbedding(prox, **{"random_state": 0, **params}).fit(X, y)
        placed = model.transform(X_test)
        return f"{placed.shape[1]} coordinates, test samples placed"

    return task


def outliers(prox, X, y, X_test, y_test):
    detector = lk.ProximityOutlierDetector(prox).fit(X, y)
    share = (detector.predict() < 0).mean()
    detector.score_samples(X_test)
    return f"{share:.1%} of the samples score above 10"


def middles(prox, X, y, X_test, y_test):
    found = lk.class_prototypes(prox, X, y)
    return f"medians and quartiles of {len(found.classes)} classes"


def prototypes(prox, X, y, X_test, y_test):
    model = lk.PrototypeClassifier(prox, n_prototypes=20).fit(X, y)
    return f"20 for each class; nearest-prototype test accuracy {model.score(X_test, y_test):.3f}"


def medoids(prox, X, y, X_test, y_test):
    return f"{len(lk.medoids(prox, y))} medoids"


def k_medoids(prox, X, y, X_test, y_test):
    model = lk.ProximityKMedoids(prox, n_clusters=7, max_iter=5).fit(X, y)
    model.predict(X_test)
    return f"7 clusters in {model.n_iter_} turns"


def spectral(prox, X, y, X_test, y_test):
    model = lk.ProximitySpectralClustering(prox, n_clusters=7, random_state=0).fit(X, y)
    model.predict(X_test)
    return "7 clusters"


def hdbscan(prox, X, y, X_test, y_test):
    model = lk.ProximityHDBSCAN(prox, min_cluster_size=100, n_neighbors=100).fit(X, y)
    model.predict(X_test[:1000])
    return f"{model.labels_.max() + 1} clusters, {(model.labels_ < 0).mean():.0%} noise"


def impute(prox, X, y, X_test, y_test):
    rng = np.random.default_rng(0)
    holes = X.astype(np.float64)
    holes[rng.random(X.shape) < 0.05] = np.nan
    # One forest for all columns, as in rfImpute. One forest per column would take longer.
    forest = RandomForestClassifier(n_jobs=prox.n_jobs, random_state=0)
    imputer = lk.ProximityImputer(forest, max_iter=2, n_jobs=prox.n_jobs)
    imputer.fit(holes, y)
    return "5% of the cells, two iterations with one forest for all columns in each"


def explain_prediction(prox, X, y, X_test, y_test):
    for x in X_test[:100]:
        lk.explain_prediction(prox, x)
    return "100 test samples"


def explain_pair(prox, X, y, X_test, y_test):
    for x in X_test[:10]:
        lk.explain_pair(prox, x, 0)
    return "10 pairs"


def importance(prox, X, y, X_test, y_test):
    return f"for each of {len(lk.local_importance(prox)):,} samples"


def graph(prox, X, y, X_test, y_test):
    found = lk.ProximityNeighborsTransformer(prox, n_neighbors=30).fit_transform(X, y)
    return f"{found.nnz:,} edges"


TASKS = {
    "ProximityClassifier": ("gap", classify),
    "ProximityClassifier(n_neighbors=10)": ("gap", classify_by_neighbors),
    "ProximityRegressor: calibrated intervals": ("gap", quantiles),
    "trust_scores": ("gap", trust),
    "LeafPCA, ARPACK": ("kerf", leaf_pca("arpack")),
    "LeafPCA, randomized": ("kerf", leaf_pca("randomized")),
    "LeafEmbedding: spectral": ("kerf", embedding(method="spectral")),
    "LeafEmbedding: diffusion": ("uniform", embedding(method="diffusion")),
    "LeafEmbedding: mds": ("uniform", embedding(method="mds")),
    "LeafEmbedding: svd": ("gap", embedding(method="svd")),
    # Without a seed, UMAP uses all cores.
    "LeafEmbedding: umap, from PCA": ("kerf", embedding(method="umap", random_state=None)),
    "LeafEmbedding: umap, from the kernel": (
        "kerf",
        embedding(method="umap", source="kernel", random_state=None),
    ),
    "LeafEmbedding: tsne, from the kernel": ("kerf", embedding(method="tsne", source="kernel")),
    "LeafEmbedding: phate, from PCA": ("kerf", embedding(method="phate")),
    "LeafEmbedding: phate, from the kernel": ("kerf", embedding(method="phate", source="kernel")),
    "outliers": ("uniform", outliers),
    "outliers, gap": ("gap", outliers),
    "class_prototypes": ("uniform", middles),
    "PrototypeClassifier": ("uniform", prototypes),
    "medoids": ("uniform", medoids),
    "ProximityKMedoids": ("uniform", k_medoids),
    "ProximitySpectralClustering": ("kerf", spectral),
    "ProximityHDBSCAN": ("uniform", hdbscan),
    "ProximityNeighborsTransformer": ("uniform", graph),
    "explain_prediction": ("gap", explain_prediction),
    "explain_pair": ("gap", explain_pair),
    "local_importance": ("gap", importance),
    "ProximityImputer(forest)": ("gap", impute),
}


def run_one(name, forest_path, data_dir, n_jobs):
    """Run a task in this process and print its time and memory."""
    scheme, task = TASKS[name]
    forest, X, y = joblib.load(forest_path)
    X_all, y_all = load("covtype", data_dir)
    X_test, y_test = X_all[len(y) :][:N_TEST].copy(), y_all[len(y) :][:N_TEST].copy()
    del X_all, y_all
    forest.n_jobs = n_jobs
    begin = time.perf_counter()
    prox = ForestProximity(forest, scheme, n_jobs=n_jobs).fit(X, y)
    fitted_in = time.perf_counter() - begin
    begin = time.perf_counter()
    says = task(prox, X, y, X_test, y_test)
    record = {
        "task": name,
        "scheme": scheme,
        "rows": len(y),
        "fit": round(fitted_in, 2),
        "seconds": round(time.perf_counter() - begin, 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "says": says,
    }
    print("RESULT " + json.dumps(record))


def write_page(results, path):
    by_task = {record["task"]: record for record in results["records"]}
    lines = [
        "| task | scheme | seconds | peak GB | result |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in TASKS:
        record = by_task.get(name)
        if record is None:
            continue
        took = "-" if record["seconds"] is None else f"{record['seconds']:,.1f}"
        peak = "-" if record["peak_gb"] is None else f"{record['peak_gb']:.1f}"
        label = name if ":" in name or " " in name or "(" in name else f"`{name}`"
        lines.append(f"| {label} | {record['scheme']} | {took} | {peak} | {record['says']} |")
    rows = max(record["rows"] for record in results["records"])
    system = results["machine"]
    fits = [record["fit"] for record in results["records"] if record["fit"] is not None]
    text = (HERE / "tasks.template.md").read_text()
    text = text.replace("<!-- table -->", "\n".join(lines)).replace("<!-- rows -->", f"{rows:,}")
    text = text.replace("<!-- fit -->", f"{min(fits):.0f} to {max(fits):.0f}")
    about = [system["processor"], f"{system['threads']} threads", system["system"]]
    text = text.replace("<!-- machine -->", ", ".join(about))
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--cache", type=Path, default=HERE / "cache")
    parser.add_argument("--rows", type=int, default=522_910)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=1200, help="seconds for a task")
    parser.add_argument("--only", nargs="+", choices=TASKS)
    parser.add_argument("--output", type=Path, default=HERE / "tasks.json")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--forest", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        run_one(args.task, args.forest, args.data_dir, args.n_jobs)
        return
    forest = fitted(
        "covtype", args.rows, {}, data_dir=args.data_dir, cache=args.cache, n_jobs=args.n_jobs
    )
    known = json.loads(args.output.read_text())["records"] if args.output.exists() else []
    for name in args.only or TASKS:
        command = [sys.executable, __file__, "--task", name, "--forest", forest]
        command += ["--n-jobs", args.n_jobs]
        command += ["--data-dir", args.data_dir] if args.data_dir else []
        record = {"task": name, "scheme": TASKS[name][0], "rows": args.rows}
        record |= {"fit": None, "seconds": None, "peak_gb": None}
        try:
            done = subprocess.run(
                list(map(str, command)),
                check=False,
                capture_output=True,
                text=True,
                timeout=args.timeout,
            )
            found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            if found:
                record = json.loads(found[0].removeprefix("RESULT "))
            else:
                last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
                record["says"] = f"failed: {last}"
        except subprocess.TimeoutExpired:
            record["says"] = f"not done within {args.timeout // 60} minutes"
        print(record, flush=True)
        known = [old for old in known if old["task"] != name] + [record]
        args.output.write_text(json.dumps({"machine": machine(args), "records": known}, indent=1))
    write_page(json.loads(args.output.read_text()), HERE.parent / "docs" / "tasks.md")


if __name__ == "__main__":
    main()
