"""What each extra is for, tried in this environment.

    python features.py EXTRA

A feature must work if the package that it needs is installed, and must name its extra if not. All
features of EXTRA must work.
"""

import importlib.util
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from leafkernel import Batches, ForestProximity

X, y = load_iris(return_X_y=True)
FOREST = RandomForestClassifier(20, random_state=0).fit(X, y)


def fitted():
    return ForestProximity(FOREST, "kerf").fit(X, y)


def boosted(module, name, **options):
    """Return a function that uses a boosted model, or an object that looks like one."""

    def use(_folder):
        if installed(module):
            kind = getattr(importlib.import_module(module), name)
        else:
            kind = type(name, (), {"__module__": f"{module}.sklearn"})
        model = kind(**options) if installed(module) else kind()
        ForestProximity(model, "kerf").fit(X, y).kneighbors(X[:3], 2)

    return use


def embedded(method):
    def use(_folder):
        from leafkernel.tasks import LeafEmbedding

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            LeafEmbedding(fitted(), method=method).fit_transform(X, y)

    return use


def run_command(folder):
    table = folder / "table.csv"
    table.write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(40)))
    command = [sys.executable, "-m", "leafkernel", "neighbors", str(table), "-t", "y"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ImportError(done.stderr)


def write_parquet(folder):
    fitted().write_neighbors(folder / "neighbors.parquet", n_neighbors=3)


def read_parquet(folder):
    Batches.from_parquet(folder / "missing.parquet", target="y")


def make_frame(_folder):
    fitted().neighbors_frame(X[:2], 3)


def draw(folder):
    from leafkernel import plots

    if installed("matplotlib"):
        importlib.import_module("matplotlib").use("agg")
    axes = plots.plot_proximity(fitted(), y=y)
    getattr(axes, "figure", axes).savefig(folder / "picture.png")


def use_dask(_folder):
    from dask.array import from_array

    prox = ForestProximity(FOREST, "kerf").fit(from_array(X, 50), from_array(y, 50))
    np.testing.assert_allclose(
        prox.proximity()[:5].compute().toarray(), fitted().proximity()[:5].toarray()
    )


def show_progress(_folder):
    ForestProximity(FOREST, "kerf", progress=True).fit(X, y).proximity()


def save(folder):
    fitted().save(folder / "saved")
    ForestProximity.load(folder / "saved").kneighbors(X[:3], 2)


def use_gpu(_folder):
    try:
        ForestProximity(FOREST, "kerf", engine="gpu").fit(X, y).proximity()
    except RuntimeError as error:
        if "needs an NVIDIA GPU and its driver" not in str(error):
            raise


# For each extra: packages of it, each with a function that needs it.
FEATURES = {
    "boosting": [
        ("lightgbm", boosted("lightgbm", "LGBMClassifier", n_estimators=5, verbose=-1)),
        ("xgboost", boosted("xgboost", "XGBClassifier", n_estimators=5)),
        (
            "catboost",
            boosted(
                "catboost",
                "CatBoostClassifier",
                iterations=5,
                verbose=False,
                allow_writing_files=False,
            ),
        ),
    ],
    "embedding": [
        ("umap", embedded("umap")),
        ("openTSNE", embedded("tsne")),
        ("phate", embedded("phate")),
    ],
    "cli": [("typer", run_command), ("pyarrow", write_parquet), ("pandas", make_frame)],
    "plot": [("matplotlib", draw)],
    "dask": [("dask", use_dask)],
    "gpu": [("cupy", use_gpu)],
    "progress": [("tqdm", show_progress)],
    "save": [("skops", save)],
}


def installed(module):
    return importlib.util.find_spec(module) is not None


def main(extra):
    for name, features in FEATURES.items():
        for module, use in features:
            with tempfile.TemporaryDirectory() as folder:
                if installed(module):
                    use(Path(folder))
                elif name == extra:
                    sys.exit(f"the extra {extra} does not install {module}")
                elif name != "dask":  # whoever has a Dask array has Dask
                    check_names_extra(name, module, use, Path(folder))
    print(f"{extra}: all features work or name their extra")


def check_names_extra(name, module, use, folder):
    try:
        use(folder)
    except ImportError as error:
        commands = (f'pip install "leafkernel[{name}]"', f"pip install {module}")
        if not any(command in str(error) for command in commands):
            sys.exit(f"a feature of {name} fails without naming the extra: {error}")
    else:
        sys.exit(f"a feature of {name} works without it: is the extra needed?")


if __name__ == "__main__":
    main(sys.argv[1])
