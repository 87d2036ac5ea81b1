"""Try every forest in every scheme, and write docs/forests.md.

    python docs/forest_table.py

The forests are those of tests/zoo/, where each cell is also held against the formula on the leaf
ids of its own library (tests/test_zoo.py).
"""

import sys
import time
import warnings
from importlib import import_module
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.forests import adapt

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import zoo  # noqa: E402

LIBRARIES = {
    "scikit-learn": "sklearn",
    "imbalanced-learn": "imblearn",
    "scikit-survival": "sksurv",
    "quantile-forest": "quantile_forest",
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    "CatBoost": "catboost",
}
REASONS = {
    "has none: its trees are fitted to residuals": "residuals",
    "reweights the samples": "reweighed",
    "every tree was trained on every sample": "no bootstrap",
    "does not store the samples": "draws not stored",
    "averages its trees": "equal weights",
    "is one tree": "one tree",
    "needs class labels": "no classes",
}


def cell(model, X, y, scheme):
    """Return ✓, or the reason for a refusal in short."""
    try:
        ForestProximity(model, scheme).fit(X, y).proximity()
    except ValueError as error:
        return next(short for said, short in REASONS.items() if said in str(error))
    return "✓"


def table():
    heads = ["forest", *(f"`{scheme}`" for scheme in zoo.SCHEMES)]
    lines = [heads, ["---"] * len(heads)]
    for animal in zoo.ANIMALS:
        model, X, y = animal.fitted()
        name = (
            animal.name if animal.library == "scikit-learn" else f"{animal.name} ({animal.library})"
        )
        lines.append([name, *(cell(model, X, y, scheme) for scheme in zoo.SCHEMES)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def versions():
    return ", ".join(
        f"{name} {import_module(module).__version__}" for name, module in LIBRARIES.items()
    )


def main():
    warnings.simplefilter("ignore")
    page = (HERE / "forests.template.md").read_text()
    page = page.replace("<!-- table -->", table()).replace("<!-- versions -->", versions())
    page = page.replace("<!-- leaves -->", leaves())
    (HERE / "forests.md").write_text(page)


def leaves():
    """What it takes to get the leaves, beside the library's own prediction of the same rows."""
    X, y = make_classification(50_000, 30, n_informative=10, random_state=0)
    X = X.astype(np.float32)
    models = [
        RandomForestClassifier(100, n_jobs=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=100),
        lightgbm.LGBMClassifier(n_estimators=100, n_jobs=2, verbose=-1),
        xgboost.XGBClassifier(n_estimators=100, n_jobs=2),
        catboost.CatBoostClassifier(
            iterations=100, thread_count=2, verbose=0, allow_writing_files=False
        ),
    ]
    lines = [["model, 100 trees", "leaves", "predict_proba"], ["---"] * 3]
    for model in models:
        forest = adapt(model.fit(X, y))
        took = [
            fastest(lambda f=forest: f.leaves(X, n_threads=2)),
            fastest(lambda m=model: m.predict_proba(X)),
        ]
        lines.append([type(model).__name__, *(f"{seconds:.2f} s" for seconds in took)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fastest(run, repeats=5):
    took = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return min(took)


if __name__ == "__main__":
    main()
